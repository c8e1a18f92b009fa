"""``PythonProtocols``: the protocols of Python's numbers, for traced values.

Operations that compute numbers are recorded: ``item``, ``tolist``, ``round``. Operations whose
result has to be an ordinary object, such as a hash, record a guard.
"""

import functools
import operator
import sys
from collections import OrderedDict
from copy import copy
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.operators import weaken_result
from letir.ast.primitive import PRIMITIVES
from letir.ast.sizes.size import Size
from letir.ast.symbolic_sizes import is_static_shape
from letir.errors import DTypeError, TraceError, mark_unrecorded_code
from letir.tracing.numpy_protocols.array_value import ArrayValue
from letir.tracing.operands import convert_one_element, has_traced_slice
from letir.tracing.refusals import (
    no_length_error,
    not_one_number_error,
    note_refusal,
    with_hint,
)
from letir.tracing.source_locations import at_user, error_at_user_line, is_letir_file

_PYTHON_NUMBERS = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
_OF_INTEGERS = ("bit_length", "bit_count", "to_bytes", "as_integer_ratio")
_REFLECTED = ("__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rpow__", "__rmod__")


class ArrayAttribute:
    """An attribute of arrays that Python numbers lack: only letir may read it of a traced number.

    ``hasattr(x, "shape")`` is then as false as for the number itself.
    """

    __slots__ = ("member", "name")

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.member = name, value

    def __get__(self, x, owner=None):
        if x is not None and x.type is not None and x.type.weak:
            _refuse_attribute(x, self.name)
        return self.member.__get__(x, owner)

    def __set__(self, x, new):
        if not hasattr(self.member, "__set__"):
            raise AttributeError(f"attribute {self.name!r} of numpy.ndarray cannot be set")
        self.member.__set__(x, new)


def _refuse_attribute(x: Any, name: str) -> None:
    """Raise AttributeError if other code than letir's reads an attribute that Python numbers lack.

    To be called from the method that implements the attribute.
    """
    kind = x.__class__
    if not hasattr(kind, name) and not is_letir_file(sys._getframe(2).f_code.co_filename):
        error = AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
        raise with_hint(error, "it is a Python number: pass an array, or make one by numpy.asarray")


def has_attribute(x: Any, name: str, /) -> bool:
    """The stand-in for ``hasattr``: a traced value has the attributes that its value would have."""
    if not issubclass(type(x), PythonProtocols):
        return hasattr(x, name)
    kind = getattr(x.__class__, "original", x.__class__)  # of the stand-in for ``float``
    if name.startswith("__"):  # hasattr would find what classes have, such as __call__
        return any(name in vars(base) for base in kind.__mro__)
    return hasattr(kind, name) and hasattr(x, name)


def is_instance(x: Any, kinds: Any, /) -> bool:
    """The stand-in for ``isinstance`` in code that names ``Iterable``, protocols or similar
    classes.

    These ask for methods, which traced numbers have, but numbers do not.
    """
    if not issubclass(type(x), PythonProtocols):
        return isinstance(x, kinds)
    kind: Any = x.__class__
    try:
        return issubclass(kind, kinds)
    except TypeError:  # a protocol with attributes asks for an instance
        return isinstance(np.empty(0) if kind is np.ndarray else kind(), kinds)


@functools.cache
def is_foreign(kind: type) -> bool:
    """Whether operators of numbers with objects of a class are methods of this class.

    Such as quaternions and units, whose method ``__rmul__`` gets the number.
    """
    of_arrays = ("__array_ufunc__", "__array__", "__array_interface__", "__array_struct__")
    # without a length, NumPy takes an object for one element, whether or not it has __getitem__
    is_array = any(hasattr(kind, name) for name in (*of_arrays, "__len__"))
    is_number = issubclass(kind, Value | Size | int | float | complex)
    return not (is_array or is_number) and any(hasattr(kind, name) for name in _REFLECTED)


def _is_whole(x: Any) -> bool:
    """``x.is_integer()``, recorded as a guard."""
    return x.dtype.kind != "f" or bool(np.isfinite(x) & (np.floor(x) == x))


def _integer_ratio(x: Any) -> Any:
    """``x.as_integer_ratio()``, the ratio of integers that is equal to the number, with a guard."""
    if x.is_integer_scalar():
        return int(x), 1
    if sys._getframe(1).f_globals.get("__name__") == "fractions":
        raise note_refusal(
            mark_unrecorded_code(
                TraceError(
                    f"a Fraction of a traced value would lose its derivative{at_user()}\n"
                    "  compute with the value itself, or with Fraction(letir.concrete(x))"
                )
            )
        )
    return x.known_number("as_integer_ratio()").as_integer_ratio()


def _hexadecimal(x: Any) -> str:
    """``x.hex()``, the hexadecimal digits of a Python float, with a guard."""
    return LATE_BOUND["note_text"](x, x.known_number("hex()").hex())


