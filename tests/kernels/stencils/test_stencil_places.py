"""Views by basic indices and rolls as places in loops: the elements are NumPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from letir.kernels.stencils.stencil_places import View

BASE = np.arange(120).reshape(4, 5, 6)


def elements(base, view: View):
    """The elements of a view, found index by index."""
    result = np.empty(view.shape, base.dtype)
    for index in np.ndindex(view.shape):
        where = [
            place.start + (0 if place.loop is None else place.step * index[place.loop])
            for place in view.places
        ]
        is_inside = [0 <= i < n for i, n in zip(where, base.shape, strict=True)]
        assert all(p.wraps or x for p, x in zip(view.places, is_inside, strict=True))
        result[index] = base[tuple(i % n for i, n in zip(where, base.shape, strict=True))]
    return result


@st.composite
def slices(draw, n: int):
    start, stop = draw(st.integers(-n - 1, n + 1)), draw(st.integers(-n - 1, n + 1))
    return slice(start, stop, draw(st.sampled_from([None, 1, 2, 3])))


@st.composite
def steps(draw):
    """An index or a roll of an array of any shape, as a function of its shape."""
    seed = draw(st.integers(0, 5))
    if seed < 2:
        return "roll", draw(st.integers(-9, 9)), draw(st.integers(0, 2))
    entries = st.one_of(slices(6), st.integers(-3, 3), st.just(None), st.just(...))
    return "item", tuple(draw(st.lists(entries, max_size=4))), None


@given(st.lists(steps(), max_size=4))
def test_the_elements_of_views_of_views_are_those_of_numpy(chain):
    array, view = BASE, View.whole(BASE.shape)
    for kind, what, axis in chain:
        if kind == "roll":
            if axis >= array.ndim:
                return
            array, view = np.roll(array, what, axis), view.rolled(what, axis, BASE.shape)
        else:
            try:
                array, view = array[what], view.item(what)
            except IndexError:
                return
        if view is None or not array.size:
            return

        assert view.shape == array.shape
        np.testing.assert_array_equal(elements(BASE, view), array)


def test_rolls_of_all_axes_or_of_empty_arrays_and_steps_along_rolled_axes():
    """Only the second kind has a view: of an array without elements."""
    view, empty = View.whole((4, 5)), View.whole((0, 3))

    assert view.rolled(1, None, (4, 5)) is None
    assert view.rolled(1, 1, (4, 5)).item((slice(None), slice(0, 4, 2))) is None
    assert (0, 3) == empty.rolled(7, 0, (0, 3)).shape


@given(st.lists(slices(6), min_size=3, max_size=3))
def test_a_part_in_zeros_is_the_part_where_indices_are_those_of_its_elements(item):
    expected = np.zeros((4, 5, 6), int)
    part = np.arange(1, 121).reshape(4, 5, 6)[tuple(item)]
    view = View.whole(part.shape).placed(tuple(item), (4, 5, 6))
    if view is None:
        return
    expected[tuple(item)] = part

    for index in np.ndindex(expected.shape):
        where = [place.start + index[place.loop] for place in view.places]
        inside = all(0 <= i < n for i, n in zip(where, part.shape, strict=True))
        assert expected[index] == (part[tuple(where)] if inside else 0)


@pytest.mark.parametrize("item", [slice(None, None, -1), ([0, 1],), True, (0, 0, 0, 0), 9])
def test_other_indices_are_no_such_views(item):
    assert View.whole(BASE.shape).item(item) is None


def test_a_part_that_was_rolled_is_no_such_view():
    part = View.whole((8,)).item(slice(1, -1))

    assert part.rolled(1, 0, (8,)) is None


def test_a_roll_undone_wraps_nowhere():
    (place,) = View.whole((8,)).rolled(3, 0, (8,)).rolled(-3, 0, (8,)).places

    assert 0 == place.start
