"""Losses computed by two worker processes of a ``distributed`` cluster, one of which dies."""

import os
import re
import signal
import threading
import time
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import letir as lt

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # the cluster's own


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        distributed.LocalCluster(**options, dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def loss(w, x, y):
    z = x @ w
    return np.mean(np.logaddexp(0.0, z) - y * z) + 0.01 * np.sum(w**2)


def rows(n: int, blocks: int):
    """Data of two classes, as Dask arrays that the workers make themselves."""
    x = da.random.default_rng(1).normal(size=(n, 4), chunks=(n // blocks, 4))
    return x, (x[:, 0] + 0.5 * x[:, 1] > 0.1).astype(float)


def test_workers_compute_value_and_gradient(client):
    x, y = rows(4_000, 8)
    w = np.array([0.3, -0.2, 0.1, 0.0])
    value, gradient = lt.dask.value_and_grad(loss)(w, x, y)
    expected = lt.value_and_grad(loss)(w, x.compute(), y.compute())
    np.testing.assert_allclose(value, expected[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-12)
    again = lt.dask.value_and_grad(loss)(w, x, y)
    assert again[0] == value and np.array_equal(again[1], gradient)


def test_a_worker_that_dies_changes_nothing_in_the_result(client):
    x, y = rows(4_000, 20)
    w = np.array([0.3, -0.2, 0.1, 0.0])
    expected = lt.value_and_grad(loss)(w, x.compute(), y.compute())
    slow = x.map_blocks(slowly, meta=np.empty((0, 0)))
    victim = next(iter(client.run(os.getpid).values()))
    killer = threading.Timer(0.5, os.kill, (victim, signal.SIGKILL))
    killer.start()
    value, gradient = lt.dask.value_and_grad(loss)(w, slow, y)
    assert not killer.is_alive()  # it died in the middle
    assert victim not in client.run(os.getpid).values()
    np.testing.assert_allclose(value, expected[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "is_kept"), [(4_800_000, False), (8_000_000, True)])
def test_memory_stays_below_a_quarter_of_the_data(rows, is_kept):
    """Blocks are made anew in each step, or kept by the workers, which spill them to their disk."""
    size = 10_000 if is_kept else 40_000
    x = da.random.default_rng(1).normal(size=(rows, 64), chunks=(size, 64))  # 2.4 or 4 GB
    y = (x[:, 0] > 0.1).astype(float)
    w = np.zeros(64)
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": x.nbytes // 8}
    with (
        distributed.LocalCluster(**options, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = client.run(os.getpid)
        if is_kept:
            x = client.persist(x)
            distributed.wait(x)
            assert all(client.run(has_spilled).values())
        step = lt.dask.value_and_grad(loss)
        values = []
        for _ in range(1 if is_kept else 3):
            value, gradient = step(w, x, y)
            w = w - gradient
            values.append(value)
        assert client.run(os.getpid) == before  # no worker was ended for its memory
        peaks = client.run(peak_memory)
    assert sum(peaks.values()) < x.nbytes / 4
    assert values == sorted(values, reverse=True)


def peak_memory() -> int:
    """The most bytes that this process had in memory.

    ``ru_maxrss`` would count the process that started it.
    """
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) * 1024


def has_spilled(dask_worker) -> bool:
    """Whether a worker keeps blocks on its disk."""
    return len(dask_worker.data.slow) > 0


def slowly(block):
    """The block, after a while."""
    time.sleep(0.1)
    return block
