"""peephole under fast_math, which assumes finite numbers and ignores the sign of zero."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from letir import run_forward
from letir.ast.primitive import PRIMITIVES as OPS
from letir.ast.types import ArrayType
from letir.passes import peephole
from letir.testing import assert_close, assert_same, programs
from tests.passes.exactness import new, ops, program, row_of

SOME = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
X = ArrayType(float, (3, 4))
FAST = {
    "x * 0": (lambda x: x * 0, ["zeros"]),
    "0 / x": (lambda x: 0.0 / x, ["zeros"]),
    "x - x": (lambda x: x - x, ["zeros"]),
    "x + 0": (lambda x: x + 0, []),
}


@pytest.mark.parametrize("name", FAST)
def test_fast_math_assumes_that_numbers_are_finite(name):
    function, expected = FAST[name]
    fn = program(lambda x: function(x * x).sum(), X)

    left = ops(peephole(fn, fast_math=True))

    assert left == (expected or ["mul"]) + ["sum"]
    assert "mul" in ops(peephole(fn))
    assert_same(fn(np.ones((3, 4))), peephole(fn, fast_math=True)(np.ones((3, 4))))


def test_fast_math_gives_scalar_zeros_for_scalars():
    fn = program(lambda x: x - x, ArrayType(np.float32))

    assert_same(np.float32(0), peephole(fn, fast_math=True)(np.float32(3)))


def test_two_sums_are_merged():
    fn = program(lambda x: OPS["sum_to_size"](OPS["sum_to_size"](new(x), (1, 4)), ()), X)

    assert fn is peephole(fn)
    assert ["positive", "sum_to_size"] == ops(peephole(fn, fast_math=True))


@SOME
@given(programs())
def test_results_are_close_and_keep_their_kind_and_dtype(program):
    fn, args = program
    with np.errstate(all="ignore"):
        expected, found = (
            row_of(run_forward(f, *args)) for f in (fn, peephole(fn, fast_math=True))
        )

    assert [type(x) for x in expected] == [type(x) for x in found]
    assert_close(expected, found)
