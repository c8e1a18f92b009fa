"""The memory layout of traced arrays: strides, flags, as_strided, and assignment to ``shape``.

The results are valid for arguments in this memory order, which a guard fixes (``memory_order``).
"""

import gc
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.primitive import PRIMITIVES
from letir.ast.symbolic_sizes import is_static_shape
from letir.errors import TraceError, mark_unrecorded_code
from letir.ops.shape.shape_and_creation import as_size
from letir.tracing.mutation.memory_order import array_like, fix_order
from letir.tracing.mutation.views import READ_ONLY, Memory, SharedView, view_base
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import at_user
from letir.tracing.tracer import Tracer

_FLAGS = {  # of numpy.ndarray.flags, with the keys of its items
    "c_contiguous": ("C", "C_CONTIGUOUS", "CONTIGUOUS"),
    "contiguous": (),
    "f_contiguous": ("F", "F_CONTIGUOUS", "FORTRAN"),
    "fortran": (),
    "owndata": ("O", "OWNDATA"),
    "writeable": ("W", "WRITEABLE"),
    "aligned": ("A", "ALIGNED"),
    "writebackifcopy": ("X", "WRITEBACKIFCOPY"),
    "fnc": ("FNC",),
    "forc": ("FORC",),
    "behaved": ("B", "BEHAVED"),
    "carray": ("CA", "CARRAY"),
    "farray": ("FA", "FARRAY"),
}
_NAME_OF_FLAG = {key: name for name, keys in _FLAGS.items() for key in keys}


def layout_of(a: Any) -> np.ndarray:
    """An array of one element in memory with the shape and strides of the traced array ``a``."""
    trace, value = a.emitter, a.known_value() if isinstance(a, Tracer) else None
    value = a.concrete_value() if value is None else value  # a copy, if it is a buffer's
    if not isinstance(value, np.ndarray):
        has_layout = hasattr(trace, "orders") and is_static_shape(a.shape)
        value = array_like(trace, a, a.arg) if has_layout and a.shape else np.zeros((), a.dtype)
        if not has_layout or value is None:
            raise TraceError(
                f"the memory layout of {a.type} is not known while it is recorded{at_user()}\n"
                "  trace with concrete arrays, or compute with the elements"
            )
    if hasattr(trace, "orders"):  # a Variable is not an argument
        fix_order(trace, a.arg)
    return value


class Flags:
    """The flags of a traced array, like ``numpy.ndarray.flags``."""

    __slots__ = ("_array", "_flags")

    def __init__(self, array: Any):
        self._array, self._flags = array, layout_of(array).flags

    def __getitem__(self, key: str) -> bool:
        if key not in _NAME_OF_FLAG:
            raise KeyError("Unknown flag")
        return getattr(self, _NAME_OF_FLAG[key])

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, _NAME_OF_FLAG.get(key, key), value)

    def __getattr__(self, name: str) -> bool:
        if name not in _FLAGS:
            raise AttributeError(f"numpy.ndarray.flags has no attribute {name!r}")
        return getattr(self._flags, name)

    @property
    def owndata(self) -> bool:
        """Whether the array is not a view."""
        return type(getattr(self._array, "sharing", None)) is not SharedView

    @property
    def writeable(self) -> bool:
        """Whether the array may be changed in place."""
        base = view_base(self._array)
        if base.sharing is not None and base.sharing.reason is not None:
            return False
        return self._flags.writeable or not base.is_argument()

    @writeable.setter
    def writeable(self, value: Any) -> None:
        a = self._array
        if type(a.sharing) is SharedView:
            error = TraceError(
                f"flags.writeable of a view, {a.type}, cannot be set in a recording{at_user()}\n"
                "  leave it out, or copy the view first"
            )
            raise note_refusal(mark_unrecorded_code(error))
        if a.sharing is None:
            a.sharing = Memory(a.arg)
        a.sharing.reason = None if value else READ_ONLY


