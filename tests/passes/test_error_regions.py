"""``join_error_regions``: neighbouring operations of one ``np.errstate`` block share a region."""

import warnings

import numpy as np
import pytest

import letir as lt
from letir.passes import join_error_regions
from letir.testing import assert_same

X, Y = np.array([0.0, 1.0, -2.0]), np.array([0.0, 2.0, 0.5])


def ignoring(x, y):
    with np.errstate(all="ignore"):
        return np.where(y > 0, np.log(y), 0.0) * x / y


def in_two_states(x, y):
    with np.errstate(divide="ignore"):
        x = x / y
    with np.errstate(all="ignore"):
        return np.log(x), x * 2


def with_other_binds(x, y):
    with np.errstate(all="ignore"):
        ratio = x / y
        total = (ratio[::-1] + np.isnan(ratio)).copy()
        return ratio, np.log(total), np.sort(ratio)


def writing(x, y):
    out = np.zeros(3)
    with np.errstate(all="ignore"):
        out[:] = x / y
        out[0] = np.log(y)[1]
        return out / 0.0


FUNCTIONS = (ignoring, in_two_states, with_other_binds, writing)


def regions(fn) -> int:
    return [bind.op.name for bind in fn.binds].count("errstate")


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("f", FUNCTIONS)
def test_joined_regions_compute_the_same(f):
    program = lt.trace(f, X, Y)
    joined = lt.check(join_error_regions(program))
    fast = lt.jit(f)

    assert 1 <= regions(joined) <= regions(program)
    for x, y in ((X, Y), (Y, X), (X, X)):
        assert_same(f(x, y), joined(x, y))
        for _ in range(6):
            assert_same(f(x, y), fast(x, y))


def test_a_block_of_elementwise_operations_is_one_region():
    program = lt.trace(ignoring, X, Y)

    assert 4 <= regions(program)
    assert 1 == len(join_error_regions(program))


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_regions_of_other_states_stay_apart():
    assert 2 == regions(join_error_regions(lt.trace(in_two_states, X, Y)))


def test_regions_whose_errors_raise_stay_as_they_are():
    def f(x, y):
        with np.errstate(all="raise"):
            return np.log(x + 5) / (y + 1)

    program = lt.trace(f, X, Y)

    assert join_error_regions(program) is program


def test_operations_that_never_have_floating_point_errors_need_no_region():
    def f(x, y):
        with np.errstate(all="ignore"):
            return np.isnan(x) | np.isinf(y) ^ ~np.isfinite(x)

    assert 0 == regions(lt.trace(f, X, Y))


def test_a_warning_in_a_joined_region_names_the_line_of_its_operation():
    def f(x, y):
        with np.errstate(divide="ignore"):
            x = x / (y + 1)
            x = np.log(x - 10)  # invalid
            return x * 2

    fast = lt.jit(f)
    for _ in range(6):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            fast(X, Y)

        assert [f.__code__.co_firstlineno + 3] == [warning.lineno for warning in seen]


def test_a_derivative_of_a_block_is_right_after_joining():
    def loss(x):
        with np.errstate(all="ignore"):
            return (np.tanh(x) * np.exp(x) / (x * x + 1)).sum()

    slope, x = lt.jit(lt.grad(loss)), np.linspace(-1, 1, 5)

    for _ in range(6):
        np.testing.assert_allclose(slope(x), lt.grad(loss)(x), rtol=1e-14)


def test_the_state_around_a_region_is_as_before_also_after_an_error():
    def f(x, y):
        with np.errstate(all="ignore"):
            z = np.log(x) * y
        with np.errstate(all="raise"):
            return z / y

    fast, before = lt.jit(f), np.geterr()
    for _ in range(6):
        fast(np.ones(3), np.ones(3))
        with pytest.raises(FloatingPointError):
            fast(np.ones(3), np.zeros(3))
        assert before == np.geterr()
