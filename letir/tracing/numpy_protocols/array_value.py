"""``ArrayValue``: a Value with NumPy's protocols, the common base of traced values and Variables.

NumPy's protocols are implemented here: ufuncs, functions and methods go to the emitter through
``dispatch``. Python's conversions (truth value, number) are left to each kind of value.
"""

import functools
import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND, load_module
from letir.ast.builder import Value
from letir.ast.operators import weaken_result
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.errors import DTypeError, ShapeError
from letir.ops.shape.shape_and_creation import shape_from_call
from letir.tracing.mutation.views import mark_as_array
from letir.tracing.numpy_functions.registry import PLAIN
from letir.tracing.numpy_protocols.array_methods import ArrayMethods
from letir.tracing.numpy_protocols.dispatch import call_function, recorder_of, ufunc_records
from letir.tracing.numpy_protocols.ufunc_calls import call_ufunc
from letir.tracing.operands import Casting, array_of_sequence, stack_traced
from letir.tracing.refusals import no_iteration_error, not_iterable_error, with_hint
from letir.tracing.source_locations import at_user

_NO_OPERANDS = frozenset([str, bytes, dict, set, type(None)])
# Methods that differ from the function of their name: x.sort() is in place, np.sort(x) a copy.
_NOT_ALIKE = frozenset(  # method and function
    ["sort", "partition", "resize", "compress", "round", "put"]
)


def _recorded_method(function):
    """The array method with the name of ``function``, recorded like the function."""

    def method(self, *args, **kwargs):
        return self.numpy_call(function, (self, *args), kwargs)

    method.__name__ = function.__name__
    method.__doc__ = f"NumPy's ``ndarray.{function.__name__}``, recorded."
    return method


def _augmented_operator(operator):
    """The augmented form of an operator: a scalar is replaced, an array changed in place."""

    def change(self, other):
        new = operator(self, other)
        # NumPy's scalars are immutable: += binds the name to a new scalar
        if not isinstance(new, ArrayValue) or self.is_scalar():
            return new
        return self.assign(new)

    return change


# NumPy computes these powers of arrays (not of scalars) by other ufuncs, with other rounding for
# complex numbers, another dtype for booleans and other results for -0.0 and -inf in float16:
# fast_scalar_power in NumPy's number.c.
_POWERS: dict[tuple[str, type, float], str] = {
    ("?", int, 2): "square",
    ("e", float, 0.5): "sqrt",
    **{(char, int, 2): "square" for char in "FD"},
    **{(char, int, -1): "reciprocal" for char in "FD"},
    **{(char, float, 0.5): "sqrt" for char in "FD"},
}


@functools.cache
def _goes_first(kind: type) -> bool:
    """Whether NumPy leaves an operator to operands of a class, such as SciPy's sparse matrices."""
    if hasattr(kind, "__array_ufunc__"):
        return kind.__array_ufunc__ is None
    priority = getattr(kind, "__array_priority__", 0)
    return isinstance(priority, int | float) and priority > 0


@functools.cache
def numpy_namespace() -> ModuleType:
    """``letir.numpy``, loaded on demand because this package must not import it."""
    return load_module("letir.numpy")


def list_operand(x: Any, op: Primitive, items: Any) -> Any:
    """A list, tuple, range or deque as the other operand of ``x``: an array, or NotImplemented.

    Python numbers leave lists to Python, and so do NumPy's integers in a product, which repeats
    the list. NumPy's other numbers have no product with a list.
    """
    if x.type is not None and x.type.weak:
        return NotImplemented
    is_repeatable = op.python.repeats_sequences and hasattr(type(items), "__mul__")
    if is_repeatable and not x.shape and x.is_scalar():
        if x.dtype.kind in "iu":
            return NotImplemented
        error = TypeError(f"can't multiply sequence by non-int of type 'numpy.{x.dtype}'")
        raise with_hint(error, "make an array of it first: numpy.array(items) * x")
    return stack_traced(items) if isinstance(items, list | tuple) else array_of_sequence(items)


def _quotient_and_rest(x: Any, y: Any) -> Any:
    """``divmod(x, y)``, where an operand is traced."""
    are_numpys = [isinstance(v, np.generic | np.ndarray) for v in (x, y)]
    are_pythons = [isinstance(v, int | float) and not isinstance(v, np.generic) for v in (x, y)]
    if any(are_numpys) and all(map(operator.or_, are_numpys, are_pythons)):
        return np.divmod(x, y)
    return x // y, x % y


