"""Operands that are not traced values: lists (with or without traced elements), arrays captured
from Variables, and objects that are refused with the user's line.

Used by ``Trace.enter`` and ``Trace.frozen``.
"""

import functools
import math
import operator
import warnings
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Literal

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.sizes.size import Size
from letir.ast.types import WEAK
from letir.errors import DTypeError, LetirError, ShapeError, TraceError, mark_unrecorded_code
from letir.eval.array_modules import type_of, value_on_host
from letir.tracing.mutation.memory_order import copy_to_order
from letir.tracing.source_locations import at_user, error_at_user_line, is_letir_file, is_user_file

_LISTS = (list, tuple, deque)  # NumPy converts them to arrays
_PLAIN = frozenset([float, int, complex, bool, str, type(None), np.ndarray, np.float64])
# the rules of np.can_cast
Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]


# class of an operand -> the traced array for it, which it makes of its attribute `base`
ARRAY_MAKERS: dict[type, Callable] = {}


def stack_traced(items: Any) -> Any:
    """A list or deque with traced elements as a traced array, like the result of np.array.

    Other objects are returned unchanged. Numbers become float64, int64 or complex128.
    """
    if not isinstance(items, _LISTS):
        maker = ARRAY_MAKERS.get(type(items))
        if maker is not None:
            return maker(items)
        kind: Any = type(items)
        return array_of_object(items) if has_array_method(kind) else items
    if first_traced(items) is None:
        return items
    # strong: np.array([x, 1.0]) is float64 for a float32 x, while x + 1.0 is float32
    result = PRIMITIVES["stack"]([strong_element(stack_traced(item)) for item in items])
    # NumPy makes an array in C order of a list
    return copy_to_order(result) if result.ndim > 2 else result


def refuse_long_integer(number: int, end: int = 1 << 64) -> None:
    """Raise DTypeError for a Python integer below int64's smallest, or not below ``end``.

    The default ``end`` accepts the integers of uint64 too.
    """
    if -(1 << 63) <= number < end:
        return
    bits = number.bit_length()
    # Python refuses to print very long integers
    text = str(number) if bits <= 1024 else f"of {bits} bits"
    if number >> 63 == 1:
        raise DTypeError(f"the integer {text} does not fit into int64\n  pass numpy.uint64(n)")
    raise DTypeError(f"the integer {text} does not fit into 64 bits\n  pass a float: float(n)")


def traced_or_array(x: Any) -> Any:
    """An operand as a traced value or an ordinary array; lists are stacked.

    Raises DTypeError for a matrix or a masked array, for which NumPy's result has another class.
    """
    x = stack_traced(x)
    if isinstance(x, Value):
        return x
    if issubclass(type(x), np.ndarray) and type(x) is not np.ndarray:
        check_array_type(x)
    return np.asarray(x)


def array_in_dtype(values: Any, dtype: np.dtype) -> Any:
    """A value to write into an array of this dtype, as a traced value or an ordinary array.

    Raises NumPy's ValueError or OverflowError for a Python number that the dtype cannot hold, such
    as nan among integers.
    """
    values = stack_traced(values)
    if isinstance(values, Value | np.ndarray | np.generic):
        return (values if isinstance(values, Value) else np.asarray(values)).astype(dtype)
    return np.asarray(values, dtype)


def array_to_write(values: Any, dtype: np.dtype) -> Any:
    """The operand for an assignment to items of an array of this dtype; lists are stacked.

    NumPy converts texts and None, or raises its error.
    """
    if type(values) is Size:
        return values.number()
    if values is not None and not isinstance(values, str | bytes):
        return stack_traced(values)
    result = np.empty((), dtype)
    try:
        result[...] = values
    except (TypeError, ValueError) as error:
        error.add_note(f"letir: {at_user().strip()}\n  write numbers and arrays")
        raise
    return result


