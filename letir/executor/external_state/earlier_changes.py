"""What recordings have changed outside of a function: later recordings may read it."""

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import same_value
from letir.eval.float_warnings import leave_out_of_warnings
from letir.executor.calls import counter_value
from letir.executor.plan_making import Globals, Slots, captured_state, contents_of

_ABSENT = object()
_CALLS_WATCHED = 16  # without a plan; of later ones those with a power of two as number


class Change(NamedTuple):
    """What a recording has changed in an object.

    ``before``: for each changed key, name or place the earlier value, ``_ABSENT`` if there was
    none; for a set its earlier members, and ``_ABSENT``.
    """

    holder: Any
    before: dict | set

    def contents_before(self) -> Any:
        """The contents of the object now, but for what has changed then."""
        now = contents_of(self.holder)
        if isinstance(now, set):
            return {*self.before} - {_ABSENT}
        items: dict = {**items_by_name(now), **dict(self.before)}
        if type(now) not in (list, deque):
            return {key: value for key, value in items.items() if value is not _ABSENT}
        return type(now)([items[i] for i in sorted(items) if items[i] is not _ABSENT])


def call_noting_changes(executor: Any, args: tuple, kwargs: dict) -> Any:
    """The results of the Python function of an executor that has plans.

    The plans are dropped if they may have read what this call has changed: items of the objects
    that recordings have found the function to change. If there are none, the call is watched for
    changes of all objects that the function reaches, but ever fewer calls are.
    """
    earlier, number = executor.earlier_changes, counter_value(executor.missed)
    is_watched = earlier or number < _CALLS_WATCHED or not number & (number - 1)
    if not (is_watched and executor.watches_state):
        return executor.f(*args, **kwargs)
    holders = [change.holder for change in earlier] or captured_state([executor.f])[1]
    holders = [holder for holder in holders if not _is_of_numbers(holder)]
    before = [contents_of(holder) for holder in holders]
    try:
        return executor.f(*args, **kwargs)
    finally:
        new = new_changes(earlier, holders, before, [contents_of(holder) for holder in holders])
        if new:
            executor.earlier_changes = [*earlier, *new]
            executor.cache.clear()


def _is_of_numbers(holder: Any) -> bool:
    """Whether an object is an array of numbers, whose elements are not among the changes."""
    return issubclass(type(holder), np.ndarray) and not holder.dtype.hasobject


def items_by_name(contents: Any) -> dict:
    """The contents of a variable, a namespace, an object, a dict or a list, by name or position."""
    if type(contents) in (list, deque):
        return dict(enumerate(contents))
    return contents if isinstance(contents, dict) else {}


def new_changes(earlier: list[Change], holders: list, before: list, now: list) -> list[Change]:
    """The changes that are not among the ``earlier`` ones.

    Keys that are not strings, added to a dict, do not count: such a dict is a cache.
    """
    known = {(_identity(change.holder), key) for change in earlier for key in change.before}
    changed_before = {_identity(change.holder) for change in earlier}
    result = []
    for holder, old, new in zip(holders, before, now, strict=True):
        place = _identity(holder)
        if isinstance(new, set) or (type(new) in (list, deque) and len(new) != len(old)):
            changed = {} if place in changed_before else _differences(old, new)
        else:
            pairs = _differences(old, new).items()
            changed = {key: value for key, value in pairs if (place, key) not in known}
        if changed:
            result.append(Change(holder, changed))
    return result


def are_changed_again(earlier: list[Change], holders: list, before: list, now: list) -> bool:
    """Whether items that are among the ``earlier`` changes have other values again.

    A function that sets ``self.last_shape = x.shape`` does, and its plans do not set it.
    """
    known = {(_identity(change.holder), key) for change in earlier for key in change.before}
    return any(
        (_identity(holder), key) in known
        for holder, old, new in zip(holders, before, now, strict=True)
        if not isinstance(new, set)
        for key in _differences(old, new)
    )


def _differences(old: Any, new: Any) -> Any:
    """The changed keys, names or places with the earlier values; of a set all earlier members.

    Empty if nothing differs.
    """
    if isinstance(new, set):
        return {*old, _ABSENT} if new != old else set()
    names_only = isinstance(new, dict)
    items, others = items_by_name(old), items_by_name(new)
    result = {key: value for key, value in items.items() if key not in others}
    for key, value in others.items():
        earlier = items.get(key, _ABSENT)
        is_of_cache = earlier is _ABSENT and names_only and type(key) is not str
        if not (is_of_cache or same_value(value, earlier)):
            result[key] = earlier
    return result


def _identity(holder: Any) -> int:
    """The identity of the object whose contents a holder shows."""
    if type(holder) is Globals:
        return id(holder.space)
    return id(holder.value) if type(holder) is Slots else id(holder)


leave_out_of_warnings(call_noting_changes)
LATE_BOUND["call_noting_changes"] = call_noting_changes
