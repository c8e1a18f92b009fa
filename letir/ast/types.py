"""Types of values: dtype, shape, and whether the value is a Python number (weak).

Read ``Size`` first (a symbolic size), then ``ArrayType``. Users write ``ShapeDtype`` for abstract
tracing; ``Undef`` is the one value in gradient programs that is not an array.
"""

import math
import re
import sys
import threading
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from operator import ge, gt, le, lt
from typing import Any, final
from weakref import WeakValueDictionary

import numpy as np
from attrs import define, frozen

from letir.errors import DTypeError, ShapeError, TraceError

_KINDS = "biufc"  # bool, signed, unsigned, floating, complex: the dtypes of arrays of numbers


class UndefType:
    """The class of ``Undef``, an undefined cotangent: a zero without shape or dtype.

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

# words with another meaning in the text of a program
DTYPE_NAMES = frozenset(np.dtype(c).name for c in "?bhilBHILefdFD")
_NO_SIZE_NAMES = frozenset(["None", "True", "False", "Undef", "nan", "inf", "complex", "lambda"])


# What is told of each question that code which is not letir's asks of a size that has a name, while
# this is set: the place, the question, and whether the answer is the same for all sizes. Else an
# answer that holds for one size would be taken for one that holds for all.
SIZE_READS: ContextVar[Callable[[str, str, bool], None] | None] = ContextVar(
    "letir_size_reads", default=None
)


def _note_read(asked: str, is_decided: bool = False) -> None:
    note = SIZE_READS.get()
    if note is None:
        return
    frame = sys._getframe(2)
    # a dict of types compares their keys in Python's own code, on letir's behalf
    while frame.f_back is not None and _package(frame) in _PASSED_OVER:
        frame = frame.f_back
    if _package(frame) != "letir":
        note(f"{frame.f_code.co_filename}:{frame.f_lineno}", asked, is_decided)


_PASSED_OVER = sys.stdlib_module_names | {"numpy"}


def _package(frame) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _ordered_by(compare: Callable) -> Callable:
    """A comparison method for sizes that answers only if all values of the symbols agree."""

    def ordered(self, other):
        answer = _compared(compare, self - other) if isinstance(other, Size | int) else None
        _note_read(f"whether {self} is less than {other}", answer is not None)
        if answer is None:
            raise ShapeError(f"cannot tell whether {self} is less or greater than {other}")
        return answer

    return ordered


@final
@frozen(eq=False, repr=False)
class Size:
    """A symbolic size: a polynomial in names with integer coefficients.

    ``terms``: sorted pairs (names of the monomial, coefficient), without zero coefficients.

    >>> n = Size.named("n")
    >>> n + 1, 2 * n, n - n, n * n
    (n+1, 2*n, 0, n*n)
    """

    terms: tuple[tuple[tuple[str, ...], int], ...]

    def __eq__(self, other):
        if SIZE_READS.get() is not None:  # != asks here too
            _note_read(f"whether {self} is {other}", _differs(self, other) is not None)
        return self.terms == other.terms if type(other) is Size else NotImplemented

    def __hash__(self):
        _note_read(f"the hash of {self}")
        return hash(self.terms)

    @classmethod
    def named(cls, name: str) -> "Size":
        """The size called ``name``, a word.

        Raises ShapeError if it is not a word, or has another meaning in the text of a program.
        """
        if not re.fullmatch(r"[^\W\d]\w*", name) or name in _NO_SIZE_NAMES | DTYPE_NAMES:
            raise ShapeError(f"{name!r} cannot name a size: take a word such as n or batch_size")
        return cls((((name,), 1),))

    @staticmethod
    def of(coefficients: dict) -> "Size | int":
        """The polynomial with these coefficients by monomial, as an int if it is constant."""
        terms = tuple(sorted((names, c) for names, c in coefficients.items() if c))
        if not any(names for names, _ in terms):
            return sum(c for _, c in terms)
        # highest degree first, the constant last: eval/arguments.py matches on this order
        return Size(tuple(sorted(terms, key=lambda term: (-len(term[0]), term[0]))))

    @property
    def names(self) -> frozenset[str]:
        """The names in the polynomial."""
        return frozenset(name for names, _ in self.terms for name in names)

    @property
    def is_internal(self) -> bool:
        """Whether the size is known only after a loop has run.

        Its name has a leading underscore, and two such sizes of the same name need not be equal.
        """
        return any(name.startswith("_") for name in self.names)

    def evaluate(self, sizes: dict[str, int]) -> int:
        """The value of the polynomial for these values of its names."""
        return sum(c * math.prod(sizes[name] for name in names) for names, c in self.terms)

    def __add__(self, other):
        if not isinstance(other, Size | int):
            return self._as_number(other)
        sums = dict(self.terms)
        for names, c in _terms(other):
            sums[names] = sums.get(names, 0) + c
        return Size.of(sums)

    def __mul__(self, other):
        if not isinstance(other, Size | int):
            return self._as_number(other)
        products: dict = {}
        for names, c in self.terms:
            for more, d in _terms(other):
                key = tuple(sorted(names + more))
                products[key] = products.get(key, 0) + c * d
        return Size.of(products)

    def __floordiv__(self, other):
        if type(other) is not int or other == 0 or any(c % other for _, c in self.terms):
            raise ShapeError(f"{self} // {other}: the quotient of a named size is not known")
        return Size.of({names: c // other for names, c in self.terms})

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -1 * other if isinstance(other, Size | int) else self._as_number(other)

    def __rsub__(self, other):
        return -self + other if isinstance(other, Size | int) else self._as_number(other)

    # Else range(n) or np.zeros(n) would bake one size into a program for all of them.
    def _as_number(self, *others):
        """Raise TraceError: the operation needs a number."""
        if not all(isinstance(other, Size | int | float | complex) for other in others):
            return NotImplemented  # a traced value answers for itself
        _note_read(f"the number {self}")
        raise TraceError(
            f"the size {self} has a name but no value while this is traced\n"
            "  pass the number as a static argument, or trace with concrete arrays"
        )

    __index__ = __int__ = __bool__ = __float__ = __abs__ = _as_number
    __truediv__ = __rtruediv__ = __rfloordiv__ = __mod__ = __rmod__ = _as_number
    __divmod__ = __rdivmod__ = __pow__ = __rpow__ = _as_number

    __lt__, __le__, __gt__, __ge__ = map(_ordered_by, (lt, le, gt, ge))

    def __repr__(self):
        text = ""
        for names, c in self.terms:
            sign = "-" if c < 0 else "+" if text else ""
            factors = ([str(abs(c))] if abs(c) != 1 or not names else []) + list(names)
            text += sign + "*".join(factors)
        return text


def _compared(compare: Callable, size: Size | int) -> bool | None:
    """``compare(size, 0)``; None if it depends on the values of the names."""
    if type(size) is not Size:
        return compare(size, 0)
    factors = [c for names, c in size.terms if names]
    if min(factors) < 0 < max(factors):
        return None
    end = size.evaluate(dict.fromkeys(size.names, 0))  # no size is negative
    beyond = end + (1 if factors[0] > 0 else -1)
    # monotone from ``end`` on: compare there, one step further, and at infinity
    answers = {compare(end, 0), compare(beyond, 0), compare(factors[0], 0)}
    return answers.pop() if len(answers) == 1 else None


def _differs(size: Size, other) -> bool | None:
    """Whether two sizes differ for all values of the names; None if it depends on the values."""
    if not isinstance(other, Size | int | float):
        return not isinstance(other, np.integer) or None
    if not isinstance(other, float):
        apart = size - other
        if type(apart) is int:
            return bool(apart)
    least = size.evaluate(dict.fromkeys(size.names, 0))  # no size is negative
    is_growing = all(c > 0 for names, c in size.terms if names)
    return True if type(other) is not Size and is_growing and other < least else None


def _terms(size):
    return size.terms if type(size) is Size else (((), size),)


_types: WeakValueDictionary = WeakValueDictionary()  # one object per type: equality is identity
_types_lock = threading.Lock()


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
        key = (number_dtype(dtype), tuple(shape), bool(weak))
        with _types_lock:  # two threads must not make two objects of one type
            self = _types.get(key)
            if self is None:
                self = object.__new__(cls)
                fields = (*key, key[0].kind in "fc")
                # after them comes __weakref__
                for field, value in zip(cls.__slots__, fields, strict=False):
                    object.__setattr__(self, field, value)
                _types[key] = self
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


def number_dtype(dtype: Any) -> np.dtype:
    """``dtype`` in native byte order. Raises DTypeError for dtypes that letir does not support."""
    # longdouble is refused: its bits differ from machine to machine
    dtype = np.dtype(dtype)
    if dtype.kind not in _KINDS or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise DTypeError(
            "letir computes with bool, int, uint, float and complex arrays, "
            f"not with dtype {dtype}\n"
            f"  {_DTYPE_REMEDIES.get(dtype.kind, 'convert it first, with .astype(float)')}"
        )
    return dtype if dtype.isnative else dtype.newbyteorder("=")


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

    ``shape``: ints, or names for symbolic sizes, which may differ from call to call.

    >>> ShapeDtype(("n", 64), "float32").type
    float32[n, 64]
    """

    type: ArrayType

    def __init__(self, shape, dtype=np.float64, weak: bool = False):
        shape = (shape,) if isinstance(shape, int | str | Size) else shape
        for n in shape:
            if isinstance(n, str) and n.startswith("_"):
                raise ShapeError(
                    f"{n!r} cannot name a size: a leading underscore is reserved for sizes in loops"
                )
        sizes = tuple(Size.named(n) if isinstance(n, str) else n for n in shape)
        self.__attrs_init__(ArrayType(dtype, sizes, weak))

    @property
    def shape(self) -> tuple:
        """The shape, of ints and ``Size``."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""
        return self.type.dtype


def broadcast_shapes(*shapes: tuple) -> tuple:
    """The broadcast shape by NumPy's rules; equal names match, a name and a number do not.

    Raises ShapeError that lists all shapes if they do not broadcast.
    """
    out: list = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        for i, n in enumerate(shape, start=len(out) - len(shape)):
            if out[i] == 1:
                out[i] = n
            elif n not in (1, out[i]):  # compares by ==, as sizes may have no order
                listed = ", ".join(map(str, shapes))
                raise ShapeError(
                    f"shapes {listed} do not broadcast: {out[i]} and {n} at axis {i - len(out)}"
                )
    return tuple(out)
