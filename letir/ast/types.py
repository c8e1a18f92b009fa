"""Types of values: dtype, shape, and whether the value is a Python number (weak).

A shape is made of ints and symbolic sizes (``sizes.size``). Users write ``ShapeDtype`` for abstract
tracing; ``Undef`` is the one value in gradient programs that is not an array.
"""

from collections.abc import Iterable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from attrs import define, frozen

from letir.ast import LATE_BOUND, entry_point
from letir.ast.process_state import new_lock
from letir.ast.sizes.size import Size
from letir.errors import (
    DTypeError,
    LetirError,
    ShapeError,
    mark_unrecorded_code,
    notify_watchers,
)

_KINDS = "biufc"  # bool, signed, unsigned, floating, complex: the dtypes of arrays of numbers
_DTYPE = np.dtype  # bound once: attributes of the module are slow during a recording
_NATIVE = {dtype: dtype for dtype in map(np.dtype, "qQ?bhilBHILefdFD")}  # the last of equal ones


class UndefType:
    """An undefined cotangent: a zero without shape or dtype. ``Undef`` is the only object.

    >>> from letir import parse
    >>> parse("lambda %0 { %1 = autograd_add(Undef, %0); return %1 }").binds[0].args[0].value
    Undef
    """

    __slots__ = ()

    def __repr__(self):
        return "Undef"

    def __reduce__(self):
        return "Undef"


Undef = UndefType()

MAX_AXES = 64  # of an array in NumPy
_types: WeakValueDictionary = WeakValueDictionary()  # one object per type: equality is identity
_types_lock = new_lock()


@define(init=False, eq=False, repr=False, weakref_slot=True)
class ArrayType:
    """The type of an array: ``dtype``, ``shape`` (of ints and ``Size``), and ``weak`` for a Python
    number.

    A weak type is promoted like a Python number. Types are interned: equal types are the same
    object. Raises DTypeError for dtypes that are not numbers or booleans.

    >>> ArrayType("float32", (2, Size.named("n")))
    float32[2, n]
    >>> ArrayType(float, (), weak=True)
    float64*[]
    """

    dtype: np.dtype
    shape: tuple
    weak: bool
    inexact: bool  # floating or complex, so that derivatives exist

    def __new__(cls, dtype, shape=(), weak=False):
        try:
            if type(shape) is not tuple:
                _refuse_shape_first(dtype, shape)
                shape = _as_shape(shape)
            key = (number_dtype(dtype), shape, bool(weak))
            with _types_lock:  # two threads must not make two objects of one type
                self = _types.get(key)
                if self is None:
                    _refuse_sizes(shape)
                    self = object.__new__(cls)
                    fields = (*key, key[0].kind in "fc")
                    # after them comes __weakref__
                    for field, value in zip(cls.__slots__, fields, strict=False):
                        object.__setattr__(self, field, value)
                    _types[key] = self
        except LetirError as error:
            LATE_BOUND["shorten_traceback"](error)
            raise
        return self

    def __setattr__(self, name, value):
        raise AttributeError(f"a type is immutable; make another with ArrayType({self!r}, ...)")

    def __reduce__(self):
        return ArrayType, (self.dtype, self.shape, self.weak)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> "Size | int":
        """Number of elements."""
        count = 1
        for n in self.shape:
            count = count * n
        return count

    def with_shape(self, shape: Iterable) -> "ArrayType":
        """The strong type with another shape."""
        return ArrayType(self.dtype, shape)

    def with_dtype(self, dtype: Any) -> "ArrayType":
        """The strong type with another dtype."""
        return ArrayType(dtype, self.shape)

    def __repr__(self):
        star = "*" if self.weak else ""
        return f"{self.dtype.name}{star}[{', '.join(map(str, self.shape))}]"


def _refuse_shape_first(dtype: Any, shape: Any) -> None:
    """Raise DTypeError if a shape was given before the dtype, as ``ShapeDtype`` takes them."""
    if isinstance(dtype, tuple | list):
        raise DTypeError(
            f"ArrayType: a dtype is expected before the shape, found {dtype!r}\n"
            f"  write ArrayType({shape!r}, {dtype!r})"
        )


