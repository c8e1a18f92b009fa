"""Functions that change a list, dict or object among their arguments.

The program of ``trace`` returns the new items and attributes as further results, which its calls
store in the caller's containers, see ``letir.ast.tree_nodes.stored_results``. ``jit`` runs such a
function as Python. Transforms change nothing.
"""

import copy
import functools
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast import LATE_BOUND
from letir.ast.builder import LetBuilder, Value
from letir.ast.pytrees import items_of
from letir.ast.tree_nodes.stored_results import (
    Place,
    SameAs,
    Stores,
    containers_in,
    has_items_as_attributes,
    is_changeable,
    own_attributes,
    parse_place,
    parts_of,
    store_part,
)
from letir.ast.types import PYTHON_NUMBERS
from letir.errors import DTypeError, TraceError
from letir.eval.argument_containers import ArgumentContainers
from letir.eval.array_modules import is_array
from letir.tracing.refusals import MustRunAsPython
from letir.tracing.trace_state import LIFT_STATES, Trace

_PLAIN = frozenset([np.ndarray, float, int, complex, bool, str, type(None), np.float64])
_STORABLE = (Value, *PYTHON_NUMBERS, np.bool_, str, type(None))


@define(eq=False)
class NotedParts:
    """The place, items and attributes of a list, dict or object before a call of a function.

    ``items``: a list, a dict or a frozenset, None for an object.
    """

    value: Any
    root: str
    steps: tuple
    items: Any
    attributes: dict

    def changes(self) -> list[tuple[Place, Any]]:
        """(place, new value) of each part that changed since then."""
        if isinstance(self.value, dict):
            found = self.changed_keys()
        elif isinstance(self.items, list):
            found = self.changed_items()
        elif isinstance(self.value, set):
            found = self.changed_elements()
        else:
            found = []
        before, now = self.attributes, _attributes_of(self.value)
        for name in [*before, *[name for name in now if name not in before]]:
            if name not in now:
                found.append((self.place(True, name, "delete"), None))
            elif name not in before or now[name] is not before[name]:
                found.append((self.place(True, name), now[name]))
        return found

    def changed_items(self) -> list[tuple[Place, Any]]:
        """The changes of a list: its new items, or all from the first one that differs."""
        before, now = self.items, list(self.value)
        differs = [i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a is not b]
        if len(before) == len(now):
            return [(self.place(False, i), now[i]) for i in differs]
        start = differs[0] if differs else min(len(before), len(now))
        return [(self.place(False, start, "extend"), now[start:])]

    def changed_elements(self) -> list[tuple[Place, Any]]:
        """All elements of a set, if they changed."""
        now = frozenset(map(_known_key, self.value))
        if now == self.items:
            return []
        return [(self.place(False, 0, "extend"), sorted(now, key=repr))]

    def changed_keys(self) -> list[tuple[Place, Any]]:
        """The changes of a dict. Keys in another order are deleted and set again."""
        before, now = self.items, _items_of(self.value)
        gone = [key for key in before if key not in now]
        kept = [key for key in before if key in now]
        order = list(now)
        # ``in`` finds nan, which differs from itself, if it is the same object
        moved = next((i for i, key in enumerate(kept) if key not in order[i : i + 1]), len(kept))
        set_again = set(kept[moved:])
        changed = [k for k in order if k in set_again or k not in before or now[k] is not before[k]]
        deleted = [(self.place(False, key, "delete"), None) for key in [*gone, *kept[moved:]]]
        return [*deleted, *[(self.place(False, key), now[key]) for key in changed]]

    def part(self, is_name: bool, key: Any, default: Any) -> Any:
        """The item or attribute of this name or key before the call."""
        if is_name or isinstance(self.items, dict):
            return (self.attributes if is_name else self.items).get(key, default)
        is_there = isinstance(self.items, list) and key < len(self.items)
        return self.items[key] if is_there else default

    def restore(self) -> None:
        """Give the container its former items and attributes."""
        if isinstance(self.value, dict):
            for key in _items_of(self.value):
                store_part(self.value, self.place(False, key, "delete"), None)
            for key, part in self.items.items():
                store_part(self.value, self.place(False, key), part)
        elif self.items is not None:
            store_part(self.value, self.place(False, 0, "extend"), self.items)
        for name in _attributes_of(self.value).keys() - self.attributes.keys():
            store_part(self.value, self.place(True, name, "delete"), None)
        for name, part in self.attributes.items():
            store_part(self.value, self.place(True, name), part)

    def place(self, is_name: bool, key: Any, action: str = "set") -> Place:
        """The place of a part."""
        return Place(self.root, (*self.steps, (is_name, key)), action)


