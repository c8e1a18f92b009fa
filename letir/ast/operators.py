"""The operators, methods and indexed updates of a ``Value``, and the operations that they record.

Python's operators on Python numbers alone give Python numbers, and treat the booleans of
comparisons as 0 and 1; NumPy's functions do neither.
"""

import operator
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.record_fields import PythonOperator
from letir.ast.sizes.size import Size
from letir.ast.types import PYTHON_NUMBERS, WEAK

_ALWAYS_TAKEN = PYTHON_NUMBERS | {np.ndarray}  # operands that every kind of value accepts
_SEQUENCES = frozenset([list, tuple, range, deque])


# ---- what Python's operators do with numbers: values of ``Primitive.python`` ----


def _is_zero_divisor(y, kinds: set[str]) -> bool:
    """Whether Python raises ZeroDivisionError."""
    return y == 0


def _is_negative(y, kinds: set[str]) -> bool:
    """Whether Python's shifts raise ValueError."""
    return y < 0


def _power_differs(y, kinds: set[str]) -> bool:
    """Whether Python's power of real numbers is not NumPy's.

    Python raises for a power beyond 1e308, but gives infinity for a product: so a square differs.
    """
    return not (y >= 0 and y == int(y)) or ("float" in kinds and y > 1)


def _power_kind(y, kinds: set[str]) -> str | None:
    """A float if one operand is a float and the exponent is whole; else the values decide."""
    return "float" if "float" in kinds and y is not None and y == int(y) else None


ADD = PythonOperator("+", operator.add, counts_booleans=True, takes_complex=True, is_sum=True)
SUBTRACT = PythonOperator("-", operator.sub, counts_booleans=True, takes_complex=True, is_sum=True)
MULTIPLY = PythonOperator(
    "*",
    operator.mul,
    counts_booleans=True,
    takes_complex=True,
    repeats_sequences=True,
    rounds_scalars="c",
)
DIVIDE = PythonOperator(
    "/",
    operator.truediv,
    counts_booleans=True,
    takes_complex=True,
    differs=lambda y, kinds: y == 0 or kinds == {"int"},
    result_kind=lambda y, kinds: "float",
)
FLOOR_DIVIDE = PythonOperator(
    "//", operator.floordiv, counts_booleans=True, differs=_is_zero_divisor
)
REMAINDER = PythonOperator("%", operator.mod, counts_booleans=True, differs=_is_zero_divisor)
POWER = PythonOperator(
    "**",
    operator.pow,
    max_bits=lambda x, y: x.bit_length() * abs(y),
    counts_booleans=True,
    takes_complex=True,
    differs=_power_differs,
    result_kind=_power_kind,
    rounds_scalars="fc",
)
LEFT_SHIFT = PythonOperator("<<", differs=_is_negative)
RIGHT_SHIFT = PythonOperator(">>", differs=_is_negative)
NEGATE = PythonOperator(of_numbers=operator.neg, counts_booleans=True)
PLUS = PythonOperator(of_numbers=operator.pos, counts_booleans=True)
COUNTS_BOOLEANS = PythonOperator(counts_booleans=True)
EQUAL = PythonOperator("==", operator.eq, takes_all=True)
NOT_EQUAL = PythonOperator("!=", operator.ne, takes_all=True)
LESS = PythonOperator("<", operator.lt, orders_numbers=True)
LESS_EQUAL = PythonOperator("<=", operator.le, orders_numbers=True)
GREATER = PythonOperator(">", operator.gt, orders_numbers=True)
GREATER_EQUAL = PythonOperator(">=", operator.ge, orders_numbers=True)


# ---- operators of values ----


def _is_python(operand) -> bool:
    """Whether an operand is a Python number, or the result of comparing Python numbers."""
    if not hasattr(operand, "emitter"):  # not isinstance: Value is built from these functions
        return type(operand) in PYTHON_NUMBERS
    aval = operand.arg.type
    return aval is not None and (aval.weak or _is_python_bool(operand))


