"""``Tracer``: a value of a running trace, with NumPy's protocols (``numpy_protocols``).

If Python asks for a value that would become a constant of the program, this is refused, or recorded
as a guard [semantics.md B2].
"""

import inspect
import sys
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Local
from letir.ast.types import ShapeDtype
from letir.errors import TraceError, mark_unrecorded_code
from letir.eval.arguments import checked_arguments
from letir.eval.array_modules import type_of
from letir.eval.evaluator import run_flat
from letir.ops.define.records import PYTHON_TYPES
from letir.tracing.callers import calls_method
from letir.tracing.mutation.memory_order import keep_order_of_written, may_differ_in_order
from letir.tracing.mutation.views import Memory, view_base
from letir.tracing.mutation.writes import (
    forget_views,
    is_own_item,
    is_same_slice,
    refresh_view,
    unwritable_error,
    whole_place,
    why_unwritable,
    write_into_view,
)
from letir.tracing.numpy_functions.registry import write_into_ordinary_array_error
from letir.tracing.numpy_protocols.dispatch import call_function
from letir.tracing.numpy_protocols.python_protocols import ArrayAttribute, PythonProtocols
from letir.tracing.operands import array_to_write, has_traced_slice
from letir.tracing.refusals import (
    conversion_error,
    escaped_error,
    note_refusal,
    remedy_in_library,
)
from letir.tracing.source_locations import at_user, is_item_write
from letir.tracing.trace_state import ABSENT, ACTIVE, LAZY, Paused, Trace

_MATH_REMEDY = (
    "compute with numpy's functions;\n"
    "  letir.concrete(x) gives the value, with a guard and without a derivative"
)
_SCALARS = (np.generic, float, int, complex)
_NDARRAY = np.ndarray  # bound once: attributes of the module are slow during a recording
_SMALL_INTEGERS = "bBhHiILQ"  # dtypes of scalars that a conversion to int loses
_CLASS = object.__dict__["__class__"]  # the real class, bypassing the property of Tracer