def _items_of(value: Any) -> Any:
    """A copy of the items of a container, None for an object."""
    if isinstance(value, dict):
        return {_known_key(key): part for key, part in items_of(value).items()}
    if isinstance(value, set):
        return frozenset(value)
    return list(value) if isinstance(value, list | deque) else None


def _known_key(key: Any) -> Any:
    """A key of a dict without traced numbers in it, which were guarded when they were hashed."""
    if type(key) is tuple:
        return tuple(map(_known_key, key))
    return LATE_BOUND["known_key"](key) if isinstance(key, Value) else key


def _attributes_of(value: Any) -> dict:
    """The attributes of an object, also of one that is a dict; {} for other containers."""
    kind = type(value)
    is_plain = kind.__module__ in ("builtins", "collections")
    return {} if is_plain else own_attributes(value)


class PartsSnapshot:
    """The containers in ``value`` and their parts now. ``changes`` finds what changed since.

    ``name``: the text of ``value`` in places. ``leaves``: values that are not entered.
    """

    def __init__(self, value: Any, name: str, leaves: Iterable = ()) -> None:
        self.value, self.name = value, name
        self.containers: dict[int, NotedParts] = {}
        for steps, each in containers_in(value, [id(leaf) for leaf in leaves]):
            parts = _items_of(each), _attributes_of(each)
            self.containers.setdefault(id(each), NotedParts(each, name, steps, *parts))

    def changes(self) -> list[tuple[Place, Any]]:
        """(place, new value) of all changes."""
        return [change for each in self.containers.values() for change in each.changes()]


def argument_snapshot(call: tuple[tuple, dict], leaves: list) -> PartsSnapshot:
    """The containers among the arguments of a recording, before it runs."""
    args, kwargs = call
    leaves = [leaf for leaf in leaves if type(leaf) is not set]
    result = PartsSnapshot(args, "args", leaves)
    named = PartsSnapshot(kwargs, "kwargs", leaves).containers
    # the function gets a dict of its own for its keyword arguments
    result.containers |= {key: part for key, part in named.items() if part.steps}
    return result


@define(eq=False)
class _StoredValues:
    """The values of a ``Stores``, in which containers that exist already are ``SameAs``."""

    trace: Trace
    containers: dict[int, NotedParts]
    new: dict[int, str] = field(factory=dict)  # id of a new container -> its place
    kept: list = field(factory=list)  # so that ids stay valid

    def reduced(self, value: Any, place: str, target: str) -> Any:
        """``value``, which is at ``place`` of the Stores and will be stored at ``target``."""
        is_outer = isinstance(value, Value) and isinstance(value.emitter, LetBuilder)
        if is_outer and value.emitter is not self.trace:
            raise TraceError(_not_possible(target or "an argument"))
        known = self.containers.get(id(value))
        if known is not None:
            return SameAs(str(Place(known.root, known.steps, "set")))
        is_leaf = isinstance(value, Value | set) or is_array(value)
        if is_leaf or not _has_parts(value):
            if not target or isinstance(value, _STORABLE) or is_array(value):
                return value  # other results are refused where they are returned
            return self.part_of_arguments(value, target)
        if id(value) in self.new:
            return SameAs(self.new[id(value)])
        if is_changeable(value):
            self.new[id(value)] = place
            self.kept.append(value)
        parts = []
        for (is_name, name_or_key), part in parts_of(value):
            key = _known_key(name_or_key)
            step = f".{key}" if is_name else f"[{key!r}]"
            parts.append(
                ((is_name, key), self.reduced(part, place + step, target and target + step))
            )
        return _with_parts(value, parts)

    def part_of_arguments(self, value: Any, target: str) -> SameAs:
        """The reference to a part of the arguments, such as a function, put at ``target``."""
        for each in self.containers.values():
            items = (
                each.items if isinstance(each.items, dict) else dict(enumerate(each.items or ()))
            )
            for is_name, parts in ((False, items), (True, each.attributes)):
                for key, part in parts.items():
                    if part is value:
                        return SameAs(str(each.place(is_name, key)))
        raise TraceError(_not_storable(value, target))


def _has_parts(value: Any) -> bool:
    """Whether a value is a container, if only an empty one."""
    return isinstance(value, tuple) or is_changeable(value)


