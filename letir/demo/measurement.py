"""Measure time and memory of calls, on a machine that other programs use too."""

import gc
import time
import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np

TURN = 0.003  # seconds


def time_interleaved(functions: Sequence[Callable], rounds: int) -> np.ndarray:
    """Seconds per call, of shape (rounds, functions): in each round each function has a short turn.

    Other load on the machine slows all functions of a round alike, so ratios within a round hold.
    """
    # also warms caches up
    first = [_seconds_per_call(function, 1) for function in functions]
    calls = [max(1, round(TURN / max(seconds, 1e-9))) for seconds in first]
    turns = list(zip(functions, calls, strict=True))
    return np.array([[_seconds_per_call(f, n) for f, n in turns] for _ in range(rounds)])


def _seconds_per_call(function: Callable, calls: int) -> float:
    """The mean time of ``calls`` calls."""
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def peak_bytes(function: Callable) -> int:
    """The peak memory of Python and NumPy during a call, above the memory in use before."""
    function()  # fills caches, which are not counted
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
