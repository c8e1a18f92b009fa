"""The values of a graph: arrays that are known, traced arrays, shapes with symbolic sizes, lists.

A known value is an ndarray. A shape with symbolic sizes is an ndarray of dtype object that contains
ints and ``Size``s; the operators of ``shapes`` compute with it, and for all others it becomes a
traced array (``as_array``). A sequence is a list, a missing optional None.
"""

import copy
import math
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

import letir.numpy as lnp
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import Size
from letir.errors import DTypeError, ShapeError, TraceError
from letir.tracing.trace_state import ACTIVE, EAGER, Trace
from letir.tracing.tracer import Tracer

_MAX_NUMBERS = 10_000  # in a vector of sizes
MAX_ELEMENTS = 1 << 28  # in an array that is made from sizes alone
MAX_COMPUTED = 1_000  # iterations on known values, while a model is loaded
_MAX_LOADED = 1 << 24  # elements of such an array that is made while a model is loaded


# the parameters that stand for weights of the model that is loaded
WEIGHTS: ContextVar[frozenset] = ContextVar("letir_onnx_weights", default=frozenset())


class NeedsConstant(Exception):
    """An operator needs the numbers of a weight that is a parameter: keep it as a constant."""

    def __init__(self, local: Any):
        super().__init__("a weight is needed as a constant")
        self.local = local


def model_trace() -> Trace:
    """The trace of the model that is being loaded, or of a body in it."""
    trace = ACTIVE.get()
    assert isinstance(trace, Trace), "a model is loaded inside of a trace"
    return trace


def is_known(value: Any) -> bool:
    """Whether a value is an array, a list or None in which nothing is traced."""
    if isinstance(value, list):
        return all(map(is_known, value))
    return value is None or (type(value) is np.ndarray and value.dtype != object)


def is_shape(value: Any) -> bool:
    """Whether a value is a vector of sizes, at least one of them symbolic."""
    return type(value) is np.ndarray and value.dtype == object


def vector_of_sizes(sizes: Sequence) -> np.ndarray:
    """A shape as a vector: of int64, or of objects if a size is symbolic."""
    if any(type(n) is Size for n in sizes):
        result = np.empty(len(sizes), object)
        result[:] = sizes
        return result
    return np.array([int(n) for n in sizes], np.int64)


def as_array(value: Any) -> Any:
    """``value`` for an operator on arrays: symbolic sizes become a traced array of int64."""
    if not is_shape(value):
        return value
    numbers = [lnp.asarray(n.number() if type(n) is Size else n) for n in value.ravel()]
    joined = lnp.stack([n.astype(np.int64) for n in numbers])
    return joined.reshape(value.shape)


def as_traced(array: np.ndarray) -> Tracer:
    """A known array as a constant of the program."""
    trace = model_trace()
    value = array if trace.mode is EAGER else None
    result = Tracer(trace, trace.constant(array))
    return result if value is None else Tracer(trace, result.arg, array)


def known_array(value: Any, role: str) -> np.ndarray:
    """The numbers of a value that determines shapes or axes.

    With example arguments, a guard records that the program is valid for these numbers only. Raises
    TraceError for a value that is not known.
    """
    if not isinstance(value, Tracer | type(None)) or type(value) is np.ndarray:
        return np.asarray(value)
    if value is None:
        raise DTypeError(f"{role} is missing\n  the operator needs it to know its result's shape")
    trace = value.emitter
    if value.arg in WEIGHTS.get():
        raise NeedsConstant(value.arg)
    if trace.mode is not EAGER:
        raise TraceError(
            f"{role} is computed when the program runs, but a shape depends on it\n"
            "  pass example inputs, letir.onnx.load(model, args=(...)): the program is then valid "
            "for these numbers"
        )
    return np.asarray(value.guarded(copy.copy, role))


def known_sizes(value: Any, role: str) -> list:
    """The elements of a vector of integers as ints and symbolic sizes."""
    if type(value) in (int, list, tuple):
        return [value] if type(value) is int else list(value)
    array = known_array(value, role).ravel()
    if array.size > _MAX_NUMBERS:
        raise ShapeError(f"{role}: found {array.size} numbers\n  a shape has at most 64")
    return [n if type(n) is Size else int(n) for n in array]


