"""Views: traced values that share memory, and the effect of a write on them.

A value of a program never changes, but a traced *name* does: after ``y[0] = 1`` it refers to
another value. A view stores its parent and the operation that made it. A write (``writes``) goes up
this chain, where the ``write_through`` of each record gives the new value of the parent, until the
base has a new value. All views of the base are then stale, and are read from it again when they are
used (``_Stale`` in ``tracer``), so that unused views cost nothing.
"""

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field

from letir.ast.attrs import Attrs
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.types import ArrayType
from letir.errors import TraceError
from letir.eval.evaluator import compute
from letir.ops.indexing.index_expressions import compose_items, item_with_places
from letir.tracing.source_locations import at_user

if TYPE_CHECKING:
    from letir.tracing.tracer import Tracer

MAX_VIEW_DEPTH = 100  # nested views: a longer chain of objects could not be freed on a small stack
MAX_INDEX_CHAIN = 20  # longer chains of indices are composed into one


@define(eq=False)
class Memory:
    """Data of a traced value with views: fresh views, and reshapes that may be views or copies.

    ``origin``: the first local of the base, which determines its memory order. ``reason``: why it
    cannot be changed, if it cannot. ``has_stale``: whether some views may be stale.
    """

    origin: object
    fresh: list = field(factory=list)  # weak references
    doubts: list = field(factory=list)  # (weak reference to the reshape, local of the base)
    reason: tuple[str, str] | None = None
    has_stale: bool = False

    def add(self, view: "Tracer") -> None:
        """Add a fresh view; dead references are dropped whenever the length is a power of two."""
        count = len(self.fresh)
        if count > 8 and not count & (count - 1):
            self.fresh = [ref for ref in self.fresh if ref() is not None]
        self.fresh.append(weakref.ref(view))


READ_ONLY = ("an array with flags.writeable = False", "copy it")  # description and remedy


@define(eq=False)
class SharedView:
    """Data of a traced value that shares the memory of ``parent``: the operation of the view.

    ``op`` is None for a view nested too deeply, which cannot be read again. ``is_ravel``: NumPy
    gives a view only of contiguous arrays.
    """

    parent: "Tracer"
    op: Primitive | None
    extra: tuple
    attrs: Attrs
    depth: int
    is_ravel: bool = False


# ---- writes into a view as writes into its parent ----


def write_through(parent: "Tracer", new: Any, view: SharedView) -> Any:
    """The value of ``parent`` after ``new`` was written into its view."""
    order, rule = view.attrs.get("order", "C"), view.op.write_through
    if order not in ("C", "F"):
        raise TraceError(
            f"an array that was reshaped with order={order!r} cannot be changed in place{at_user()}"
            "\n  pass order='C' or order='F', or copy it first"
        )
    if is_read_only(view.op):
        raise ValueError(f"assignment destination is read-only: {view.op.name}{at_user()}")
    if callable(rule):
        return rule(parent, new, *view.extra, **view.attrs)
    return _write_by_place(parent, new, view)


def is_read_only(op: Primitive) -> bool:
    """Whether NumPy gives a read-only view here."""
    return op.write_through == "read_only"


def _write_by_place(parent, new, view: SharedView):
    """The parent after writing each element back to the place from which the view took it.

    For operations that only move elements.
    """
    places = np.arange(parent.size).reshape(parent.shape)
    part = compute(view.op, (places, *view.extra), view.attrs)
    flat = PRIMITIVES["reshape"](parent, -1)
    arrays, item = item_with_places(part)
    return PRIMITIVES["reshape"](PRIMITIVES["index_set"](flat, item, new, arrays), parent)


# ---- results that are views ----


def note_view(result: Any, op: Primitive, operands: tuple, attrs: Attrs, place: int) -> None:
    """Remember that ``result``, the one at ``place``, may share memory with the first operand."""
    parent = operands[0]
    if type(parent) is not type(result) or parent.type is None or result.type is None:
        return  # parameters of a pass's pattern may have any type; nothing writes to them
    if op.write_through == "own":
        if not result.shape:
            result.sharing = Memory(result.arg)  # certainly not a scalar, also in abstract traces
        return
    if op.part is not None:
        op, part_attrs = op.part(parent.type, place, **attrs)
        attrs = Attrs(part_attrs)
    is_view = _gives_view(result, parent, op, attrs, operands[1:])
    certain = _is_certain(op, parent.shape, result.shape)
    if is_view is False:
        # a scalar has no memory to share, and the imaginary part of a real array is made of zeros
        is_zeros = op.is_zero is not None and op.is_zero(parent.type) and not parent.is_scalar()
        if is_read_only(op) or is_zeros:
            result.sharing = Memory(result.arg, reason=READ_ONLY)
        elif not certain:
            _note_doubtful_reshape(result, parent)
        elif op.role == "index" and not result.shape and ... in index_entries(attrs["item"]):
            result.sharing = Memory(result.arg)  # x[...] of a scalar is an array of its own
        return
    depth = 1 if type(parent.sharing) is not SharedView else parent.sharing.depth + 1
    view = SharedView(parent, op, operands[1:], attrs, depth)
    result.sharing = shorten_views(view) if depth > MAX_INDEX_CHAIN else view
    base = view_base(result)
    if base.sharing is None:
        base.sharing = Memory(base.arg)
    base.sharing.add(result)
    if not certain:
        base.sharing.doubts.append((weakref.ref(result), base.sharing.origin))


