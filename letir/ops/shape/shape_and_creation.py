"""Operations on shapes, and operations that create arrays: size, sum_to_size, broadcast_to,
zeros, ones, full, constant.

A shape is an attribute where it is known, else an operand: the 1-d int64 array that ``size``
computes. Derivative rules give the shape of another value by passing that value.
"""

import operator
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.record_fields import never
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.types import ArrayType, Size, broadcast_shapes, requested_dtype
from letir.errors import DTypeError, ShapeError
from letir.ops import LateModule
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import NO_BATCHED_OPERAND, NO_BATCHED_SIZE
from letir.ops.define.records import DISCRETE, define, dtypes_for_result, unbroadcast

_MAX_CONSTANT_INDICES = 1 << 16  # in a program; a parsed one may claim an axis of any length
NO_OPERAND = never("it has no floating operand")
batching: Any = LateModule("letir.ops.shape.shape_batching")

# ---- size, and how a shape is given ----

size = define(
    "size",
    lambda xp, x: _np_shape(x),
    lambda x: ArrayType(np.int64, (x.ndim,)),
    vjp=DISCRETE,
    jvp=DISCRETE,
    batch=batching.size_batch,
    onnx="Shape",
    source=arrays.size,
    reads_sizes_only=True,
    never_fails="biuf",
    only_float_warnings=True,
    cost="free",
)


def _np_shape(x) -> np.ndarray:
    """The shape of ``x`` as a NumPy array: sizes stay on the host, also for a CuPy ``x``."""
    return np.array(getattr(x, "shape", ()), dtype=np.int64)


@frozen(eq=False)
class Sizes:
    """A shape computed by the program: a 1-d integer array, and its sizes as far as known."""

    array: Value
    static_shape: tuple | None = None

    @classmethod
    def from_value(cls, x: Value) -> "Sizes":
        """The shape of ``x``."""
        return cls(size(x), None if x.type is None else x.shape)

    def __getitem__(self, axis: int) -> int | Value:
        """One size: an int where it is known, else a 0-d integer array."""
        sizes = self.static_shape
        number = None if sizes is None else sizes[axis]  # a number needs no bind
        return number if type(number) is int else self.array[axis]


def shape_operands(shape: Any, values: tuple = ()) -> tuple[tuple, tuple | None]:
    """(operands, attribute) that give ``shape``, a tuple, an int, ``Sizes``, or a Value that has
    the shape. Symbolic sizes in a tuple are read from ``values`` or parameters.
    """
    if isinstance(shape, Value):
        sizes = None if shape.type is None else shape.shape
        return ((), sizes) if is_static_shape(sizes) else ((size(shape),), sizes)
    if type(shape) is Sizes:
        return (shape.array,), shape.static_shape
    shape = tuple(map(as_size, shape if isinstance(shape, tuple | list) else (shape,)))
    return () if is_static_shape(shape) else (LATE_BOUND["number_array"](shape, values),), shape


def shape_from_call(shape: Any) -> Any:
    """The ``shape`` that a user passed, as ints. An array holds the sizes themselves, where in
    rules a Value stands for the shape that it has.
    """
    if not hasattr(shape, "ndim"):
        kind = type(shape)
        if kind is bool or (kind in (tuple, list) and bool in map(type, shape)):
            raise TypeError("an integer is required")  # as NumPy says it
        return shape
    return tuple(map(as_size, shape)) if shape.ndim else as_size(shape)


def as_size(n: Any) -> Any:
    """One size or axis: an int or a ``Size``. A traced integer becomes its value, with a guard.

    Raises DTypeError if ``n`` is not an integer.
    """
    if type(n) is Size:
        return n
    try:
        return operator.index(n)  # records the guard of a traced integer
    except TypeError:
        raise DTypeError(
            "a size, an axis or an index is an integer, found "
            f"{LATE_BOUND['describe_value'](n)}\n"
            "  pass an int, or round it: int(n), x.astype(int)"
        ) from None


def as_flag(value: Any) -> bool:
    """A flag such as ``keepdims``, which NumPy takes as an integer, too.

    Raises DTypeError for other objects: the string "no" would be true.
    """
    if type(value) is bool:
        return value
    try:
        return bool(operator.index(value))
    except TypeError:
        raise DTypeError(
            f"a flag such as keepdims is True or False, found {value!r}\n  pass True or False"
        ) from None


def as_mask(value: Any) -> Any:
    """A mask such as ``where``, an array of booleans or a list, of whose numbers NumPy makes one.

    Raises NumPy's TypeError for an array of another dtype.
    """
    value = LATE_BOUND["stack_traced"](value)
    if isinstance(value, list | tuple):
        return np.array(value, bool)
    np.empty(0, getattr(value, "dtype", bool)).astype(bool, casting="safe")
    return value


