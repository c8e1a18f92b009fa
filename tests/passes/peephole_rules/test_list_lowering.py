"""lower_tuples: removes stacks and concatenations whose parts are taken apart again."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from letir.ast.primitive import PRIMITIVES as OPS
from letir.ast.types import ArrayType
from letir.passes import lower_tuples
from letir.testing import functions, programs
from tests.passes.exactness import assert_gradient_unchanged, assert_unchanged, ops, program

SOME = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
ROW, X = ArrayType(float, (4,)), ArrayType(float, (4, 3))
LISTS = ("stack", "concatenate", "split", "index", "exp", "neg", "add", "sum")


def split(x, sections=2, axis=0):
    """The parts."""
    return OPS["split"](x, sections, axis)


def rows(x, count: int):
    """The first rows, stacked."""
    return OPS["stack"](tuple([x[i] for i in range(count)]))


LOWERED = {
    "one of a stack": (lambda x: OPS["stack"]((-x, x))[0] * 2, ["neg", "mul"]),
    "the last of a stack": (lambda x: OPS["stack"]((x, -x))[-1] * 2, ["neg", "mul"]),
    "a number of a stack": (lambda x: OPS["stack"]((x[0] * 2, x[1]))[0], ["index", "mul"]),
    "parts of a concatenation": (
        lambda x: (p := split(OPS["concatenate"]((-x, x * 2))))[0] + p[1],
        ["neg", "mul", "add"],
    ),
    "all parts": (lambda x: OPS["concatenate"](split(x * 2)), ["mul"]),
    "all numbers": (lambda x: rows(x * 2, 4), ["mul"]),
    "few parts": (lambda x: split(x * 2, 4)[1] * 3, ["mul", "index", "mul"]),
    "few unequal parts": (lambda x: split(x, (1, 3))[1] * 3, ["index", "mul"]),
}
KEPT = {
    "an argument": lambda x: OPS["stack"]((x, x))[0],
    "of another dtype": lambda x: OPS["stack"]((x.astype("float32"), x * 2))[0],
    "in another order": lambda x: OPS["concatenate"](split(x * 2)[::-1]),
    "not all": lambda x: rows(x * 2, 3),
    "other sizes": lambda x: split(OPS["concatenate"]((-x, x * 2)), (1,)),
    "many parts": split,
    "more parts": lambda x: split(OPS["concatenate"]((-x, x * 2)), 4),
    "a concatenation of all elements": lambda x: OPS["concatenate"](split(x * 2), None),
    "rows of another": lambda x: OPS["stack"]((x[0], (x * 2)[1], x[2], x[3])),
    "rows in another order": lambda x: OPS["stack"]((x[0], x[2], x[1], x[3])),
    "a row that is a result": lambda x: OPS["stack"]((-x, x * 2))[0],
}


@pytest.mark.parametrize("name", LOWERED)
def test_unpacking_a_packed_list_gives_the_original_values(name):
    function, expected = LOWERED[name]
    fn = program(function, ROW)

    assert expected == ops(lower_tuples(fn))
    assert_unchanged(lower_tuples, fn, np.arange(4.0))
    assert_unchanged(lower_tuples, fn, np.arange(8.0)[::-2])


@pytest.mark.parametrize("name", KEPT)
def test_other_uses_of_split_and_stack_are_kept(name):
    fn = program(KEPT[name], ROW)

    assert fn is lower_tuples(fn)


def test_parts_that_are_not_contiguous_are_kept():
    def function(x):
        a, b = split(OPS["concatenate"]((-x, x * 2), 1), 2, 1)
        return a.sum() + b.sum()

    fn = program(function, X)
    assert fn is lower_tuples(fn)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: OPS["stack"](tuple([(x * 2)[i] for i in range(4)]), 1),
        lambda x: split(OPS["concatenate"]((-x, x * 2), 1), 2, 0),
    ],
    ids=["rows as columns", "parts along another axis"],
)
def test_a_packing_along_another_axis_is_kept(function):
    fn = program(function, ArrayType(float, (4, 4)))

    assert fn is lower_tuples(fn)
    assert_unchanged(lower_tuples, fn, np.arange(16.0).reshape(4, 4))


def test_any_single_part_of_a_split_becomes_a_slice():
    x = np.arange(24.0).reshape(4, 6)
    for sections, axis in [(2, 1), (3, -1), ((1, 4), 1), ((-2,), 0), ((3, 9), 1), ((5, 2), 1)]:
        count = sections if type(sections) is int else len(sections) + 1
        for i in range(count):

            def one(x, at=i, of=sections, along=axis):
                return split(x, of, along)[at]

            fn = program(one, ArrayType(float, x.shape))
            assert_unchanged(lower_tuples, fn, x)


@SOME
@given(programs(ops=LISTS, max_steps=20))
def test_results_of_generated_programs_are_unchanged(program):
    fn, args = program

    assert_unchanged(lower_tuples, fn, *args)


@SOME
@given(functions(smooth=True))
def test_gradients_of_generated_functions_are_unchanged(drawn):
    assert_gradient_unchanged(lower_tuples, *drawn)