def array_of_object(x: Any) -> Any:
    """The traced array to which an object is converted by its method ``__array__``, else ``x``.

    NumPy would accept only an ordinary array from that method.
    """
    if isinstance(x, np.poly1d):  # its method converts in NumPy's own code
        return x.coeffs if isinstance(x.coeffs, Value) else x
    if type(x) in ARRAY_MAKERS:
        return ARRAY_MAKERS[type(x)](x)
    convert = getattr(type(x), "__array__", None)
    if type(convert) is not FunctionType or is_letir_file(convert.__code__.co_filename):
        return x
    result = convert(x)
    return result if isinstance(result, Value) else x


@functools.lru_cache(256)
def has_array_method(kind: Any) -> bool:
    """Whether objects of a class convert themselves by a user's method ``__array__``."""
    convert = getattr(kind, "__array__", None)
    return type(convert) is FunctionType and is_user_file(convert.__code__.co_filename)


def array_of_operand(x: Any) -> Any:
    """The array or list to which NumPy converts an object, else ``x``."""
    result = array_of_object(x)
    return array_of_sequence(x) if result is x else result


def array_of_sequence(x: Any) -> Any:
    """A range, deque or other sequence as a list or an array; other objects unchanged."""
    if isinstance(x, bytearray | memoryview | array):
        return np.asarray(x)
    is_other = isinstance(x, Sequence) and not isinstance(x, list | tuple | str | bytes)
    return stack_traced(list(x)) if is_other else x


def value_of_operand(operand: Any) -> Any:
    """The known value of an operand that is not traced by the active trace."""
    array = array_of_object(operand)
    return array.concrete_value() if isinstance(array, Value) else value_on_host(array)


def first_traced(items: Any) -> Value | None:
    """The first traced value in nested lists, tuples and deques, None if there is none."""
    kind: Any = type(items)
    if kind in _PLAIN:
        return None
    if isinstance(items, _LISTS):
        return next((value for item in items if (value := first_traced(item)) is not None), None)
    if kind in ARRAY_MAKERS:  # such as x.flat
        return items.base
    if has_array_method(kind):
        items = array_of_object(items)
    return items.number() if kind is Size else items if isinstance(items, Value) else None


def strong_element(item: Any) -> Any:
    """An element of a list as an array: a Python number has NumPy's default dtype."""
    if type(item) is Size:
        item = item.number()
    if not isinstance(item, Value):
        return np.asarray(item)
    return item.astype(item.dtype) if item.type.weak else item


def converted_list(trace: Any, items: list, stacked: Value, dtype: np.dtype) -> Value:
    """``stacked``, the traced array of a list, converted to ``dtype``.

    If numbers may not fit, each is converted on its own, as in NumPy, which raises an error for nan
    and for numbers that are out of bounds.
    """
    is_real = dtype.kind in "iuf"
    if is_real and stacked.dtype.kind == "c" and _has_python_complex(items):
        raise TypeError("must be real number, not complex")
    if dtype.kind in "iu" and stacked.dtype.kind != "c" and not np.can_cast(stacked.dtype, dtype):
        stacked = strong_element(stack_traced(_converted_numbers(trace, items, dtype)))
    return stacked


def _has_python_complex(item: Any) -> bool:
    """Whether there is a Python complex number, traced or not, in nested lists."""
    if isinstance(item, list | tuple):
        return any(map(_has_python_complex, item))
    return item.type == WEAK[complex] if isinstance(item, Value) else type(item) is complex


def _converted_numbers(trace: Any, item: Any, dtype: np.dtype) -> Any:
    """Nested lists with each number, but no array, converted to ``dtype`` as if assigned."""
    if isinstance(item, list | tuple):
        return [_converted_numbers(trace, part, dtype) for part in item]
    if np.ndim(item):
        return item
    place = trace.apply(PRIMITIVES["zeros"], (), Attrs(shape=(), dtype=dtype))
    return place.at[()].set(item)


def positive_int(value: Any, name: str) -> int:
    """``value`` as an int. Raises ShapeError with the user's line unless it is a positive integer.

    ``name``: the argument, for the message.
    """
    try:
        result = operator.index(value)
    except TypeError:
        result = 0
    if result < 1:
        raise error_at_user_line(
            ShapeError(f"{name} must be 1 or more, found {value!r}\n  pass a whole number from 1")
        )
    return result


