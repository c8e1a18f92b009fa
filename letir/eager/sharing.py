"""Changes in place: Variables whose arrays share memory, and what a write does to their origins.

A write gives the Variable a new origin, and those that share its memory too: the Variable of which
it is a view, and other plain views ``x[i]`` of that. Every origin whose value was in that memory is
noted as changed, also where its Variable is gone: a step may have kept the array [E1].
"""

import weakref

import numpy as np
from attrs import define, field

from letir.eager.modes import RECORDS
from letir.errors import TraceError
from letir.tracing.places import at_user, user_place


class Refs(list):
    """Weak references; those that died are dropped when there are 1, 2, 4, 8 ... of them."""

    def add(self, item) -> None:
        """Add a reference to ``item``."""
        if not len(self) & (len(self) - 1):
            self[:] = [ref for ref in self if ref() is not None]
        self.append(weakref.ref(item))

    def alive(self) -> list:
        """The items that are there still."""
        return [item for ref in self if (item := ref()) is not None]


@define(eq=False)
class Shared:
    """Of a Variable with views: these, and the origins of all values in its memory."""

    views: Refs = field(factory=Refs)
    origins: Refs = field(factory=Refs)


@define(eq=False)
class View:
    """Of a Variable that shares the memory of ``base``: at which index, None if at no plain one.

    ``detached``: a write into it is not recorded for the base.
    """

    base: object
    part: tuple | None
    detached: bool = False


def add_view(view, operand, part: tuple | None, detached: bool = False) -> None:
    """Remember that ``view`` may share memory with ``operand``."""
    base = root(operand)
    if base is not operand:
        part = None
    if base.sharing is None:
        base.sharing = Shared()
        base.sharing.origins.add(base.arg)
    base.sharing.views.add(view)
    base.sharing.origins.add(view.arg)
    view.sharing = View(base, part, detached)


def root(variable):
    """The Variable in whose memory this one is: itself, or that of which it is a view."""
    sharing = variable.sharing
    return sharing.base if type(sharing) is View else variable


def may_share(array, other) -> bool:
    """Whether a result may lie in the memory of an operand."""
    owner = getattr(array, "base", None)  # a Python number has none
    if array is other or (owner is other and owner is not None):
        return True
    return owner is not None and bool(np.may_share_memory(array, other))


def write(variable, new) -> None:
    """Write ``new``, a Variable of the same type, into ``variable`` and the history of both."""
    base = root(variable)
    is_view = base is not variable and not variable.sharing.detached
    recorded = RECORDS.get() and (
        new.requires_grad or variable.requires_grad or (is_view and base.requires_grad)
    )
    whole = None
    if recorded:
        refuse(variable, base, is_view)
        whole = base.at[variable.sharing.part[0]].set(new) if is_view else None
    variable.array[...] = new.array
    note_change(variable, base)
    if recorded:
        take_origin(variable, new, base)
        if whole is not None:
            take_origin(base, whole, base)
        if not (variable is not base and variable.sharing.detached):
            for view in other_views(variable, base):
                take_origin(view, base[view.sharing.part[0]], base)


def other_views(variable, base) -> list:
    """The views of ``base`` that are in use, but for ``variable``."""
    views = [] if base.sharing is None else base.sharing.views.alive()
    return [view for view in views if view is not variable and not view.sharing.detached]


def note_change(variable, base) -> None:
    """Note the change at every origin whose value may be in the memory."""
    source, _ = user_place(2)
    origins = {variable.arg, base.arg}
    if base.sharing is not None:
        origins.update(base.sharing.origins.alive())
    for origin in origins:
        origin.note_change(source)


def take_origin(variable, new, base) -> None:
    """Let ``variable`` come from where ``new`` came from."""
    variable.arg = new.arg
    if base.sharing is not None:
        base.sharing.origins.add(new.arg)


def refuse(variable, base, is_view: bool) -> None:
    """Raise TraceError where a write cannot be recorded."""
    for changed in (variable, base) if is_view else (variable,):
        if changed.is_leaf and changed.requires_grad:
            what = "a leaf that requires grad" if changed is variable else "a view of such a leaf"
            raise TraceError(
                f"{what} cannot be changed in place: its gradient would be lost{at_user()}\n"
                "  write x = x + y, which makes a new Variable; to set its value: with no_grad()"
            )
    if is_view and variable.sharing.part is None:
        raise TraceError(
            f"a view that is no plain x[i] cannot be changed in place{at_user()}\n"
            "  copy it first, y = x.T.copy(), or write into the whole: x[i] = v"
        )
    if any(view.sharing.part is None for view in other_views(variable, base)):
        raise TraceError(
            f"{variable.type}, of which a view that is no plain x[i] is in use, cannot be changed "
            f"in place{at_user()}\n  copy the view, y = x.T.copy(), or make a new array: x + v"
        )