# methods of numbers that arrays lack
_OF_NUMBERS: dict[str, Any] = {
    "is_integer": _is_whole,
    "as_integer_ratio": _integer_ratio,
    "hex": _hexadecimal,
}


class PythonProtocols(ArrayValue):
    """The protocols of Python's numbers, for traced values."""

    __slots__ = ()
    paused: Any
    refused: Any

    def takes(self, other: object) -> bool:
        """Whether NumPy's operators combine this value with ``other``."""
        kind: Any = type(other)
        if is_foreign(kind) and not self.shape and self.is_scalar():
            return False
        return super().takes(other)

    def is_integer_scalar(self) -> bool:
        """Whether the value stands for an integer or a boolean of Python or NumPy."""
        return self.dtype.kind in "iub" and not self.shape and self.is_scalar()

    def __eq__(self, other):
        key = None if self.emitter.is_open else self._number_as_key()
        return super().__eq__(other) if key is None else key == other

    def _number_as_key(self) -> Any:
        """The number, if the recording is over and this is a key that it left in a dict or set."""
        value = self.known_value()
        if value is None or self.arg not in vars(self.emitter).get("has_keys", ()):
            return None
        number = value.item() if hasattr(value, "item") else value
        return number if self.type.weak else self.dtype.type(number)

    def _note_key(self) -> None:
        """Note that this value may be the key of a dict that is a result or outlives the trace."""
        vars(self.emitter).setdefault("has_keys", set()).add(self.arg)
        LATE_BOUND["note_held_function"]()  # it may be the key of a function with a cache

    def __hash__(self):
        if not self.emitter.is_open and (key := self._number_as_key()) is not None:
            return hash(key)
        if self.is_integer_scalar():
            result = hash(int(self))
            self._note_key()
            return result
        if not self.shape and self.is_scalar():
            self._note_key()
            return hash(self.known_number("a hash"))
        # TypeError, as for arrays, so that `except TypeError` fallbacks behave as with NumPy
        error = with_hint(
            TypeError("unhashable type: 'numpy.ndarray'"),
            "a traced value cannot be in a set or the key of a dict\n"
            "  use its name or place as the key; cache by letir.concrete(x)",
        )
        raise note_refusal(error) if self.is_scalar() else error

    def __len__(self):
        if not self.shape:
            raise no_length_error(self)
        return self.shape[0]

    def __getitem__(self, item):
        aval = self.type
        if (
            aval is not None
            and aval.weak
            and not is_letir_file(sys._getframe(1).f_code.co_filename)
        ):
            name = self.__class__.__name__
            error = TypeError(f"{name!r} object is not subscriptable")
            raise with_hint(error, "it is a Python number: pass an array")
        if type(item) in (slice, tuple) and has_traced_slice(item):
            slices = LATE_BOUND["take_traced_slices"](self, item)
            if slices is not None:
                part, rest = slices
                return part if rest is None else part[rest]
        return super().__getitem__(item)

    def __format__(self, spec):
        if spec or self.is_integer_scalar():
            return LATE_BOUND["format_traced"](self, spec)
        return LATE_BOUND["text_of"](self, str) or self.listing_text()

    def __str__(self):
        return LATE_BOUND["text_of"](self, str) or self.listing_text()

    def __repr__(self):
        if not self.emitter.is_open and (key := self._number_as_key()) is not None:
            return repr(key)
        return LATE_BOUND["text_of"](self, repr) or self.listing_text()

    def __getattr__(self, name):
        is_of_integers = name in _OF_INTEGERS or name in ("numerator", "denominator")
        # NumPy's integers lack some of these methods
        if is_of_integers and self.is_integer_scalar() and hasattr(self.__class__, name):
            if name in _OF_INTEGERS:
                return getattr(int(self), name)
            return self.real if name == "numerator" else 1
        # Python's integers have is_integer since 3.12; arrays have none of these
        is_of_numbers = name in _OF_NUMBERS and not self.shape and self.is_scalar()
        if is_of_numbers and hasattr(self.__class__, name):
            return _OF_NUMBERS[name].__get__(self)
        if self.type is not None and self.type.weak:
            _refuse_attribute(self, name)
        return super().__getattr__(name)

    def known_number(self, needed: str) -> Any:
        """The value as an ordinary number, with a guard: for results that are not numbers."""
        if (value := self.paused()) is not None:
            return value
        number = self.guarded(copy, needed)
        is_pythons = self.type.weak or self.__class__ is bool
        return _PYTHON_NUMBERS[self.type.dtype.kind](number) if is_pythons else number

    def __pow__(self, other, modulus=None):
        if modulus is None:
            return ArrayValue.__pow__(self, other)
        if not self.type.weak:
            return NotImplemented  # like NumPy's numbers
        return pow(int(self), int(other), int(modulus))

    def __abs__(self):
        if self.dtype.kind == "c" and self.is_scalar():
            # as Python and NumPy's scalars; the ufunc of arrays differs in the last bit
            size = np.hypot(self.real, self.imag)
            return weaken_result(size) if self.type.weak else size
        return super().__abs__()

    @property
    def real(self) -> Value:
        """The real part; of Python's booleans an integer."""
        return +self if isinstance(self, bool) else super().real

    @property
    def imag(self) -> Value:
        """The imaginary part; of Python's booleans an integer."""
        return 0 * self if isinstance(self, bool) else super().imag

    def conjugate(self) -> Value:
        """The complex conjugate; of Python's booleans an integer."""
        return +self if isinstance(self, bool) else self.conj()

    def __round__(self, ndigits=None):
        if isinstance(self, bool):
            return round(+self, ndigits)
        kind = self.dtype.kind
        if not self.is_scalar() or kind not in "iuf":
            raise TypeError(f"{self.type} has no __round__; see numpy.rint")
        if ndigits is None:
            return int(np.rint(self)) if kind == "f" else int(self)
        if not self.type.weak:
            return np.round(self, ndigits)
        result = "float" if kind == "f" else "int"
        return PRIMITIVES["python_operator"](self, int(ndigits), operator="round", kind=result)

    # ---- elements as Python numbers ----

    def item(self, *args: Any) -> Any:
        """NumPy's ``item``: an element as a traced Python number; a guard for a single integer."""
        if (value := self.paused()) is not None:
            return value.item(*args)
        if self.dtype.kind in "iub" and not args and self.size == 1:
            number = self.reshape(()) if self.shape else self
            return bool(number) if self.dtype.kind == "b" else int(number)
        if self.type.weak:
            return self
        if args:
            place = args[0] if len(args) == 1 else args
            for each in place if isinstance(place, tuple) else (place,):
                if not isinstance(each, Value):
                    operator.index(each)  # Python's TypeError
            element = self[place] if isinstance(place, tuple) else self.reshape(-1)[place]
        elif self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        else:
            element = self.reshape(()) if self.shape else self
        return weaken_result(element)

    def tobytes(self, order: Any = "C") -> bytes:
        """NumPy's ``tobytes``, with a guard: such as for the key of a cache."""
        if (value := self.paused()) is not None:
            return value.tobytes(order)
        result = self.guarded(copy, "tobytes()").tobytes(order)
        vars(self.emitter).setdefault("bytes_read", []).append(result)
        return result

    def tolist(self) -> Any:
        """NumPy's ``tolist``: nested lists of traced Python numbers."""
        if (value := self.paused()) is not None:
            return value.tolist()
        if not self.shape:
            return self if self.type.weak else weaken_result(self)
        if not is_static_shape(self.shape):
            raise note_refusal(
                TraceError(
                    f"tolist() of {self.type}: the size of a list cannot be symbolic{at_user()}\n"
                    "  compute with the array"
                )
            )
        return [self[i].tolist() for i in range(self.shape[0])]


