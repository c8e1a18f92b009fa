"""erase_number_types: Python numbers become arrays of the right dtype."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import letir as lt
from letir.ast.primitive import PRIMITIVES as OPS
from letir.ast.terms import Const
from letir.ast.text.parser import parse
from letir.ast.types import ArrayType
from letir.errors import LetirError
from letir.passes import erase_number_types
from letir.testing import functions, programs
from tests.passes.exactness import (
    DTYPES,
    assert_gradient_unchanged,
    assert_unchanged,
    program,
    special,
)

SOME = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
NUMBERS = [0, 1, -1, 2, 300, 16777217, 0.1, -0.0, 1e300, 2.0, True, 1j, float("nan")]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "power",
    "floor_divide",
    "maximum",
    "less",
    "equal",
    "logical_and",
]


def numbers(fn: lt.Lambda) -> list:
    """The Python numbers among the operands."""
    return [a.value for bind in fn.binds for a in bind.args if type(a) is Const]


@pytest.mark.parametrize("name", BINARY)
def test_a_number_with_an_array_is_an_array_of_its_dtype(name):
    op = OPS[name]
    for dtype, number, shape in itertools.product(DTYPES, NUMBERS, ((12,), ())):
        x = special(dtype) if shape else special(dtype)[3]
        for first in (True, False):
            function = partial(op, number) if first else lambda v, n=number: op(v, n)
            try:
                fn = program(function, ArrayType(dtype, shape))
            except LetirError:
                continue
            assert_unchanged(erase_number_types, fn, x)
            assert_unchanged(erase_number_types, fn, np.asarray(x))


def test_an_erased_constant_does_not_widen_the_dtype():
    fn = program(lambda x: (x * 0.1 + 2) ** 2, ArrayType(np.float32, (3,)))
    found = erase_number_types(fn)

    assert [] == numbers(found)
    assert {np.dtype(np.float32)} == {b.binders[0].type.dtype for b in found.binds}


def test_equal_numbers_of_one_dtype_are_bound_once():
    fn = program(lambda x: (x + 1) * (x - 1) + x.astype("float32") * 1.0, ArrayType(float, (3,)))
    found = erase_number_types(fn)

    values = [bind.attrs["value"] for bind in found.constants]
    assert [(1.0, "float64"), (1.0, "float32")] == [(v.item(), v.dtype.name) for v in values]


def test_numbers_in_conditions_and_loop_bounds_are_erased():
    fn = program(
        lambda x: OPS["where"](x > 1, x, 0) + OPS["clip"](x, 0, 1.5), ArrayType(np.float32, (12,))
    )

    assert [] == numbers(erase_number_types(fn))
    assert_unchanged(erase_number_types, fn, special(np.dtype(np.float32)))


@pytest.mark.parametrize("number", [1, 1.75, True, -0.0])
def test_numbers_that_are_written_into_arrays_are_erased(number):
    for dtype in DTYPES:
        fn = program(lambda x: x.at[1:3].set(number), ArrayType(dtype, (12,)))
        assert [] == numbers(erase_number_types(fn))
        assert_unchanged(erase_number_types, fn, special(dtype))


KEPT = [
    "lambda %0: int64*[] { %1: int64[] = add(%0, 1); return %1 }",  # exact, as in Python
    "lambda %0: uint8[3] { %1: uint8[3] = add(%0, 300); return %1 }",  # NumPy refuses it
    "lambda %0: float64[3] { %1: float64[3] = index_add(%0, 1.0, item=0); return %1 }",
    "lambda %0: int64[3] { %1: int64[3] = index_set(%0, nan, item=0); return %1 }",
    "lambda %0: float64[3], %1: float64[3] { %2: float64[3] = add(%0, %1); return %2 }",
]


@pytest.mark.parametrize("text", KEPT)
def test_numbers_that_cannot_be_erased_stay(text):
    fn = parse(text)

    assert fn is erase_number_types(fn)


@SOME
@given(programs())
def test_results_of_generated_programs_are_unchanged(program):
    fn, args = program

    assert_unchanged(erase_number_types, fn, *args)


@SOME
@given(functions(smooth=True))
def test_gradients_of_generated_functions_are_unchanged(drawn):
    assert_gradient_unchanged(erase_number_types, *drawn)


@pytest.mark.parametrize(("dtype", "count"), [(np.int64, 0), (np.float64, 1)])
def test_large_integers_become_arrays_where_these_hold_them_exactly(dtype, count):
    fn = program(lambda x: x + 2**60, ArrayType(dtype, (3,)))

    assert count == len(numbers(erase_number_types(fn)))