def known_int(value: Any, role: str) -> Any:
    """The only element of a value as an int or a symbolic size."""
    result = known_sizes(value, role)
    if len(result) != 1:
        raise ShapeError(f"{role} is one number, found {len(result)}\n  pass an array of shape ()")
    return result[0]


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front. Raises ShapeError if there is no such axis."""
    if not -rank <= axis < rank:
        raise ShapeError(f"axis {axis} of an array with {rank} axes\n  count from 0, or from -1")
    return axis % rank if rank else 0


def axes_of(axes: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front. Raises ShapeError for one that occurs twice."""
    result = tuple(axis_of(axis, rank) for axis in known_sizes(axes, "axes"))
    if len(set(result)) != len(result):
        raise ShapeError(f"axes {result} contain an axis twice\n  name each axis once")
    return result


def check_elements(shape: Sequence, role: str) -> None:
    """Raise ShapeError for an array that is too large to be made while a model is loaded."""
    numbers = [n for n in shape if type(n) is not Size]
    if any(n < 0 for n in numbers):
        raise ShapeError(f"{role}: a size cannot be negative, found {tuple(shape)}")
    if math.prod(numbers) > MAX_ELEMENTS:
        raise ShapeError(
            f"{role}: the model asks for an array of shape {tuple(shape)}, more than "
            f"{MAX_ELEMENTS} elements\n  check the sizes that it is made of"
        )


def made_later(x: Any, shape: Sequence, role: str) -> Any:
    """``x``, or a constant of the program with its value if a result of this ``shape`` cannot be
    computed while the model is loaded, because the shape is symbolic or too large.

    Raises ShapeError for a shape that is too large for the program, too.
    """
    check_elements(shape, role)
    sizes = [n for n in shape if type(n) is not Size]
    is_later = len(sizes) < len(shape) or math.prod(sizes) > _MAX_LOADED
    return as_traced(np.array(x)) if is_later and type(x) is np.ndarray else x


def recorded_array(name: str, *args: Any, **kwargs: Any) -> Any:
    """The array of one of NumPy's array makers, as an operation of the program."""
    op = PRIMITIVES[name]
    operands, attrs = op.prepare(*args, **kwargs)
    return model_trace().apply(op, operands, op.complete(attrs))


def position_range(n: Any, dtype: Any, role: str) -> Any:
    """The numbers from 0 before ``n``, traced if ``n`` is symbolic or large."""
    check_elements([n], role)
    if type(n) is not Size and n > _MAX_LOADED:
        return recorded_array("arange", n, dtype=dtype)
    return (lnp if type(n) is Size else np).arange(n, dtype=dtype)


def zeros_of(shape: Sequence, dtype: Any, role: str) -> Any:
    """Zeros of this shape, traced if it has symbolic sizes."""
    check_elements(shape, role)
    if any(type(n) is Size for n in shape):
        return lnp.zeros(tuple(shape), dtype)
    if math.prod(shape) > _MAX_LOADED:
        return recorded_array("zeros", tuple(shape), dtype)
    return np.zeros(tuple(shape), dtype)


def number_like(number: Any, x: Any) -> Any:
    """A Python number as a 0-d array with the dtype of ``x``."""
    return np.asarray(number).astype(x.dtype)


def broadcast_along_channels(v: Any, rank: int) -> Any:
    """A vector with an element for each channel, made to broadcast along the second axis."""
    return v.reshape((-1, *[1] * (rank - 2)))


def traced_with(x: Any, *others: Any) -> Any:
    """``x``, traced if one of ``others`` is: NumPy cannot index an array with traced values."""
    is_mixed = any(type(other) is Tracer for other in others)
    return as_traced(x) if is_mixed and type(x) is np.ndarray else x


def take_elements(x: Any, indices: Any, axis: int | None = None) -> Any:
    """``np.take``, also with traced indices into a known array."""
    return np.take(traced_with(x, indices), indices, axis=axis)


def transpose_matrix(x: Any) -> Any:
    """A matrix transposed; a known one is copied, which makes products of small matrices faster.

    A step of an LSTM of 64 units then takes 0.7 of the time in ``run_forward``.
    """
    return np.ascontiguousarray(x.T) if type(x) is np.ndarray else x.T
