"""Losses computed by two worker processes of a ``distributed`` cluster, one of which dies."""

import os
import signal
import threading
import time

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


def slowly(block):
    """The block, after a while."""
    time.sleep(0.1)
    return block