def _as_shape(sizes: Any) -> tuple:
    """A sequence of sizes as a tuple. Raises DTypeError for an object that is not a sequence."""
    if isinstance(sizes, str) or not hasattr(type(sizes), "__iter__"):
        raise DTypeError(
            f"a shape is a tuple of sizes, found {sizes!r} of type {type(sizes).__name__}\n"
            "  write (3,) for one axis, () for a number"
        )
    return tuple(sizes)


def _refuse_sizes(shape: tuple) -> None:
    """Raise ShapeError or DTypeError unless all sizes are non-negative integers, or symbolic."""
    if len(shape) > MAX_AXES:
        raise ShapeError(
            f"an array has at most {MAX_AXES} axes in NumPy, this one would have {len(shape)}\n"
            "  join axes with reshape"
        )
    for n in shape:
        if type(n) is Size:
            continue
        if not isinstance(n, int | np.integer):
            error: LetirError = DTypeError(
                f"a size is an integer or a Size, found {n!r} in the shape {shape}\n"
                "  make a symbolic size with Size.named('n')"
            )
        elif n < 0:
            error = ShapeError(
                f"a size cannot be negative, found {n} in the shape {shape}\n"
                "  pass sizes from 0; only reshape takes -1"
            )
        else:
            continue
        raise error


def number_dtype(dtype: Any) -> np.dtype:
    """``dtype`` in native byte order. Raises DTypeError for dtypes that letir does not support."""
    if isinstance(dtype, _DTYPE) and dtype in _NATIVE:
        return _NATIVE[dtype]
    if hasattr(type(dtype), "shape") and _is_array_or_number(dtype):
        raise DTypeError(
            f"an array or a number is no dtype, found {dtype!r}\n"
            "  write x.dtype for the dtype of x; a shape of two sizes is a tuple: np.zeros((n, m))"
        )
    # longdouble is refused: its bits differ from machine to machine
    try:
        is_class = isinstance(dtype, type(np.dtype))  # such as np.dtypes.Int32DType
        dtype = np.empty(0, dtype).dtype if is_class else np.dtype(dtype)
    except TypeError:
        raise DTypeError(
            f"there is no dtype {dtype!r}\n  take one of NumPy's, such as 'float64' or np.int32"
        ) from None
    if dtype.kind not in _KINDS or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        error = DTypeError(
            "letir computes with bool, int, uint, float and complex arrays, "
            f"not with dtype {dtype}\n"
            f"  {_DTYPE_REMEDIES.get(dtype.kind, 'convert it first, with .astype(float)')}"
        )
        raise notify_watchers(mark_unrecorded_code(error))
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def _is_array_or_number(dtype: Any) -> bool:
    """Whether a value with a ``shape`` is an array or a traced Python number.

    ``np.dtype`` refuses arrays and numbers, but takes the attribute ``dtype`` of a traced value.
    """
    is_weak = getattr(getattr(dtype, "type", None), "weak", False)
    return not isinstance(dtype, _DTYPE) and bool(dtype.shape or is_weak)


def requested_dtype(dtype: Any) -> np.dtype:
    """``number_dtype`` of a dtype that the user names for a result.

    Raises DTypeError for one in the other byte order: results are in native byte order.
    """
    result = number_dtype(dtype)
    if not np.dtype(dtype).isnative:
        raise DTypeError(
            f"letir computes in native byte order, not with dtype {np.dtype(dtype).str}\n"
            f"  convert the result outside: result.astype({np.dtype(dtype).str!r})"
        )
    return result


_DTYPE_REMEDIES = {
    "O": "an object array: convert it with .astype(float), or make its rows equally long",
    "U": "strings: encode them as integers first, with np.unique(x, return_inverse=True)",
    "S": "bytes: convert them with np.frombuffer(x, dtype=np.uint8)",
    "V": "a structured array: pass its fields as separate arrays, x['field']",
    "M": "dates: convert them with .astype('int64')",
    "m": "durations: convert them with .astype('int64')",
    "f": "extended precision: convert it with .astype('float64')",
    "c": "extended precision: convert it with .astype('complex128')",
}

