"""Numbers that are written into arrays of another dtype, converted as NumPy converts them [B6]."""

import re

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test


def _put(x, v):
    np.put(x, [0, 2], v)


def _at_mask(x, v):
    x[x > 2] = v


def _fill_diagonal(x, v):
    np.fill_diagonal(x.reshape(2, 3), v)


WRITERS = {
    "a mask": _at_mask,
    "put": _put,
    "place": lambda x, v: np.place(x, x > 2, v),
    "place of nothing": lambda x, v: np.place(x, x > 9, v),
    "putmask": lambda x, v: np.putmask(x, x > 2, v),
    "fill": lambda x, v: x.fill(v),
    "fill_diagonal": _fill_diagonal,
    "put_along_axis": lambda x, v: np.put_along_axis(x, np.array([1]), v, 0),
}


@in_one_test
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("value", [np.nan, np.inf, 1 << 40, 2.5, np.float64(7.5), True])
def test_numbers_are_written_into_integers_as_numpy_converts_them(write, value):
    def program(x):
        y = x.copy()
        write(y, value)
        return y

    x = np.arange(6, dtype="int32")
    try:
        expected = program(x)
    except (ValueError, OverflowError) as error:
        for run in (lt.jit(program), lambda x: lt.trace(program, x)):
            with pytest.raises(type(error), match=re.escape(str(error))):
                run(x)
    else:
        assert_same(expected, lt.trace(program, x)(x))
        assert_same(expected, lt.jit(program)(x))


def test_nan_is_not_inserted_among_integers():
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        lt.trace(lambda x: np.insert(x, 1, np.nan), np.arange(3))


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_an_array_of_integers_may_be_filled_with_nan():
    def program(x):
        return np.full(3, np.nan, int) + x

    assert_same(program(1.0), lt.trace(program, 1.0)(1.0))
    assert_same(program(1.0), lt.jit(program)(1.0))


@in_one_test
@pytest.mark.parametrize("x", [np.arange(3.0), np.arange(3)])
@pytest.mark.parametrize("value", ["3", b"2", "a", None])
def test_texts_and_none_are_written_as_numpy_converts_them(x, value):
    def f(x):
        x[0] = value
        return x

    try:
        expected = f(x.copy())
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error), match=re.escape(str(error))):
            lt.trace(f, x.copy())
    else:
        assert_same(expected, lt.trace(f, x.copy())(x.copy()))


@in_one_test
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.full(2, len(x)),
        lambda x: np.full((2, 2), len(x), dtype=np.float32),
        lambda x: np.full_like(x, len(x)),
    ],
)
def test_arrays_are_filled_with_a_symbolic_size(f):
    program = lt.trace(f, lt.ShapeDtype((lt.Size("n"),), np.float64))

    for n in (3, 5):
        assert_same(f(np.ones(n)), program(np.ones(n)))
