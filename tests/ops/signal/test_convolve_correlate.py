"""Convolutions and vector products as users call them."""

import itertools

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, assert_same, check_grads

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
V = np.array([0.3, -0.7, 1.9])

CALLS = {
    "convolve with constants": lambda x, v: np.convolve([1.0, 2.0, 0.5, -1.0], v, "same"),
    "convolve where both fit": lambda x, v: np.convolve(v, x[0], "valid"),
    "correlate": lambda x, v: np.correlate(x[0], v, mode="full"),
    "cross": np.cross,
    "cross along an axis": lambda x, v: np.cross(x.T, V[:, None], axis=0),
    "cross of numpy.linalg": np.linalg.cross,
    "kron": lambda x, v: np.kron(v, x),
    "vander": lambda x, v: np.vander(v, increasing=True) @ np.vander(v, N=3),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_recorded_and_replayed_bitwise(name):
    f = CALLS[name]
    x, v = X[::-1] * 1.25, V * 1.1

    assert_same(f(x, v), lt.run_forward(lt.trace(f, X, V), x, v))


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_of_a_call_agree_with_differences(name):
    check_grads(CALLS[name], (X, V))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_operands_of_all_lengths_have_derivatives_and_batches(mode):
    def f(a, v):
        return np.convolve(a, v, mode), np.correlate(v, a, mode)

    rng = np.random.default_rng(0)
    for n, m in itertools.product((1, 2, 3, 5), repeat=2):
        a, v = rng.normal(size=(2, n)), rng.normal(size=(2, m)) + 1j * rng.normal(size=(2, m))
        check_grads(f, (a[0], v[0]), order=1)
        for axes in ((0, None), (None, 0), (0, 0)):
            given = [x if axis == 0 else x[0] for x, axis in zip((a, v), axes, strict=True)]
            rows = [f(*(x[i] if x.ndim > 1 else x for x in given)) for i in range(2)]
            expected = tuple(np.stack(r) for r in zip(*rows, strict=True))
            assert_close(expected, lt.vmap(f, in_axes=axes)(*given))


def test_calls_that_numpy_refuses_are_refused():
    with pytest.raises(lt.ShapeError, match="one axis"):
        lt.trace(lambda x: np.convolve(x, V), X)
    with pytest.raises(lt.ShapeError, match="operand is empty"):
        lt.trace(lambda x: np.convolve(x, V), V[:0])
    with pytest.raises(lt.ShapeError, match="mode must be"):
        lt.trace(lambda x: np.convolve(x, V, "circular"), V)
    with pytest.raises(lt.ShapeError, match="2 or 3 components"):
        lt.trace(lambda x: np.cross(x, x), np.ones(4))
    with pytest.raises(lt.ShapeError, match="one axis, found"):
        lt.trace(np.vander, X)
