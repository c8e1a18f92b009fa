"""[B6] Indexing by a traced integer gives a view where NumPy does, also in abstract traces."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.arange(12.0).reshape(3, 4)


def write_a_row(x, i):
    y = x * 1
    row = y[i]
    row[0] = 50
    return y, row


def write_a_part_of_a_row(x, i):
    y = x * 1
    row = y[i, 1:]
    row += 1
    return y, row


def write_the_base(x, i):
    y = x * 1
    row, column, element, kept = y[i], y[1:2, i], y[i, 0], y[i, 0, ...]
    y[...] = 7
    return y, row, column, element, kept


def write_views_of_a_view(x, i):
    y = x * 1
    row = y[i]
    part = row[1:][:2]
    part += 1
    y *= 2
    return y, row, part


def write_a_ravel(x, i):
    y = np.stack([x, x])
    flat = y[i].ravel()
    flat[0] = 5
    return y, flat


def add_in_a_loop(x, i):
    y = x * 1
    for row in x:
        y[i] += row
    return y


PROGRAMS = [write_a_row, write_a_part_of_a_row, write_the_base, write_views_of_a_view]
PROGRAMS += [add_in_a_loop, write_a_ravel]
INDICES = {"number": 1, "scalar": np.int64(-1), "0-d": np.array(1), "1-d": np.array([1, 0])}


@in_one_test
@pytest.mark.parametrize("abstract", [False, True])
@pytest.mark.parametrize("i", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_indexing_by_a_traced_integer_gives_a_view_where_numpy_does(program, i, abstract):
    try:
        fn = lt.trace(program, X, i, abstract=abstract)
    except lt.errors.TraceError as error:
        assert abstract
        assert program is write_a_ravel
        assert "memory order" in str(error)
        return

    assert_same(program(X, i), fn(X, i))