def _is_python_bool(operand) -> bool:
    """Whether an operand is known to be the result of comparing Python numbers."""
    emitter = getattr(operand, "emitter", None)
    if emitter is None or operand.arg.type is not WEAK[bool]:
        return False
    # NumPy's promotion has no weak bool (WEAK[bool] is strong), so that the type cannot tell
    return operand.arg in getattr(emitter, "python_bools", ())


def _is_complex(number) -> bool:
    """Whether a Python number, traced or not, is complex."""
    return type(number) is complex or getattr(number, "dtype", None) == np.complex128


def weaken_result(out: Any) -> Any:
    """The result of a Python operator on Python numbers alone: a Python number, or a boolean."""
    if out.dtype.kind != "b":
        return out.emitter.apply(PRIMITIVES["weaken"], (out,))
    if hasattr(out.emitter, "python_bools"):
        out.emitter.python_bools.add(out.arg)
        return LATE_BOUND["known_boolean"](out)
    return out


def _apply_python_operator(op: Primitive, operands: tuple):
    """An operator on Python numbers."""
    emitter = next(x.emitter for x in operands if hasattr(x, "emitter"))
    python = op.python
    if python.counts_booleans:
        operands = tuple([_bool_as_number(x) for x in operands])
    unlike_if_complex = python.orders_numbers or "c" in python.rounds_scalars
    is_unlike = python.differs or (unlike_if_complex and any(map(_is_complex, operands)))
    if is_unlike and hasattr(emitter, "concrete"):  # a trace: in a rule they are NumPy's
        return LATE_BOUND["apply_python_operator"](emitter, op, operands)
    return weaken_result(emitter.apply(op, operands))


def _convert_for_python_complex(op: Primitive, operands: tuple) -> tuple:
    """The operands, the second one as a Python float if Python's complex number takes it as one.

    ``np.float64`` is a subclass of ``float``: ``1j * np.float64(2)`` is a Python number.
    """
    x, y = operands
    if not op.python.takes_complex or not _is_python(x):
        return operands
    if type(y) is np.float64:
        return x, float(y)
    is_scalar = hasattr(y, "is_scalar") and y.dtype == np.float64 and y.is_scalar()
    if is_scalar and LATE_BOUND["is_users_operator"]():
        return x, PRIMITIVES["weaken"](y)
    return operands


def _bool_as_number(x):
    """``x``, with a Python boolean converted to 0 or 1."""
    return PRIMITIVES["weaken"](x.astype(np.int64)) if _is_python_bool(x) else x


def _python_number(operand: Any, kind: type) -> Any:
    """A number of a subclass of Python's, such as a member of an IntEnum, as Python's own."""
    if issubclass(kind, int | float | complex) and not issubclass(kind, np.generic):
        return next(base for base in kind.__mro__ if base in PYTHON_NUMBERS)(operand)
    return operand


