"""Objects of users' classes among the arguments and results of ``trace``, as nested values.

An object is a node of a pytree whose children are its attributes, and its items if it is a dict. A
recorded function gets new objects of the same classes, whose attributes are traced; a program that
returns an object makes a new one. optree knows classes, not objects, so each user's class gets a
node class: ``flatten`` of other callers still sees the object as a leaf.
"""

import array
import contextlib
import copy
import copyreg
import functools
from collections import ChainMap, Counter, deque
from collections.abc import Callable, Collection, Iterator
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import optree
from attrs import define, field

from letir.ast import LATE_BOUND
from letir.ast.pytrees import NAMESPACE, flatten, is_generator
from letir.ast.tree_nodes.stored_results import (
    SameAs,
    has_items_as_attributes,
    own_attributes,
    place_of_argument,
)
from letir.errors import DTypeError
from letir.eval.arguments import StaticLeaf, is_static
from letir.eval.array_modules import is_array, type_of
from letir.tracing.callers import is_users_class
from letir.tracing.trace_state import DRAW_AT_ONCE, REFUSE_DRAWS

_class_of: Callable[[Any], Any] = type  # a key of caches, for mypy


# classes of the standard library whose values are passed to a function that is differentiated
_CONTAINERS = frozenset([set, Counter, ChainMap, array.array, bytearray])


class _NodeClass(type):
    """The metaclass of the nodes that stand for objects of one class, ``original``."""

    original: type
    has_shared_dict: bool


@functools.cache
def _node_class(kind: Any, has_shared_dict: bool = False) -> Any:
    """The class of nodes that stand for objects of class ``kind``; it has the same name.

    ``has_shared_dict``: whether the items of these objects are their attributes, too.
    """
    names: dict[str, Any] = {"original": kind, "__slots__": ("instance",)}
    names["has_shared_dict"] = has_shared_dict
    names |= {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    result = _NodeClass(kind.__name__, (), names)

    def children(node):
        instance = node.instance
        items = dict(dict.items(instance)) if isinstance(instance, dict) else {}
        attributes = own_attributes(instance)
        keys, names = tuple(items), tuple(attributes)
        return [*items.values(), *attributes.values()], (keys, names), (*keys, *names)

    def rebuild(keys_and_names, values):
        keys, names = keys_and_names
        values = list(values)
        instance = (dict if issubclass(kind, dict) else object).__new__(kind)
        if keys:
            dict.update(instance, zip(keys, values[: len(keys)], strict=True))
        if has_shared_dict:
            object.__setattr__(instance, "__dict__", instance)
        for name, value in zip(names, values[len(keys) :], strict=True):
            object.__setattr__(instance, name, value)  # a frozen class refuses setattr
        return instance

    register: Any = optree.register_pytree_node
    register(result, children, rebuild, namespace=NAMESPACE)
    return result


_pickled: Any = lambda cls: (_node_class, (cls.original, cls.has_shared_dict))  # noqa: E731
copyreg.pickle(_NodeClass, _pickled)


@functools.lru_cache(256)
def _is_of_objects(kind: Any) -> bool:
    """Whether all of the state of an object of this class is in attributes."""
    slots = [name for cls in kind.__mro__ for name in vars(cls).get("__slots__", ())]
    is_private = any(name.startswith("__") and not name.endswith("__") for name in slots)
    is_one = any(type(vars(cls).get("__slots__")) is str for cls in kind.__mro__)
    if is_private or is_one or hasattr(kind, "__del__") or hasattr(kind, "__dlpack__"):
        return False
    classes = [cls for cls in kind.__mro__[:-1] if cls is not dict]
    return bool(classes) and all(cls is Counter or is_users_class(cls) for cls in classes)


def flatten_objects(tree: Any) -> tuple[list, optree.PyTreeSpec]:
    """The leaves of ``tree``, those of the objects in it included, and its structure.

    ``tree`` is usually the arguments of a call. An object that is there twice is ``SameAs`` its
    first place. One with a function that uses the object itself stays a leaf.
    """
    return objects_flattened(*flatten(tree))


def objects_flattened(
    leaves: list,
    spec: optree.PyTreeSpec,
    part: type | None = None,
    is_for_one_call: bool = False,
) -> tuple[list, optree.PyTreeSpec]:
    """``flatten_objects`` of the tree with these leaves.

    With ``part``, for results: objects without a leaf of this class, and those that are there
    twice, stay leaves, too. ``is_for_one_call``: the random generators in objects are static
    arguments, and so are copies of other values without derivatives.
    """
    flat = flatten_marking_generators if is_for_one_call else flatten
    try:
        result, tree = _Seen(flat).flattened(leaves, spec, () if part is None else None, part)
    except RecursionError:
        raise DTypeError(
            "objects among the arguments refer to each other in a chain that is longer than "
            "Python's recursion limit allows\n"
            "  keep them in a list, and refer to neighbours by their positions in the list"
        ) from None
    return [*map(marked_copy, result)] if is_for_one_call else result, tree


def argument_leaves(
    leaves: list, spec: optree.PyTreeSpec, draws: str
) -> tuple[list, optree.PyTreeSpec]:
    """``objects_flattened`` of the arguments of a recording, see ``record`` for ``draws``.

    Sets of numbers and strings are static arguments of programs, which may be called again.
    """
    is_own = draws == DRAW_AT_ONCE
    leaves, spec = objects_flattened(leaves, spec, is_for_one_call=is_own)
    if draws == REFUSE_DRAWS:
        leaves = [StaticLeaf(set(x)) if type(x) is set and _is_plain(x) else x for x in leaves]
    return leaves, spec


def _is_plain(value: Any) -> bool:
    """Whether a value is a number, a string, None, or a set or tuple of them."""
    if type(value) in (set, tuple, frozenset):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, complex, str)


