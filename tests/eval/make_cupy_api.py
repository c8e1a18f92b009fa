"""Write ``tests/data/cupy_api.json``: the functions of CuPy, read from its wheel.

Run it by a Python that has the wheel, which needs no device:

    pip download --no-deps cupy-cuda12x
    python -m venv cupy && cupy/bin/pip install cupy_cuda12x-*.whl
    cupy/bin/python tests/eval/make_cupy_api.py

The stand-in for CuPy refuses what is not in the list.
"""

import contextlib
import importlib
import inspect
import json
import re
import types
from collections.abc import Iterator
from pathlib import Path

import cupy
import numpy as np
from cupy_backends.cuda import libs

FILE = Path(__file__).parents[1] / "data" / "cupy_api.json"
MODULES = (
    *("cupy", "cupy.linalg", "cupy.fft", "cupy.random", "cupy.lib.stride_tricks"),
    *("cupyx.scipy.special", "cupyx.scipy.linalg", "cupyx.scipy.signal"),
)
# Loaded with CUDA's libraries, which this machine need not have.
_LIBRARIES = ("cublas", "cusolver", "cusparse", "cufft", "curand", "cutensor", "profiler")
# method -> its operands, none of which is an array: what a ufunc lacks it refuses first
_METHODS = {"reduce": 1, "accumulate": 1, "reduceat": 2, "at": 3, "outer": 2}


class _Library(types.ModuleType):
    """A module in place of a library that is not installed; its constants are 0."""

    def __getattr__(self, name: str) -> int:
        if name.startswith("__"):
            raise AttributeError(name)
        return 0


def signature_of(function) -> str | None:
    """The signature of a function as text; None if it is not known."""
    with contextlib.suppress(ValueError, TypeError):
        found = inspect.signature(function)
        bare = [
            p.replace(annotation=p.empty, default=p.default if p.default is p.empty else None)
            for p in found.parameters.values()
        ]
        return str(inspect.Signature(bare))
    # compiled functions: the first line of the docstring
    first = (getattr(function, "__doc__", None) or "").strip().partition("\n")[0]
    found = re.search(r"\((.*)\)(?: ->.*)?$", first)
    return None if found is None else f"({_without_types(found[1])})"


def _without_types(parameters: str) -> str:
    """Parameters of a compiled function without types, and with None as their defaults."""
    kept = []
    for parameter in re.split(r", (?![^(\[]*[)\]])", parameters):
        name, is_default, _ = parameter.partition("=")
        name = name.split()[-1] if name.split() else name
        if name != "self":
            kept.append(f"{name}=None" if is_default else name)
    return ", ".join(kept)


def methods_of(ufunc) -> list[str]:
    """The methods of a ufunc that CuPy has."""
    found = []
    for name, count in _METHODS.items():
        try:
            getattr(ufunc, name)(*[None] * count)
        except NotImplementedError:
            continue
        except Exception:
            pass
        found.append(name)
    return found


def entries(module) -> Iterator[tuple[str, object]]:
    """(name, facts) for the public attributes of a module."""
    for name in sorted(dir(module)):
        value = getattr(module, name, None)
        if name.startswith("_") or value is None or isinstance(value, types.ModuleType):
            continue
        if isinstance(value, cupy.ufunc):
            yield name, {"loops": value.types, "methods": methods_of(value)}
        elif callable(value) and not isinstance(value, type):
            yield name, signature_of(value)
        else:
            yield name, None


def array_entries() -> Iterator[tuple[str, str | None]]:
    """(name, signature) for the attributes of an array; without one for those that are values."""
    for name in sorted(dir(cupy.ndarray)):
        if not name.startswith("_") or name in ("__array_priority__", "__dlpack__"):
            value = getattr(cupy.ndarray, name)
            yield name, signature_of(value) if callable(value) else None


def main() -> None:
    """Write the list."""
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(f"cupy_backends.cuda.libs.{name}")
            continue
        vars(libs)[name] = _Library(name)
        importlib.sys.modules[f"cupy_backends.cuda.libs.{name}"] = vars(libs)[name]
    listed: dict[str, dict] = {
        path: dict(entries(importlib.import_module(path))) for path in MODULES
    }
    listed["cupy.ndarray"] = dict(array_entries())
    listed["cupy.random.Generator"] = {
        name: signature_of(getattr(cupy.random.Generator, name))
        for name in sorted(dir(cupy.random.Generator))
        if not name.startswith("_")
    }
    flags = cupy._core.flags.Flags
    listed["cupy.ndarray.flags"] = {n: None for n in sorted(dir(flags)) if not n.startswith("_")}
    lines = [
        f'"{path}": {{\n'
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(facts)}" for name, facts in names.items())
        + "\n}"
        for path, names in listed.items()
    ]
    versions = f'"versions": {{"cupy": "{cupy.__version__}", "numpy": "{np.__version__}"}}'
    FILE.write_text("{\n" + ",\n".join([versions, *lines]) + "\n}\n")


if __name__ == "__main__":
    main()
