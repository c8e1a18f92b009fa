"""Hazards: sizes that Python reads [B7, B10]."""

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.errors import TraceError
from letir.testing import assert_same

X, Y = np.array([1.0, 2.0, 3.0]), np.array([4.0, -1.0, 2.0])
LONG = np.arange(5.0)
SHAPE = "ShapeError"

SIZES = {
    "len": lambda x: x.sum() / len(x),
    "shape": lambda x: x / x.shape[0],
    "size": lambda x: x * x.size,
    "a range": lambda x: sum(x[i] for i in range(len(x))),
    "unpacking": lambda x: sum([*x]) * 2,
    "a reshape": lambda x: x.reshape(len(x), 1) * 1.0,
    "an array of that size": lambda x: x + np.arange(len(x)),
    "a mean": lambda x: x.mean(),
    "an index from behind": lambda x: x[-1] * x[len(x) // 2],
    "zeros": lambda x: lnp.zeros(len(x)) + x,
    "a branch": lambda x: x if len(x) > 3 else -x,
}


@pytest.mark.parametrize("name", SIZES)
def test_a_program_recorded_at_one_size_refuses_another(name, replays):
    """[B7]"""
    replays(SIZES[name], [X], [([Y], "right"), ([LONG], SHAPE)])


@pytest.mark.parametrize("name", SIZES)
def test_a_symbolic_size_is_never_converted_to_a_number(name):
    """[B10] The program is right at all sizes, or the trace fails."""
    try:
        program = lt.trace(SIZES[name], lt.ShapeDtype(("n",), float))
    except (TraceError, lt.ShapeError, lt.MissingRule, TypeError):
        return
    for x in (X, LONG):
        assert_same(SIZES[name](x), program(x))
