"""``Attrs``, the static parameters of a bind, and tokens, by which values are compared and hashed.

``1 == True == 1.0``, ``0.0 == -0.0`` and ``nan != nan`` in Python; a token carries the type and the
bits.
"""

import struct
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen

from letir.ast import LATE_BOUND
from letir.ast.types import number_dtype
from letir.errors import DTypeError

if TYPE_CHECKING:  # as the converter of a field: mypy finds no type variables for tuple itself

    def as_tuple(items: Iterable) -> tuple:
        """The items in a tuple."""

else:
    as_tuple = tuple


# bound once: attributes of the module are slow during a recording
_NDARRAY, _SCALAR, _BYTE = np.ndarray, np.generic, np.uint8
_ARRAY, _CONTIGUOUS = np.array, np.ascontiguousarray
_BYTES_AT_ONCE = 1 << 16  # of an array of which a digest is made


@define(eq=False)
class _ArrayToken:
    """A hashable token of an array, equal if dtype, shape and bits are; it refers to the array."""

    array: np.ndarray
    _hash: int | None = field(default=None, init=False)  # computed on demand: it reads every byte

    def __eq__(self, other):
        if type(other) is not _ArrayToken:
            return NotImplemented
        return self.array is other.array or same_bits(self.array, other.array)

    def __hash__(self):
        if self._hash is None:
            self._hash = hash((self.array.dtype, self.array.shape, self.array.tobytes()))
        return self._hash


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have the same dtype, shape and bits: nan equals itself, 0.0 and -0.0
    differ.
    """
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    # flattened first: a 0-d array has no view of another itemsize
    a, b = _CONTIGUOUS(a), _CONTIGUOUS(b)
    return bool((a.reshape(-1).view(_BYTE) == b.reshape(-1).view(_BYTE)).all())


def digest_of(array: np.ndarray) -> int:
    """A number that another value of an element changes, but for one case in 2**64.

    It is 0 for an array to whose memory no array may write, such as a file opened for reading.
    """
    owner: Any = array
    while isinstance(owner, _NDARRAY) and not owner.flags.writeable:
        owner = owner.base
    if not isinstance(owner, _NDARRAY):
        return 0
    flat, step = array.reshape(-1), max(_BYTES_AT_ONCE // array.itemsize, 1)
    # each part is copied into the processor's cache: there is no second array
    return hash(tuple([hash(flat[i : i + step].tobytes()) for i in range(0, flat.size, step)]))


def freeze(array: Any) -> Any:
    """A read-only copy of an array constant in native byte order and the same memory order.

    The memory order decides on the rounding of products. An array that is read-only and owns its
    memory is returned unchanged.
    """
    dtype = number_dtype(array.dtype)
    if isinstance(array, _SCALAR):
        return array
    if (
        type(array) is _NDARRAY
        and not array.flags.writeable
        and array.flags.owndata  # the base of a read-only view may still be written to
        and dtype is array.dtype
    ):
        return array
    frozen = _ARRAY(array, dtype=dtype, order="K", copy=True, ndmin=0)
    frozen.flags.writeable = False
    return frozen


def _float_bits(value: float):
    """A key that equal bits share: a nan equals itself, and 0.0 and -0.0 differ."""
    return float, struct.pack("d", value)


def _with_text(value: Any) -> tuple:
    """The token of a value that may be equal to one of another text."""
    return type(value), value, repr(value)


# Looked up by the exact type: bool is a subclass of int, and np.float64 one of float.
_TOKENS: dict[type, Callable[[Any], Any]] = {
    int: lambda v: (int, v),
    bool: lambda v: (bool, v),
    str: lambda v: v,
    float: _float_bits,
    complex: lambda v: (complex, struct.pack("dd", v.real, v.imag)),
    tuple: lambda v: (tuple, *map(token, v)),
    slice: lambda v: (slice, token(v.start), token(v.stop), token(v.step)),
    np.ndarray: _ArrayToken,
    **dict.fromkeys((frozenset, range), _with_text),  # {1} == {1.0}
}
_EQUAL_BUT_DIFFERENT = ("decimal", "datetime")  # modules of such values


def token(value: Any) -> Any:
    """A hashable token of ``value``: two tokens are equal only if types and bits are equal.

    Raises DTypeError for a value that is not hashable, and so cannot be an attribute.
    """
    if value is None:
        return None
    make = _TOKENS.get(type(value))
    if make is not None:
        return make(value)
    if hasattr(type(value), "__letir_run__"):  # first: a traced scalar claims to be a np.generic
        raise _TracedSetting
    if isinstance(value, np.generic):
        return value.dtype, value.tobytes()  # not its class: longlong and int64 are the same dtype
    try:
        hash(value)
    except TypeError:
        raise DTypeError(
            f"{value!r} of type {type(value).__name__} cannot be an attribute of an operation\n"
            "  attributes are numbers, strings, None, dtypes, slices, tuples of those, arrays "
            "and Lambdas"
        ) from None
    # 1.0 and 1.00 are equal decimals, and a time may be equal to one of another zone
    return _with_text(value) if type(value).__module__ in _EQUAL_BUT_DIFFERENT else value


def number_token(value: Any) -> Any:
    """A hashable token of a Python number, by which numbers of other types or signs differ."""
    # zeros by their text, because 0.0 == -0.0
    return token(value) if type(value) is complex else (type(value), value or repr(value))


PLAIN_TYPES = frozenset([int, float, complex, bool, str, bytes, type(None)])


def same_value(a: Any, b: Any) -> bool:
    """Whether two values are one object, or equal numbers or texts; 0.0 and -0.0 differ."""
    is_plain = type(a) is type(b) and type(a) in PLAIN_TYPES
    return a is b or (is_plain and a == b and number_token(a) == number_token(b))


class _TracedSetting(Exception):
    """Raised by ``token`` for a traced value, which is not a number yet."""


# A dict, because impl(**attrs) is called for every bind and unpacks a dict fastest.
class Attrs(dict):
    """An immutable dict with string keys, compared and hashed by tokens.

    >>> Attrs(axis=1) == Attrs(axis=True), Attrs(x=float("nan")) == Attrs(x=float("nan"))
    (False, True)
    """

    __slots__ = ("token",)  # compared by equality and hash, computed on first use

    token: tuple

    def __getattr__(self, name: str):
        # only while the slot is empty: afterwards it is read without a frame
        if name != "token":
            raise AttributeError(f"'Attrs' object has no attribute {name!r}")
        try:
            self.token = self._token_of_items()
        except _TracedSetting:  # axis=i of a traced i: the number is read, and guarded
            settle = LATE_BOUND["guarded_attribute"]
            dict.update(self, {key: settle(key, value) for key, value in self.items()})
            self.token = self._token_of_items()
        return self.token

    def _token_of_items(self) -> tuple:
        # not sorted: Primitive.complete puts every attribute into the record's order
        return tuple([(name, token(value)) for name, value in self.items()])

    def __eq__(self, other):
        return type(other) is Attrs and self.token == other.token

    def __ne__(self, other):  # dict's own __ne__ takes 0 for False
        return not self == other

    def __hash__(self):
        return hash(self.token)

    def __reduce__(self):
        return _restore_attrs, (dict(self),)  # unpickling a dict subclass would set items: refused

    def __deepcopy__(self, memo):
        return self

    def __copy__(self):
        return self

    def _immutable(self, *args, **kwargs):
        raise TypeError("the attributes of a bind are immutable; make a new bind")

    __setitem__ = __delitem__ = update = pop = popitem = clear = setdefault = _immutable
    __ior__ = _immutable


def _restore_attrs(attrs: dict) -> Attrs:
    """Attributes restored from a pickle, with their arrays made read-only again."""
    for value in attrs.values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False  # a pickle does not keep the flag
    return Attrs(attrs) if attrs else NO_ATTRS


NO_ATTRS = Attrs()


@frozen(repr=False)
class Here:
    """A placeholder in an index attribute for the next array among the operands.

    ``count``: the number of elements selected by a boolean array, None for an integer array.
    """

    count: int | None = None

    def __repr__(self):
        return "@" if self.count is None else f"@{self.count}"


class Required:
    """The default of attributes that have to be given."""


def keyword_defaults(function: Callable) -> dict[str, Any]:
    """{name: default} of a function's keyword-only parameters: the attributes of an operation."""
    code = function.__code__  # not inspect.signature, which takes 9 us
    names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    defaults = function.__kwdefaults__ or {}
    # `call` is the evaluator in use, not an attribute
    return {name: defaults.get(name, Required) for name in names if name != "call"}
