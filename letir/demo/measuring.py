"""Time and memory of calls on a machine that does other things too: short turns, not one run."""

import gc
import time
import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np

TURN = 0.003  # seconds


def time_interleaved(
    functions: Sequence[Callable], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> np.ndarray:
    """Seconds per call, shape (rounds, functions): in each round every function has a short turn.

    The figures of one round belong together: what else the machine does slows all of them, so that
    their ratios hold.
    """
    first = [seconds_per_call(function, 1, clock) for function in functions]  # also warms caches up
    calls = [max(1, round(TURN / max(seconds, 1e-9))) for seconds in first]
    turns = list(zip(functions, calls, strict=True))
    return np.array([[seconds_per_call(f, n, clock) for f, n in turns] for _ in range(rounds)])


def seconds_per_call(function: Callable, calls: int, clock: Callable[[], float]) -> float:
    """The time of one of ``calls`` calls."""
    start = clock()
    for _ in range(calls):
        function()
    return (clock() - start) / calls


def peak_bytes(function: Callable) -> int:
    """The most memory that Python and NumPy hold during a call, above what they held before."""
    function()  # what is made once and kept is not counted
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