class Tracer(PythonProtocols):
    """A traced value, which behaves as a NumPy array of its type.

    ``held_value`` is the concrete array in a concrete trace. ``sharing`` (see ``mutation.views``)
    is a ``SharedView`` of another value's memory, a ``Memory`` if it has views, else None.

    >>> import numpy as np
    >>> from letir import trace
    >>> def f(x):
    ...     print(type(x).__name__, x.shape, x.dtype, isinstance(x, np.ndarray))
    ...     return x.sum()
    >>> program = trace(f, np.ones((2, 3)))
    Tracer (2, 3) float64 True
    """

    __slots__ = ("__weakref__", "held_value", "sharing")
    sharing: Any
    stale: type  # its class while it is a view of a value that has changed
    fresh: type

    def __init__(self, emitter: Trace, arg: Local, value=ABSENT):
        self.emitter, self.arg, self.held_value = emitter, arg, value
        self.sharing = None

    # ---- properties ----

    def concrete_value(self) -> Any:
        """The concrete array, computed on demand in a lazy trace; ABSENT if there is none."""
        if self.held_value is ABSENT and self.emitter.mode is LAZY:
            self.held_value = self.emitter.demand(self.arg)
        return self.held_value

    def known_value(self) -> Any:
        """The concrete array if it has been computed, else None."""
        held = self.held_value
        value = self.emitter.concrete.get(self.arg, ABSENT) if held is ABSENT else held
        return None if value is ABSENT or isinstance(value, Value | ShapeDtype) else value

    def is_argument(self) -> bool:
        """Whether the memory belongs to an argument of the caller."""
        trace = self.emitter
        return self.arg in trace.arguments or any(self is x for x in trace.changed.values())

    @property
    def __class__(self):
        """The class that NumPy or Python would have here, for ``isinstance(x, np.ndarray)``.

        ``type(x)`` is still Tracer.
        """
        aval = self.type
        if aval.weak:
            result, reader = PYTHON_TYPES[aval.dtype.kind], sys._getframe(1)
            is_named = "__class__" in reader.f_code.co_names
            return LATE_BOUND["class_read"](result, reader) if is_named else result
        if not self.is_scalar():
            return _NDARRAY
        return bool if self.arg in self.emitter.python_bools else aval.dtype.type

    @__class__.setter
    def __class__(self, kind):
        _CLASS.__set__(self, kind)

    def is_scalar(self) -> bool:
        """Whether NumPy would have a scalar here, which ``+=`` replaces instead of updating."""
        if self.sharing is not None:  # only arrays have memory
            return False
        held = self.held_value
        value = self.emitter.concrete.get(self.arg) if held is ABSENT else held
        return not self.shape and not isinstance(value, _NDARRAY)

    def listing_text(self) -> str:
        """The text for a traced value in messages: its local, its type and its value."""
        value = "" if self.held_value is ABSENT else f" = {self.held_value!r}"
        return f"Traced({LATE_BOUND['numbered_local'](self.emitter, self.arg)}{value})"

    def snapshot(self) -> "Tracer":
        """A traced value with the current contents, which later writes do not change."""
        return Tracer(self.emitter, self.arg, self.held_value)

    def __letir_run__(self, f, leaves: list) -> tuple:
        """Inline a program called on traced values into the active trace."""
        active = ACTIVE.get()
        if active is None:
            raise escaped_error(self)
        if isinstance(active, Paused):
            return run_flat(f, [x.paused() if isinstance(x, Tracer) else x for x in leaves])
        checked_arguments(f, leaves, lambda x: x.type if isinstance(x, Value) else type_of(x))
        return tuple(active.replay(f, leaves))

    def numpy_call(self, func: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
        """The result of NumPy's function ``func``, with this value among the arguments."""
        if self.emitter.has_buffers:
            return LATE_BOUND["call_with_buffers"](self, func, args, kwargs)
        return call_function(self, func, args, kwargs)

    # ---- conversions that record a guard ----

    def __bool__(self):
        if self.size != 1:
            raise LATE_BOUND["ambiguous_truth_error"](self)
        return self.guarded(bool, "the truth value")

    def __int__(self):
        return self.guarded(int, "int()")

    def __index__(self):
        if self.shape or not (self.dtype.kind in "iu" or isinstance(self, bool)):
            raise LATE_BOUND["not_an_index_error"](self)
        return self.guarded(int, "the integer (an index or a size)")

    def guarded(self, convert: Callable[[Any], Any], needed: str) -> Any:
        """``convert(value)``, recorded as a guard: a replay with another answer fails."""
        value = self.concrete_value()
        if value is ABSENT:
            raise LATE_BOUND["unanswered_error"](self, needed)
        if convert is int and self.dtype.char in _SMALL_INTEGERS and not self.type.weak:
            LATE_BOUND["note_list_of_integers"]()  # NumPy would make an array of another dtype
        try:
            answer = convert(value)
        except (ValueError, OverflowError):  # int() of nan or inf, which the function may catch
            self.emitter.apply(PRIMITIVES["guard"], (self,), Attrs(value=copy(value)))
            raise
        self.emitter.apply(PRIMITIVES["guard"], (self,), Attrs(value=answer))
        LATE_BOUND["note_guard"](self.emitter)
        return answer

    # ---- conversions that are refused, because the derivative would be lost ----

    def refused(self, needed: str, remedy: str) -> TraceError:
        """The error for a conversion that cannot be recorded."""
        error = TraceError(
            f"{needed} of a traced value of type {self.type} cannot be recorded{at_user()}\n"
            f"  {remedy_in_library(remedy)}"
        )
        return note_refusal(mark_unrecorded_code(error))

    def paused(self) -> Any:
        """The concrete value while tracing is paused, else None."""
        if not isinstance(ACTIVE.get(), Paused):
            return None
        value = self.concrete_value()
        if value is ABSENT:
            raise TraceError(
                "while tracing is paused, operations compute their results, but a "
                "traced value of type "
                f"{self.type} has no value{at_user()}\n  trace with concrete arguments"
            )
        return value

    def __float__(self):
        return self.number(float)

    def __complex__(self):
        return self.number(complex)

    def number(self, convert: type) -> Any:
        """``float()`` or ``complex()``: recorded as a guard for integers, refused for others."""
        if self.dtype.kind in "iub":
            return self.guarded(convert, f"{convert.__name__}()")
        if (value := self.paused()) is not None:
            return convert(value)
        if is_item_write(sys._getframe(2)):  # NumPy calls __float__ for a[i] = x
            written = LATE_BOUND["adopt_item_write"](self, sys._getframe(2))
            if written is None:
                raise write_into_ordinary_array_error()
            return convert(written)
        if (value := LATE_BOUND["float_for_text"](self, sys._getframe(2))) is not None:
            return convert(value)
        if self.size != 1:
            raise LATE_BOUND["not_one_number_error"](self, f"{convert.__name__}()")
        LATE_BOUND["note_module_of_numbers"](convert.__name__, sys._getframe(2))
        raise self.refused(f"{convert.__name__}()", _MATH_REMEDY)

    def __array__(self, dtype=None, copy=None):
        if (value := self.paused()) is not None:
            return np.array(value, dtype, copy=copy)
        frame = sys._getframe(1)
        if calls_method(frame, "__array__"):
            return self if dtype is None and not copy else self.astype(dtype or self.dtype)
        is_write = is_item_write(frame)
        if is_write and (written := LATE_BOUND["adopt_item_write"](self, frame)) is not None:
            return written
        if self.dtype.kind in "iub" and self.concrete_value() is not ABSENT:
            # TABLE[i]: results computed from integers have no derivative to lose
            return LATE_BOUND["guarded_integer_copy"](self, dtype, copy)
        raise write_into_ordinary_array_error() if is_write else conversion_error(self)

    def __reduce_ex__(self, protocol):
        # Dask pickles what it computes with
        remedy = "return it from the traced function first, and pass Dask arrays as arguments"
        raise self.refused("a pickle", remedy)

    def __deepcopy__(self, memo):
        return self.copy(order="K")

    def __copy__(self):
        return self.copy(order="K")

    # ---- in place ----

    def replace(self, new: "Tracer") -> "Tracer":
        """Replace the contents by ``new``, of this type, visible to all that share the memory."""
        reason = self.unchangeable(new)
        if reason:
            raise unwritable_error(*reason)
        base, whole = write_into_view(self, new)
        trace, is_known = base.emitter, base.held_value is not ABSENT is not whole.held_value
        if base.ndim and (is_known or trace.has_gaps):
            whole = keep_order_of_written(base, whole)
        elif base.ndim > 1 and may_differ_in_order(base, whole):
            whole = base.at[...].set(whole)  # keeps the memory order of the base
        trace.note_change(base)
        if base.sharing is None and (not base.shape or base.is_argument()):
            base.sharing = Memory(base.arg)  # known to be an array, with its current memory order
        base.become(whole)
        return self

    def become(self, whole: "Tracer") -> None:
        """Stand for ``whole``, which has this memory order: all Python names for this object and
        its views see the new array.
        """
        self.arg, self.held_value = whole.arg, whole.held_value
        if self.sharing is not None:
            forget_views(self.sharing, ABSENT)

    def unchangeable(self, new: "Tracer") -> tuple[str, str] | None:
        """(description, remedy) if an in-place change cannot be recorded."""
        if not isinstance(new, Tracer):
            return f"while tracing is paused, a traced {self.type}", "compute with a copy of it"
        base = view_base(self)
        if new.emitter is not base.emitter:
            remedy = "return the new value from the inner function"
            return f"a traced {base.type} of an outer function", remedy
        if not self.emitter.writes and base.is_argument():
            remedy = "copy it first, x = x.copy(), or make a new array: x = x + y, x.at[i].set(v)"
            return f"an argument of the traced function, {base.type},", remedy
        return why_unwritable(self)

    def __setitem__(self, item, new):
        if type(item) in (slice, tuple) and has_traced_slice(item):
            slices = LATE_BOUND["take_traced_slices"](self, item)
            if slices is not None:
                part, item = slices
                if not (isinstance(new, Tracer) and is_same_slice(new, part)):
                    part[... if item is None else item] = new
                return
        if isinstance(new, Tracer) and is_own_item(new, self, item):
            return  # x[item] += y ends with this call: the view has been written already
        if self.is_scalar() and isinstance(value := self.concrete_value(), _SCALARS):
            raise TypeError(f"{type(value).__name__!r} object does not support item assignment")
        target, item = whole_place(self, item)
        target.replace(target.at[item].set(array_to_write(new, self.dtype)))

    def written_back(self, new: "Tracer") -> "Tracer":
        """Take the new contents that an inlined program writes into its argument."""
        return new if self.is_scalar() else self.replace(new)

    @staticmethod
    def part(name: str) -> property:
        """``x.real`` or ``x.imag``, which ``x.real = v`` and ``x.real += v`` write."""
        read = getattr(PythonProtocols, name).fget

        def write(self, new):
            part = read(self)
            if isinstance(new, Tracer) and (new is part or _is_same_part(new, self, name)):
                return
            part[...] = new

        return property(read, write, doc=getattr(PythonProtocols, name).__doc__)

    real, imag = part("real"), part("imag")
    del part


for _name in dir(Tracer):
    if _name[0] != "_" and hasattr(_NDARRAY, _name) and not hasattr(float, _name):
        setattr(Tracer, _name, ArrayAttribute(_name, inspect.getattr_static(Tracer, _name)))


def _is_same_part(new: Tracer, whole: Tracer, name: str) -> bool:
    """Whether ``new`` is the view ``whole.real`` (or imag): the end of ``x.real += y``."""
    view = new.sharing
    return (
        type(view) is not Memory
        and view is not None
        and (view.parent is whole and getattr(np, name) in getattr(view.op, "numpy", ()))
    )


class _Stale(Tracer):
    """A view whose base has changed: it is read again from the base when its value is used.

    A traced value has this class until then, so that other traced values pay nothing.
    """

    __slots__ = ()

    @property
    def arg(self):
        """The local, after reading the view again."""
        return refresh_view(self).arg

    @property
    def held_value(self):
        """The array, after reading the view again."""
        return refresh_view(self).held_value

    @property
    def type(self):
        """The type, which no write changes."""
        return _LAST_ARG(self).type


_LAST_ARG = Value.__dict__["arg"].__get__  # the content of the slot, bypassing the property
Tracer.stale, Tracer.fresh = _Stale, Tracer