def _known_exponent(n: Any) -> Any:
    """A traced Python integer as an int, with a guard, if it is known; other objects as they are.

    NumPy's operator squares complex arrays, ``np.power`` does not: they differ in the last bit.
    """
    is_integer = isinstance(n, ArrayValue) and n.type.weak and n.dtype.kind == "i"
    if not is_integer or type(n.concrete_value()) not in (int, np.int64):
        return n
    return operator.index(n)


class ArrayValue(ArrayMethods):
    """A value that behaves as a NumPy array of its type in expressions, functions and methods.

    Subclasses define ``is_scalar()``, whether NumPy would have a scalar here, and ``replace(new)``,
    the effect of an in-place change.
    """

    __slots__ = ()
    called = "a traced value"  # in messages

    # ---- attributes ----

    def takes(self, other: object) -> bool:
        """Whether NumPy's operators combine this value with ``other``."""
        kind: Any = type(other)
        return not (kind in _NO_OPERANDS or _goes_first(kind))

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.itemsize

    def __getattr__(self, name):
        if name.startswith("__"):  # copy, pickle and NumPy expect an AttributeError
            raise AttributeError(name)
        if not hasattr(np.ndarray, name):
            kind = self._text_of_class()
            remedy = LATE_BOUND["attribute_remedy"](name) if kind == "a Variable" else ""
            raise AttributeError(f"{kind} has no attribute {name!r}{remedy}")
        # not for attributes such as shape, which a value of unknown type lacks
        function = getattr(np, name, None) if callable(getattr(np.ndarray, name)) else None
        if name not in _NOT_ALIKE and self.knows(function):
            return functools.partial(_recorded_method(function), self)
        refusal_reason = LATE_BOUND["refusal_reason"]
        why = refusal_reason(getattr(np.ndarray, name)) or refusal_reason(function)
        error = AttributeError(
            f"ndarray.{name} of {self.called} is not recorded{at_user()}\n"
            f"  {why or 'write it with recorded functions: docs/operations.md lists them'}"
        )
        raise LATE_BOUND["note_refusal"](error)  # noted, because hasattr(array, name) is True

    def _text_of_class(self) -> str:
        """The class that NumPy or Python would have here, as their messages name it."""
        kind = self.__class__
        if issubclass(type(self), kind):  # a Variable
            return self.called
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        return f"'{module}{kind.__name__}' object"

    def knows(self, function: Any) -> bool:
        """Whether a NumPy function on this value is recorded or computed."""
        return recorder_of(function) is not None or function in PLAIN

    # ---- NumPy's protocols ----

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        record = ufunc_records.get(ufunc)
        if record is not None and method == "__call__" and not kwargs:
            return self.emitter.apply(record, inputs)
        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func, types, args, kwargs):
        return self.numpy_call(func, args, kwargs)

    def numpy_call(self, func: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
        """The result of NumPy's function ``func``, with this value among the arguments."""
        return call_function(self, func, args, kwargs)

    def __array_namespace__(self, api_version=None):
        return numpy_namespace()

    # ---- methods that NumPy spells as functions, with all their arguments ----

    sum, prod, mean = _recorded_method(np.sum), _recorded_method(np.prod), _recorded_method(np.mean)
    max, min = _recorded_method(np.max), _recorded_method(np.min)
    argmax, argmin = _recorded_method(np.argmax), _recorded_method(np.argmin)
    any, all, cumsum = (
        _recorded_method(np.any),
        _recorded_method(np.all),
        _recorded_method(np.cumsum),
    )
    squeeze, dot = _recorded_method(np.squeeze), _recorded_method(np.dot)
    ravel, nonzero = _recorded_method(np.ravel), _recorded_method(np.nonzero)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Value:
        """NumPy's ``ndarray.reshape``, of sizes one by one or in a tuple."""
        if copy is not None:
            sizes = shape[0] if len(shape) == 1 else shape
            return self.numpy_call(np.reshape, (self, sizes, order), {"copy": copy})
        return PRIMITIVES["reshape"](
            self, shape_from_call(shape[0] if len(shape) == 1 else shape), order
        )

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Value:
        """NumPy's ``ndarray.clip``, each of whose bounds may be missing."""
        return self.numpy_call(np.clip, (self, min, max, out), options)

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Value:
        """NumPy's ``ndarray.compress``."""
        return self.numpy_call(np.compress, (condition, self, axis, out), {})

    def flatten(self, order: str = "C") -> Value:
        """NumPy's ``ndarray.flatten``."""
        return PRIMITIVES["copy"](self.ravel(order))

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: Casting = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Value:
        """NumPy's ``ndarray.astype``; without ``copy`` the array itself if it has the dtype."""
        if not copy and self.dtype == dtype and not self.type.weak:
            return self
        result = PRIMITIVES["cast"](self, dtype, casting=casting)
        if self.is_scalar():
            return result
        return mark_as_array(result if order == "K" else PRIMITIVES["copy"](result, order))

    def conj(self) -> Value:
        """NumPy's ``ndarray.conj``: the array itself if it is real."""
        if self.dtype.kind != "c":
            return self
        result = PRIMITIVES["conj"](self)
        return weaken_result(result) if self.type.weak else result

    conjugate = conj

    def copy(self, order: str = "C") -> Value:
        """NumPy's ``copy``: the same scalar, or a new array."""
        return self if self.is_scalar() else PRIMITIVES["copy"](self, order)

    __copy__ = copy

    # ---- sequences and pairs ----

    def __iter__(self):
        if not self.shape:
            raise no_iteration_error(self)
        # a generator: each bind is recorded when the user's loop reaches it
        return (self[i] for i in range(len(self)))

    def __contains__(self, item):
        if self.is_scalar():
            raise not_iterable_error(self)
        return bool((self == item).any())

    def __eq__(self, other):
        result = self._compared_with_no_number(other, is_equal=False)
        return Value.__eq__(self, other) if result is None else result

    def _compared_with_no_number(self, other: Any, *, is_equal: bool) -> Any:
        """The result of comparing each element with None or a string; None for other objects."""
        if isinstance(other, str | bytes) and self.is_scalar():
            return None if self.type.weak else np.bool_(is_equal)
        if (other is None or isinstance(other, str | bytes)) and not self.is_scalar():
            like = np.ones_like if is_equal else np.zeros_like
            return self.numpy_call(like, (self,), {"dtype": bool})[()]
        return None

    def __ne__(self, other):
        result = self._compared_with_no_number(other, is_equal=True)
        if result is not None:
            return result
        return Value.__ne__(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __pow__(self, other):
        aval = self.arg.type
        # type(...) distinguishes 2 from 2.0 and True; lists have no hash
        if aval and not aval.weak and aval.dtype.kind == "c" and self.shape:
            other = _known_exponent(other)
        if aval and not aval.weak and type(other) in (int, float) and not self.is_scalar():
            name = _POWERS.get((aval.dtype.char, type(other), other))
            if name:
                return self.emitter.apply(PRIMITIVES[name], (self,))
        return Value.__pow__(self, other)

    def __divmod__(self, other):
        return _quotient_and_rest(self, other)

    def __rdivmod__(self, other):
        return _quotient_and_rest(other, self)

    # ---- in place ----

    def assign(self, new: Value, casting: Casting = "same_kind") -> Value:
        """Write ``new``, of this shape, into this array, with the cast rules of ``out=``."""
        if new.shape != self.shape:
            raise ShapeError(
                f"a result of shape {new.shape} cannot be written in place into shape {self.shape}"
                f"{at_user()}\n  write x = x + y, which makes a new array"
            )
        if not np.can_cast(new.dtype, self.dtype, casting):
            raise DTypeError(
                f"a result of dtype {new.dtype} cannot be written in place into {self.type}: "
                f"casting is {casting!r}{at_user()}\n"
                "  write x = x + y, which makes a new array, or convert first: x.astype(float)"
            )
        if not self.shape:
            new = self.at[...].set(new)  # keeps a 0-d array, where a result would be a scalar
        return self.replace(new if new.dtype == self.dtype else new.astype(self.dtype))

    __iadd__, __isub__ = _augmented_operator(Value.__add__), _augmented_operator(Value.__sub__)
    __imul__, __itruediv__ = (
        _augmented_operator(Value.__mul__),
        _augmented_operator(Value.__truediv__),
    )
    __ifloordiv__, __imod__ = (
        _augmented_operator(Value.__floordiv__),
        _augmented_operator(Value.__mod__),
    )
    __ipow__, __imatmul__ = _augmented_operator(__pow__), _augmented_operator(Value.__matmul__)
    __iand__, __ior__ = _augmented_operator(Value.__and__), _augmented_operator(Value.__or__)
    __ixor__ = _augmented_operator(Value.__xor__)
    __ilshift__, __irshift__ = (
        _augmented_operator(Value.__lshift__),
        _augmented_operator(Value.__rshift__),
    )


LATE_BOUND["list_operand"] = list_operand
