"""``linear_recurrence``: vectors, which Python's numbers compute, beside matrices."""

import warnings

import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.testing import assert_same

recurrence = PRIMITIVES["linear_recurrence"].impl


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("n", [0, 1, 2, 100])
def test_a_vector_has_the_bits_of_a_matrix_with_one_column(n, dtype):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=max(0, n - 1)).astype(dtype), rng.normal(size=n).astype(dtype)
    b[::7] = -0.0
    a[::5] *= 1e-320

    assert_same(recurrence(np, a[:, None], b[:, None])[:, 0], recurrence(np, a, b))


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_an_overflow_is_reported(shape):
    a, b = np.full((2, *shape[1:]), 1e200), np.full(shape, 1e200)

    with pytest.warns(RuntimeWarning, match="overflow encountered in multiply"):
        found = recurrence(np, a, b)

    assert np.isinf(found[1:]).all()


def test_a_missing_value_is_carried_on():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = recurrence(np, np.ones(3), np.array([1.0, np.nan, 1.0, 1.0]))

    assert_same(np.array([False, True, True, True]), np.isnan(found))


def test_the_gradient_of_a_running_maximum_goes_to_the_maxima():
    x, weights = np.array([1.0, 0.5, 2.0, 1.5, 1.0]), np.arange(1.0, 6.0)

    found = lt.grad(lambda x: np.sum(weights * np.maximum.accumulate(x)))(x)

    assert_same(np.array([3.0, 0.0, 12.0, 0.0, 0.0]), found)
