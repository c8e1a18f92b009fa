"""The stand-ins for classes: ``float``, ``complex``, NumPy's scalar classes, and ``type``.

Called on traced values they return traced numbers or classes; on other values they call the
originals. Loaded when code that is recorded names one of them.
"""

import copyreg
import functools
from types import FrameType, FunctionType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.sizes.size import Size
from letir.errors import LetirError
from letir.tracing.callers import is_read_by_user
from letir.tracing.math_stand_ins import as_numpy_scalar
from letir.tracing.numpy_protocols.python_protocols import python_number
from letir.tracing.operands import first_traced
from letir.tracing.stand_ins import is_recording


class ClassStandIn(type):
    """A metaclass of stand-ins for classes, which makes ``isinstance``, ``issubclass`` and ``==``
    treat them as the classes that they replace.
    """

    original: type

    def __instancecheck__(cls, value) -> bool:
        if "original" not in vars(cls):
            return super().__instancecheck__(value)
        return isinstance(value, cls.original)

    def __subclasscheck__(cls, other) -> bool:
        if "original" not in vars(cls):
            return super().__subclasscheck__(other)
        return issubclass(vars(other).get("original", other), cls.original)

    def __eq__(cls, other) -> bool:
        return cls is other or vars(cls).get("original") is other

    def __hash__(cls) -> int:
        return hash(vars(cls)["original"]) if "original" in vars(cls) else type.__hash__(cls)

    def __repr__(cls) -> str:
        return repr(vars(cls)["original"]) if "original" in vars(cls) else super().__repr__()


class _NumberClass(ClassStandIn):
    """The metaclass of the stand-ins for ``float`` and ``complex``."""

    def __call__(cls, *args, **kwargs):
        if "original" not in vars(cls):
            return super().__call__(*args, **kwargs)  # a user's subclass
        if len(args) == 1 and type(args[0]) is Size and not kwargs:
            return _convert_traced(args[0].number(), cls)
        if cls.original is complex and is_recording():
            parts = {**dict(zip(("real", "imag"), args, strict=False)), **kwargs}
            if len(parts) == 2 and first_traced(tuple(parts.values())) is not None:
                return _complex_of(**parts)
        is_replaced = len(args) == 1 and isinstance(args[0], Value) and not kwargs
        if is_replaced and is_recording():
            constant = args[0].as_constant()
            return (
                cls.original(constant) if constant is not args[0] else _convert_traced(*args, cls)
            )
        is_other = len(args) == 1 and not kwargs and is_recording()
        return _convert_by_method(args[0], cls) if is_other else cls.original(*args, **kwargs)


def _convert_traced(x: Value, kind: _NumberClass) -> Any:
    """``float(x)``, ``complex(x)`` or ``float64(x)`` of a traced value."""
    if issubclass(kind.original, np.generic):
        return as_numpy_scalar(x, kind.original)
    return python_number(x, kind.original)


def _convert_by_method(x: Any, kind: _NumberClass) -> Any:
    """``float(x)`` or ``complex(x)`` of an object; its method may give a traced number."""
    if type(x) in (str, bytes, bytearray):
        text = x if type(x) is str else x.decode("latin-1")
        number = LATE_BOUND["number_of_text"](text)
        return kind.original(x) if number is text else _convert_traced(number, kind)
    names = [f"__{kind.original.__name__}__", "__float__"]
    method = next((getattr(type(x), name) for name in names if hasattr(type(x), name)), None)
    result = method(x) if type(method) is FunctionType else x
    if result is x or type(result) is kind.original:  # not by a user's method, or not traced
        return kind.original(result)
    if isinstance(result, Value):
        return _convert_traced(result, kind)
    # Python raises TypeError unless it is a number of this kind
    return kind.original(type(x.__class__.__name__, (), {method.__name__: lambda _: result})())


def _complex_of(real: Any, imag: Any) -> Any:
    """``complex(real, imag)``, where a part is traced.

    As in Python, the real part may be any object with a method ``__complex__``, such as an array;
    the imaginary part has its own imaginary part only if its class is ``complex`` or derives
    from it: that of ``np.complex64`` is discarded, with a warning.
    """
    is_first, is_second = hasattr(real.__class__, "__complex__"), isinstance(imag, complex)
    first = _number_of_kind(real, complex if is_first else float)
    second = _number_of_kind(imag, complex if is_second else float)
    # a real part adds nothing: -0.0 stays -0.0
    parts = first.real if is_first else first, second.real if is_second else second
    real = parts[0] - second.imag if is_second else parts[0]
    imag = parts[1] + first.imag if is_first else parts[1]
    return python_number(PRIMITIVES["complex_of"](real, imag))


