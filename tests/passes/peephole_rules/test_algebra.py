"""Algebra of the peephole pass: rules that hold to the bit, at the ends of a dtype's range."""

import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
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


def full_in(program, number: float, shape: tuple):
    """An array of equal numbers that the program of this value makes."""
    op = PRIMITIVES["full"]
    return program.emitter.apply(
        op, (number,), op.complete({"shape": shape, "dtype": program.dtype})
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("number", [1.0, -3.0, 0.5, 0.0, -0.0, 2.0**11, np.nan, np.inf])
def test_sums_of_equal_numbers_keep_the_bits(dtype, number):
    def sums(x):
        full = full_in(x, number, (3, 5))
        return full.sum() * x, full.sum(axis=0), full.sum(axis=1, keepdims=True), full.mean()

    f = lt.trace(sums, dtype(2))
    with np.errstate(all="ignore"):
        assert_same(f(dtype(2)), peephole(f)(dtype(2)))
    is_whole = number in (1.0, -3.0, 2.0**11) and abs(15 * number) <= 2 ** (
        np.finfo(dtype).nmant + 1
    )
    assert is_whole == ("sum" not in [bind.op.name for bind in peephole(f).binds])


def test_the_gradient_of_a_sum_needs_no_array_of_ones():
    x, b = np.ones((200, 3)), np.ones(3)
    f = lt.trace(lt.grad(lambda b, x: (x + b).sum()), b, x)

    found = peephole(f)

    assert "sum_to_size" in [bind.op.name for bind in f.binds]
    assert "sum_to_size" not in [bind.op.name for bind in found.binds]
    assert_same(f(b, x), found(b, x))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint8])
@pytest.mark.parametrize("bounds", [(0.5, None), (None, 0.5), (None, np.nan), (-0.0, None)])
def test_clip_with_one_bound_is_an_extremum(dtype, bounds):
    x = np.array([-2, -0.0, 0.0, 0.5, 3, np.inf, np.nan]).astype(np.float16)
    x = x if dtype(0).dtype.kind == "f" else np.array([0, 1, 3, 100], dtype)
    f = lt.trace(lambda x: np.clip(x, *bounds), x.astype(dtype))

    found = peephole(f)

    assert_same(f(x.astype(dtype)), found(x.astype(dtype)))
    is_one = dtype(0).dtype.kind == "f"
    assert is_one == (found.binds[0].op.name in ("maximum", "minimum"))


def test_clip_of_integers_keeps_bounds_beyond_their_range():
    x = np.array([0, 100], np.int8)
    f = lt.trace(lambda x: np.clip(x, -1000, None), x)

    assert_same(f(x), peephole(f)(x))
