"""``Tree``: the structure of arguments and results, a pytree without its leaves; and its text.

Pytrees come from optree: tuples, lists, dicts, namedtuples, and attrs classes and dataclasses,
which are registered when they are first seen. Static leaves of arguments belong to the tree, not to
the data.
"""

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any
from weakref import ProxyTypes

import attrs
import numpy as np
import optree
from attrs import field, frozen

from letir.ast import LATE_BOUND, object_by_name
from letir.errors import DTypeError, cyclic_tree_error

NAMESPACE = "letir"
_ADDRESS = " at 0x"  # in the repr of an object whose class defines none
NODES: set[type] = set()  # the classes registered with optree
GENERATORS: set[type] = set()  # NumPy's generators among them
TREE_TEXTS: dict[type, Callable] = {}  # by class of nodes: their text, given spec and children


class Leaf:
    """A placeholder for a leaf in a bare structure; ``place`` is its index."""

    __slots__ = ("place",)

    def __init__(self, place: int | None = None):
        self.place = place

    def __repr__(self):
        return "*"


LEAF = Leaf()
# Classes known to be leaves; packages that make others add these.
_LEAF_CLASSES: set[type] = {Leaf, np.ndarray, bool, str, int, float, complex}
_LEAF_CLASSES.update([np.dtype(code).type for code in "?bhilqBHILQefdFD"])


@frozen
class Static:
    """A static leaf: equal to another of the same type and text.

    A function that has a name in its module is shown by it. ``kept``: the value, if it was given
    here and its text does not tell it from all other values.
    """

    text: str
    kept: Any = field(default=None, eq=False, repr=False)

    @classmethod
    def from_value(cls, value: Any) -> "Static":
        """The static leaf of a value."""
        if type(value) in (bool, str, int, float, complex):
            return cls(repr(value))
        kind, text = type(value).__name__, repr(value)
        if kind in ("set", "frozenset"):  # equal ones may have other orders
            text = f"{{{', '.join(sorted(map(repr, value)))}}}"
        if _ADDRESS not in text:
            return cls(f"{kind} {text}")
        module, name = [getattr(value, n, None) for n in ("__module__", "__qualname__")]
        is_named = type(module) is type(name) is str and object_by_name(module, name) is value
        return cls(f"{kind} {f'{module}.{name}' if is_named else text}", value)

    def is_made_from(self, value: Any) -> bool:
        """Whether ``value`` is the static argument: a function of the same name may be another.

        True for the ``Static`` itself, which stands for the argument.
        """
        if value is self or (self.kept is not None and self.kept is value):
            return True
        is_by_text = self.kept is None or _ADDRESS in self.text
        return is_by_text and self == Static.from_value(value)

    def __reduce__(self):
        return Static, (self.text,)

    def __repr__(self):
        return f"static({self.text!r})"


class Text(str):
    """A string among the results of a program: part of the tree, not a leaf."""

    __slots__ = ()


def _flatten_text(text: Any) -> tuple[tuple, Any, tuple]:
    """(children, metadata, entries) of a ``Text``, as optree asks for them."""
    return (), str(text), ()


optree.register_pytree_node(Text, _flatten_text, lambda text, _: text, namespace=NAMESPACE)  # type: ignore


def with_texts(tree: Any) -> Any:
    """``tree`` with its strings as ``Text``, so that they are not leaves."""

    def marked(leaf: Any) -> Any:
        return Text(leaf) if type(leaf) is str else leaf

    return optree.tree_map(marked, tree, namespace=NAMESPACE)


def texts_in_structure(leaves: list, spec: optree.PyTreeSpec) -> tuple[list, optree.PyTreeSpec]:
    """The leaves that are not strings, and the structure with ``Text`` for the strings."""
    parts = [Text(leaf) if type(leaf) is str else LEAF for leaf in leaves]
    specs = iter([flatten(part)[1] for part in parts])
    others = [leaf for leaf in leaves if type(leaf) is not str]
    return others, spec.transform(None, lambda _: next(specs))


def flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list, optree.PyTreeSpec]:
    """The leaves of ``tree`` and its structure; None has no leaves.

    A subtree for which ``is_leaf`` is true is a leaf.
    """
    try:
        leaves, spec = optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)
    except RecursionError as error:
        raise (cyclic_tree_error() if "flattening" in str(error) else error) from None
    if _LEAF_CLASSES.issuperset(map(type, leaves)):  # nearly always
        return leaves, spec
    classes = {type(leaf) for leaf in leaves if _is_record(type(leaf))}
    if not classes:
        return leaves, spec
    for cls in classes:
        LATE_BOUND["register_class"](cls)
    return flatten(tree, is_leaf)  # their fields may hold further such classes


def _is_record(cls: type) -> bool:
    """Whether a class should become a node of trees, and is not registered yet.

    True for attrs classes and dataclasses of users, for namespaces, and for NumPy's random
    generators.
    """
    is_record = is_generator_class(cls) or is_namespace(cls) or has_fields(cls)
    return is_record and cls not in NODES