def binary_operator(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """A binary operator that records the primitive ``name``."""

    def operate(self, other):
        kind = type(other)
        # takes() last: the first two tests settle nearly all operands without a call
        if kind is not type(self) and kind not in _ALWAYS_TAKEN:
            if kind is Size:
                other = LATE_BOUND["number_of_size"](other, self.emitter)
            elif not self.takes(other):
                return LATE_BOUND["other_operand"](self, PRIMITIVES[name], other, reflected)
            elif kind in _SEQUENCES:
                other = LATE_BOUND["list_operand"](self, PRIMITIVES[name], other)
                if other is NotImplemented:
                    return other
            else:
                other = _python_number(other, kind)
        operands = (other, self) if reflected else (self, other)
        own = self.arg.type
        # the shape first: arrays, the usual case, are not Python numbers
        if own is not None and own.shape == ():
            if _is_python(self) and _is_python(other):
                return _apply_python_operator(PRIMITIVES[name], operands)
            if (kind is complex and reflected) or (own.weak and own.dtype.kind == "c"):
                operands = _convert_for_python_complex(PRIMITIVES[name], operands)
                if all(map(_is_python, operands)):
                    return _apply_python_operator(PRIMITIVES[name], operands)
        return self.emitter.apply(PRIMITIVES[name], operands)

    return operate


def reflected_operator(name: str) -> Callable[[Any, Any], Any]:
    """A binary operator with swapped operands, for Python's reflected methods."""
    return binary_operator(name, reflected=True)


def unary_operator(name: str) -> Callable[[Any], Any]:
    """A unary operator that records the primitive ``name``."""

    def operate(self):
        if _is_python(self):
            return _apply_python_operator(PRIMITIVES[name], (self,))
        return self.emitter.apply(PRIMITIVES[name], (self,))

    return operate


def numpy_method(name: str) -> Callable[..., Any]:
    """A method of this name that records NumPy's method."""

    def call(self, *args, **kwargs):
        return PRIMITIVES[name](self, *args, **kwargs)

    called = "astype" if name == "cast" else name
    call.__name__, call.__doc__ = name, f"NumPy's ``ndarray.{called}``, recorded."
    call.__qualname__ = f"ndarray.{called}"  # Python's errors about arguments show it
    return call


def numpy_shape_method(name: str) -> Callable[..., Any]:
    """A method of this name that takes sizes or axes one by one or as one tuple."""

    def call(self, *sizes):
        # None: x.transpose() without axes
        return PRIMITIVES[name](self, sizes[0] if len(sizes) == 1 else sizes or None)

    call.__name__, call.__doc__ = name, f"NumPy's ``ndarray.{name}``, recorded."
    call.__qualname__ = f"ndarray.{name}"  # Python's errors about arguments show it
    return call


# ---- indexed updates ----


class IndexedUpdate:
    """``x.at[item]``: functional updates, ``.set(v)`` and ``.add(v)``."""

    __slots__ = ("item", "value")

    def __init__(self, value: Any, item: Any = None) -> None:
        self.value, self.item = value, item

    def __getitem__(self, item: Any) -> "IndexedUpdate":
        return IndexedUpdate(self.value, item)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"x.at[item] has the methods set and add, found {name!r}\n"
            "  compute the new values: x.at[item].set(x[item] * y)"
        )

    def set(self, new: Any) -> Any:
        """A copy of x with ``x[item] = new``."""
        x, mask = self.value, self.item
        if _is_mask_of(mask, x) and _is_number_of(new, x):  # needs no guard on the count
            if mask.ndim < x.ndim:
                mask = PRIMITIVES["reshape"](mask, (*mask.shape, *(1,) * (x.ndim - mask.ndim)))
            return PRIMITIVES["where"](mask, _number_in_dtype(new, x.dtype), x)
        return PRIMITIVES["index_set"](x, mask, new)

    def add(self, new: Any) -> Any:
        """A copy of x with ``new`` added at ``item``; repeated indices add up, as in np.add.at."""
        return PRIMITIVES["index_add"](self.value, self.item, new)


def _is_mask_of(item, x: Any) -> bool:
    """Whether an index is one boolean array over the leading axes of ``x``, a Value."""
    if not hasattr(item, "emitter") or item.type is None or x.type is None:
        return False
    return item.dtype.kind == "b" and 0 < item.ndim <= x.ndim and x.shape[: item.ndim] == item.shape


def _is_number_of(new, x: Any) -> bool:
    """Whether ``new`` is a single number that ``x`` can hold."""
    if type(new) in (bool, int, float):
        return True
    if (
        not (hasattr(new, "emitter") or isinstance(new, np.generic))
        or getattr(new, "type", new) is None
    ):
        return False
    return not new.shape and new.dtype.kind in f"biuf{x.dtype.kind}"


def _number_in_dtype(number, dtype: np.dtype):
    """``number`` converted to this dtype; a Python number of the same kind is unchanged."""
    if hasattr(number, "dtype"):
        return number.astype(dtype)
    result = np.asarray(number, dtype)  # as NumPy: nan, and integers beyond the dtype, raise here
    is_same_kind = dtype.kind in {float: "fc", int: "iufc"}.get(type(number), "")
    return number if is_same_kind else result