def marked_copy(leaf: Any) -> Any:
    """A copy of a set, an array of strings or another object that is neither an array of numbers
    nor static, as a static argument. Other values unchanged.
    """
    kind = type(leaf)
    is_array = kind is np.ndarray and leaf.dtype.kind in "SUTMmV"
    is_object = (kind in _CONTAINERS or _is_object(leaf)) and not hasattr(kind, "__next__")
    if not (is_array or is_object):
        return leaf
    try:
        return StaticLeaf(copy.deepcopy(leaf))
    except Exception:  # it holds a lock, a file ...
        return leaf


def flatten_marking_generators(tree: Any) -> tuple[list, optree.PyTreeSpec]:
    """The leaves and the structure of ``tree``, with random generators as static arguments.

    A function that is recorded for one call draws from them while it is recorded.
    """
    leaves, spec = flatten(tree, is_generator)
    return [StaticLeaf(leaf) if is_generator(leaf) else leaf for leaf in leaves], spec


@define(eq=False)
class _Seen:
    """The objects that are taken apart, by id, with the steps to the first place of each."""

    flat: Callable
    places: dict[int, tuple | None] = field(factory=dict)

    def flattened(
        self,
        leaves: list,
        spec: optree.PyTreeSpec,
        prefix: tuple | None,
        part: type | None = None,
    ) -> tuple[list, optree.PyTreeSpec]:
        """``objects_flattened`` of the tree with these leaves, which is at ``prefix``."""
        if not any(map(_is_object, leaves)):
            return leaves, spec
        paths: list[tuple | None] = [None] * len(leaves)
        if prefix is not None:
            paths = [(*prefix, *map(_step_of, accessor)) for accessor in spec.accessors()]
        parts = [self.flat_object(*pair, part) for pair in zip(leaves, paths, strict=True)]
        specs = iter([of_leaf for _, of_leaf in parts])
        whole = spec.transform(None, lambda _: next(specs))
        return [leaf for of_leaf, _ in parts for leaf in of_leaf], whole

    def flat_object(
        self, leaf: Any, path: tuple | None, part: type | None
    ) -> tuple[list, optree.PyTreeSpec]:
        """The leaves and the structure of an object at ``path``, or of a leaf."""
        place = self.places.get(id(leaf))
        if place is not None:
            return flatten(SameAs(place_of_argument(place)))
        if _is_object(leaf) and id(leaf) not in self.places:
            self.places[id(leaf)] = path
            node = _node_class(_class_of(leaf), has_items_as_attributes(leaf))()
            node.instance = leaf
            own, own_spec = self.flat(node)
            leaves, spec = self.flattened(own, own_spec, path)
            is_wanted = part is None or any(issubclass(type(value), part) for value in leaves)
            if is_wanted and not any(_uses(value, self.places) for value in leaves):
                return leaves, spec
        return [leaf], optree.treespec_leaf(namespace=NAMESPACE)


def _step_of(entry: Any) -> tuple[bool, Any]:
    """One step of a path, as in a ``Place``: (is an attribute, name or key)."""
    kind = getattr(entry.type, "original", entry.type)  # of the node of an object
    is_item = issubclass(kind, tuple | list | dict | deque)
    return not is_item, entry.entry


def refuse_objects(leaves: list) -> None:
    """Raise DTypeError if one of the leaves is an object of a user's class."""
    for leaf in filter(_is_object, leaves):
        type_of(leaf)


def _is_object(leaf: Any) -> bool:
    if issubclass(type(leaf), dict) and not all(type(k) is str and k.isidentifier() for k in leaf):
        return False  # the text of a program has the keys as names
    return _is_of_objects(_class_of(leaf)) and not is_static(leaf) and not is_array(leaf)


def _uses(value: Any, objects: Collection[int]) -> bool:
    """Whether ``value`` is one of the objects with these ids, or a function that uses one."""
    return id(value) in objects or any(id(part) in objects for part in _parts_of_function(value))


def _parts_of_function(value: Any) -> Iterator:
    """What a function uses: its object, closed-over variables, bound arguments and defaults."""
    if type(value) is MethodType:
        yield value.__self__
    elif type(value) is functools.partial:
        yield from (value.func, *value.args, *value.keywords.values())
        yield from _parts_of_function(value.func)
    elif type(value) is FunctionType:
        yield from value.__defaults__ or ()
        for cell in value.__closure__ or ():
            with contextlib.suppress(ValueError):  # a variable without a value
                yield cell.cell_contents


LATE_BOUND.update(
    argument_leaves=argument_leaves,
    flatten_marking_generators=flatten_marking_generators,
    flatten_objects=flatten_objects,
    marked_copy=marked_copy,
    objects_flattened=objects_flattened,
    refuse_objects=refuse_objects,
)
