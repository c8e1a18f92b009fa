"""``Tracer``: a value of a trace that is under way, with NumPy's protocols.

What NumPy asks of an object is answered here: ufuncs and functions are recorded (``dispatch``), and every question
whose answer would be baked into the program is refused, or recorded as a guard [B2].
"""

import weakref

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.ast.primitive import LATE_BOUND, PRIMITIVES
from letir.ast.terms import Local
from letir.ast.types import ArrayType
from letir.errors import ShapeError, TraceError
from letir.eval.arguments import checked_arguments
from letir.eval.arrays import type_of
from letir.tracing.dispatch import call_function, call_ufunc
from letir.tracing.places import user_place
from letir.tracing.recorder import ABSENT, ACTIVE, LAZY, Trace


class Tracer(Value):
    """A value that is being recorded: behaves as the NumPy array of its type.

    ``value`` is the array that it stands for in a concrete trace.
    """

    __slots__ = ("__weakref__", "base", "value", "views")

    def __init__(self, emitter: Trace, arg: Local, value=ABSENT):
        self.emitter, self.arg, self.value = emitter, arg, value
        self.base = self.views = None

    # ---- what it is ----

    def concrete_value(self):
        """The array that it stands for, computed on demand in a lazy trace; ABSENT if there is none."""
        if self.value is ABSENT and self.emitter.mode is LAZY:
            self.value = self.emitter.demand(self.arg)
        return self.value

    def takes(self, other) -> bool:
        """Whether NumPy's operators accept ``other`` beside this."""
        return not isinstance(other, str | bytes | dict | set | type(None))

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
        raise AttributeError(f"a traced value has no attribute {name!r}")

    # ---- NumPy's protocols ----

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return call_ufunc(self, ufunc, method, inputs, kwargs)

    def __array_function__(self, func, types, args, kwargs):
        return call_function(self, func, args, kwargs)

    def __array_namespace__(self, api_version=None):
        return LATE_BOUND["namespace"]()

    def __letir_run__(self, f, leaves: list) -> tuple:
        """Inline a program that is called on traced values into the active trace."""
        active = ACTIVE.get()
        if not isinstance(active, Trace):
            leaves = [leaf.concrete_value() if isinstance(leaf, Tracer) else leaf for leaf in leaves]
            return tuple(f(*leaves)) if f.out_tree else f(*leaves)
        checked_arguments(f, leaves, lambda leaf: leaf.type if isinstance(leaf, Value) else type_of(leaf))
        return tuple(active.replay(f, leaves))

    # ---- what Python may ask, at the price of a guard ----

    def __bool__(self):
        if self.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
            )
        return self.guarded(bool, "bool")

    def __int__(self):
        return self.guarded(int, "int")

    def __index__(self):
        if self.dtype.kind not in "iu" or self.shape:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return self.guarded(int, "an index")

    def guarded(self, convert, asked: str):
        """``convert`` of the value, recorded as a guard: a replay with another answer fails."""
        value = self.concrete_value()
        if value is ABSENT:
            source, _ = user_place(3)
            raise TraceError(
                f"{asked} of a traced value of type {self.type} is asked for, but there is no value\n  at {source}\n"
                "  trace with concrete arguments (a guard is recorded), or choose with numpy.where"
            )
        answer = convert(value)
        self.emitter.apply(PRIMITIVES["guard"], (self,), Attrs(value=answer))
        return answer

    # ---- what would bake a value whose derivative is lost ----

    def refused(self, asked: str, remedy: str) -> TraceError:
        """The error for a question that cannot be recorded."""
        source, _ = user_place(3)
        return TraceError(
            f"{asked} of a traced value of type {self.type} cannot be recorded\n  at {source}\n  {remedy}"
        )

    def __float__(self):
        raise self.refused("float()", "use NumPy's functions instead of math's, or letir.concrete(x) for its value")

    def __complex__(self):
        raise self.refused("complex()", "use NumPy's functions instead of cmath's, or letir.concrete(x) for its value")

    def item(self, *args):
        """``item()`` of an integer is recorded as a guard; of other values refused."""
        if self.dtype.kind in "iub" and not args and self.size == 1:
            return bool(self) if self.dtype.kind == "b" else int(self)
        raise self.refused("item()", "keep it an array, or use letir.concrete(x) for its value")

    def tolist(self):
        """Refused: its numbers would be baked into the program."""
        raise self.refused("tolist()", "keep it an array, or use letir.concrete(x) for its value")

    def __array__(self, dtype=None, copy=None):
        raise self.refused(
            "an ordinary array",
            "numpy.array, numpy.full, buffer[i] = x and C functions take values, not recordings:\n"
            "  letir.numpy.array / zeros / full record them; write with buffer = buffer.at[i].set(x), "
            "read a table with letir.numpy.asarray(table)[i]",
        )

    def __format__(self, spec):
        if spec:
            raise self.refused(f"the format {spec!r}", "print letir.concrete(x), or print it without a format")
        return repr(self)

    def __reduce_ex__(self, protocol):
        raise self.refused("a pickle or copy", "return it from the traced function first")

    def __deepcopy__(self, memo):
        return self.copy()

    __copy__ = __deepcopy__

    # ---- sequences ----

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __contains__(self, item):
        return bool((self == item).any())

    def __round__(self, ndigits=0):
        return np.rint(self) if not ndigits else np.rint(self * 10.0**ndigits) / 10.0**ndigits

    def __divmod__(self, other):
        return self // other, self % other

    # ---- in place ----

    def is_view_of(self, base) -> None:
        """Remember that this may share memory with ``base``."""
        if isinstance(base, Tracer):
            base = base.base or base
            self.base = base
            base.views = [v for v in base.views or () if v() is not None] + [weakref.ref(self)]

    def is_scalar(self) -> bool:
        """Whether NumPy would have a scalar here, which ``+=`` replaces instead of changing it."""
        return not self.shape and not isinstance(self.value, np.ndarray)

    def replace(self, new: "Tracer") -> "Tracer":
        """Make this name mean ``new``: an in-place change, refused where another name would see it."""
        if not isinstance(new, Tracer) or new.emitter is not self.emitter:
            raise self.refused("a change in place by an inner function", "return the new value from it")
        if new.shape != self.shape:
            raise ShapeError(f"cannot write shape {new.shape} in place into shape {self.shape}")
        if not np.can_cast(new.dtype, self.dtype, "same_kind"):
            raise TypeError(f"Cannot cast from {new.dtype} to {self.dtype} with casting rule 'same_kind'")
        new = new if new.dtype == self.dtype else new.astype(self.dtype)
        if any(self.arg is param for param in self.emitter.params):
            raise self.refused("a change in place of an argument", "copy it first, x = x.copy(), or write x = x + y")
        if self.base is not None or any(view() is not None for view in self.views or ()):
            raise self.refused(
                "a change in place that another name may see through a view",
                "copy the view first, y = x[...].copy(), or write x = x.at[i].set(v)",
            )
        self.arg, self.value = new.arg, new.value
        return self

    def __setitem__(self, item, new):
        self.replace(self.at[item].set(new))


def _in_place(operator: str):
    def change(self, other):
        new = getattr(Value, operator)(self, other)
        if new is NotImplemented:
            return new
        return new if self.is_scalar() else self.replace(new)

    return change


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"):
    setattr(Tracer, f"__i{_name}__", _in_place(f"__{_name}__"))


