"""``machine_roofs``: how fast this machine moves bytes and computes, measured once per process."""

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from attrs import frozen

from letir.kernels.threads import get_num_threads

_ELEMENTS = 1 << 22  # of each array: beyond the caches of most processors
_PART = 1 << 16
_ROWS, _FEW_ROWS = 320, 64  # of the matrices whose products measure the arithmetic
_SECONDS = 0.1


@frozen
class Roofs:
    """The limits of a machine, per second. ``dtype``: the dtype of ``operations``.

    ``bytes``: the bytes read and written by the sum of two arrays that no cache holds.
    ``operations``: the arithmetic operations in a product of matrices.
    """

    bytes: float
    operations: float
    dtype: str

    def seconds(self, operations: int, moved: int) -> float:
        """The least time for a group of ``operations`` that moves ``moved`` bytes."""
        return max(operations / self.operations, moved / self.bytes)


@cache
def machine_roofs(dtype: str) -> Roofs:
    """The roofs of this machine for a dtype, with as many threads as kernels use.

    Takes about half a second, and 100 MB of memory, at the first call.
    """
    return Roofs(_bytes_per_second(), _operations_per_second(dtype), dtype)


def _bytes_per_second() -> float:
    """The memory's rate, measured with all threads."""
    threads = get_num_threads()
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(_stream_rate, [_ELEMENTS // threads] * threads))


def _stream_rate(count: int) -> float:
    """The bytes per second of the sum of two arrays, the median of its parts: other processes
    interrupt some of them.
    """
    x, y, out = (np.ones(count) for _ in range(3))
    seconds = []
    for start in [*range(0, count, _PART)] * 2:
        part = slice(start, start + _PART)
        begin = time.perf_counter()
        np.add(x[part], y[part], out=out[part])
        seconds.append(time.perf_counter() - begin)
    return 3 * _PART * x.itemsize / statistics.median(seconds)


def _operations_per_second(dtype: str) -> float:
    """The arithmetic operations per second of all cores together.

    The larger of two measurements: a product for all threads of BLAS, and a small product, which
    BLAS computes in one thread, times the number of threads.
    """
    return max(_product_rate(_ROWS, dtype), get_num_threads() * _product_rate(_FEW_ROWS, dtype))


def _product_rate(rows: int, dtype: str) -> float:
    """The operations per second of a product of square matrices."""
    x = np.ones((rows, rows), dtype)
    out = np.empty_like(x)
    return 2 * rows**3 / _best_seconds(lambda: np.matmul(x, x, out=out))


def _best_seconds(run: Callable[[], object]) -> float:
    """The shortest of many runs: other processes slow down some of them."""
    best, end = float("inf"), time.perf_counter() + _SECONDS
    while (begin := time.perf_counter()) < end:
        run()
        best = min(best, time.perf_counter() - begin)
    return best
