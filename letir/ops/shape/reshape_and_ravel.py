"""reshape and ravel: other shapes of the same elements."""

import math
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.ast.record_fields import SeveralBinds
from letir.ast.sizes.size import exact_quotient, sizes_differ
from letir.ast.terms import NO_TYPE
from letir.ast.types import Size
from letir.errors import DTypeError, ShapeError
from letir.ops.as_numpy import arrays
from letir.ops.define.records import composite, define
from letir.ops.elementwise import casting
from letir.ops.shape.shape_and_creation import (
    batching,
    runtime_shape,
    shape_from_call,
    shape_operands,
)


def _reshape_aval(x, *sizes, shape, order):
    """The operand's dtype in the new shape, in which one -1 stands for the remaining size."""
    if shape is None:
        return None
    if shape.count(-1) > 1 or any(type(n) is int and n < -1 for n in shape):
        raise ShapeError(
            f"reshape: {shape} is not a shape; at most one size may be -1\n"
            "  pass sizes from 0, and -1 once for the rest"
        )
    if -1 in shape:
        others = math.prod(n for n in shape if n != -1)
        rest = exact_quotient(x.size, others)
        if rest is None and type(x.size) is Size and type(others) is int and others > 0:
            rest = x.size // others  # NumPy raises where this leaves a rest
        if rest is None:
            raise ShapeError(
                f"reshape: {x.shape} has {x.size} elements, which do not fill {shape}\n"
                "  the number of elements must be divisible by the other sizes"
            )
        shape = tuple(rest if n == -1 else n for n in shape)
    if _are_different(math.prod(shape), x.size):
        raise ShapeError(
            f"reshape: {x.shape} has {x.size} elements, {shape} has {math.prod(shape)}\n"
            "  the number of elements must stay; write -1 for the size that follows"
        )
    return x.with_shape(shape)


def _are_different(n: Any, m: Any) -> bool:
    """Whether two numbers of elements differ for all values of symbolic sizes."""
    size, other = (n, m) if type(n) is Size else (m, n)
    return bool(sizes_differ(size, other)) if type(size) is Size else n != m


def _reshape_raises(x, *sizes, shape, order) -> bool:
    """Whether the numbers of elements are equal for some values of symbolic sizes only."""
    if x is None or shape is None or x is NO_TYPE:
        return False
    others = math.prod(n for n in shape if n != -1)
    if -1 in shape:
        return exact_quotient(x.size, others) is None
    return type(x.size - others) is Size


def _reshape_prepare(a, shape, order="C"):
    """reshape in rules, where a Value as ``shape`` stands for the shape that it has."""
    if order not in ("C", "F"):  # "A" depends on the memory order, which a trace does not know
        raise DTypeError(f"reshape: order is 'C' or 'F', found {order!r}\n  pass one of them")
    sizes, shape = shape_operands(shape, (a,))
    if shape is not None:
        # NumPy treats each negative size as -1
        shape = tuple(-1 if type(n) is int and n < 0 else n for n in shape)
    return (a, *sizes), {"shape": shape, "order": order}


def _reshape_call(a, /, shape=None, order="C", *, newshape=None, copy=None):
    """np.reshape."""
    shape = shape_from_call(newshape if shape is None else shape)
    if copy:
        raise SeveralBinds(lambda: casting.copy(reshape(a, shape, order)))
    if copy is not None and isinstance(a, Value) and a.shape:
        # raises NumPy's error where the elements would have to be copied
        np.reshape(LATE_BOUND["layout_of"](a), shape, order, copy=False)
    return _reshape_prepare(a, shape, order)


def write_reshape(parent: Value, new: Value, *sizes: Any, order: str = "C", **_: Any) -> Value:
    """The array ``parent`` after its reshape was overwritten by ``new``."""
    return reshape(new, parent, order)


reshape: Primitive = define(
    "reshape",
    lambda xp, x, *sizes, shape, order="C": xp.reshape(x, runtime_shape(shape, sizes), order=order),
    _reshape_aval,
    vjp=lambda ct, y, x, *sizes, shape, order: (reshape(ct, x, order), *[None] * len(sizes)),
    jvp=lambda t, y, x, *sizes, shape, order: reshape(t[0], y, order),
    prepare=_reshape_prepare,
    batch=batching.reshape_batch,
    numpy={np.reshape: _reshape_call},
    onnx="Reshape",
    source=arrays.reshape,
    never_fails_alone=True,
    odd_in=(0,),
    only_float_warnings=True,
    memory="view",
    order="first",
    cost="free",
    raises=_reshape_raises,
    view_needs="strided",
    write_through=write_reshape,
    spreads=True,
    takes_shape=True,
    moves_elements=1,
)


def _ravel_prepare(a, order="C"):
    """``ndarray.ravel``, in C or Fortran order."""
    return (a,), {"order": order}


# not recorded as reshape(-1), which differs in NumPy: of a 1-d array with a step reshape gives a
# view, ravel a contiguous copy
ravel = composite(
    "ravel",
    lambda x, *, order: reshape(x, -1, order),
    impl=lambda xp, x, *, order="C": xp.ravel(x, order),
    prepare=_ravel_prepare,
    source=arrays.ravel,
    memory="may_alias",
    view_needs="contiguous",
    write_through=write_reshape,
)
