"""Writes into arrays that only the plan's function refers to need no test."""

import numpy as np
import pytest

import letir as lt
from letir.plan.plan import plan_of
from letir.plan.sole_memory import SoleMemory
from letir.plan.straight_line import written_steps
from letir.testing import assert_same
from tests.plan.test_straight_line import check_function

X = np.linspace(-1.0, 2.0, 12).reshape(3, 4)


def lines_of(fn) -> str:
    """The text of the plan's function."""
    plan = plan_of(fn)
    return "\n".join(written_steps(plan.table, len(plan.params), {}).lines)


def names_of(fn) -> list:
    """The functions that the plan's function calls."""
    plan = plan_of(fn)
    return [*written_steps(plan.table, len(plan.params), {}).names.values()]


def recurrence(x):
    y = np.zeros(4)
    y[0] = x[0, 0]
    for i in range(1, 4):
        y[i] = y[i - 1] * 0.5 + x[0, i]
    return y


def copied_borders(x):
    y = x.copy()
    for _ in range(2):
        y[0] = y[1]
        y[:, -1] = y[:, -2]
        y[1:] = y[:-1]
    return y


def through_a_view(x):
    y = (x * 2.0).reshape(-1)
    y[3] = 7.0
    z = y.reshape(4, 3)
    z[0, 0] = y[3]
    return z


def row_kept(x):
    y = x + 1.0
    row = y[1]
    y[1] = row * 2.0
    y[0] = y[1]
    return y, row


def rows_in_a_list(x):
    y, seen = np.zeros(4), []
    for i in range(3):
        y[i] = x[i, 0]
        seen.append(y.copy())
        y[1:] = y[:-1]
    return np.array(seen)


def swapped(x):
    y = x * 1.0
    part = y[:2]
    y[0], y[1] = y[1] + 0.0, part[0]
    return y


def swapped_elements(x):
    y = x[0] * 1.0
    for i in range(3):
        y[i], y[i + 1] = y[i + 1], y[i]
    return y


def written_argument(x):
    y = x.T
    z = x.copy()
    z[0] = 5.0
    return z, y, x + z


PROGRAMS = [
    *(recurrence, copied_borders, through_a_view, row_kept, rows_in_a_list, swapped),
    *(swapped_elements, written_argument),
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_results_and_shared_memory_are_those_of_the_steps(f):
    fn = lt.trace(f, X)

    check_function(fn, (X,))
    check_function(lt.compile(fn, kernels="off").optimized, (X,))
    assert_same(f(X.copy()), lt.run_forward(fn, X))


@pytest.mark.parametrize("f", [recurrence, copied_borders, swapped_elements])
def test_writes_into_new_arrays_need_no_test(f):
    assert "getrefcount" not in lines_of(lt.trace(f, X))


def test_the_first_write_makes_an_array_the_functions_own():
    def f(x):
        y = np.repeat(x, 2)
        y[0] = 1.0
        y[1] = 2.0
        return y

    assert lines_of(lt.trace(f, X)).count("getrefcount") == 1


def test_vectors_are_stacked_at_once():
    fn = lt.trace(lambda x: (np.array([x[0], x[1]]), np.stack([x[0, ::2], x[1, 1::2]])), X)

    assert "concatenate" not in str(names_of(fn))
    check_function(fn, (X,))
    check_function(fn, (np.asfortranarray(X),))


def test_absolute_values_of_scalars_keep_their_kinds():
    for x in (X[0], np.array([-3, 2, 5, 0]), np.array([np.nan, -0.0, -np.inf, 1.0])):
        fn = lt.trace(lambda x: (abs(x[0]), np.abs(x[1] - x[2]), abs(x[1])), x)

        check_function(fn, (x,))
        assert "abs(" in lines_of(fn)


def test_memory_is_sole_if_all_slots_that_share_it_are_among_the_given_ones():
    shared = {1, 2}
    memory = SoleMemory({1: shared, 2: shared})

    assert [memory.is_sole(1, ()), memory.is_sole(1, (2,)), memory.is_sole(3, ())] == [
        *(False, True, False),
    ]


# Writes into arguments of a plan, in slots of operands that are not used any more.
PARTS = {
    "copied": """lambda %0: float64[3], %1: float64[] {
        %2: float64[3] = index_set(%0, %1, item=0)
        return %0, %2
    }""",
    "written": """lambda %0: float64[3], %1: float64[] {
        %2: float64[3] = broadcast_to(%1, shape=(3,))
        %3: float64[3] = copy(%2)
        %4: float64[3] = write_back(%0, %3)
        %5: float64[3] = index_set(%4, 9.0, item=0)
        return %0, %5
    }""",
}


@pytest.mark.parametrize("text", PARTS.values(), ids=PARTS)
def test_writes_into_parts_of_arguments_are_made_in_copies(text):
    check_function(lt.parse(text), (np.arange(3.0), np.float64(2.0)))


# A row that is read after a write into its array: Python's number gives a view of the row.
READ_LATER = """lambda %0: float64[3, 4], %1: int64*[], %2: float64[4] {
    %3: float64[3, 4] = copy(%0, order='C')
    %4: float64[4] = index(%3, %1, item=@)
    %5: float64[3, 4] = index_set(%3, %2, %1, item=@)
    %6: float64[] = sum(%4)
    return (%5, %6)
}"""


def test_a_row_at_a_number_shares_the_memory_of_its_array():
    check_function(lt.parse(READ_LATER), (X, 1, np.zeros(4)))
