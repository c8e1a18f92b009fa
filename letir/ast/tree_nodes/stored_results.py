"""Results that a program stores in containers among its arguments, and their text.

A function may change the lists, dicts and objects that it gets: ``state["t"] += 1``. Its program
returns the new values as further results, and the root of its tree of results is a ``Stores``,
which says where they belong. A call stores them when the program has run, and transforms drop them,
see ``letir.eval.argument_containers``.

A *place* is the text of the assignment's target, such as ``args[0].w``, ``kwargs['s'][2]``, the end
of a list ``args[1][3:]``, or ``del args[0].w``. In a tree, ``same_as('args[0].w')`` stands for a
container that is an argument, or part of one, and ``same_as('stores[0][1]')`` for a new container
that is in the result (0) or in a stored value (1, 2, ...) a first time.
"""

import ast
import functools
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import optree
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.pytrees import NAMESPACE, TREE_TEXTS, is_generator, items_of
from letir.ast.terms import Lambda
from letir.ast.types import PYTHON_NUMBERS
from letir.errors import DTypeError

_MAX_TEXT = 4096  # characters of a place
_ROOTS = ("args", "kwargs", "stores")
_NO_PARTS = (np.ndarray, np.generic, np.dtype, type, str, bytes, *PYTHON_NUMBERS)
_NO_PARTS += (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)


@frozen(eq=False)
class Stores:
    """The result of a call, and the ``values`` that it stores at ``places``."""

    __letir_stores__ = True  # trees are asked for it where this module is not loaded
    result: Any
    values: tuple
    places: tuple[str, ...]

    @staticmethod
    def tree_text(spec: optree.PyTreeSpec, parts: list[str]) -> str:
        """The text of a tree with these parts, in the language of programs."""
        stored = [
            f"{place!r}: {part}" for place, part in zip(spec.entries()[1:], parts[1:], strict=True)
        ]
        return f"stores({parts[0]}, {{{', '.join(stored)}}})"


@frozen(eq=False)
class SameAs:
    """Stands for a container at ``place`` among the arguments, or the stored values, of a call."""

    place: str

    @staticmethod
    def tree_text(spec: optree.PyTreeSpec, parts: list[str]) -> str:
        """The text of a tree of this node, in the language of programs."""
        return f"same_as({spec.unflatten(()).place!r})"


def _register_nodes() -> None:
    """Register ``Stores`` and ``SameAs`` as nodes of trees."""
    register: Any = optree.register_pytree_node
    register(
        Stores,
        lambda node: ([node.result, *node.values], node.places, ("result", *node.places)),
        lambda places, parts: Stores(parts[0], tuple(parts[1:]), places),
        namespace=NAMESPACE,
    )
    register(
        SameAs,
        lambda node: ([], node.place, ()),
        lambda place, _: SameAs(place),
        namespace=NAMESPACE,
    )


_register_nodes()
TREE_TEXTS.update({Stores: Stores.tree_text, SameAs: SameAs.tree_text})


# ---- places ----


@frozen
class Place:
    """A parsed place: the variable ``root``, and steps (is an attribute, name or key) from it.

    ``action``: "set", "delete" or "extend". The last step of "extend" is the index of the first new
    item.
    """

    root: str
    steps: tuple[tuple[bool, Any], ...]
    action: str

    def __str__(self):
        steps = [f".{key}" if is_name else f"[{key!r}]" for is_name, key in self.steps]
        if self.action == "extend":
            steps[-1] = f"[{self.steps[-1][1]}:]"
        return f"{'del ' if self.action == 'delete' else ''}{self.root}{''.join(steps)}"


@functools.lru_cache(1 << 10)
def parse_place(text: str) -> Place:
    """The place with this text. Raises DTypeError if ``str`` of a place would not give the text."""
    try:
        if len(text) <= _MAX_TEXT:
            result = _parsed_place(text)
            if str(result) == text and result.root in _ROOTS and result.steps:
                return result
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
        pass
    raise DTypeError(
        f"{text[:80]!r} does not name a part of the arguments\n"
        "  such parts are written as args[0].w, kwargs['state']['t'], args[1][3:]"
    )


