"""In-place writes: the new value of the base of a view, and refreshing views of it.

Read ``write_into_view``, then ``refresh_view``; the chain from a view to its base is in ``views``.
"""

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.errors import TraceError
from letir.eval.evaluator import compute
from letir.ops.indexing.index_expressions import compose_items, item_with_places
from letir.tracing.mutation.memory_order import array_like, fix_order
from letir.tracing.mutation.views import (
    MAX_VIEW_DEPTH,
    READ_ONLY,
    Memory,
    SharedView,
    is_contiguous,
    is_read_only,
    view_base,
    write_through,
)
from letir.tracing.refusals import with_hint
from letir.tracing.source_locations import at_user, user_place
from letir.tracing.trace_state import ABSENT

if TYPE_CHECKING:
    from letir.tracing.tracer import Tracer

_COPY = Attrs(order="K")
_ONLY_ITS_VIEW = 2  # the reference count of a parent held only by its view (and by the call)


def whole_place(target: "Tracer", item: Any) -> tuple:
    """(x, item) such that writing ``x[item]`` writes ``target[item]``; x is as far up as possible.

    So ``x[i][j] = v`` is one update, not an update of a row and then of a matrix.
    """
    # composing a mask needs the number of its elements, which would record a guard
    if _has_traced_value(item):
        return target, item
    arrays, place = item_with_places(item)
    if arrays:
        return target, item
    while (
        type(target.sharing) is SharedView and getattr(target.sharing.op, "role", None) == "index"
    ):
        above = target.sharing
        composed = compose_items(above.parent.shape, above.attrs["item"], place)
        if composed is None:
            break
        target, place = above.parent, composed
    entries = item if isinstance(item, tuple) else (item,)
    if any(e is ... for e in entries) and type(place) is tuple and set(map(type, place)) == {int}:
        place = (*place, ...)  # a 0-d view, into which NumPy also writes arrays of one element
    return target, place


def is_own_item(new: "Tracer", target: "Tracer", item: Any) -> bool:
    """Whether ``new`` is the view ``target[item]``: the end of ``x[item] += y``."""
    view = new.sharing
    if type(view) is not SharedView or view.parent is not target or view.op.role != "index":
        return False
    if _has_traced_value(item):
        return False
    arrays, place = item_with_places(item)
    return not arrays and view.attrs["item"] == place


def is_same_slice(new: "Tracer", part: "Tracer") -> bool:
    """Whether two views are the same slice of one array: the end of ``x[i : i + 2] += y``."""
    first, second = new.sharing, part.sharing
    if (
        type(first) is not SharedView
        or type(second) is not SharedView
        or first.parent is not second.parent
    ):
        return False
    if first.op is not second.op or first.attrs != second.attrs:
        return False
    starts = [[getattr(x, "arg", x) for x in view.extra] for view in (first, second)]
    return starts[0] == starts[1]


def _has_traced_value(item) -> bool:
    """Whether an index is a traced value, or contains one."""
    return any(isinstance(e, Value) for e in (item if isinstance(item, tuple) else (item,)))


def write_into_view(view: "Tracer", new: "Tracer") -> tuple:
    """(base, its new value) after ``new`` is written into ``view``."""
    _detach_view(view)
    memory = view_base(view).sharing
    if memory is not None and memory.doubts:
        _settle_reshapes(view, memory)
    while type(view.sharing) is SharedView:
        parent, sharing = view.sharing.parent, view.sharing
        new = write_through(parent, new, sharing)
        view = parent
    return view, new


def _detach_view(view) -> None:
    """Detach a view from a parent that nothing else refers to, as in ``y = (x * 2).T``."""
    top = view
    while type(top.sharing) is SharedView and type(top.sharing.parent.sharing) is SharedView:
        top = top.sharing.parent
    if type(top.sharing) is not SharedView or top.sharing.op is None:
        return
    if is_read_only(top.sharing.op):
        return
    sharing, memory = top.sharing, top.sharing.parent.sharing
    if memory.reason is not None or sharing.parent.is_argument():
        return
    if sys.getrefcount(sharing.parent) > _ONLY_ITS_VIEW:
        return
    memory.fresh = [ref for ref in memory.fresh if ref() is not top]
    memory.doubts = [(ref, local) for ref, local in memory.doubts if ref() is not top]
    top.arg  # noqa: B018  reads a stale view again while its parent exists
    memory.fresh = [ref for ref in memory.fresh if ref() is not top]
    memory.origin, top.sharing = top.arg, memory


def forget_views(memory: Memory, absent: Any) -> None:
    """Make all views stale: they are read again at their next use."""
    fresh, memory.fresh = memory.fresh, []
    memory.has_stale = memory.has_stale or bool(fresh)
    for ref in fresh:
        view = ref()
        if view is not None and type(view) is not type(view).stale:
            view.held_value = absent  # the array may go
            view.__class__ = type(view).stale


