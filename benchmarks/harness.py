"""How figures are measured: the unit u, medians of interleaved rounds, fresh processes."""

import gc
import itertools
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from attrs import frozen

UNIT_CALLS = 10_000
TIMEOUT = 60  # seconds for a separate process
ROOT = Path(__file__).parent.parent
# array sizes: each round takes the next one, so that no cache contains its types
_sizes = itertools.count(4)


class Skipped(Exception):
    """A figure that cannot be measured here, with the reason."""


@frozen
class DemoSettings:
    """Program sizes, and the number of rounds at each."""

    sizes: tuple[tuple[int, int], ...]  # (operations, rounds)


FULL = DemoSettings(((10_000, 15), (100_000, 5), (1_000_000, 3)))
SHORT = DemoSettings(((10_000, 7),))


def unit() -> float:
    """The current value of u: CPU seconds of one ``np.add`` on two 4-element arrays."""
    add, a = np.add, np.ones(4)
    start = time.process_time()
    for _ in itertools.repeat(None, UNIT_CALLS):
        add(a, a)
    return (time.process_time() - start) / UNIT_CALLS


def timed(function: Callable, *args) -> float:
    """The CPU seconds of one call; garbage is collected before, and the result is freed after."""
    gc.collect()
    start = time.process_time()
    result = function(*args)
    seconds = time.process_time() - start
    del result
    return seconds


def per_op(
    run: Callable, prepare: Callable, n: int, rounds: int, floor: Callable | None = None
) -> float:
    """The median cost of ``run(*prepare(n, size))`` per operation, for ``n`` operations, in u.

    ``size`` is the size of the arrays. ``floor(n, size)`` is unavoidable work whose time is
    subtracted.
    """
    ratios = []
    for size in itertools.islice(_sizes, rounds):
        args = prepare(n, size)
        before = unit()
        seconds = timed(run, *args)
        if floor is not None:
            seconds -= timed(floor, n, size)
        del args
        ratios.append(seconds / n / ((before + unit()) / 2))
    return median(ratios)


def across_sizes(
    effort: DemoSettings, run: Callable, prepare: Callable, floor: Callable | None = None
) -> str:
    """The cost per operation in u at each size, and the drift from the first size to the last."""
    found = [(n, per_op(run, prepare, n, rounds, floor)) for n, rounds in effort.sizes]
    (_, first), *_, (_, last) = found if len(found) > 1 else found * 2
    text = f"{first:.1f} u"
    if len(found) == 1:
        return text
    others = ", ".join(f"{cost:.1f} at 10^{len(str(n)) - 1}" for n, cost in found[1:])
    return f"{text}; {others}, drift {last / first:.2f}"


def fresh_process(code: str) -> float:
    """The number that ``code`` prints in a new Python process. Raises Skipped if it fails.

    Modules are compiled once, as after an installation, whatever the environment variables say.
    """
    surroundings = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=True,
            cwd=ROOT,
            env=surroundings,
        )
    except subprocess.TimeoutExpired:
        raise Skipped(f"not done in {TIMEOUT} s") from None
    except subprocess.CalledProcessError as error:
        raise Skipped(error.stderr.strip().splitlines()[-1]) from None
    return float(done.stdout.split()[-1])


def pin_to_one_core() -> None:
    """Pin the process to one core, where the system allows it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def machine() -> str:
    """The CPU, the versions of Python and NumPy, and the CPU type set for OpenBLAS."""
    core = os.environ.get("OPENBLAS_CORETYPE", "not set")
    return (
        f"{cpu_name()}, {os.cpu_count()} cores, {platform.system()}; "
        f"Python {platform.python_version()}, NumPy {np.__version__}, OPENBLAS_CORETYPE {core}; "
        f"u = {unit() * 1e6:.2f} µs"
    )


def cpu_name() -> str:
    """The name of the CPU, where the system tells it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        return next(
            line.split(":")[1].strip() for line in text.splitlines() if "model name" in line
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
