"""[C4] Arrays from outside that are returned together share memory where NumPy's results do."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

TABLE = np.arange(12.0)
LARGE = np.zeros((1000, 100))


def parts_of_a_table(x):
    return TABLE, TABLE[1:], x


def parts_of_a_product(x):
    doubled = TABLE * 2
    return {"all": doubled, "turned": doubled.reshape(3, 4).T, "last": doubled[::-1][:2]}, x


def parts_of_a_new_array(x):
    made = np.arange(6)
    return made, made[::-1], x


def parts_of_a_copy(x):
    made = np.array(TABLE)
    return made[::2], made[1::2], made[:4], x


def one_reversed(x):
    return TABLE[::-1], x


def one_column(x):
    return TABLE.reshape(3, 4)[:, 1], x


def separate_rows(x):
    return *TABLE.reshape(3, 4), x


PROGRAMS = [parts_of_a_table, parts_of_a_product, parts_of_a_new_array, parts_of_a_copy]
PROGRAMS += [one_reversed, one_column, separate_rows]


def shared_and_steps(result):
    """Which of the arrays in a result share memory, and their steps."""
    leaves = lt.tree.leaves(result)
    shared = [[np.shares_memory(a, b) for a in leaves] for b in leaves]
    return shared, [leaf.strides for leaf in leaves]


@in_one_test
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_returned_arrays_share_memory_where_numpys_do(program):
    expected = program(np.ones(2))
    for how in (lt.trace(program, np.ones(2)), lt.jit(program), lt.jit(program, optimize=False)):
        for _ in range(15):
            found = how(np.ones(2))
            assert_same(expected, found)
            assert shared_and_steps(found) == shared_and_steps(expected)

        lt.tree.leaves(found)[0][...] = -7.0  # results never share memory with the program
        assert_same(expected, how(np.ones(2)))


def test_a_view_of_a_much_larger_array_is_a_constant_of_its_own():
    program = lt.trace(lambda x: (LARGE[::10, 0], LARGE[::10, 0][::-1], x), np.ones(2))
    assert all(bind.attrs["value"].size == 100 for bind in program.constants)


def test_the_memory_of_integers_and_floats_is_not_joined():
    program = lt.trace(lambda x: (TABLE, TABLE.view(np.int64), x), np.ones(2))
    assert_same((TABLE, TABLE.view(np.int64), np.ones(2)), program(np.ones(2)))
