"""The arrays in the attributes of an object, and copies of the object with other arrays.

They turn a model into a function of its parameters and buffers.
"""

import copy
import functools
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen

from letir.ast.primitive import Primitive
from letir.ast.terms import Lambda
from letir.eval.array_modules import ARRAY_CLASSES, is_array

# not traversed, because every imported module can be reached from them
_NO_CONTAINERS = (type, types.ModuleType, types.FunctionType, Lambda, Primitive)
# classes of values that are neither arrays nor have parts, as most attributes are
_PLAIN = frozenset([bool, int, float, complex, str, bytes, type(None), types.FunctionType])
_NO_PARTS = _PLAIN | ARRAY_CLASSES


@frozen(eq=False)
class AttributeValue:
    """The value of an attribute or item ``key`` of an object.

    ``path``: the Python expression for it; ``owner``: the path of the object that holds it.
    """

    path: str
    owner: str
    key: object
    value: object


def put_part(owner: Any, key: Any, value: Any) -> None:
    """Set an attribute, or an existing or new item of a dict or list."""
    if isinstance(owner, dict):
        owner[key] = value
    elif isinstance(owner, list):
        owner[key : key + 1] = [value]  # a slice, so that it can also append
    else:
        # this works for frozen classes too, and runs no setter
        object.__setattr__(owner, key, value)


def holds_numbers(value: Any) -> bool:
    """Whether ``value`` is an array, or behaves as one in expressions."""
    kind = type(value)
    return kind not in _PLAIN and (is_array(value) or hasattr(kind, "__letir_run__"))


def _is_jitted(value: Any) -> bool:
    """Whether ``value`` is a jitted function."""
    return hasattr(type(value), "__letir_transformed__")


def _direct_parts(value) -> Iterator[tuple[object, object, str]]:
    """(key, part, its Python suffix) for each part of a container or object; nothing for others."""
    # isinstance raises ReferenceError for a proxy whose object is gone
    is_proxy = type(value) in weakref.ProxyTypes
    if is_proxy or holds_numbers(value) or isinstance(value, _NO_CONTAINERS):
        return
    if isinstance(value, dict):
        yield from ((key, part, f"[{key!r}]") for key, part in value.items())
    elif isinstance(value, list | tuple):
        yield from ((i, part, f"[{i}]") for i, part in enumerate(value))
    elif isinstance(value, types.MethodType):
        yield "__self__", value.__self__, ".__self__"
    elif _is_jitted(value):
        if value.__letir_held__ is not None:
            yield "held", value.__letir_held__, ".held"
    elif isinstance(value, functools.partial):
        yield from ((n, getattr(value, n), f".{n}") for n in ("func", "args", "keywords"))
    else:
        yield from ((name, part, f".{name}") for name, part in _instance_attributes(value))


def _instance_attributes(value) -> Iterator[tuple[str, object]]:
    """(name, value) of each instance attribute of an object."""
    yield from getattr(value, "__dict__", {}).items()
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)


def places_by_path(root: Any, name: str) -> dict[str, AttributeValue]:
    """All parts of ``root``, at any depth, by path from ``name``; shared parts appear once."""
    result: dict[str, AttributeValue] = {}
    visited, todo = {id(root)}, [(name, root)]  # objects may hold each other in a circle
    while todo:
        owner, container = todo.pop()
        for key, part, text in _direct_parts(container):
            if not has_no_parts(part):
                if id(part) in visited:
                    continue
                visited.add(id(part))
                todo.append((owner + text, part))
            result[owner + text] = AttributeValue(owner + text, owner, key, part)
    return result


def has_no_parts(value: Any) -> bool:
    """Whether ``value`` is an array or has no parts."""
    return type(value) in _NO_PARTS or next(_direct_parts(value), None) is None


def mirror_value(value: Any, swap: Callable, memo: dict) -> Any:
    """A deep copy of ``value`` with ``swap(array)`` in place of every array.

    Sharing and cycles are preserved. ``memo``: the copies made so far, by id.
    """
    if id(value) in memo:
        return memo[id(value)]
    if holds_numbers(value):
        out = swap(value)
    elif has_no_parts(value):
        is_copied = isinstance(value, dict | list) or _may_get_attributes(value)
        out = _copy_shallow(value) if is_copied else value
    elif isinstance(value, tuple):
        items = [mirror_value(part, swap, memo) for part in value]
        out = value._make(items) if hasattr(value, "_make") else type(value)(items)
    elif isinstance(value, types.MethodType):
        out = types.MethodType(value.__func__, mirror_value(value.__self__, swap, memo))
    elif _is_jitted(value):
        out = value.__letir_with_held__(mirror_value(value.__letir_held__, swap, memo))
    elif isinstance(value, functools.partial):
        parts = [mirror_value(part, swap, memo) for _, part, _ in _direct_parts(value)]
        out = functools.partial(parts[0], *parts[1], **parts[2])
    else:
        out = memo[id(value)] = _copy_shallow(value)  # before its parts: they may refer back to it
        if out is not value:
            for key, part, _ in list(_direct_parts(value)):
                put_part(out, key, mirror_value(part, swap, memo))
    memo[id(value)] = out
    return out


def _may_get_attributes(value: Any) -> bool:
    """Whether ``value`` is an object without attributes that can be given some."""
    return type(getattr(value, "__dict__", None)) is dict and not isinstance(value, _NO_CONTAINERS)


def _copy_shallow(value):
    """A shallow copy; the value itself if it cannot be copied, for example an open file."""
    try:
        return copy.copy(value)
    except TypeError:
        return value