def has_fields(cls: type) -> bool:
    """Whether a class is an attrs class or a dataclass of users, a node of trees."""
    is_declared = attrs.has(cls) or dataclasses.is_dataclass(cls)
    # letir's own classes, such as ShapeDtype, are leaves
    return is_declared and not cls.__module__.startswith("letir.")


def is_generator(value: Any) -> bool:
    """Whether a value is one of NumPy's generators, or stands for one in a trace."""
    kind = type(value)
    if kind in ProxyTypes:  # the object that would answer may be gone
        return False
    return is_generator_class(kind) or (
        value.__class__ is not kind and is_generator_class(value.__class__)
    )


def is_generator_class(cls: type) -> bool:
    """Whether a class is one of NumPy's generators, tested without importing them."""
    is_named_so = cls.__name__ in ("Generator", "RandomState")
    return is_named_so and cls.__module__.startswith("numpy.random")


def is_namespace(cls: type) -> bool:
    """Whether a class is one of Python's plain namespaces, such as the options of ``argparse``."""
    is_parsed = cls.__name__ == "Namespace" and cls.__module__ == "argparse"
    return cls is SimpleNamespace or is_parsed


def items_of(value: dict) -> dict:
    """A plain dict with the items of a dict, made without calling methods of a user's class."""
    return dict(OrderedDict.items(value) if isinstance(value, OrderedDict) else dict.items(value))


def is_leaf(tree: Any) -> bool:
    """Whether a value is a leaf: a value without nested values."""
    return optree.tree_is_leaf(tree, namespace=NAMESPACE)


def leaf_paths(spec: optree.PyTreeSpec) -> list[tuple]:
    """The path to each leaf: the position, the key or the name of the field at each level.

    >>> from typing import NamedTuple
    >>> class Moments(NamedTuple):
    ...     mean: float
    ...     scales: list
    >>> leaf_paths(flatten({"a": Moments(1.0, [2.0])})[1])
    [('a', 'mean'), ('a', 'scales', 0)]
    """
    return [
        tuple([getattr(entry, "field", entry.entry) for entry in accessor])
        for accessor in spec.accessors()
    ]


@frozen(eq=False, repr=False)
class Tree:
    """A structure and its static leaves, as pairs (leaf index, ``Static``)."""

    spec: optree.PyTreeSpec
    statics: tuple[tuple[int, Static], ...] = ()
    _text: list[str] = field(factory=list, init=False)  # computed on first use
    _written: list[str] = field(factory=list, init=False)

    @property
    def text(self) -> str:
        """The nesting as text, ``*`` for an array, with the keys of dicts in sorted order.

        Trees are equal if their texts are.
        """
        if not self._text:  # kept: every comparison of programs asks for it
            self._text.append(_tree_text(self.spec, iter(self._leaves())))
        return self._text[0]

    @property
    def written(self) -> str:
        """The text in a program: the keys of dicts are in their own order, which results keep."""
        if not self._written:
            self._written.append(_tree_text(self.spec, iter(self._leaves()), keys_in_order))
        return self._written[0]

    def with_sorted_keys(self) -> "Tree":
        """An equal tree in which the keys of dicts are in sorted order."""
        if self.written == self.text:
            return self
        return Tree.from_pytree(_sorted_nodes(self.spec, iter(self._leaves())))

    def _leaves(self) -> list:
        """The static leaves, and ``LEAF`` for each array."""
        leaves: list[Any] = [LEAF] * self.spec.num_leaves
        for i, static in self.statics:
            leaves[i] = static
        return leaves

    @classmethod
    def from_pytree(cls, tree: Any) -> "Tree":
        """The tree whose leaves are ``LEAF`` and ``Static``; strings are not leaves."""
        leaves, spec = flatten(tree)
        if not {Leaf, Static, str}.issuperset(map(type, leaves)):
            leaves, spec = LATE_BOUND["objects_flattened"](leaves, spec)
        if str in map(type, leaves):
            leaves, spec = texts_in_structure(leaves, spec)
        return cls(
            spec, tuple([(i, leaf) for i, leaf in enumerate(leaves) if type(leaf) is Static])
        )

    @property
    def stores(self) -> bool:
        """Whether these are results that a program stores in its arguments, ``Stores``."""
        return hasattr(self.spec.type, "__letir_stores__")

    @property
    def arrays(self) -> int:
        """The number of leaves that are not static."""
        return self.spec.num_leaves - len(self.statics)

    def leaves_of(self, tree: Any, caller: str) -> list:
        """The non-static leaves of ``tree``, which must have this structure and these static
        leaves.
        """
        leaves = self.leaves_at(tree, caller)
        static = dict(self.statics)
        for i, expected in self.statics:
            if not expected.is_made_from(leaves[i]):
                raise DTypeError(
                    f"{caller}: the static argument {expected.text} is part of the program, "
                    f"found {leaves[i]!r}\n"
                    "  trace again with the new value"
                )
        return [leaf for i, leaf in enumerate(leaves) if i not in static]

    def leaves_at(self, tree: Any, caller: str) -> list:
        """The values at the leaves; static leaves may be containers, others may not."""
        static = dict(self.statics)
        try:
            # a static leaf may be a container, into which flatten would go
            result = self.spec.flatten_up_to(tree)
            if all(i in static or is_leaf(leaf) for i, leaf in enumerate(result)):
                return result
        except ValueError:
            pass
        # a tree from a file has other classes of the same names, objects have nodes of their own
        leaves, spec = LATE_BOUND["flatten_objects"](tree)
        if (
            Tree(spec, self.statics if spec.num_leaves == self.spec.num_leaves else ()).text
            != self.text
        ):
            raise DTypeError(
                f"{caller}: expected arguments nested as {_call_text(self)}, "
                f"found {_call_text(Tree(spec))}\n"
                "  nest them with the same keys and lengths"
            )
        return leaves

    def unflatten(self, leaves: Iterable) -> Any:
        """The structure with these leaves."""
        return self.spec.unflatten(leaves)

    def example(self) -> Any:
        """The structure with ``LEAF`` for arrays, and its static leaves: the argument of ``of``."""
        return self.spec.unflatten(self._leaves())

    def nest(self, leaves: Iterable) -> Any:
        """The structure with these leaves, and None for static ones."""
        static, rest = dict(self.statics), iter(leaves)
        filled = [None if i in static else next(rest) for i in range(self.spec.num_leaves)]
        tree = self.spec.unflatten(filled)
        return LATE_BOUND["joined_call"](tree) if self.refers else tree

    @property
    def refers(self) -> bool:
        """Whether an object is at two places, as the text of the tree says."""
        return "same_as(" in self.text

    def __eq__(self, other):
        # not by specs: a tree from a file has stand-ins for classes that are not defined here
        return self is other or (type(other) is Tree and self.text == other.text)

    def __hash__(self):
        return hash(self.text)

    def __repr__(self):
        return self.text

    def __reduce__(self):
        return Tree, (self.spec, self.statics)


