"""The slots plan: results, errors and freeing of ``run_forward``."""

import numpy as np
from hypothesis import given

from letir import run_forward, trace
from letir.plan.slots import plan_of
from letir.testing import assert_same
from letir.testing.strategies import programs


@given(programs())
def test_a_plan_gives_what_run_forward_gives(program):
    fn, args = program

    assert_same(tuple(plan_of(fn).run(list(args))), as_tuple(run_forward(fn, *args), fn))


def as_tuple(results, fn) -> tuple:
    return results if len(fn.ret.args) != 1 else (results,)


def test_a_number_among_the_operands_keeps_the_dtype():
    f = trace(lambda x: (x * 2.0 + 1) ** 2, np.ones(3, np.float32))

    (result,) = plan_of(f).run([np.ones(3, np.float32)])

    assert result.dtype == np.float32
