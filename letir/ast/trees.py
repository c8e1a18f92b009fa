"""How arguments and results nest: ``Tree``, a pytree without its leaves, and its text.

Pytrees come from optree: tuples, lists, dicts, namedtuples, and attrs classes and dataclasses, which are registered
when they are first seen. Some leaves of arguments are static: part of the tree, not of the data.
"""

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import attrs
import optree
from attrs import field, frozen

from letir.errors import DTypeError

NAMESPACE = "letir"
_registered: dict[str, type] = {}  # classes by the name that texts use


class Leaf:
    """Stands for a leaf when a tree is drawn."""

    def __repr__(self):
        return "*"


LEAF = Leaf()


@frozen
class Static:
    """A static leaf: equal to another if its type and its text are."""

    text: str

    @classmethod
    def of(cls, value) -> "Static":
        """The static leaf of a value."""
        return cls(repr(value) if type(value) in (bool, str, int, float, complex) else f"{type(value).__name__} {value!r}")

    def __repr__(self):
        return f"static({self.text!r})"


def flatten(tree) -> tuple[list, optree.PyTreeSpec]:
    """The leaves of ``tree`` and its structure; None has no leaves."""
    leaves, spec = optree.tree_flatten(tree, namespace=NAMESPACE)
    classes = {type(leaf) for leaf in leaves if is_record(type(leaf))}
    if not classes:
        return leaves, spec
    for cls in classes:
        register_class(cls)
    return flatten(tree)


def is_record(cls: type) -> bool:
    """Whether it is an attrs class or a dataclass of the user's, whose fields are children."""
    known = attrs.has(cls) or dataclasses.is_dataclass(cls)
    return known and not cls.__module__.startswith("letir.") and cls.__qualname__ not in _registered


def field_names(cls: type) -> list[str]:
    """The names of the fields that ``__init__`` takes."""
    if attrs.has(cls):
        return [f.name for f in attrs.fields(cls) if f.init]
    return [f.name for f in dataclasses.fields(cls) if f.init]


def register_class(cls: type) -> None:
    """Make instances of an attrs class or a dataclass nodes of trees, with their fields as children."""
    names = field_names(cls)
    aliases = [f.alias for f in attrs.fields(cls) if f.init] if attrs.has(cls) else names

    def children(instance):
        return [getattr(instance, name) for name in names], None, names

    def rebuild(_, values):
        return cls(**dict(zip(aliases, values, strict=True)))

    optree.register_pytree_node(cls, children, rebuild, namespace=NAMESPACE)
    _registered[cls.__qualname__] = cls


@frozen(eq=False, repr=False)
class Tree:
    """A structure and its static leaves, as (leaf index, ``Static``)."""

    spec: optree.PyTreeSpec
    statics: tuple[tuple[int, Static], ...] = ()
    text: str = field(init=False)

    def __attrs_post_init__(self):
        leaves: list[Any] = [LEAF] * self.spec.num_leaves
        for i, static in self.statics:
            leaves[i] = static
        object.__setattr__(self, "text", drawn(self.spec.unflatten(leaves)))

    @classmethod
    def of(cls, tree) -> "Tree":
        """The tree whose leaves are ``LEAF`` and ``Static``."""
        leaves, spec = flatten(tree)
        return cls(spec, tuple((i, leaf) for i, leaf in enumerate(leaves) if type(leaf) is Static))

    @property
    def arrays(self) -> int:
        """How many leaves are no static ones."""
        return self.spec.num_leaves - len(self.statics)

    def leaves_of(self, tree, asked: str) -> list:
        """The non-static leaves of ``tree``, which must have this structure and these static leaves."""
        leaves, spec = flatten(tree)
        if spec != self.spec and Tree(spec, self.statics if spec.num_leaves == self.spec.num_leaves else ()).text != self.text:
            raise DTypeError(f"{asked}: expected arguments nested as {self.text}, found {Tree(spec).text}")
        static = dict(self.statics)
        for i, expected in self.statics:
            if Static.of(leaves[i]) != expected:
                raise DTypeError(
                    f"{asked}: the static argument {expected.text} is part of the program, found {leaves[i]!r}\n"
                    "  trace again with the new value"
                )
        return [leaf for i, leaf in enumerate(leaves) if i not in static]

    def unflatten(self, leaves):
        """The structure with these leaves."""
        return self.spec.unflatten(leaves)

    def nest(self, leaves):
        """The structure with these leaves, and None in the places of static ones."""
        static, rest = dict(self.statics), iter(leaves)
        return self.spec.unflatten([None if i in static else next(rest) for i in range(self.spec.num_leaves)])

    def __eq__(self, other):
        return type(other) is Tree and self.text == other.text

    def __hash__(self):
        return hash(self.text)

    def __repr__(self):
        return self.text

    def __reduce__(self):
        return Tree, (self.spec, self.statics)


def drawn(tree) -> str:
    """The text of a tree: Python's for tuples, lists and dicts, ``Name(field=*)`` for classes."""
    match tree:
        case Leaf() | Static() | None:
            return repr(tree)
        case tuple() if hasattr(tree, "_fields"):
            fields = ", ".join(f"{name}={drawn(getattr(tree, name))}" for name in tree._fields)
            return f"{type(tree).__name__}({fields})"
        case tuple():
            return f"({', '.join(map(drawn, tree))}{',' if len(tree) == 1 else ''})"
        case list():
            return f"[{', '.join(map(drawn, tree))}]"
        case OrderedDict() | defaultdict():
            return f"{type(tree).__name__}({drawn(dict(tree))})"
        case dict():
            return "{" + ", ".join(f"{key!r}: {drawn(tree[key])}" for key in sorted(tree, key=str)) + "}"
        case deque():
            return f"deque({drawn(list(tree))})"
    names = field_names(type(tree)) if attrs.has(type(tree)) or dataclasses.is_dataclass(tree) else ()
    fields = ", ".join(f"{name}={drawn(getattr(tree, name))}" for name in names)
    return f"{type(tree).__qualname__}({fields})"


def named_node(name: str, fields: dict):
    """An instance of the class that texts call ``name``; a namedtuple of that name if none is registered here."""
    cls = _registered.get(name)
    if cls is not None and set(field_names(cls)) == set(fields):
        return cls(**fields)
    return namedtuple(name.rpartition(".")[2], fields)(**fields)