def _call_text(tree: Tree) -> str:
    """The nesting of the arguments of a call, ``(*, rate=*)``; the text of any other tree."""
    if [spec.type for spec in tree.spec.children()] != [tuple, dict]:
        return tree.text
    statics = dict(tree.statics)
    leaves = iter([statics.get(i, LEAF) for i in range(tree.spec.num_leaves)])
    positional, keywords = tree.spec.children()
    parts = [_tree_text(spec, leaves) for spec in positional.children()]
    named = zip(keywords.entries(), keywords.children(), strict=True)
    parts += [f"{name}={_tree_text(spec, leaves)}" for name, spec in named]
    return f"({', '.join(parts)})"


def keys_in_order(spec: optree.PyTreeSpec) -> list:
    """The keys of a node that is a dict, in the order in which they were added to it."""
    return list(spec.one_level().unflatten([LEAF] * spec.num_children))


def _sorted_nodes(spec: optree.PyTreeSpec, leaves: Iterator) -> Any:
    """The structure with these leaves, and with the keys of dicts in sorted order."""
    if spec.type is None:
        return next(leaves)
    parts = [_sorted_nodes(part, leaves) for part in spec.children()]
    node: Any = spec.one_level().unflatten(parts)
    if spec.type in (dict, defaultdict):
        for key in spec.entries():
            node[key] = node.pop(key)
    return node


def _tree_text(
    spec: optree.PyTreeSpec,
    leaves: Iterator,
    keys_of: Callable[[optree.PyTreeSpec], list] = optree.PyTreeSpec.entries,
) -> str:
    """The text of a tree: Python's for tuples, lists and dicts, ``Name(field=*)`` for classes.

    ``keys_of`` gives the keys of a dict in the order of the text.
    """
    kind = spec.type
    if kind is None:  # optree's mark of a leaf
        return repr(next(leaves))
    if kind is Text:
        return repr(spec.unflatten(()))
    children = [_tree_text(child, leaves, keys_of) for child in spec.children()]
    inside = ", ".join(children)
    if kind in TREE_TEXTS:
        return TREE_TEXTS[kind](spec, children)
    if kind is tuple:
        return f"({inside}{',' if len(children) == 1 else ''})"
    if kind in (list, deque):
        return f"[{inside}]" if kind is list else f"deque([{inside}])"
    if kind in (dict, OrderedDict, defaultdict):
        texts = dict(zip(spec.entries(), children, strict=True))
        items = ", ".join(f"{key!r}: {texts[key]}" for key in keys_of(spec))
        return f"{{{items}}}" if kind is dict else f"{kind.__name__}({{{items}}})"
    if kind is type(None):
        return "None"
    names = getattr(kind, "_fields", None) or spec.entries()
    fields = ", ".join(f"{name}={v}" for name, v in zip(names, children, strict=True))
    return f"{kind.__qualname__}({fields})"
