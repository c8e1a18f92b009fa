"""``letir doctor``: what letir finds on this machine, and advice that would make it faster."""

import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from letir import __version__, get_num_threads
from letir.cli.blas_report import blas_report
from letir.eval.array_modules import device_report
from letir.kernels.llvm.machine_code import compiler_report
from letir.kernels.llvm.object_cache import cache_folder
from letir.kernels.machine_costs import machine_costs

# the extras for users, with the package that each adds; others are for developers of letir
_EXTRAS = {
    "fast": "llvmlite",
    "scipy": "scipy",
    "onnx": "onnx",
    "testing": "hypothesis",
    "residuals": "networkx",
    "progress": "tqdm",
}


def machine_report() -> dict[str, Any]:
    """All facts, by section. A section that cannot be read has an ``error``."""
    return {
        "letir": _facts_or_error(_letir_facts),
        "python": _facts_or_error(_python_facts),
        "processor": _facts_or_error(_processor_facts),
        "blas": _facts_or_error(blas_report),
        "compiler": _facts_or_error(compiler_report),
        "cache": _facts_or_error(_cache_facts),
        "costs": _facts_or_error(_cost_facts),
        "device": _facts_or_error(device_report),
        "extras": _facts_or_error(_extra_versions),
    }


def report_text(report: dict[str, Any]) -> str:
    """The report for a reader, with the advice at the end."""
    lines, advice = [], []
    for name, facts in report.items():
        shown = [
            f"{k} {_fact_text(v)}" for k, v in facts.items() if k != "advice" and v is not None
        ]
        lines.append(f"{name:<10} {', '.join(shown)}")
        if facts.get("advice"):
            advice.append(facts["advice"])
    lines += ["", *([f"- {line}" for line in advice] or ["No problems were found."])]
    return "\n".join(lines)


def _fact_text(value: Any) -> str:
    """A fact as text."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _facts_or_error(facts: Callable[[], dict]) -> dict:
    """The facts of a section, or its error if another package is damaged."""
    try:
        return facts()
    except Exception as error:  # of any package: the report must say so, not end
        return {"error": f"{type(error).__name__}: {error}"}


def _letir_facts() -> dict:
    """letir's version and where it is, and the variables that change how it works."""
    settings = {k: v for k, v in sorted(os.environ.items()) if k.startswith("LETIR_")}
    set_here = ", ".join(f"{k}={v}" for k, v in settings.items()) or None
    return {
        "version": __version__,
        "folder": str(Path(__file__).parents[1]),
        "variables": set_here,
    }


def _python_facts() -> dict:
    """The versions of Python and NumPy, and the system."""
    return {
        "version": platform.python_version(),
        "program": sys.executable,
        "numpy": np.__version__,
        "system": platform.platform(),
    }


def _processor_facts() -> dict:
    """The cores of the machine, of this process, and the threads that kernels use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cores": os.cpu_count(), "usable": usable, "threads of kernels": get_num_threads()}


def _cache_facts() -> dict:
    """Where machine code is kept, how much of it, and of how many kernels."""
    folder = cache_folder(os.environ.get("LETIR_CACHE_DIR"))
    if folder is None:
        return {
            "folder": None,
            "advice": "kernels are compiled again in each process, since their code is not kept: "
            "set LETIR_CACHE_DIR to a folder that only you may write to",
        }
    sizes = [file.stat().st_size for file in folder.iterdir() if file.is_file()]
    return {"folder": str(folder), "kernels": len(sizes), "MiB": round(sum(sizes) / 2**20, 1)}


def _cost_facts() -> dict:
    """Where the costs come from that decide what becomes a kernel."""
    costs = machine_costs()
    return {"of": costs.origin, "elements": costs.least_elements, "work": costs.least_thread_work}


def _extra_versions() -> dict:
    """The version of the package that each extra adds, or that it is missing."""
    return {extra: f"{package} {_version_of(package)}" for extra, package in _EXTRAS.items()}


def _version_of(package: str) -> str:
    """The version of a package, or that it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
