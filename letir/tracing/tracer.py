"""``Tracer``: a value of a trace that is under way, with NumPy's protocols.

What NumPy asks of an object is answered here: ufuncs and functions are recorded (``dispatch``), and
every question whose answer would be baked into the program is refused, or recorded as a guard [B2].
"""

import functools
import importlib
import weakref

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Local
from letir.errors import DTypeError, ShapeError, TraceError
from letir.eval.arguments import checked_arguments
from letir.eval.arrays import type_of
from letir.eval.evaluator import run_flat
from letir.ops.indexing import spelled_item
from letir.tracing.dispatch import call_function, call_ufunc, gathered, recorder_of, ufunc_records
from letir.tracing.places import at_user
from letir.tracing.recorder import ABSENT, ACTIVE, LAZY, Paused, Trace, escaped

NO_OPERANDS = frozenset([str, bytes, dict, set, type(None)])
NOT_ALIKE = frozenset(["sort", "partition", "resize", "compress", "round"])  # method and function
MATH_REMEDY = (
    "use numpy's functions in place of math's, and letir.numpy.zeros for a buffer to write into;\n"
    "  letir.concrete(x) gives the value, with a guard and without a derivative"
)
VALUE_REMEDY = (
    "keep it an array; letir.concrete(x) gives the value, with a guard and without a derivative"
)
ARRAY_REMEDY = """\
numpy.array, numpy.full and C functions take values, not recordings; these record:
    letir.numpy.array([x, 1.0]), letir.numpy.full(3, x), letir.numpy.sum([x, y])
    letir.numpy.asarray(table)[x]
    buffer = letir.numpy.zeros(3), then buffer[i] = x"""


def _method(function):
    """NumPy's method of the name of ``function``, recorded as that is."""

    def method(self, *args, **kwargs):
        return call_function(self, function, (self, *args), kwargs)

    method.__name__ = function.__name__
    method.__doc__ = f"NumPy's ``ndarray.{function.__name__}``, recorded."
    return method


def _in_place(operator):
    """The augmented form of an operator: a scalar is replaced, an array changed."""

    def change(self, other):
        new = operator(self, other)
        if not isinstance(new, Tracer) or self.is_scalar():
            return new
        return self.assign(new)

    return change