def _number_of_kind(x: Any, kind: type) -> Any:
    """``float(x)`` or ``complex(x)``, traced if ``x`` is."""
    return python_number(x, kind) if isinstance(x, Value) else kind(x)


def _from_hex(text: Any) -> Any:
    """``float.fromhex``, which gives the traced number whose ``hex()`` the text is."""
    number = text
    if type(text) is str and is_recording():
        number = LATE_BOUND["number_of_text"](text, float.fromhex)
    return float.fromhex(text) if number is text else _convert_traced(number, _FLOAT)


def _number_class(original: type) -> type:
    """The stand-in for ``float`` or ``complex``, which converts traced numbers too."""
    names: dict[str, Any] = {
        "original": original,
        "dtype": np.dtype(original),
        "__module__": "builtins",
    }
    names |= {"__qualname__": original.__name__, "__doc__": original.__doc__, "__slots__": ()}
    if original is float:
        names["fromhex"] = staticmethod(_from_hex)
    return _NumberClass(original.__name__, (original,), names)


_FLOAT: Any = _number_class(float)
CLASSES_REPLACED: dict[type, type] = {float: _FLOAT, complex: _number_class(complex)}


# a pickle names the original class: type(0.0)
_pickled: Any = lambda cls: (type, (cls.original(),))  # noqa: E731
copyreg.pickle(_NumberClass, _pickled)


def _class_shown_for(kind: type) -> type:
    """The class that code with a stand-in for ``float`` sees for a traced number of class ``kind``.

    It is the stand-in, so that ``type(x) is float`` and ``type(x) is self.kind`` hold there.
    """
    if kind in CLASSES_REPLACED:
        LATE_BOUND["note_held_function"]()
    return CLASSES_REPLACED.get(kind, kind)


def class_read(kind: type, reader: FrameType) -> type:
    """The class of a traced number whose ``__class__`` the code of ``reader`` reads, itself or by
    ``isinstance``.
    """
    is_replaced = is_recording() and is_read_by_user(reader, "__class__")
    return _class_shown_for(kind) if is_replaced else kind


class _TypeClass(type):
    """The class of the stand-in for ``type``."""

    def __call__(cls, *args, **kwargs):
        if cls is not _Type or len(args) != 1 or kwargs:
            return type.__call__(cls if cls is not _Type else type, *args, **kwargs)
        x = args[0]
        result = x.__class__ if isinstance(x, Value | Size) else type(x)
        if issubclass(result, LetirError):  # the class of the error that NumPy would raise
            numpys = next(kind for kind in result.__mro__ if kind.__module__ != "letir.errors")
            return result if numpys is Exception else numpys
        return (
            _class_shown_for(result)
            if isinstance(x, Value)
            else CLASSES_REPLACED.get(result, result)
        )

    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, type) if cls is _Type else super().__instancecheck__(value)

    def __subclasscheck__(cls, other) -> bool:
        if cls is not _Type:
            return super().__subclasscheck__(other)
        return other is cls or issubclass(other, type)

    def __eq__(cls, other) -> bool:
        return cls is other or (cls is _Type and other is type)

    def __hash__(cls) -> int:
        return hash(type) if cls is _Type else type.__hash__(cls)


class _Type(type, metaclass=_TypeClass):
    """The stand-in for ``type``: of a traced value it returns NumPy's or Python's class."""


@functools.cache
def _numpy_class(original: type) -> type:
    """The stand-in for a class of NumPy's numbers."""
    return _number_class(original)


_CLASSES: dict[str, type] = {
    "float": CLASSES_REPLACED[float],
    "complex": CLASSES_REPLACED[complex],
    "type": _Type,
}


def class_stand_in(original: str | type) -> type:
    """The stand-in for Python's class of this name, or for a class of NumPy's numbers."""
    if original in ("eval", "literal_eval"):
        return LATE_BOUND["text_reader"](original)
    return _CLASSES[original] if type(original) is str else _numpy_class(original)


LATE_BOUND.update(class_read=class_read, class_stand_in=class_stand_in)
