"""Arrays created from numbers, without operands: eye, arange."""

import math
from typing import Any

import numpy as np

from letir.ast.sizes.size import Size
from letir.ast.symbolic_sizes import has_size
from letir.ast.types import ArrayType, requested_dtype
from letir.errors import ShapeError
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import NO_BATCHED_OPERAND
from letir.ops.define.records import define
from letir.ops.shape.shape_and_creation import NO_OPERAND, as_size

eye = define(
    "eye",
    lambda xp, *, n, m, k, dtype: xp.eye(n, m, k, dtype),
    lambda *, n, m, k, dtype: ArrayType(dtype, (n, m)),
    vjp=NO_OPERAND,
    jvp=NO_OPERAND,
    batch=NO_BATCHED_OPERAND,
    prepare=lambda n, m=None, k=0, dtype=float, **_: (
        (),
        {
            "n": as_size(n),
            "m": as_size(n if m is None else m),
            "k": as_size(k),
            "dtype": requested_dtype(dtype),
        },
    ),
    source=arrays.eye,
    sizes_in=("n", "m", "k"),
    only_float_warnings=True,
    order="C",
    compact="array",
    cost="free",
    no_float_errors=True,
)


def _arange_prepare(start, stop=None, step=1, dtype=None, **_):
    """np.arange, where a single bound is the stop."""
    bounds = (start, step) if stop is None else (start, stop, step)
    start, stop = (0, start) if stop is None else (start, stop)
    dtype = _dtype_of_range(*bounds) if dtype is None else requested_dtype(dtype)
    return (), {"start": start, "stop": stop, "step": step, "dtype": dtype}


def _dtype_of_range(*bounds: Any) -> np.dtype:
    """The dtype of np.arange, which depends on all bounds; a symbolic size is an integer."""
    kinds = [int if type(bound) is Size else type(bound) for bound in bounds]
    return np.arange(*[kind(1) for kind in kinds]).dtype


def _arange_aval(*, start, stop, step, dtype):
    """One axis with as many elements as there are steps before the stop."""
    if has_size((start, stop, step)):
        return ArrayType(dtype, (_symbolic_count(start, stop, step),))
    # the formula of https://numpy.org/doc/stable/reference/generated/numpy.arange.html
    return ArrayType(dtype, (max(math.ceil((stop - start) / step), 0),))


def _symbolic_count(start, stop, step):
    """The number of steps between bounds that are symbolic sizes or whole numbers."""
    start, stop, step = map(_as_whole, (start, stop, step))
    if type(step) is not int or step == 0 or float in (type(start), type(stop)):
        raise ShapeError(
            f"arange: between {start} and {stop} a step is an integer, found {step}\n"
            "  convert it with int(step), or use linspace"
        )
    count = (stop - start if step > 0 else start - stop) + abs(step) - 1
    return 0 if count < 0 else count // abs(step)


def _as_whole(bound):
    """A float without a fraction as an integer, other bounds unchanged."""
    return int(bound) if type(bound) is float and bound.is_integer() else bound


arange = define(
    "arange",
    lambda xp, *, start, stop, step, dtype: xp.arange(start, stop, step, dtype),
    _arange_aval,
    vjp=NO_OPERAND,
    jvp=NO_OPERAND,
    batch=NO_BATCHED_OPERAND,
    prepare=_arange_prepare,
    source=arrays.arange,
    sizes_in=("start", "stop", "step"),
    only_float_warnings=True,
    order="C",
    compact="array",
    cost="free",
    no_float_errors=True,
)