class Tracer(Value):
    """A value that is being recorded: behaves as the NumPy array of its type.

    ``value`` is the array that it stands for in a concrete trace. A view knows its ``base`` and, in
    ``part``, at which index of that it stands; a base knows its ``views`` that are alive.
    """

    __slots__ = ("__weakref__", "base", "part", "value", "views")

    def __init__(self, emitter: Trace, arg: Local, value=ABSENT):
        self.emitter, self.arg, self.value = emitter, arg, value
        self.base = self.views = None

    # ---- what it is ----

    def concrete_value(self):
        """The array that it stands for, computed on demand in a lazy trace; ABSENT if none."""
        if self.value is ABSENT and self.emitter.mode is LAZY:
            self.value = self.emitter.demand(self.arg)
        return self.value

    def is_scalar(self) -> bool:
        """Whether NumPy would have a scalar here, which ``+=`` replaces instead of changing it."""
        value = self.emitter.known.get(self.arg) if self.value is ABSENT else self.value
        return not self.shape and not isinstance(value, np.ndarray)

    def takes(self, other) -> bool:
        """Whether NumPy's operators accept ``other`` beside this.

        An integer scalar leaves lists to Python: ``[0.0] * n`` repeats.
        """
        if type(other) in (list, tuple):
            return bool(self.shape) or self.dtype.kind not in "iu" or not self.is_scalar()
        return type(other) not in NO_OPERANDS

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    def __repr__(self):
        value = "" if self.value is ABSENT else f" = {self.value!r}"
        return f"Traced({self.arg!r}{value})"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if not hasattr(np.ndarray, name):
            raise AttributeError(f"a traced value has no attribute {name!r}, nor has numpy.ndarray")
        function = getattr(np, name, None)
        if name not in NOT_ALIKE and recorder_of(function) is not None:
            return functools.partial(_method(function), self)
        raise AttributeError(
            f"ndarray.{name} of a traced value is not recorded{at_user()}\n"
            "  write it with functions that are: docs/operations.md lists them"
        )

    # ---- NumPy's protocols ----

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        record = ufunc_records.get(ufunc)
        if record is not None and method == "__call__" and not kwargs:
            return self.emitter.apply(record, inputs)
        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func, types, args, kwargs):
        return call_function(self, func, args, kwargs)

    def __array_namespace__(self, api_version=None):
        return importlib.import_module("letir.numpy")  # on demand, as letir/__init__.py does

    def __letir_run__(self, f, leaves: list) -> tuple:
        """Inline a program that is called on traced values into the active trace."""
        active = ACTIVE.get()
        if active is None:
            raise escaped(self)
        if isinstance(active, Paused):
            return run_flat(f, [x.paused() if isinstance(x, Tracer) else x for x in leaves])
        checked_arguments(f, leaves, lambda x: x.type if isinstance(x, Value) else type_of(x))
        return tuple(active.replay(f, leaves))

    # ---- methods that NumPy spells as functions, with all their arguments ----

    sum, prod, mean = _method(np.sum), _method(np.prod), _method(np.mean)
    max, min = _method(np.max), _method(np.min)
    argmax, argmin = _method(np.argmax), _method(np.argmin)
    any, all, cumsum = _method(np.any), _method(np.all), _method(np.cumsum)
    clip, squeeze, dot = _method(np.clip), _method(np.squeeze), _method(np.dot)
    ravel = _method(np.ravel)

    def reshape(self, *shape, order="C"):
        """NumPy's ``ndarray.reshape``, of sizes one by one or in a tuple."""
        return PRIMITIVES["reshape"](self, shape[0] if len(shape) == 1 else shape, order)

    def flatten(self, order="C"):
        """NumPy's ``ndarray.flatten``."""
        return PRIMITIVES["copy"](self.ravel(order))

    def astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
        """NumPy's ``ndarray.astype``: the array itself if it may be and has the dtype."""
        if not copy and self.dtype == dtype and not self.type.weak:
            return self
        return PRIMITIVES["cast"](self, dtype, casting=casting)

    def conj(self):
        """NumPy's ``ndarray.conj``: the array itself if it is real."""
        return PRIMITIVES["conj"](self) if self.dtype.kind == "c" else self

    conjugate = conj

    def copy(self, order="C"):
        """NumPy's ``copy``: a scalar is its own, an array has a new one."""
        return self if self.is_scalar() else PRIMITIVES["copy"](self)

    __copy__ = copy

    def fill(self, new):
        """NumPy's ``ndarray.fill``."""
        self[...] = new

    # ---- what Python may ask, at the price of a guard ----

    def __bool__(self):
        if self.size == 0:
            raise ValueError("The truth value of an empty array is ambiguous. Use x.size > 0")
        if self.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                "Use a.any() or a.all()"
            )
        return self.guarded(bool, "the truth value")

    def __int__(self):
        return self.guarded(int, "int()")

    def __index__(self):
        if self.dtype.kind not in "iu" or self.shape:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return self.guarded(int, "an index or a size")

    def __round__(self, ndigits=None):
        kind = self.dtype.kind
        if not self.is_scalar() or kind not in "iuf":
            raise TypeError(f"{self.type} has no __round__; see numpy.rint")
        if ndigits is None:
            return int(np.rint(self)) if kind == "f" else int(self)
        if self.type.weak or kind != "f":
            raise self.refused("round(x, ndigits)", "write numpy.rint(x * 10**n) / 10**n")
        scale = 10.0 ** abs(ndigits)
        return np.rint(self * scale) / scale if ndigits >= 0 else np.rint(self / scale) * scale

    def guarded(self, convert, asked: str):
        """``convert`` of the value, recorded as a guard: a replay with another answer fails."""
        value = self.concrete_value()
        if value is ABSENT:
            raise TraceError(
                f"{asked} of a traced value of type {self.type} is needed, but it has no value"
                f"{at_user()}\n  trace with concrete arguments, so that a guard is recorded,\n"
                "  choose with numpy.where, or make it a static argument"
            )
        answer = convert(value)
        self.emitter.apply(PRIMITIVES["guard"], (self,), Attrs(value=answer))
        return answer

    # ---- what would bake a value whose derivative is lost ----

    def refused(self, asked: str, remedy: str) -> TraceError:
        """The error for a question that cannot be recorded."""
        return TraceError(
            f"{asked} of a traced value of type {self.type} cannot be recorded{at_user()}\n"
            f"  {remedy}"
        )

    def paused(self):
        """The value while tracing is paused, None if it is not."""
        if not isinstance(ACTIVE.get(), Paused):
            return None
        value = self.concrete_value()
        if value is ABSENT:
            raise TraceError(
                f"while tracing is paused operations compute, but a traced value of type "
                f"{self.type} has no value{at_user()}\n  trace with concrete arguments"
            )
        return value

    def __float__(self):
        return self.number(float)

    def __complex__(self):
        return self.number(complex)

    def number(self, convert):
        """``float()`` or ``complex()``: of an integer recorded as a guard, of others refused."""
        if self.dtype.kind in "iub":
            return self.guarded(convert, f"{convert.__name__}()")
        if (value := self.paused()) is not None:
            return convert(value)
        raise self.refused(f"{convert.__name__}()", MATH_REMEDY)

    def item(self, *args):
        """``item()`` of an integer is recorded as a guard; of other values refused."""
        if self.dtype.kind in "iub" and not args and self.size == 1:
            return bool(self) if self.dtype.kind == "b" else int(self)
        if (value := self.paused()) is not None:
            return value.item(*args)
        raise self.refused("item()", VALUE_REMEDY)

    def tolist(self):
        """Refused: its numbers would be baked into the program."""
        if (value := self.paused()) is not None:
            return value.tolist()
        raise self.refused("tolist()", VALUE_REMEDY)

    def __array__(self, dtype=None, copy=None):
        if (value := self.paused()) is not None:
            return np.array(value, dtype, copy=copy)
        raise TraceError(
            f"a traced value of type {self.type} cannot become an ordinary array: "
            f"its record would be lost{at_user()}\n  {ARRAY_REMEDY}"
        )

    def __format__(self, spec):
        if spec:
            remedy = "print it without a format, or letir.concrete(x), which records a guard"
            raise self.refused(f"the format {spec!r}", remedy)
        return repr(self)

    def __hash__(self):
        raise TypeError(
            f"unhashable type: a traced value cannot be in a set or the key of a dict{at_user()}\n"
            "  use its name or place as the key; cache by letir.concrete(x)"
        )

    def __reduce_ex__(self, protocol):
        raise self.refused("a pickle", "return it from the traced function first")

    def __deepcopy__(self, memo):
        return self.copy()

    # ---- sequences and pairs ----

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __contains__(self, item):
        return bool((self == item).any())

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    # ---- in place ----

    def is_view_of(self, base) -> None:
        """Remember that this may share memory with ``base``."""
        bind = self.emitter.binds[-1]
        is_index = bind.op.name == "index"
        if not isinstance(base, Tracer) or (is_index and len(bind.args) > 1):
            return  # an index with arrays copies
        self.part = (bind.attrs["item"],) if is_index and base.base is None else ()
        self.base = base = base if base.base is None else base.base
        if base.views is None:
            base.views = weakref.WeakValueDictionary()
        base.views[id(self)] = self

    def assign(self, new: "Tracer", casting: str = "same_kind") -> "Tracer":
        """Write ``new``, of this shape, into this array, cast as ``+=`` and ``out=`` cast."""
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
            new = self.at[...].set(new)  # stays a 0-d array, where a result would be a scalar
        return self.replace(new if new.dtype == self.dtype else new.astype(self.dtype))

    def replace(self, new: "Tracer") -> "Tracer":
        """Make this name mean ``new``, of this type, and write it into the base of a view."""
        reason = self.unchangeable(new)
        if reason:
            what, remedy = reason
            raise TraceError(f"{what} cannot be changed in place{at_user()}\n  {remedy}")
        if self.base is not None:
            whole = self.base.at[self.part[0]].set(new)
            self.base.arg, self.base.value = whole.arg, whole.value
        self.arg, self.value = new.arg, new.value
        return self

    def unchangeable(self, new: "Tracer") -> tuple[str, str] | None:
        """(what it is, remedy) if an in-place change cannot be recorded."""
        if not isinstance(new, Tracer):
            return f"while tracing is paused, a traced {self.type}", "compute with a copy of it"
        base = self if self.base is None else self.base
        if new.emitter is not base.emitter:
            remedy = "return the new value from the inner function"
            return f"a traced {base.type} of an outer function", remedy
        if any(base.arg is param for param in self.emitter.params):
            remedy = "copy it first, x = x.copy(), or make a new array: x = x + y, x.at[i].set(v)"
            return f"an argument of the traced function, {base.type},", remedy
        if base is not self and not self.part:
            remedy = "copy it first, y = x.T.copy(), or write into the whole: x = x.at[i].set(v)"
            return f"{self.type}, a view of {base.type} that is no plain x[i],", remedy
        if any(view is not self for view in (base.views or {}).values()):
            remedy = "copy the view, y = x[i].copy(), or make a new array: x = x.at[i].set(v)"
            return f"{base.type}, of which another view is still in use,", remedy
        return None

    def __setitem__(self, item, new):
        if isinstance(new, Tracer) and new.base is self and new.part == (spelled_item(item)[1],):
            return  # the end of x[item] += y, which has been written through the view
        self.replace(self.at[item].set(gathered(new)))

    __iadd__, __isub__ = _in_place(Value.__add__), _in_place(Value.__sub__)
    __imul__, __itruediv__ = _in_place(Value.__mul__), _in_place(Value.__truediv__)
    __ifloordiv__, __imod__ = _in_place(Value.__floordiv__), _in_place(Value.__mod__)
    __ipow__, __imatmul__ = _in_place(Value.__pow__), _in_place(Value.__matmul__)
    __iand__, __ior__ = _in_place(Value.__and__), _in_place(Value.__or__)
    __ixor__ = _in_place(Value.__xor__)