def runtime_shape(shape: tuple | None, sizes: tuple) -> tuple:
    """The shape at run time: the value of the operand ``sizes`` if given, else the attribute."""
    return tuple(int(n) for n in sizes[0]) if sizes else shape


def _sized_aval(x, *sizes, shape):
    """The operand's dtype in the shape of the attribute; unknown without the attribute."""
    return None if shape is None else x.with_shape(shape)


# ---- sum_to_size ----


def _sum_to_size_impl(xp, x, *sizes, shape):
    """Sum over leading axes and over axes of length 1 in the target. The same object is returned
    where the shapes are equal.
    """
    shape = runtime_shape(shape, sizes)
    actual = getattr(x, "shape", ())
    if actual == shape:  # the usual case: no copy
        return x
    lead = len(actual) - len(shape)
    stretched = tuple(lead + i for i, n in enumerate(shape) if n == 1 != actual[lead + i])
    # dtype: sums of small integers would widen
    total = xp.sum(x, axis=(*range(lead), *stretched), keepdims=True, dtype=x.dtype)
    return total.reshape(shape) if shape else total.reshape(())[()]  # [()]: NumPy's scalar


def _sum_to_size_aval(x, *sizes, shape):
    """The operand's dtype in the target shape, which must broadcast to the operand's shape."""
    if shape is not None and broadcast_shapes(x.shape, shape) != x.shape:
        raise ShapeError(f"sum_to_size: {shape} does not broadcast to {x.shape}")
    return _sized_aval(x, *sizes, shape=shape)


def _resize_prepare(x, shape):
    """The operand and its target shape."""
    sizes, shape = shape_operands(shape, (x,))
    return (x, *sizes), {"shape": shape}


sum_to_size: Primitive = define(
    "sum_to_size",
    _sum_to_size_impl,
    _sum_to_size_aval,
    vjp=lambda ct, y, x, *sizes, shape: (broadcast_to(ct, x), *[None] * len(sizes)),
    jvp=lambda t, y, x, *sizes, shape: sum_to_size(t[0], y),
    batch=batching.sum_to_size_batch,
    prepare=_resize_prepare,
    source=arrays.sum_to_size,
    odd_in=(0,),
    only_float_warnings=True,
    memory="if_same_shape",
    cost="moderate",
    spreads=True,
    takes_shape=True,
    scalar="sum_to_size",
    gives_scalars=True,
    reduction="sum",
)

# ---- broadcast_to ----


def _broadcast_to_aval(x, *sizes, shape):
    """The operand's dtype in the target shape, to which the operand's shape must broadcast."""
    if shape is not None and broadcast_shapes(x.shape, shape) != shape:
        raise ShapeError(
            f"broadcast_to: {x.shape} does not broadcast to {shape}\n"
            "  sizes at one axis must be equal, or 1 in the array"
        )
    return _sized_aval(x, *sizes, shape=shape)


def _broadcast_to_call(array, shape, subok=False):
    """np.broadcast_to."""
    return _resize_prepare(array, shape_from_call(shape))


def _broadcast_to_impl(xp, x, *sizes, shape):
    """np.broadcast_to, with a fast path for scalars, such as the cotangents of sums."""
    shape = runtime_shape(shape, sizes) if sizes else shape
    if xp.__name__ != "numpy" or type(x) is not xp.float64:
        return xp.broadcast_to(x, shape)
    result = xp.ndarray(shape, float, xp.asarray(x), 0, (0,) * len(shape))
    result.flags.writeable = False
    return result


broadcast_to: Primitive = define(
    "broadcast_to",
    _broadcast_to_impl,
    _broadcast_to_aval,
    vjp=lambda ct, y, x, *sizes, shape: (unbroadcast(ct, x), *[None] * len(sizes)),
    jvp=lambda t, y, x, *sizes, shape: broadcast_to(t[0], y),
    prepare=lambda array, shape, subok=False: _resize_prepare(array, shape),
    batch=batching.broadcast_to_batch,
    numpy={np.broadcast_to: _broadcast_to_call},
    onnx="Expand",
    source=arrays.broadcast_to,
    never_fails_alone=True,
    odd_in=(0,),
    only_float_warnings=True,
    memory="view",
    cost="free",
    write_through="read_only",
    spreads=True,
    takes_shape=True,
    moves_elements=1,
    repeats=True,
)

# ---- creation ----


def _created_aval(*sizes, shape, dtype, **_):
    """The type with this dtype and shape; unknown without the attribute ``shape``."""
    return None if shape is None else ArrayType(dtype, shape)