def _parsed_place(text: str) -> Place:
    """The place with this text, if it has one. Raises ValueError or SyntaxError."""
    is_deleted = text.startswith("del ")
    node: Any = ast.parse(text.removeprefix("del "), mode="eval").body
    steps: list[tuple[bool, Any]] = []
    action = "delete" if is_deleted else "set"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and not is_deleted:
        lower: Any = node.slice.lower
        action, node = "extend", node.value
        steps.append((False, ast.literal_eval(lower) if lower is not None else None))
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            if node.attr.startswith("__"):
                raise ValueError(node.attr)
            steps.append((True, node.attr))
        elif isinstance(node, ast.Subscript):
            steps.append((False, ast.literal_eval(node.slice)))
        else:
            raise ValueError(text)
        node = node.value
    hash(tuple(steps))
    return Place(node.id, tuple(reversed(steps)), action)


# ---- parts of containers ----


def _slots(instance: Any) -> list[str]:
    """The names of all slots of an object's class, whether they are set or not."""
    return [
        name
        for cls in type(instance).__mro__
        for name in vars(cls).get("__slots__", ())
        if name not in ("__dict__", "__weakref__")
    ]


def own_attributes(instance: Any) -> dict[str, Any]:
    """The attributes of an object itself, not of its class: those in slots, then the others."""
    in_slots = {n: getattr(instance, n) for n in _slots(instance) if hasattr(instance, n)}
    attributes = getattr(instance, "__dict__", {})
    return in_slots | attributes if type(attributes) is dict else in_slots


def has_items_as_attributes(value: Any) -> bool:
    """Whether a dict of a user's class is its own ``__dict__``: ``self.__dict__ = self``."""
    return isinstance(value, dict) and getattr(value, "__dict__", None) is value


def parts_of(value: Any) -> list[tuple[tuple[bool, Any], Any]]:
    """(step, part) for the items and attributes of a container or an object of a user's class."""
    if type(value) in weakref.ProxyTypes:  # isinstance would ask the object, which may be gone
        return []
    if isinstance(value, list | tuple | deque):
        return [((False, i), part) for i, part in enumerate(value)]
    items: list = []
    if isinstance(value, dict):
        items = [((False, key), part) for key, part in items_of(value).items()]
        if type(value).__module__ in ("builtins", "collections"):
            return items
    elif _is_value(value):
        return items
    return [*items, *[((True, name), part) for name, part in own_attributes(value).items()]]


def _is_value(value: Any) -> bool:
    """Whether an object has no parts that a program stores: a number, an array, a function ..."""
    kind: Any = type(value)
    return isinstance(value, _NO_PARTS) or _is_of_a_library(kind) or is_generator(value)


@functools.lru_cache(256)
def _is_of_a_library(kind: Any) -> bool:
    """Whether the objects of a class are values, not containers: of letir and of NumPy."""
    return hasattr(kind, "__letir_run__") or kind.__module__.partition(".")[0] in ("letir", "numpy")


def is_changeable(value: Any) -> bool:
    """Whether the parts of a value can be replaced, added or removed."""
    return not isinstance(value, tuple) and (
        isinstance(value, list | dict | deque | set)
        or bool(parts_of(value))
        or _is_empty_object(value)
    )


def _is_empty_object(value: Any) -> bool:
    """Whether a value is an object of a user's class without attributes yet."""
    return not _is_value(value) and type(getattr(value, "__dict__", None)) is dict


def containers_in(value: Any, leaves: Iterable[int] = ()) -> Iterator[tuple[tuple, Any]]:
    """(steps, container) for all containers in ``value``, outermost first, each as often as it is
    met. Values whose ids are in ``leaves`` are not entered.
    """
    stops, entered = frozenset(leaves), set[int]()
    todo: list[tuple[tuple, Any]] = [((), value)]
    while todo:
        steps, container = todo.pop()
        if id(container) in stops:
            continue
        if not isinstance(container, tuple):
            if not is_changeable(container):
                continue
            yield steps, container
            if id(container) in entered:
                continue
            entered.add(id(container))
        todo += [((*steps, step), part) for step, part in reversed(parts_of(container))]


