"""In-place changes of Variables that share memory, and the effect of a write on the history.

A write gives a new grad edge to the Variable and to all Variables that share its memory: the base
of which it is a view, and the other plain views ``x[i]`` of that base. Every edge whose value lay
in that memory is marked as changed, even if its Variable is gone: a node may have saved the array
[semantics.md E1].
"""

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field

from letir.eager.grad_mode import RECORDS, is_grad_enabled
from letir.errors import TraceError
from letir.tracing.source_locations import at_user, user_place
from letir.tracing.tracer import Tracer

if TYPE_CHECKING:
    from letir.eager.op_cache import OpSpecialization
    from letir.eager.variable import Variable


class _Refs(list):
    """Weak references; dead ones are dropped whenever the length reaches a power of two."""

    def add(self, item) -> None:
        """Add a reference to ``item``."""
        if not len(self) & (len(self) - 1):  # a power of 2: amortised constant time per item
            self[:] = [ref for ref in self if ref() is not None]
        self.append(weakref.ref(item))

    def live_items(self) -> list:
        """The items that still exist."""
        return [item for ref in self if (item := ref()) is not None]


@define(eq=False)
class _Shared:
    """Data of a Variable with views: the views, and the edges of all values in its memory."""

    views: _Refs = field(factory=_Refs)
    edges: _Refs = field(factory=_Refs)


@define(eq=False)
class _View:
    """Data of a Variable that shares the memory of ``base``.

    ``path``: the successive indices from the base to it; None if it is not a plain ``x[i]``.
    ``detached``: a write into it is not recorded for the base.
    """

    base: "Variable"
    path: tuple | None
    detached: bool = False


def add_view(
    view: "Variable", operand: "Variable", item: Any = None, detached: bool = False
) -> None:
    """Remember that ``view`` may share memory with ``operand`` (as ``operand[item]`` if given)."""
    base, path = memory_root(operand), _path_of(operand)
    if base.sharing is None:
        base.sharing = _Shared()
        base.sharing.edges.add(base.arg)
    base.sharing.views.add(view)
    base.sharing.edges.add(view.arg)
    if detached:
        path = ()
    else:
        path = None if item is None or path is None else (*path, item)
        detached = operand is not base and operand.sharing.detached
    view.sharing = _View(base, path, detached)


def memory_root(variable: "Variable") -> "Variable":
    """The Variable that owns the memory: the base of a view, else the Variable itself."""
    sharing = variable.sharing
    return sharing.base if type(sharing) is _View else variable


def _path_of(variable) -> tuple | None:
    """The indices from the root to a Variable."""
    sharing = variable.sharing
    return sharing.path if type(sharing) is _View else ()


def is_item(view: "Variable", variable: "Variable", item: Any) -> bool:
    """Whether ``view`` is ``variable[item]`` and shares its memory."""
    path = _path_of(variable)
    return (
        memory_root(view) is memory_root(variable)
        and path is not None
        and _path_of(view) == (*path, item)
    )


def _may_share_result(array: Any, other: Any) -> bool:
    """Whether a result may share memory with an operand."""
    owner = getattr(array, "base", None)  # a Python number has none
    if array is other or (owner is other and owner is not None):
        return True
    return owner is not None and bool(np.may_share_memory(array, other))


def share_with_operand(
    result: "Variable", operands: Sequence[Any], spec: "OpSpecialization"
) -> None:
    """Remember the operand of which ``result`` is a view, if there is one."""
    for operand in operands:
        is_variable = getattr(operand, "__letir_variable__", False)
        if is_variable and _may_share_result(result.array, operand.array):
            # index arrays copy; a write into a plain item x[i] can be recorded for x
            is_plain = spec.op.role == "index" and len(spec.bind.args) == 1
            add_view(result, operand, spec.attrs["item"] if is_plain else None)
            return


def write_variable(variable: "Variable", new: "Variable") -> None:
    """Write ``new``, a Variable of the same type, into ``variable`` and the history of both.

    Raises TraceError if ``new`` is traced: no program records the write.
    """
    if isinstance(new, Tracer):
        raise TraceError(
            f"a traced value cannot be written into a Variable{at_user()}\n"
            "  write x = x + y, or make the Variable an argument of the traced function"
        )
    base = memory_root(variable)
    is_view = base is not variable and not variable.sharing.detached
    recorded = (RECORDS.get() or is_grad_enabled()) and (
        new.requires_grad or variable.requires_grad or (is_view and base.requires_grad)
    )
    whole = None
    if recorded:
        refuse_write(variable, base, is_view)
        # computed before the write: the base with the new part in place, for its history
        whole = _replace_part(base, variable.sharing.path, new) if is_view else None
    variable.array[...] = new.array
    note_change(variable, base)  # at the old edges, before new edges replace them
    if recorded:
        _take_origin(variable, new, base)
        if whole is not None:
            _take_origin(base, whole, base)
        if is_view or base is variable:  # a write into a detached view is not recorded for the base
            for view in _other_views(variable, base):
                _take_origin(view, _part_at(base, view.sharing.path), base)


def _replace_part(whole, path: Sequence, new):
    """``whole`` with the part at ``path`` replaced by ``new``."""
    item, *rest = path
    return whole.at[item].set(_replace_part(whole[item], rest, new) if rest else new)


def _part_at(whole, path: tuple):
    """The part of ``whole`` at ``path``."""
    for item in path:
        whole = whole[item]
    return whole


def _other_views(variable, base) -> list:
    """The existing views of ``base`` other than ``variable`` with the same ``detached`` flag."""
    views = [] if base.sharing is None else base.sharing.views.live_items()
    detached = base is not variable and variable.sharing.detached
    return [v for v in views if v is not variable and v.sharing.detached == detached]


def note_change(variable: "Variable", base: "Variable") -> None:
    """Mark every edge whose value may lie in the memory as changed."""
    source, _ = user_place(2)
    edges = {variable.arg, base.arg}
    if base.sharing is not None:
        # also edges of Variables that no longer exist: nodes save arrays
        edges.update(base.sharing.edges.live_items())
    for edge in edges:
        edge.note_change(source)


def _take_origin(variable, new, base) -> None:
    """Give ``variable`` the grad edge of ``new``."""
    variable.arg = new.arg
    if base.sharing is not None:
        base.sharing.edges.add(new.arg)


def refuse_write(variable: "Variable", base: "Variable", is_view: bool) -> None:
    """Raise TraceError where a write cannot be recorded."""
    for changed in (variable, base) if is_view else (variable,):
        if changed.is_leaf and changed.requires_grad:
            view_of = "" if changed is variable else "a view of "
            raise TraceError(
                f"{view_of}a leaf that requires grad cannot be changed in place: "
                f"its gradient would be lost{at_user()}\n"
                "  write x = x + y, which makes a new Variable, or set the value in a block "
                "`with eager.no_grad():`"
            )
    if _path_of(variable) is None or (not is_view and _path_of(variable)):
        raise TraceError(
            f"a view other than a plain x[i] cannot be changed in place{at_user()}\n"
            "  copy it first, y = x.T.copy(), or write into the whole: x[i] = v"
        )
    others = [_path_of(view) for view in _other_views(variable, base)]
    if any(path is None or (path and not is_view and base is not variable) for path in others):
        raise TraceError(
            f"{variable.type} cannot be changed in place while a view of it other than a plain "
            f"x[i] is in use{at_user()}\n"
            "  copy the view, y = x.T.copy(), or make a new array: x + v"
        )
