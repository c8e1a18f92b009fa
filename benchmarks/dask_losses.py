"""A loss of many rows on Dask arrays: beside a gradient written by hand, and by more workers.

``python -m benchmarks.dask_losses [ROWS]`` prints ratios of wall-clock times, medians of rounds in
which the sides alternate. Kernels in workers should compute in one thread: LETIR_NUM_THREADS=1.
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
_COMPONENTS = 5
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


def mixture_loss(w, x):
    """The mean negative logarithm of the density of a Gaussian mixture."""
    scaled = (x[:, None, :] - w["means"]) * np.exp(w["scales"])
    terms = w["weights"] + w["scales"].sum(axis=1) - 0.5 * (scaled**2).sum(axis=2)
    top = terms.max(axis=1, keepdims=True)
    return -(np.log(np.exp(terms - top).sum(axis=1)) + top[:, 0]).mean()


def losses(count: int, blocks: int) -> dict[str, tuple]:
    """name -> (loss, parameters, data) for both losses."""
    rng, (x, y) = np.random.default_rng(0), rows(count, blocks)
    mixture = {
        "means": rng.normal(size=(_COMPONENTS, _FEATURES)),
        "scales": np.zeros((_COMPONENTS, _FEATURES)),
        "weights": np.zeros(_COMPONENTS),
    }
    slope = np.linspace(-1.0, 1.0, _FEATURES)
    return {"logistic": (logistic_loss, slope, (x, y)), "mixture": (mixture_loss, mixture, (x,))}


def by_workers(name: str, count: int, blocks: int) -> str:
    """The speed of two worker processes over that of one; one cluster runs at a time."""
    rounds = [
        [_median_step(name, count, blocks, workers) for workers in (1, 2)] for _ in range(_ROUNDS)
    ]
    one, two = map(median, zip(*rounds, strict=True))
    ratio = median(a / b for a, b in rounds)
    return (
        f"{name}, {count} rows in {blocks} blocks: two workers {ratio:.2f} x the speed of one, "
        f"{one:.2f} s and {two:.2f} s"
    )


def _median_step(name: str, count: int, blocks: int, workers: int) -> float:
    """The time of a step on a cluster of this many processes that hold the data."""
    import distributed

    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        client.as_current(),
    ):
        loss, w, data = losses(count, blocks)[name]
        step, there = lt.dask.value_and_grad(loss), client.persist(data)
        step(w, *there)
        return median(seconds(step, w, *there) for _ in range(_ROUNDS))


def main() -> None:
    """Print all ratios."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000_000
    with dask.config.set(scheduler="threads", num_workers=2):
        for blocks in (8, 40, 200):
            print(beside_hand_written(count, blocks), flush=True)
    for name in ("logistic", "mixture"):
        print(by_workers(name, count, 16), flush=True)


if __name__ == "__main__":
    main()