def guarded_attribute(name: str, value: Any) -> Any:
    """``value``, an attribute of an operation, with its traced integers, bools and infinities
    replaced by their numbers, which are guarded.

    Raises TraceError for other traced floats, since their derivatives would be lost.
    """
    if type(value) is tuple:
        return tuple([guarded_attribute(name, item) for item in value])
    if not isinstance(value, Value):
        return value
    if value.dtype.kind == "b" and not value.shape:
        return bool(value)
    number: Any = value
    if value.dtype.kind in "iu":
        return operator.index(number)
    concrete = number.concrete_value()
    if not value.shape and isinstance(concrete, float) and math.isinf(concrete):
        return number.guarded(float, name)  # as in norm(x, np.inf)
    error = TraceError(
        f"{name} is a traced value of type {value.type}, but must be a number that the program "
        f"contains{at_user()}\n"
        f"  pass {name} as a static argument (static_argnums);\n"
        f"  letir.concrete({name}) gives the value, with a guard and without a derivative"
    )
    raise LATE_BOUND["note_refusal"](mark_unrecorded_code(error))


def captured_array(variable: Value) -> Any:
    """The array of a Variable that a traced function captures.

    Raises TraceError if it requires grad, since the program would treat it as constant
    [semantics.md B1].
    """
    if variable.arg.requires_grad:
        raise TraceError(
            f"a Variable of type {variable.type} that requires grad is used in a trace, but is "
            f"not an argument of the traced function{at_user()}\n"
            "  make it an argument, or detach it: x.detach() enters as a constant"
        )
    return variable.concrete_value()


def check_array_type(operand: Any) -> None:
    """Raise DTypeError with the remedy and the user's line unless it is an array of numbers."""
    try:
        type_of(operand)
    except DTypeError as error:
        # NumPy computes with some of these, in arrays of objects: jit runs the Python function
        raise error_at_user_line(mark_unrecorded_code(error)) from None


def operand_error(operand: Any) -> LetirError:
    """The error for an object that is not an array of numbers, with the remedy."""
    check_array_type(operand)
    return error_at_user_line(
        DTypeError(
            f"{operand!r} cannot be an operand\n"
            "  pass arrays and numbers, and a Dask array as an argument of the function"
        )
    )


def take_along(a: Any, places: Any, axis: int = 0) -> Any:
    """``a`` at indices along an axis."""
    item = (*[slice(None)] * axis, places)
    # the method of an ordinary array would convert the traced indices to numbers
    return PRIMITIVES["index"](a, item) if isinstance(places, Value) else a[item]


def has_traced_slice(item: Any) -> bool:
    """Whether an index has a slice between two traced integers."""
    for entry in item if type(item) is tuple else (item,):  # a generator would cost more
        if type(entry) is slice and is_traced_slice(entry):
            return True
    return False


def is_traced_slice(entry: slice) -> bool:
    """Whether both ends of a slice are traced integers."""
    if not isinstance(entry.start, Value):  # decides almost always
        return False
    ends = (entry.start, entry.stop)
    return all(isinstance(n, Value) and n.dtype.kind == "i" and not n.shape for n in ends)


def convert_one_element(ndim: int, called: str) -> None:
    """Warn or raise TypeError as NumPy does for ``float()`` of an array of one element."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            float(np.zeros((1,) * ndim))
    except TypeError as error:
        raise TypeError(
            f"{error}: {called}{at_user()}\n  convert the element: x[0], x.item()"
        ) from None
    for warning in caught:
        warnings.warn(warning.message, stacklevel=1)


def call_by_operands(original: Any, stand_in: Any) -> Any:
    """``original``, or if it is a function a function that calls ``stand_in`` for traced values."""
    if isinstance(original, type) or not hasattr(original, "__name__"):
        return original

    @functools.wraps(original, updated=())
    def call(*args, **kwargs):
        is_any = first_traced((*args, *kwargs.values())) is not None
        return (stand_in if is_any else original)(*args, **kwargs)

    return call


LATE_BOUND.update(guarded_attribute=guarded_attribute, stack_traced=stack_traced)