def part_at(roots: Mapping[str, Any], place: Place) -> Any:
    """The part at a place. Raises DTypeError if there is none."""
    part = roots[place.root]
    for part in parts_along_path(roots, place, len(place.steps)):  # noqa: B007  the last one
        pass
    return part


def parts_along_path(roots: Mapping[str, Any], place: Place, count: int) -> Iterator[Any]:
    """The parts after step 1, 2 ... ``count`` of a place. Raises DTypeError if one is missing."""
    part = roots[place.root]
    for is_name, key in place.steps[:count]:
        try:
            if is_name:
                part = own_attributes(part)[key]
            elif isinstance(part, dict):
                part = dict.__getitem__(part, key)
            elif isinstance(part, list | tuple | deque):
                part = part[key]
            else:
                raise KeyError(key)
        except (LookupError, TypeError):
            raise DTypeError(
                f"the program stores a result at {place}, but {place.root} has no such part\n"
                "  pass arguments nested as those of the recording, or trace again"
            ) from None
        yield part


def can_store(container: Any, place: Place) -> bool:
    """Whether ``store_part`` can change the part of ``container`` that ``place`` names."""
    is_name, key = place.steps[-1]
    if is_name:
        if place.action == "delete":
            return key in own_attributes(container)
        return type(getattr(container, "__dict__", None)) is dict or key in _slots(container)
    if isinstance(container, dict):
        return place.action == "set" or (place.action == "delete" and key in items_of(container))
    if isinstance(container, set):
        return place.action == "extend" and key == 0
    if type(key) is not int or not isinstance(container, list | deque):
        return False
    length = len(container)
    return 0 <= key <= length if place.action == "extend" else -length <= key < length


def store_part(container: Any, place: Place, value: Any) -> None:
    """Set, delete or extend the part of ``container`` that the last step of ``place`` names.

    Runs no method of a user's class.
    """
    is_name, key = place.steps[-1]
    if is_name:
        if place.action == "delete":
            object.__delattr__(container, key)
        else:
            object.__setattr__(container, key, value)
    elif isinstance(container, dict):
        base: Any = OrderedDict if isinstance(container, OrderedDict) else dict
        if place.action == "delete":
            base.__delitem__(container, key)
        else:
            base.__setitem__(container, key, value)
    elif isinstance(container, set):  # all elements are new
        container.clear()
        container.update(value)
    elif place.action == "extend":
        while len(container) > key:
            container.pop()
        container.extend(value)
    else:
        container[key] = value


def place_of_argument(steps: tuple) -> str:
    """The text of the part of (args, kwargs) at these steps; "stores..." for other trees."""
    roots = {(False, 0): "args", (False, 1): "kwargs"}
    root = roots.get(steps[0]) if steps else None
    return str(Place(root, steps[1:], "set") if root else Place("stores", steps, "set"))


def joined_call(call: tuple[tuple, dict]) -> tuple[tuple, dict]:
    """(args, kwargs) in which each ``SameAs`` is replaced by the container that it stands for."""
    roots: dict[str, Any] = dict(zip(_ROOTS, call, strict=False))
    joined: Any = resolve_parts(call, lambda found: part_at(roots, parse_place(found.place)))
    return joined


def resolve_parts(value: Any, find: Callable[[SameAs], Any]) -> Any:
    """``value`` with ``find(same_as)`` for each ``SameAs`` in it; containers change in place."""
    if type(value) is SameAs:
        return find(value)
    parts = parts_of(value)
    new = [resolve_parts(part, find) for _, part in parts]
    if all(a is b for a, (_, b) in zip(new, parts, strict=True)):
        return value
    if isinstance(value, tuple):
        return value._make(new) if hasattr(value, "_make") else tuple(new)
    for (step, old), part in zip(parts, new, strict=True):
        if part is not old:
            store_part(value, Place("stores", (step,), "set"), part)
    return value


def places_of(fn: Lambda) -> tuple[str, ...]:
    """The places at which a program stores results."""
    if fn.out_tree is None or not fn.out_tree.stores:
        return ()
    return tuple(fn.out_tree.spec.entries()[1:])


LATE_BOUND.update(joined_call=joined_call)