def with_known_keys(tree: Any) -> Any:
    """Nested results in which keys of dicts are numbers: traced ones were guarded when hashed."""
    kind: Any = type(tree)
    if kind in (list, tuple):
        return kind([with_known_keys(item) for item in tree])
    if issubclass(kind, dict):
        items = [(_known_key(key), with_known_keys(item)) for key, item in tree.items()]
        if kind in (dict, OrderedDict):
            return kind(items)
        result = copy(tree)  # a defaultdict keeps its factory
        result.clear()
        result.update(items)
        return result
    return tree


def _known_key(key: Any) -> Any:
    """A traced number that is used as a key of a dict, as a number, with a guard."""
    if type(key) is tuple:
        return tuple(map(_known_key, key))
    if not isinstance(key, PythonProtocols) or key.shape:
        return key
    if not key.is_integer_scalar():
        return key.known_number("a key")
    number = bool(key) if key.dtype.kind == "b" else int(key)
    return number if key.type.weak else key.dtype.type(number)


LATE_BOUND.update(is_foreign=is_foreign, known_key=_known_key, with_known_keys=with_known_keys)


def python_number(x: Any, kind: type | None = None) -> Any:
    """A traced scalar as a traced Python number: of this kind, or if None of its own kind."""
    if not isinstance(x, Value):
        return x
    called = "a Python number" if kind is None else f"{kind.__name__}()"
    if x.size != 1:
        raise not_one_number_error(x, called)
    if kind is float and x.dtype.kind == "c":
        raise error_at_user_line(
            DTypeError(
                f"{called} of a traced value of type {x.type}: a complex number is not real\n"
                "  take x.real or abs(x)"
            )
        )
    if x.shape and kind is not None:
        convert_one_element(x.ndim, called)
    x = x.reshape(()) if x.shape else x
    if kind is not None and x.dtype != np.dtype(kind):
        x = x.astype(kind)
    return x if x.type.weak else PRIMITIVES["weaken"](x)
