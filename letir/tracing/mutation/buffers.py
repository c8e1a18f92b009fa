"""``Buffer``: an array that the traced function makes, until a traced value is written into it.

``out = np.zeros(3)`` can be computed with and written to like a NumPy array, without being
recorded. As an operand of a recorded operation it becomes a constant with its present contents. The
first write of a traced value turns it, and all its views, into ordinary traced values.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.attrs import same_bits
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Local
from letir.ast.types import Size
from letir.eval.array_modules import type_of
from letir.tracing.mutation.views import (
    Memory,
    is_in_same_memory,
    view_base,
)
from letir.tracing.mutation.writes import forget_views
from letir.tracing.numpy_protocols.ufunc_calls import call_ufunc
from letir.tracing.operands import ARRAY_MAKERS, array_of_object, has_array_method
from letir.tracing.trace_state import ABSENT, ACTIVE, EAGER, Paused, Trace
from letir.tracing.tracer import Tracer

_SLOT = Value.__dict__["arg"]  # the content of the slot, bypassing the property of Buffer
_READ_NATIVELY = frozenset(["strides", "flags", "tobytes", "tofile", "dump", "dumps", "data"])
NUMBERS = "?bBhHiIlLqQefdFD"  # the dtypes of programs: neither objects nor long double


@frozen
class Recipe:
    """The operation that makes a buffer, such as ``zeros``, and its local once it is recorded.

    ``make`` computes the original contents again, to compare them with the present ones.
    """

    make: Callable[[], np.ndarray]
    record: Callable[[], Local]
    local: Local | None = None


def as_buffer(trace: Trace, result: Any) -> Any:
    """A new array as a buffer of ``trace``; objects that are not arrays of numbers unchanged."""
    is_array = type(result) is np.ndarray and result.dtype.char in NUMBERS
    return new_buffer(trace, result) if is_array else result


def new_buffer(trace: Trace, array: np.ndarray, recipe: Recipe | None = None) -> "Buffer":
    """A buffer of ``trace`` with these contents; nothing else may refer to the array."""
    result = object.__new__(Buffer)
    result.emitter, result.held_value, result.sharing = trace, array, None
    _SLOT.__set__(result, recipe)
    trace.has_buffers = True
    return result


class Buffer(Tracer):
    """A traced value whose contents are known, and do not depend on any argument.

    ``held_value`` is the array, which changes in place; ``sharing`` is a ``View`` if it is a view
    of another buffer, a ``Memory`` if it has views.
    """

    __slots__ = ()

    # ---- properties ----

    @property
    def arg(self) -> Local:
        """A constant with the present contents."""
        return _snapshot_constant(self)

    type = property(lambda self: type_of(self.held_value), doc="The type.")
    dtype = property(lambda self: self.held_value.dtype, doc="The dtype.")
    ndim = property(lambda self: self.held_value.ndim, doc="The number of axes.")
    size = property(lambda self: self.held_value.size, doc="The number of elements.")

    @property
    def shape(self) -> tuple:
        """The shape."""
        return self.held_value.shape

    @shape.setter
    def shape(self, new: Any) -> None:
        record_contents(self)  # its views belong to an array of the old shape
        self.shape = new

    def become(self, whole: Any) -> None:
        """Have the contents of another buffer, which nothing else refers to."""
        self.held_value = whole.held_value
        _SLOT.__set__(self, None)

    def concrete_value(self) -> np.ndarray:
        """A copy of the contents, which later writes do not change."""
        return self.held_value.copy("K")

    def known_value(self) -> np.ndarray:
        """The contents."""
        return self.held_value

    def as_constant(self) -> np.ndarray:
        """The array itself, for callers that read it immediately and do not keep it."""
        return self.held_value

    def read_only(self) -> np.ndarray:
        """A read-only view of the contents, for code whose writes letir would not see."""
        result = self.held_value.view()
        result.flags.writeable = False
        return result

    def is_argument(self) -> bool:
        """False: the function has made it."""
        return False

    def is_scalar(self) -> bool:
        """False: scalars are never buffers."""
        return False

    def __repr__(self):
        return repr(self.held_value)

    def __str__(self):
        return str(self.held_value)

    def __format__(self, spec):
        return format(self.held_value, spec)

    def __getattr__(self, name):
        if name in _READ_NATIVELY:
            return getattr(self.read_only(), name)
        return Tracer.__getattr__(self, name)

    # ---- conversions: without guards, because the contents do not depend on arguments ----

    def guarded(self, convert: Callable[[Any], Any], needed: str) -> Any:
        """The converted contents, without a guard."""
        return convert(self.held_value)

    def paused(self) -> np.ndarray:
        """The contents."""
        return self.held_value

    def __array__(self, dtype=None, copy=None):
        # C code could write into the array unseen, which is harmless only after the trace
        result = self.read_only() if self.emitter.is_open else self.held_value
        return np.array(result, dtype, copy=copy)

    def __reduce_ex__(self, protocol):
        return self.held_value.copy().__reduce_ex__(protocol)

    def __hash__(self):
        raise TypeError("unhashable type: 'numpy.ndarray'")

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __getitem__(self, item):
        kind = type(item)
        if kind is int or (kind is tuple and all(type(entry) is int for entry in item)):
            result = self.held_value[item]
            if not isinstance(result, np.ndarray):
                return result
        return Tracer.__getitem__(self, item)

    # ---- in place ----

    def __setitem__(self, item, new):
        if self.changes_unrecorded() and not has_traced((item, new)):
            self.held_value[unwrap_buffers(item)] = unwrap_buffers(new)
        else:
            record_contents(self)
            Tracer.__setitem__(self, item, new)

    def replace(self, new: Any) -> Tracer:
        """Replace the contents by ``new``, visible to all that share the memory."""
        if self.changes_unrecorded() and not has_traced(new):
            self.held_value[...] = unwrap_buffers(new)
            return self
        record_contents(self)
        return Tracer.replace(self, new)

    def changes_unrecorded(self) -> bool:
        """Whether known values are written immediately: not in a trace inside the buffer's."""
        active = ACTIVE.get()
        active = active.trace if isinstance(active, Paused) else active
        return active is self.emitter or not self.emitter.is_open

    # ---- NumPy's protocols ----

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if not has_traced((inputs, kwargs)):
            result = getattr(ufunc, method)(*unwrap_buffers(inputs), **unwrap_buffers(kwargs))
            outs = kwargs.get("out", ())
            return wrap_known(result, (*inputs, *outs), self.emitter)
        if method == "__call__" and not kwargs:
            return Tracer.__array_ufunc__(self, ufunc, method, *inputs)
        return call_ufunc(ufunc, method, inputs, kwargs)

    def numpy_call(self, func: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
        """The result of a NumPy function with this buffer among the arguments."""
        return LATE_BOUND["call_with_buffers"](self, func, args, kwargs)


# ---- operators ----

_ARITHMETIC = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod"
# the operators that record one operation whatever the operands are
_RECORDS = {
    **{"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "matmul": "matmul"},
    **{"floordiv": "floor_divide", "mod": "remainder", "pow": "power"},
}
_OTHERS = "lt le gt ge eq ne neg pos abs invert"


def _native_operator(name: str) -> Callable[..., Any]:
    """An operator that NumPy computes if the other operand is known too."""
    recorded, native = getattr(Tracer, name), getattr(np.ndarray, name)
    is_reflected = name.removeprefix("__r").removesuffix("__") in _RECORDS
    record = _RECORDS.get(name.strip("_").removeprefix("r" if is_reflected else ""))

    def operator(self, *others):
        if record is not None and type(others[0]) is Tracer:
            operands = (others[0], self) if is_reflected else (self, others[0])
            return others[0].emitter.apply(PRIMITIVES[record], operands)
        if has_traced(others):
            return recorded(self, *others)
        result = native(self.held_value, *unwrap_buffers(others))
        return wrap_known(result, (self, *others), self.emitter)

    return operator


def _native_augmented(name: str) -> Callable[[Any, Any], Any]:
    """An augmented operator, which changes the contents if the other operand is known too."""
    recorded, native = getattr(Tracer, name), getattr(np.ndarray, name)

    def operator(self, other):
        if has_traced(other) or not self.changes_unrecorded():
            return recorded(self, other)
        result = native(self.held_value, unwrap_buffers(other))
        return result if result is NotImplemented else self

    return operator


for _name in [f"__{side}{n}__" for n in _ARITHMETIC.split() for side in ("", "r")]:
    setattr(Buffer, _name, _native_operator(_name))
for _name in [f"__{n}__" for n in _OTHERS.split()]:
    setattr(Buffer, _name, _native_operator(_name))
for _name in [f"__i{n}__" for n in _ARITHMETIC.split() if n != "divmod"]:
    setattr(Buffer, _name, _native_augmented(_name))


def _snapshot_constant(buffer: Buffer) -> Local:
    """The local of a constant with the present contents, recorded if it does not exist yet."""
    trace, recipe = buffer.emitter, _SLOT.__get__(buffer)
    if recipe is not None:
        if same_bits(recipe.make(), buffer.held_value):
            local = recipe.local
            if local is None:
                local = recipe.record()
                _SLOT.__set__(buffer, Recipe(recipe.make, recipe.record, local))
            if local.type == buffer.type:
                return local
        _SLOT.__set__(buffer, None)
    return trace.frozen(buffer.held_value)[1]


def record_contents(buffer: Tracer) -> None:
    """Turn a buffer and all its views into ordinary traced values, for a traced write."""
    base = view_base(buffer)
    if type(base) is not Buffer:
        return
    trace, local = base.emitter, base.arg
    base.__class__ = Tracer
    _SLOT.__set__(base, local)
    if trace.mode is not EAGER:
        base.held_value = ABSENT
    if base.sharing is None:
        base.sharing = Memory(local)
    for ref in base.sharing.fresh:
        view = ref()
        if type(view) is Buffer:
            _SLOT.__set__(view, Local(view.type))  # only the type of a stale view is read
    base.sharing.origin, base.sharing.doubts = local, []
    forget_views(base.sharing, ABSENT)


# ---- calls with known arguments, which NumPy computes ----


def has_traced(value: Any) -> bool:
    """Whether a traced value or a symbolic size is in nested lists, tuples, dicts and slices.

    Buffers are known, and do not count.
    """
    kind: Any = type(value)
    if kind in (tuple, list):
        return any(map(has_traced, value))
    if kind is dict:
        return any(map(has_traced, value.values()))
    if kind is slice:
        return has_traced((value.start, value.stop, value.step))
    if issubclass(kind, Value | Size):
        return kind is not Buffer
    if kind in ARRAY_MAKERS:  # such as x.flat
        return True
    if issubclass(kind, tuple | list):
        return any(map(has_traced, value))
    array = array_of_object(value) if has_array_method(kind) else value
    return array is not value and has_traced(array)  # the object itself if it has a known array


def unwrap_buffers(value: Any) -> Any:
    """Nested lists, tuples and dicts, with buffers replaced by their arrays."""
    kind: Any = type(value)
    if kind is Buffer:
        return value.held_value
    if kind in (tuple, list):
        return kind([unwrap_buffers(item) for item in value])
    if kind is dict:
        return {name: unwrap_buffers(item) for name, item in value.items()}
    if kind is slice:
        return slice(
            unwrap_buffers(value.start), unwrap_buffers(value.stop), unwrap_buffers(value.step)
        )
    if issubclass(kind, tuple | list):  # for NumPy a named tuple is a tuple
        return (list if issubclass(kind, list) else tuple)(map(unwrap_buffers, value))
    array = array_of_object(value) if has_array_method(kind) else value
    return array.held_value if type(array) is Buffer else value


def wrap_known(result: Any, arguments: Iterable, trace: Trace) -> Any:
    """A result of NumPy, with new arrays as buffers, and arrays of buffers as these buffers."""
    kind = type(result)
    if kind in (tuple, list):
        return kind([wrap_known(item, arguments, trace) for item in result])
    if issubclass(kind, tuple) and hasattr(kind, "_make"):  # the results of numpy.linalg
        return kind._make([wrap_known(item, arguments, trace) for item in result])
    if kind is not np.ndarray:
        return result
    active = ACTIVE.get()
    for argument in arguments:
        array = argument.held_value if type(argument) is Buffer else argument
        if array is result:
            return argument
        if isinstance(array, np.ndarray) and is_in_same_memory(result, array):
            return result
    return as_buffer(active, result) if isinstance(active, Trace) else result


LATE_BOUND["as_buffer"] = as_buffer
