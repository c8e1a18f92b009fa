"""Algebra of the peephole pass: rules that hold to the bit, at the ends of a dtype's range."""

import numpy as np
import pytest

import letir as lt
from letir.passes import peephole
from letir.testing import assert_same


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("sign", [1, -1])
def test_division_by_a_power_of_two_keeps_the_bits(dtype, sign):
    """In float16, 1 / 2**-18 is no number."""
    limits = np.finfo(dtype)
    x = np.array([0, 1, -3, limits.max, limits.tiny, limits.smallest_subnormal, np.inf], dtype)
    with np.errstate(all="ignore"):
        for exponent in range(-30, 31):
            f = lt.trace(lambda x, by=sign * 2.0**exponent: x / by, x)
            assert_same(f(x), peephole(f)(x))