def _created_prepare(shape, dtype=float, order="C", *, device=None, like=None):
    """np.zeros and np.ones. A Value as ``shape`` stands for the shape that it has."""
    sizes, shape = shape_operands(shape)
    return sizes, {"shape": shape, "dtype": requested_dtype(dtype)}


# The fields that the records of zeros and ones share.
_CREATED: dict[str, Any] = {
    "vjp": NO_OPERAND,
    "jvp": NO_OPERAND,
    "batch": NO_BATCHED_SIZE,
    "prepare": _created_prepare,
    "never_fails_alone": True,
    "only_float_warnings": True,
    "order": "C",
    "compact": "array",
    "cost": "free",
    "no_float_errors": True,
    "spreads": True,
    "takes_shape": True,
}
zeros = define(
    "zeros",
    lambda xp, *sizes, shape, dtype: xp.zeros(runtime_shape(shape, sizes), dtype),
    _created_aval,
    source=arrays.zeros,
    is_zero=lambda *types, **attrs: True,
    **_CREATED,
    repeats=True,
)
ones = define(
    "ones",
    lambda xp, *sizes, shape, dtype: xp.ones(runtime_shape(shape, sizes), dtype),
    _created_aval,
    source=arrays.ones,
    **_CREATED,
    repeats=True,
)


def _full_prepare(shape, fill_value, dtype=None, order="C", *, device=None, like=None):
    """np.full. The dtype defaults to the dtype of the fill value."""
    sizes, shape = shape_operands(shape)
    if dtype is None:
        dtype = fill_value.dtype if hasattr(fill_value, "dtype") else np.dtype(type(fill_value))
    return (fill_value, *sizes), {"shape": shape, "dtype": requested_dtype(dtype)}


def _full_aval(fill, *sizes, shape, dtype):
    """The type with this dtype and shape, to which the fill value must broadcast."""
    if shape is not None:
        _broadcast_to_aval(fill, shape=shape)
    return _created_aval(shape=shape, dtype=dtype)


full = define(
    "full",
    lambda xp, fill, *sizes, shape, dtype: xp.full(runtime_shape(shape, sizes), fill, dtype),
    _full_aval,
    vjp=lambda ct, y, fill, *sizes, shape, dtype: (unbroadcast(ct, fill), *[None] * len(sizes)),
    jvp=lambda t, y, fill, *sizes, shape, dtype: broadcast_to(PRIMITIVES["cast"](t[0], dtype), y),
    batch=batching.full_batch,
    prepare=_full_prepare,
    source=arrays.full,
    never_fails_alone=True,
    only_float_warnings=True,
    casts_operands=True,
    operand_dtypes=dtypes_for_result,
    order="C",
    compact="array",
    cost="free",
    write_through="own",
    no_float_errors=True,
    takes_shape=True,
    scalar="full",
    repeats=True,
)


def zeros_like(x: Value) -> Value:
    """Zeros of the shape and dtype of ``x``, float64 where its type is unknown."""
    return x.emitter.apply(zeros, *_shape_and_dtype(x))


def ones_like(x: Value) -> Value:
    """Ones of the shape and dtype of ``x``, float64 where its type is unknown."""
    return x.emitter.apply(ones, *_shape_and_dtype(x))


def _shape_and_dtype(x: Value) -> tuple[tuple, Attrs]:
    """(operands, attributes) of the zeros of the shape and dtype of ``x``."""
    # x stands for its shape, known or not
    sizes, attrs = _created_prepare(x, float if x.type is None else x.dtype)
    return sizes, zeros.complete(attrs)


constant = define(
    "constant",
    # no copy: the value is frozen, and the evaluator copies results that share its memory
    lambda xp, *, value: value if xp is np else xp.asarray(value),
    lambda *, value: ArrayType(value.dtype, value.shape),
    vjp=NO_OPERAND,
    jvp=NO_OPERAND,
    batch=NO_BATCHED_OPERAND,
    onnx="Constant",
    source=arrays.constant,
    role="constant",
    never_fails_alone=True,
    is_zero=lambda *, value: not np.any(value != 0),
    cost="free",
    no_float_errors=True,
    for_scripts=False,
)


# ---- indices ----


def arange_beside(like: Value, n: Any, dtype: Any) -> Value:
    """``arange(n)``, recorded where ``like`` is: no array is made, as ``n`` may be huge."""
    arange = PRIMITIVES["arange"]
    operands, attrs = arange.prepare(n, dtype=dtype)
    return like.emitter.apply(arange, operands, arange.complete(attrs))


def indices_below(n: int, like: Any) -> Any:
    """The indices 0 to n - 1: an array, or recorded where ``like`` is if they are many."""
    if n <= _MAX_CONSTANT_INDICES or not isinstance(like, Value):
        return np.arange(n)
    return arange_beside(like, n, np.int64)
