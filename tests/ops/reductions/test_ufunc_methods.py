"""Gradients of the methods of ufuncs, such as np.hypot.accumulate."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same


@pytest.mark.parametrize("ufunc", [np.multiply, np.hypot, np.logaddexp, np.divide])
def test_steps_of_an_accumulation_are_derived_in_its_dtype(ufunc):
    """The elements are cast before the first step, so that the derivatives are those of a cast."""
    x, weights = np.linspace(-1.0, 2.0, 8) ** 3 + 0.1, np.cos(np.arange(8.0, dtype="f"))

    def total(x):
        return (weights * ufunc.accumulate(x, dtype=np.float32)).sum()

    expected = lt.grad(lambda x: total(x.astype(np.float32)))(x)
    assert_same(expected, lt.grad(total)(x))
