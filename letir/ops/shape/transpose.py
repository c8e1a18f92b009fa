"""Axes as users name them, and transpose, which orders the axes of an array."""

from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.errors import AxisBoundsError, DTypeError, ShapeError
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import transpose_batch
from letir.ops.define.records import define, unbroadcast
from letir.ops.shape.shape_and_creation import as_size, shape_from_call


def normalize_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as non-negative ints, in the order given.

    Raises AxisBoundsError for an axis out of bounds, ShapeError for an axis that is given twice,
    DTypeError for an axis that is not an integer, as in a parsed program.
    """
    axes = axis if type(axis) is tuple else (axis,)
    for a in axes:
        if not hasattr(a, "__index__"):
            raise DTypeError(f"axis {a!r} is not an integer\n  count axes from 0")
        if not -ndim <= a < ndim:
            raise AxisBoundsError(
                f"axis {a} is out of bounds for array of dimension {ndim}\n"
                "  count axes from 0, or from -1 for the last one"
            )
    result = tuple(a % ndim for a in axes)
    if len(set(result)) < len(result):
        raise ShapeError(
            f"axes {axes} name an axis twice, of an array with {ndim} axes\n  name each axis once"
        )
    return result


def int_or_tuple(axis: Any) -> Any:
    """``axis`` as an attribute: None, an int or a tuple of ints."""
    if axis is None:
        return None
    if isinstance(axis, tuple | list | range):
        return tuple(as_size(a) for a in axis)
    return as_size(axis)


def array_as_tuple(sizes: Any) -> Any:
    """Sizes or axes that a caller gives as a vector, such as ``np.arange(2)``, as a tuple."""
    is_vector = isinstance(sizes, np.ndarray) and sizes.ndim == 1
    return tuple(sizes.tolist()) if is_vector else sizes


def _transpose_aval(x, *, axes):
    """The operand's type with its shape permuted."""
    order = range(x.ndim)[::-1] if axes is None else normalize_axes(axes, x.ndim)
    if len(order) != x.ndim:
        raise ShapeError(
            f"transpose: axes {axes} do not match an array with {x.ndim} axes\n"
            "  name each axis once, or use swapaxes for two of them"
        )
    return x.with_shape(tuple(x.shape[i] for i in order))


def _transpose_vjp(ct, y, x, *, axes):
    """The cotangent transposed by the inverse permutation."""
    inverse = None if axes is None else tuple(np.argsort([a % len(axes) for a in axes]).tolist())
    return (unbroadcast(transpose(ct, inverse), x),)


def _moveaxis_prepare(a, source, destination):
    """np.moveaxis as a transpose."""
    source, destination = (
        normalize_axes(int_or_tuple(array_as_tuple(source)), a.ndim),
        normalize_axes(int_or_tuple(array_as_tuple(destination)), a.ndim),
    )
    if len(source) != len(destination):
        raise ShapeError(
            "moveaxis: source and destination differ in length\n  name as many places as axes"
        )
    order = [i for i in range(a.ndim) if i not in source]
    for target, start in sorted(zip(destination, source, strict=True)):
        order.insert(target, start)
    return (a,), {"axes": tuple(order)}


def _swapaxes_prepare(a, axis1, axis2):
    """np.swapaxes as a transpose."""
    order = list(range(a.ndim))
    (i,), (j,) = [normalize_axes(as_size(axis), a.ndim) for axis in (axis1, axis2)]
    order[i], order[j] = j, i
    return (a,), {"axes": tuple(order)}


def _transpose_prepare(a, axes=None):
    """np.transpose, whose axes may be an array."""
    return (a,), {"axes": int_or_tuple(shape_from_call(axes))}


def _write_transpose(parent, new, *, axes):
    """The array ``parent`` after its transpose was overwritten by ``new``."""
    inverse_axes = (
        None if axes is None else tuple(int(i) for i in np.argsort([a % new.ndim for a in axes]))
    )
    return transpose(new, inverse_axes)


transpose: Primitive = define(
    "transpose",
    lambda xp, x, *, axes=None: xp.transpose(x, axes),
    _transpose_aval,
    vjp=_transpose_vjp,
    jvp=lambda t, y, x, *, axes: transpose(t[0], axes),
    batch=transpose_batch,
    prepare=_transpose_prepare,
    numpy={
        np.transpose: _transpose_prepare,
        np.moveaxis: _moveaxis_prepare,
        np.swapaxes: _swapaxes_prepare,
    },
    onnx="Transpose",
    source=arrays.transpose,
    never_fails="biuf",
    odd_in=(0,),
    only_float_warnings=True,
    memory="view",
    cost="free",
    write_through=_write_transpose,
    spreads=True,
    moves_elements=1,
)


def move_axes(x: Value, source: tuple, destination: tuple) -> Value:
    """``x`` with axes moved, as by np.moveaxis."""
    operands, attrs = _moveaxis_prepare(x, source, destination)
    return transpose(*operands, **attrs)