WEAK = {
    bool: ArrayType(bool),  # NumPy gives Python bools the strong dtype bool
    int: ArrayType(np.int64, (), True),
    float: ArrayType(np.float64, (), True),
    complex: ArrayType(np.complex128, (), True),
}
PYTHON_NUMBERS = frozenset(WEAK)


@frozen(init=False)
class ShapeDtype:
    """The shape and dtype of an abstract argument: tracing with it computes nothing.

    ``shape``: ints, or names for symbolic sizes, which may differ from call to call. A sum or a
    product says more of a size: ``"n+2"`` is at least 2, ``"2*n"`` is even.

    >>> ShapeDtype(("n", 64), "float32").type
    float32[n, 64]
    """

    type: ArrayType

    @entry_point
    def __init__(self, shape, dtype=np.float64, weak: bool = False):
        if isinstance(dtype, tuple | list):
            raise DTypeError(
                f"ShapeDtype: a dtype is expected after the shape, found {dtype!r}\n"
                f"  write ShapeDtype({dtype!r}, {shape!r})"
            )
        shape = (shape,) if isinstance(shape, int | str | Size) else _as_shape(shape)
        for n in shape:
            if not isinstance(n, int | np.integer | str | Size) or (
                isinstance(n, int | np.integer) and type(n) is not Size and n < 0
            ):
                raise ShapeError(
                    f"ShapeDtype: a size must be a number from 0 or a name, found {n!r} in {shape}"
                    "\n  write (3,) for a size that is known, ('n',) for one that is not"
                )
        sizes = tuple(_size_of_text(n) if isinstance(n, str) else n for n in shape)
        self.__attrs_init__(ArrayType(dtype, sizes, weak))

    @property
    def shape(self) -> tuple:
        """The shape, of ints and ``Size``."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""
        return self.type.dtype


def _size_of_text(text: str) -> Size | int:
    """The size that a user writes as text: a name such as ``n``, or a polynomial in names."""
    if set(text).isdisjoint("+-*/"):
        size: Size | int = Size.named(text)
    else:
        try:
            size = LATE_BOUND["parse_size"](text.replace(" ", ""))
        except ValueError as error:
            raise ShapeError(
                f"{text!r} is not a size: {str(error).splitlines()[0]}\n  write n, n+2 or 2*n+1"
            ) from None
    if type(size) is Size and any(name.startswith("_") for name in size.names):
        raise ShapeError(
            f"{text!r} cannot name a size: a leading underscore is reserved for sizes in loops"
        )
    return size


def _number_that_fits(n: Any, m: Any) -> int | None:
    """The number among two sizes if the other is known only after a loop has run, else None.

    At run time the other size must be that number or 1, or NumPy fails; so the number is their
    broadcast size. Not for names that users give, which may stand for 1.
    """
    number, size = (n, m) if type(n) is int else (m, n)
    return number if type(number) is int and type(size) is Size and size.is_internal else None


def dtype_bounds(dtype: np.dtype) -> tuple:
    """(least, greatest) value of a dtype, or of the parts of a complex dtype."""
    if dtype.kind in "fc":
        return -np.inf, np.inf
    return (False, True) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


def broadcast_shapes(*shapes: tuple) -> tuple:
    """The broadcast shape by NumPy's rules; equal names match, a name and a number do not.

    A size that is known only after a loop has run broadcasts to a number; NumPy compares the two at
    run time. Raises ShapeError that lists all shapes if they do not broadcast.
    """
    out: list = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        for i, n in enumerate(shape, start=len(out) - len(shape)):
            if out[i] == 1:
                out[i] = n
            elif n not in (1, out[i]):  # compares by ==, as sizes may have no order
                number = _number_that_fits(n, out[i])
                if number is not None:
                    out[i] = number
                    continue
                listed = ", ".join(map(str, shapes))
                remedy = "sizes at one axis must be equal, or 1: "
                if type(n) is Size and type(out[i]) is Size:
                    remedy = "if these sizes are always equal, give them one name; or "
                raise ShapeError(
                    f"shapes {listed} do not broadcast: {out[i]} and {n} at axis {i - len(out)}\n"
                    f"  {remedy}add axes with x[:, None]"
                )
    return tuple(out)