def set_shape(a: Any, shape: Any) -> None:
    """Set the shape of the array itself, without a copy, as ``a.shape = shape`` does."""
    if a.is_scalar():
        raise AttributeError(
            f"attribute 'shape' of {a.dtype.type.__name__!r} objects is not writable"
        )
    if a.is_argument():
        raise TraceError(
            f"the shape of an argument, {a.type}, cannot be changed in place: the caller would see "
            f"it{at_user()}\n  write x = x.reshape(...), which is another array"
        )
    shape = tuple(map(as_size, shape)) if isinstance(shape, tuple | list) else (as_size(shape),)
    arg = a.arg  # read again first, if it is stale
    old = type(a)(a.emitter, arg, a.held_value)
    old.sharing = a.sharing
    _let_views_refer(a, old)
    new = PRIMITIVES["reshape"](old, shape)
    if type(new.sharing) is not SharedView:
        _let_views_refer(old, a)
        raise AttributeError(
            "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with "
            f"the desired shape.{at_user()}"
        )
    a.arg, a.held_value, a.sharing = new.arg, new.held_value, new.sharing
    memory = view_base(old).sharing
    memory.add(a)
    if type(old.sharing) is SharedView:
        memory.add(old)  # will be read again before ``a``


def resize(a: Any, shape: Sequence[int]) -> bool:
    """Whether an array of one axis without views has been given another number of elements: its
    first elements, or all of them and zeros.
    """
    memory = a.sharing
    is_own = memory is None or (type(memory) is Memory and memory.reason is None)
    if not is_own or a.ndim != 1 or a.is_argument() or any(_views_of(a, memory)):
        return False
    zeros = np.zeros(max(0, math.prod(shape) - a.size), a.dtype)
    new = np.concatenate([a[: math.prod(shape)], zeros]).reshape(shape).copy()
    a.sharing = None
    a.become(new)
    return True


def _views_of(a: Any, memory: Memory | None) -> Iterator[SharedView]:
    """What ties the views of ``a`` to it."""
    if type(memory) is not Memory:
        return
    # stale views are in no list; searching all objects is slow, but such programs are rare
    referrers = gc.get_referrers(a) if memory.has_stale else [ref() for ref in memory.fresh]
    for holder in referrers:
        view = holder if type(holder) is SharedView else getattr(holder, "sharing", None)
        if type(view) is SharedView and view.parent is a:
            yield view


def _let_views_refer(a: Any, parent: Any) -> None:
    """Make ``parent`` the parent of the views of ``a``."""
    for view in _views_of(a, view_base(parent).sharing):
        view.parent = parent


def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> Any:
    """np.lib.stride_tricks.as_strided of a traced array: a view of the owner of its memory."""
    old = layout_of(x)
    shape = x.shape if shape is None else tuple(map(as_size, np.atleast_1d(shape)))
    strides = old.strides if strides is None else tuple(map(as_size, strides))
    base, start = _base_in_a_row(x, old)
    if start is None or any(step % x.itemsize for step in strides):
        error = TraceError(
            f"as_strided of {x.type}, whose elements are not contiguous, is not recorded"
            f"{at_user()}\n  copy it first, x = x.copy(), and take the strides of the copy"
        )
        raise note_refusal(mark_unrecorded_code(error))
    steps = tuple([step // x.itemsize for step in strides])
    return PRIMITIVES["as_strided"](base, shape, steps, start)


def _base_in_a_row(x, old: np.ndarray) -> tuple[Any, int | None]:
    """A contiguous array, and the position of the first element of ``x`` in it.

    It is the owner of the memory, if that is known, because a view may reach beyond ``x``.
    """
    base = view_base(x)
    if base is not x and base.dtype == x.dtype:  # not the real part of complex numbers
        above, value = layout_of(base), x.concrete_value()
        shares_memory = isinstance(value, np.ndarray) and np.may_share_memory(value, above)
        if shares_memory and (above.flags.c_contiguous or above.flags.f_contiguous):
            offset = value.ctypes.data - above.ctypes.data
            return (base if above.flags.c_contiguous else base.T), offset // x.itemsize
    if old.flags.c_contiguous:
        return x, 0
    return (x.T, 0) if old.flags.f_contiguous else (x, None)


LATE_BOUND["as_strided"] = as_strided
LATE_BOUND["layout_of"] = layout_of
LATE_BOUND["flags_of"] = Flags
LATE_BOUND["set_shape"] = set_shape
LATE_BOUND["resize"] = resize
