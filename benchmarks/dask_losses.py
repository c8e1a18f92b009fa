"""A loss of many rows on Dask arrays: beside a gradient written by hand, and by more workers.

``python -m benchmarks.dask_losses [ROWS]`` prints ratios of wall-clock times, medians of rounds in
which the sides alternate.
"""

import sys
import time
from collections.abc import Callable
from statistics import median

import dask
import dask.array as da
import numpy as np

import letir as lt

_FEATURES = 10
_ROUNDS = 5


def logistic_loss(w, x, y):
    """The mean logistic loss with a penalty."""
    z = x @ w
    return np.mean(np.logaddexp(0.0, z) - y * z) + 0.01 * np.sum(w**2)


def by_hand(w, x, y):
    """Its value and gradient in functions of dask.array."""
    z = x @ w
    value = (da.logaddexp(0.0, z) - y * z).mean() + 0.01 * np.sum(w**2)
    slope = x.T @ (1.0 / (1.0 + da.exp(-z)) - y) / len(y) + 0.02 * w
    return dask.compute(value, slope)


def rows(count: int, blocks: int) -> tuple:
    """Random features and classes that the workers make."""
    x = da.random.default_rng(0).normal(size=(count, _FEATURES), chunks=(count // blocks, -1))
    return x, (x[:, 0] > 0.1).astype(float)


def seconds(call: Callable, *args) -> float:
    """The wall-clock time of a call."""
    start = time.perf_counter()
    call(*args)
    return time.perf_counter() - start


def beside_hand_written(count: int, blocks: int) -> str:
    """letir's time over that of the hand-written gradient, and the difference for each block."""
    x, y = dask.persist(*rows(count, blocks))
    w, ours = np.linspace(-1.0, 1.0, _FEATURES), lt.dask.value_and_grad(logistic_loss)
    for a, b in zip(ours(w, x, y), by_hand(w, x, y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    turns = [(seconds(ours, w, x, y), seconds(by_hand, w, x, y)) for _ in range(_ROUNDS)]
    ratio = median(a / b for a, b in turns)
    extra = median(a - b for a, b in turns) / blocks * 1e3
    return f"{blocks} blocks of {count // blocks} rows: {ratio:.2f} x, {extra:+.2f} ms a block"


def by_workers(count: int, blocks: int) -> str:
    """The speed of two worker processes over that of one."""
    import distributed

    found = {}
    for n in (1, 2):
        options = {"n_workers": n, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
            x, y = dask.persist(*rows(count, blocks))
            w, ours = np.linspace(-1.0, 1.0, _FEATURES), lt.dask.value_and_grad(logistic_loss)
            ours(w, x, y)
            found[n] = median(seconds(ours, w, x, y) for _ in range(_ROUNDS))
    return f"two workers: {found[1] / found[2]:.2f} x the speed of one, {count} rows"


def main() -> None:
    """Print all ratios."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000_000
    with dask.config.set(scheduler="threads", num_workers=2):
        for blocks in (8, 40, 200):
            print(beside_hand_written(count, blocks), flush=True)
    print(by_workers(count, 16), flush=True)


if __name__ == "__main__":
    main()
