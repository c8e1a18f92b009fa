"""Methods and callable objects that store traced values in their object while they are recorded.

The object is not an argument, so that a program cannot change it. A transform evaluates its
function once: the object gets the values that the function computed, as in a plain call. A program
of ``trace`` would not change the object again: an error says how to make it an argument, and the
object gets its former parts.
"""

from collections import deque
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.tree_nodes.stored_results import (
    Place,
    containers_in,
    is_changeable,
    parts_of,
    store_part,
)
from letir.ast.types import PYTHON_NUMBERS
from letir.errors import TraceError
from letir.eval.array_modules import is_array
from letir.tracing.callers import is_users_class
from letir.tracing.checks.container_arguments import PartsSnapshot
from letir.tracing.trace_state import ABSENT, DRAW_AT_ONCE, LIFT_STATES, Trace

_MAX_PARTS = 10_000  # of a larger object, no changes are noticed


def settling_owner(call: Callable, f: Callable, new: Trace) -> Callable:
    """``call(f, new, args, kwargs)``, which leaves no traced values in the object of ``f``."""
    owner: Any = f.__self__ if type(f) is MethodType else f
    if new.parent is not None or new.draws == LIFT_STATES or not is_users_class(type(owner)):
        return call
    if not (is_changeable(owner) and _is_small(owner)):
        return call

    def settled(f: Callable, new: Trace, args: tuple, kwargs: dict) -> Any:
        snapshot = PartsSnapshot(owner, type(owner).__name__)
        try:
            result = call(f, new, args, kwargs)
        except BaseException:
            _restore(snapshot)
            raise
        if new.draws == DRAW_AT_ONCE:
            _store_concrete(owner, new)
        else:
            _refuse_replaced(f, snapshot, new)
        return result

    return settled


def _is_small(owner: Any) -> bool:
    """Whether an object has few enough parts to look at them in each recording."""
    count = 0
    for _, container in containers_in(owner):  # which enters it afterwards
        count += len(container) if isinstance(container, list | dict | deque | set) else 1
        if count > _MAX_PARTS:
            return False
    return True


def _is_traced(value: Any, new: Trace) -> bool:
    """Whether ``value`` is, or holds, a traced value of ``new``."""
    entered, todo = set[int](), [value]
    while todo:
        part = todo.pop()
        if isinstance(part, Value):
            if part.emitter is new:
                return True
        elif id(part) not in entered:
            entered.add(id(part))
            todo += [inner for _, inner in parts_of(part)]
    return False


def _restore(snapshot: PartsSnapshot) -> None:
    """Give the containers that have changed their former parts."""
    for container in snapshot.containers.values():
        if container.changes():
            container.restore()


def _store_concrete(owner: Any, new: Trace) -> None:
    """Replace the traced values of ``new`` in an object by the values that they have."""
    for _, container in list(containers_in(owner)):
        for step, part in parts_of(container):
            value = _concrete(part, new)
            if value is not part:
                store_part(container, Place("stores", (step,), "set"), value)


def _concrete(value: Any, new: Trace) -> Any:
    """The value of a traced value of ``new`` if it is known, also in a tuple; others unchanged."""
    if type(value) is tuple:
        items = [_concrete(item, new) for item in value]
        return value if all(map(lambda a, b: a is b, items, value)) else tuple(items)
    if not isinstance(value, Value) or value.emitter is not new:
        return value
    known = value.concrete_value()
    if known is ABSENT:
        return value
    return known.copy() if isinstance(known, np.ndarray) else known


def _refuse_replaced(f: Callable, snapshot: PartsSnapshot, new: Trace) -> None:
    """Raise TraceError if an array or a number in the object of ``f`` was replaced."""
    for container in snapshot.containers.values():
        for place, value in container.changes():
            old = container.part(*place.steps[-1], None)
            is_value = is_array(old) or type(old) in PYTHON_NUMBERS
            if is_value and place.action == "set" and _is_traced(value, new):
                _restore(snapshot)
                kind = snapshot.name
                method = f"{kind}.{getattr(f, '__name__', '__call__')}"
                raise TraceError(
                    f"the method changes {place} of its object, which is not an argument: a replay "
                    "would not change it\n"
                    f"  make the object an argument: letir.trace({method}, object, ...)"
                )


LATE_BOUND["settling_owner"] = settling_owner