def _with_parts(value: Any, parts: list) -> Any:
    """A copy of a container with these parts, made without its ``__init__``."""
    if isinstance(value, tuple):
        items = [part for _, part in parts]
        return value._make(items) if hasattr(value, "_make") else tuple(items)
    result = _empty_like(value)
    if isinstance(value, list | deque):
        result.extend([part for _, part in parts])
        return result
    for step, part in parts:
        store_part(result, Place("stores", (step,), "set"), part)
    return result


def _empty_like(value: Any) -> Any:
    """A container of the same class without items, or an object without attributes."""
    if isinstance(value, dict) and type(value).__module__ not in ("builtins", "collections"):
        made = dict.__new__(type(value))
        if has_items_as_attributes(value):
            object.__setattr__(made, "__dict__", made)
        return made
    if not isinstance(value, list | deque | dict):
        return object.__new__(type(value))
    result = copy.copy(value)  # a defaultdict keeps its factory, a deque its length
    result.clear()
    return result


def _not_storable(value: Any, target: str) -> str:
    """The message for a value that a program cannot store."""
    return (
        f"the function stores {value!r:.60}, of type {type(value).__name__}, in an argument, at "
        f"{target}: a replay stores arrays, numbers, strings and containers of them\n"
        "  store it before the call, or use letir.jit, which runs the function as Python"
    )


def with_stores(
    new: Trace, snapshot: PartsSnapshot | None, result: Any, given: tuple | None
) -> Any:
    """The result of a recording, with what the function has stored in its arguments.

    ``given``: the caller's (args, kwargs), in which the program will store these values; () if it
    cannot: MustRunAsPython in ``jit``, also if the function has read the text of an error, else
    TraceError.
    """
    changes = [] if snapshot is None else snapshot.changes()
    if new.draws == LIFT_STATES and (changes or new.reads_errors):
        raise MustRunAsPython
    if not changes or snapshot is None:
        return result
    if not given or new.lifted:
        raise TraceError(_not_possible(str(changes[0][0])))
    texts = [_checked_text(place) for place, _ in changes]
    try:
        ArgumentContainers.from_call([place for place, _ in changes], *given)
    except DTypeError as error:
        raise TraceError(str(error)) from None
    values = _StoredValues(new, snapshot.containers)
    stored = [values.reduced(result, "stores[0]", "")]
    for i, (place, value) in enumerate(changes):
        stored.append(values.reduced(value, f"stores[{i + 1}]", str(place)))
    return Stores(stored[0], tuple(stored[1:]), tuple(texts))


def refusing_changes_at_two_places(f: Callable, args: tuple, kwargs: dict) -> Callable:
    """``f`` for a transform that records it with these arguments.

    If a list or dict is at two places of them, which are two values while ``f`` is recorded, the
    function raises TraceError if it changes the list or dict. Else ``f`` itself.
    """
    if not _has_repeated([*args, *kwargs.values()]):
        return f

    @functools.wraps(f)
    def checked(*own_args: Any, **own_kwargs: Any) -> Any:
        snapshot = argument_snapshot((own_args, own_kwargs), [])
        result = f(*own_args, **own_kwargs)
        try:
            ArgumentContainers.from_call([place for place, _ in snapshot.changes()], args, kwargs)
        except DTypeError as error:
            raise TraceError(str(error)) from None
        return result

    return checked


def _has_repeated(values: list) -> bool:
    """Whether a list, dict or object is among ``values``, or in them, twice."""
    seen, todo = set[int](), values
    while todo:
        value = todo.pop()
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind is not tuple:
            if id(value) in seen and is_changeable(value):
                return True
            seen.add(id(value))
        if kind in (list, tuple):
            todo.extend(value)
        elif kind is dict:
            todo.extend(value.values())
        else:
            todo.extend([part for _, part in parts_of(value)])
    return False


def _not_possible(target: str) -> str:
    """The message for a change that the program of an inner trace, or of ``jit_model``, loses."""
    return (
        f"the function changes {target}, a part of its arguments: this program, made by an inner "
        "trace or by jit_model, cannot store the new value\n"
        "  return the new value, and store it after the call"
    )


def _checked_text(place: Place) -> str:
    """The text of a place. Raises TraceError if it would not be read again as the same place."""
    try:
        if parse_place(str(place)) == place:
            return str(place)
    except DTypeError:
        pass
    raise TraceError(
        f"the function changes the item {place.steps[-1][1]!r:.60} of a dict among its arguments, "
        "whose key a program cannot name\n  take strings, numbers or tuples of them as keys"
    )


LATE_BOUND.update(
    argument_snapshot=argument_snapshot,
    refusing_changes_at_two_places=refusing_changes_at_two_places,
    with_stores=with_stores,
)
