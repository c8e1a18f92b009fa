"""Which indices fit an array, as in NumPy."""

import numpy as np
import pytest

import letir as lt
from letir.errors import BoundsError
from letir.testing import assert_same

X = np.arange(6.0).reshape(2, 3)


def chosen(x, mask):
    return x[mask > 0] * 2


def written(x, mask):
    y = x.copy()
    y[mask > 0] = 7.0
    return y * x


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (0, 0)])
@pytest.mark.parametrize("f", [chosen, written])
def test_an_axis_of_length_0_of_a_mask_fits_any_axis(f, shape):
    mask = np.zeros(shape)

    assert_same(f(X, mask), lt.trace(f, X, mask)(X, mask))
    expected = 2 * X if f is written else np.zeros(X.shape)  # nothing is chosen
    assert_same(expected, lt.grad(lambda x: f(x, mask).sum())(X))


@pytest.mark.parametrize("shape", [(1,), (3, 0), (0, 2)])
def test_the_other_axes_of_a_mask_are_axes_of_the_array(shape):
    with pytest.raises(BoundsError, match="does not fit"):
        lt.trace(chosen, X, np.zeros(shape))


def test_the_index_of_a_ufuncs_at_is_checked_when_it_is_recorded():
    with pytest.raises(BoundsError, match="index 10 is out of bounds"):
        lt.trace(lambda x: np.negative.at(x, 10), np.ones(3))


def test_the_gradient_of_values_written_where_a_mask_is_true_copies_nothing():
    mask = np.array([True, False, True])

    def total(new):
        return (lt.numpy.array(np.ones(3)).at[mask].set(new) * 2.0).sum()

    gradient = lt.trace(lt.grad(total), np.ones(2))
    assert "copy" not in [bind.op.name for bind in gradient.binds]
    assert_same(np.full(2, 2.0), gradient(np.ones(2)))


def test_an_index_beyond_the_last_element_is_refused_where_it_is_recorded():
    for i in (3, -4):
        with pytest.raises(BoundsError, match=f"index {i} is out of bounds for axis 0 with size 3"):
            lt.trace(lambda x, i=i: x[i], np.zeros(3))
