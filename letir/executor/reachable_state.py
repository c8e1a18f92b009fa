"""Objects that a function can reach and that hold state: variables, attributes, lists, generators.

``captured_state`` finds them, ``contents_of`` and ``is_unchanged`` tell whether they have changed.
"""

import sys
from collections import deque
from contextlib import suppress
from types import BuiltinMethodType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.executor.argument_spec import names_in_code
from letir.tracing.callers import is_user_module

_MOST_OBJECTS = 1_000  # objects that are searched for iterators
_BYTES_EACH = 1 << 20  # of larger arrays a thousandth of the elements is compared
_HOLDERS = (list, dict, set, deque, np.ndarray)
_GENERATORS = ("Generator", "RandomState", "Random")  # classes of random generators
_UNSET = object()
_PLAIN = frozenset([int, float, complex, bool, str, bytes, type(None)])


class Globals(NamedTuple):
    """Globals of a module that a function names."""

    space: dict
    names: tuple[str, ...]


class Slots(NamedTuple):
    """Attributes that an object keeps in slots."""

    value: Any
    names: tuple[str, ...]


def _attributes_of_object(value: Any, holders: list) -> list:
    """The class and the attributes of a user's object, whose slots are added to ``holders``."""
    kind = type(value)
    slots = tuple([name for base in kind.__mro__ for name in _slots_of(base)])
    if slots:
        holders.append(Slots(value, slots))
    return [getattr(value, "__dict__", None), kind, *[getattr(value, n, None) for n in slots]]


def captured_state(roots: list, most: int = _MOST_OBJECTS) -> tuple[list, list, bool]:
    """(iterators, objects that hold values, whether these are all) that functions can reach.

    The search ends after ``most`` objects.
    """
    iterators: list = []
    holders: list = []
    seen, todo = set(), list(roots)
    for value in todo:  # each value appends what it refers to
        if len(todo) > most:
            break
        if isinstance(value, Value):  # of an earlier recording, such as an array in a cache
            value = getattr(value, "held_value", None)  # noqa: PLW2901
        kind = type(value)
        if kind in _PLAIN or id(value) in seen:
            continue
        seen.add(id(value))
        if issubclass(kind, _HOLDERS):  # not isinstance: traced values claim to be arrays
            holders.append(value)
            if not issubclass(kind, np.ndarray):
                todo += value.values() if isinstance(value, dict) else value
        if isinstance(value, tuple):
            todo += value
        elif kind is FunctionType:
            todo += _values_of_function(value, holders)
        elif kind is MethodType:
            todo += [value.__func__, value.__self__]
        elif kind is BuiltinMethodType:  # such as rng.normal
            todo.append(value.__self__)
        elif _is_generator(kind):
            holders.append(value)
        elif hasattr(kind, "__next__") or kind.__name__ == "SeedSequence":
            iterators.append(value)
        elif isinstance(value, type) or kind is ModuleType:
            if kind is not ModuleType and _is_of_user(value):
                holders.append(value)
                todo += vars(value).values()
        elif _is_of_user(kind):
            todo += _attributes_of_object(value, holders)
        elif callable(value) and kind.__module__.startswith(("functools", "letir.")):
            # what a partial, a cached or a compiled function calls
            names = ("func", "args", "keywords", "__wrapped__")
            todo += [getattr(value, name, None) for name in names]
    return iterators, holders, len(todo) <= most


def _slots_of(kind: type) -> tuple[str, ...]:
    """The attributes for which a class has slots."""
    found = vars(kind).get("__slots__", ())
    return (found,) if type(found) is str else tuple(found)


def _is_generator(kind: type) -> bool:
    """Whether a class is a random generator of NumPy or of Python."""
    return kind.__name__ in _GENERATORS and kind.__module__.startswith(("numpy.", "random"))


def contents_of(holder: Any) -> Any:
    """What an object holds now, in a form that later changes do not reach."""
    kind = type(holder)
    if kind is CellType:
        try:
            return [holder.cell_contents]
        except ValueError:  # a variable that is not assigned yet
            return []
    if issubclass(kind, np.ndarray):
        holder = np.asarray(holder)  # also of a subclass, such as np.memmap
        part = holder if holder.nbytes <= _BYTES_EACH else holder.ravel()[:: holder.size // 1000]
        return None if holder.dtype.hasobject else part.tobytes()
    if kind is Globals:
        space = holder.space
        return {name: space[name] for name in holder.names if name in space}
    if _is_generator(kind):
        return LATE_BOUND["generator_position"](holder)
    if kind is Slots:
        found = {name: getattr(holder.value, name, _UNSET) for name in holder.names}
        return {name: value for name, value in found.items() if value is not _UNSET}
    if isinstance(holder, type):
        return dict(vars(holder))
    bases: Any = _HOLDERS
    return next(base(holder) for base in bases if isinstance(holder, base))


def is_unchanged(holder: Any, before: Any) -> bool:
    """Whether an object holds what it held before, down to the identity of arrays and objects.

    Random generators count as unchanged: other code refuses draws that advance them.
    """
    if _is_generator(type(holder)):
        return True
    now = contents_of(holder)
    if type(now) is dict:
        return now.keys() == before.keys() and all(
            map(_is_same, now.values(), map(before.get, now))
        )
    if type(now) in (list, deque):
        return len(now) == len(before) and all(map(_is_same, now, before))
    return now == before


def _is_same(new: Any, old: Any) -> bool:
    return new is old or (type(new) is type(old) and type(new) in _PLAIN and new == old)


def _is_of_user(kind: type) -> bool:
    """Whether a class is defined in a user's module."""
    module = sys.modules.get(kind.__module__)
    return module is not None and is_user_module(vars(module))


def _values_of_function(function: FunctionType, holders: list) -> list:
    """The values of a function's closure, defaults, attributes, and the globals that it names."""
    found = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a variable that is not assigned yet
            found.append(cell.cell_contents)
        holders.append(cell)
    space = function.__globals__
    if is_user_module(space):
        names = names_in_code(function.__code__)
        spaces = [space]
        for inner in spaces:  # a module of the user's appends its own globals: config.n += 1
            known = tuple([name for name in names if name in inner])
            values = [inner[name] for name in known]
            holders.append(Globals(inner, known))
            found += values
            for value in values:
                if type(value) is ModuleType and is_user_module(vars(value)):
                    spaces += [] if any(vars(value) is s for s in spaces) else [vars(value)]
        found.append(vars(function))
    return found