def refresh_view(stale: "Tracer") -> "Tracer":
    """Read a stale view, and the views on its path, again from the base."""
    chain, node = [], stale
    while type(node) is type(node).stale:
        chain.append(node)
        node = node.sharing.parent
    memory = view_base(node).sharing
    for view in reversed(chain):
        sharing, trace = view.sharing, view.emitter
        view.__class__ = type(view).fresh
        if not trace.is_open:
            continue  # the next use of the view raises EscapedTracerError
        memory.add(view)
        parent, trace.source = sharing.parent, user_place(4)[0]
        operands = (parent, *sharing.extra)
        args = tuple([trace.enter(operand) for operand in operands])
        binders = trace.emit(sharing.op, args, sharing.attrs)
        view.arg, view.held_value = binders[0], trace.value_of(sharing.op, operands, sharing.attrs)
    return stale


def why_unwritable(node: "Tracer") -> tuple[str, str] | None:
    """(description, remedy) if a write to the memory of ``node`` cannot be recorded."""
    while type(node.sharing) is SharedView:
        if node.sharing.op is None:
            aval = f"{node.type}, a view of a view of a view (over {MAX_VIEW_DEPTH} of them),"
            return aval, "copy it first: y = y.copy()"
        node = node.sharing.parent
    if node.sharing is None:
        return None
    if node.sharing.reason is not None:
        return node.sharing.reason
    deep = [v for ref in node.sharing.fresh if (v := ref()) is not None and v.sharing.op is None]
    if deep:
        aval = f"{node.type}, of which a view of over {MAX_VIEW_DEPTH} views is in use,"
        return aval, "copy that view first: y = y.copy()"
    return None


def unwritable_error(array_words: str, remedy: str) -> Exception:
    """The error for a write into an array that ``why_unwritable`` describes; NumPy's, if NumPy too
    refuses it.
    """
    if array_words == READ_ONLY[0]:
        return with_hint(ValueError("assignment destination is read-only"), remedy)
    return TraceError(f"{array_words} cannot be changed in place{at_user()}\n  {remedy}")


# ---- reshapes that may be copies ----


def _settle_reshapes(view, memory: Memory) -> None:
    """Decide before a write which reshapes are views; see docs/in_place.md.

    That depends on the memory order of the base, and so of the arguments: a guard records it.
    """
    doubts, memory.doubts = memory.doubts, []
    for ref, local in doubts:
        other = ref()
        if other is None:
            continue
        trace = other.emitter
        if type(other.sharing) is SharedView and other.known_value() is None:
            _decide_reshape(other, trace)
        fix_order(trace, local)


def _decide_reshape(other, trace) -> None:
    """Find out whether a reshape in an abstract trace is a view; if not, detach it."""
    sharing = other.sharing
    base, steps = other, []
    while type(base.sharing) is SharedView:
        steps.append(base.sharing)
        base = base.sharing.parent
    array = array_like(trace, base, base.sharing.origin)
    # traced numbers in indices and slices: the memory order does not depend on their values
    extras = [[x.concrete_value() for x in step.extra] for step in steps[1:]]
    if array is None or any(value is ABSENT for extra in extras for value in extra):
        raise TraceError(
            f"{base.type} or a reshape of it is changed in place. Whether the other one changes "
            f"too depends on NumPy's memory order, which is not known{at_user()}\n"
            "  copy what you reshape, x.copy().reshape(...), or trace with concrete arrays"
        )
    for step, extra in zip(reversed(steps[1:]), reversed(extras), strict=True):
        array = compute(step.op, (array, *extra), step.attrs)
    if not _is_view_of(array, sharing):
        _separate_copy(other, view_base(other).sharing)


def _is_view_of(array, sharing: SharedView) -> bool:
    """Whether NumPy's reshape or ravel of an array is a view."""
    if sharing.is_ravel or sharing.op.view_needs == "contiguous":
        return is_contiguous(array, sharing.attrs["order"])
    try:
        np.reshape(array, sharing.attrs["shape"], order=sharing.attrs["order"], copy=False)
    except ValueError:
        return False
    return True


def _separate_copy(other, memory: Memory) -> None:
    """Give separate memory to a reshape that turned out to be a copy, and to its views."""
    # the program copies too, else it could make a view of an argument that is written to
    (other.arg,) = other.emitter.emit(PRIMITIVES["copy"], (other.arg,), _COPY)
    other.sharing = own = Memory(other.arg)
    views, memory.fresh = memory.fresh, []
    for ref in views:
        view = ref()
        if view is not None and view is not other:
            (own if view_base(view) is other else memory).fresh.append(ref)