def is_read_number(op: Primitive, attrs: Attrs, aval: ArrayType | None) -> bool:
    """Whether an operation reads one element as a scalar, which shares no memory: ``x[0]``."""
    if op.role != "index" or aval is None or aval.shape:
        return False
    return ... not in index_entries(attrs["item"])  # x[0, ...] is an array


def _gives_view(result, parent, op: Primitive, attrs: Attrs, others: tuple) -> bool | None:
    """Whether NumPy returns a view here; None if that depends on the memory order."""
    value = result.known_value()
    if value is not None:  # NumPy's result shows it
        array = parent.known_value()
        return array is not None and is_in_same_memory(value, array)
    if parent.is_scalar():
        return False
    if op.role == "index":
        is_basic = all(map(_is_traced_integer, others))
        return is_basic and bool(result.shape or ... in index_entries(attrs["item"]))
    if op.views is not None:
        return op.views(parent.type, *others, **attrs)
    return True if _is_certain(op, parent.shape, result.shape) else None


def _is_traced_integer(place) -> bool:
    """Whether an index entry is a traced integer, which selects like a Python int.

    A 0-d integer array would copy.
    """
    return hasattr(place, "is_scalar") and place.is_scalar() and place.dtype.kind in "iu"


def is_in_same_memory(value: Any, array: Any) -> bool:
    """Whether a result is the operand or a view of it; scalars share no memory."""
    owner = getattr(value, "base", None)
    if value is array or owner is None:
        is_array = hasattr(value, "flags") and not isinstance(value, np.generic)
        return value is array and is_array
    if owner is array or owner is getattr(array, "base", array):
        return True
    both = isinstance(value, np.ndarray) and isinstance(array, np.ndarray)
    return both and bool(np.may_share_memory(value, array))


def index_entries(item: Any) -> tuple:
    """The entries of an index."""
    return item if isinstance(item, tuple) else (item,)


def _is_certain(op: Primitive, old: tuple, new: tuple) -> bool:
    """Whether an operation that gives views does so for arrays in any memory order."""
    return op.view_needs is None or (op.view_needs == "strided" and _is_sure(old, new))


def _is_sure(old: tuple, new: tuple) -> bool:
    """Whether a reshape only adds or removes axes of length 1, which never copies."""
    return [n for n in old if n != 1] == [n for n in new if n != 1]


def view_base(node: Any) -> Any:
    """The traced value that owns the memory of this one."""
    while type(node.sharing) is SharedView:
        node = node.sharing.parent
    return node


def shorten_views(view: SharedView) -> SharedView:
    """A deeply nested view with its indices composed, if all are indices."""
    above = view.parent.sharing
    if view.op.role == "index" == getattr(above.op, "role", None):
        item = compose_items(above.parent.shape, above.attrs["item"], view.attrs["item"])
        if item is not None:
            return SharedView(above.parent, view.op, (), Attrs(item=item), above.depth)
    if view.depth > MAX_VIEW_DEPTH:
        return SharedView(view_base(view.parent), None, (), view.attrs, above.depth)
    return view


def mark_as_array(value: Any) -> Any:
    """``value``, marked as an array that ``+=`` changes in place, even if 0-d and abstract."""
    if not value.shape and getattr(value, "sharing", value) is None:
        value.sharing = Memory(value.arg)
    return value


def _note_doubtful_reshape(result, parent) -> None:
    """Remember on both sides that a reshape copied, but may be a view for other arguments."""
    base = view_base(parent)
    if base.sharing is None:
        base.sharing = Memory(base.arg)
    origin = base.sharing.origin
    base.sharing.doubts.append((weakref.ref(result), origin))
    result.sharing = Memory(result.arg, doubts=[(weakref.ref(base), origin)])


def ravel_in_order(a: Any, order: str = "C") -> Any:
    """np.ravel: a view if the array is contiguous in this order, else a copy.

    In an abstract trace it is recorded as ``ravel``; in a concrete one as a reshape, with a copy if
    NumPy copied.
    """
    is_traced = hasattr(type(a), "known_value")  # a Variable has its value without this attribute
    is_open = is_traced and a.type is not None and a.ndim and a.known_value() is None
    if is_open and order in ("C", "F"):
        result = PRIMITIVES["ravel"](a, order)
        if type(result.sharing) is SharedView:
            result.sharing.is_ravel = True
        return result
    result = PRIMITIVES["reshape"](a, -1, order)
    if type(getattr(result, "sharing", None)) is not SharedView or result.emitter is not a.emitter:
        return result
    result.sharing.is_ravel = True
    memory = view_base(result).sharing
    memory.doubts.append((weakref.ref(result), memory.origin))
    array = a.known_value()
    if array is None or is_contiguous(array, order):
        return result
    result = PRIMITIVES["copy"](result)
    _note_doubtful_reshape(result, a)
    return result


def is_contiguous(array: Any, order: str) -> bool:
    """Whether the elements of an array are contiguous in this order."""
    return array.flags.f_contiguous if order == "F" else array.flags.c_contiguous
