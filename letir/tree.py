"""``letir.tree``: pytrees, by the names of ``jax.tree``, nested as letir nests arguments.

A pytree is a nesting of tuples, lists, dicts, namedtuples, attrs classes and dataclasses; the
values in it that are none of these are its leaves. None is a pytree without leaves. The leaves of
a dict are in the order of its sorted keys, so that dicts with the same keys have the same
structure.

>>> import letir as lt
>>> lt.tree.map(lambda leaf: 2 * leaf, {"w": 1.5, "b": (0.5, None)})
{'w': 3.0, 'b': (1.0, None)}
"""

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any

import optree

from letir.ast import entry_point, pytrees
from letir.ast.pytrees import NAMESPACE, Tree
from letir.errors import DTypeError, ShapeError
from letir.tracing.source_locations import at_user

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "structure",
    "transpose",
    "unflatten",
]

IsLeaf = Callable[[Any], Any] | None


class _Missing:
    """The class of ``_MISSING``, the initializer that was not given."""

    def __repr__(self) -> str:
        return "missing"


_MISSING = _Missing()


@entry_point
def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], optree.PyTreeSpec]:
    """(leaves, structure) of a pytree; ``unflatten(structure, leaves)`` is the inverse.

    A subtree for which ``is_leaf(subtree)`` is true is a leaf.

    >>> flatten({"w": 1.0, "b": (2.0, None)})[0]
    [2.0, 1.0]
    """
    return _flatten_registered(tree, is_leaf)


@entry_point
def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a pytree, as a list.

    A subtree for which ``is_leaf(subtree)`` is true is a leaf.

    >>> leaves([1.0, (2.0, None)])
    [1.0, 2.0]
    """
    return _flatten_registered(tree, is_leaf)[0]


@entry_point
def structure(tree: Any, is_leaf: IsLeaf = None) -> optree.PyTreeSpec:
    """The structure of a pytree: its nesting, without the leaves. Structures compare with ``==``.

    >>> structure((1.0, 2.0)) == structure((3.0, "a")), structure((1.0,)) == structure([1.0])
    (True, False)
    """
    return _flatten_registered(tree, is_leaf)[1]


@entry_point
def unflatten(structure: optree.PyTreeSpec | Tree, leaves: Iterable[Any]) -> Any:
    """The pytree with this structure and these leaves, in the order of ``flatten``.

    Raises DTypeError if ``structure`` is not a structure, and ShapeError if it has another number
    of leaves.

    >>> unflatten(structure({"w": 1.0, "b": 2.0}), [3.0, 4.0])
    {'w': 4.0, 'b': 3.0}
    """
    spec, new_leaves = _spec_of(structure, "tree.unflatten"), [*leaves]
    if len(new_leaves) != spec.num_leaves:
        raise ShapeError(
            f"tree.unflatten: the structure {Tree(spec)} has {spec.num_leaves} leaves, found "
            f"{len(new_leaves)}{at_user()}\n  pass as many as tree.flatten returned"
        )
    return spec.unflatten(new_leaves)


@entry_point
def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """``f`` of each leaf, nested as ``tree``.

    With further trees, ``f`` takes a leaf of each tree. Further trees have the structure of
    ``tree``, or subtrees in place of its leaves, which ``f`` gets as they are. A subtree of
    ``tree`` for which ``is_leaf(subtree)`` is true is a leaf. Raises ShapeError if a further tree
    is nested in another way.

    >>> map(lambda w, g: w - 0.1 * g, {"w": 1.0, "b": 2.0}, {"w": 10.0, "b": 20.0})
    {'w': 0.0, 'b': 0.0}
    """
    flat, spec = _flatten_registered(tree, is_leaf)
    others = _subtrees_at(spec, rest, "tree.map")
    return spec.unflatten([f(*group) for group in zip(flat, *others, strict=True)])


@entry_point
def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """``f(path, leaf, ...)`` of each leaf, nested as ``tree``; see ``map``.

    A path is the tuple of the keys, indices and names of fields that lead to the leaf.

    >>> map_with_path(lambda path, leaf: (path, leaf), {"w": [1.0, 2.0]})
    {'w': [(('w', 0), 1.0), (('w', 1), 2.0)]}
    """
    pairs, spec = _flattened_with_paths(tree, is_leaf)
    others = _subtrees_at(spec, rest, "tree.map_with_path")
    groups = zip(pairs, *others, strict=True)
    return spec.unflatten([f(path, leaf, *more) for (path, leaf), *more in groups])


@entry_point
def flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None
) -> tuple[list[tuple[tuple, Any]], optree.PyTreeSpec]:
    """([(path, leaf), ...], structure) of a pytree.

    A path is the tuple of the keys, indices and names of fields that lead to the leaf.

    >>> flatten_with_path({"w": [1.0, 2.0]})[0]
    [(('w', 0), 1.0), (('w', 1), 2.0)]
    """
    return _flattened_with_paths(tree, is_leaf)


@entry_point
def leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[tuple, Any]]:
    """[(path, leaf), ...] of a pytree.

    >>> leaves_with_path({"w": [1.0, 2.0]})
    [(('w', 0), 1.0), (('w', 1), 2.0)]
    """
    return _flattened_with_paths(tree, is_leaf)[0]


@entry_point
def reduce(
    f: Callable[[Any, Any], Any], tree: Any, initializer: Any = _MISSING, is_leaf: IsLeaf = None
) -> Any:
    """The leaves combined from the left by ``f(total, leaf)``, as by ``functools.reduce``.

    ``initializer`` is the first total. Raises DTypeError for a tree without leaves if there is no
    initializer.

    >>> reduce(lambda total, leaf: total + leaf, {"w": 1.0, "b": (2.0, 3.0)})
    6.0
    """
    flat = _flatten_registered(tree, is_leaf)[0]
    if initializer is not _MISSING:
        return functools.reduce(f, flat, initializer)
    if not flat:
        raise DTypeError(
            f"tree.reduce: the tree has no leaves, and no initializer was given{at_user()}\n"
            "  pass the value of an empty tree, as in tree.reduce(f, tree, 0.0)"
        )
    return functools.reduce(f, flat)


@entry_point
def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    >>> all({"w": True, "b": (1, 2)}), all([0.0, 1.0]), all(())
    (True, False, True)
    """
    return builtins.all(_flatten_registered(tree, is_leaf)[0])


@entry_point
def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """``prefix_tree`` with each leaf repeated, so that it has the structure of ``full_tree``.

    Raises ShapeError unless ``prefix_tree`` has the nesting of ``full_tree`` down to its leaves.

    >>> broadcast((1, 2), ([10.0, 20.0], {"w": 30.0}))
    ([1, 1], {'w': 2})
    """
    flat, spec = _flatten_registered(prefix_tree, is_leaf)
    (subtrees,) = _subtrees_at(spec, (full_tree,), "tree.broadcast")
    filled = []
    for leaf, subtree in zip(flat, subtrees, strict=True):
        below = _flatten_registered(subtree, is_leaf)[1]
        filled.append(below.unflatten([leaf] * below.num_leaves))
    return spec.unflatten(filled)


@entry_point
def transpose(
    outer: optree.PyTreeSpec | Tree, inner: optree.PyTreeSpec | Tree | None, tree: Any
) -> Any:
    """A tree of trees turned inside out: ``tree`` has the structure ``outer``, and each of its
    leaves the structure ``inner``; the result has ``inner`` outside and ``outer`` inside.

    If ``inner`` is None, it is the structure of the first subtree. Raises ShapeError if ``tree``
    does not have these structures.

    >>> pairs = {"w": (1.0, 10.0), "b": (2.0, 20.0)}
    >>> transpose(structure({"w": 0, "b": 0}), structure((0, 0)), pairs)
    ({'w': 1.0, 'b': 2.0}, {'w': 10.0, 'b': 20.0})
    """
    pytrees.flatten(tree)  # registers the classes in it
    spec = _spec_of(outer, "tree.transpose")
    (subtrees,) = _subtrees_at(spec, (tree,), "tree.transpose")
    if inner is None:
        if not subtrees:
            raise ShapeError(
                "tree.transpose: the outer structure has no leaves, so the inner one cannot be "
                f"found{at_user()}\n  pass the inner structure too"
            )
        inside = _flatten_registered(subtrees[0], None)[1]
    else:
        inside = _spec_of(inner, "tree.transpose")
    rows = _subtrees_at(inside, subtrees, "tree.transpose")
    columns = [[row[i] for row in rows] for i in range(inside.num_leaves)]
    return inside.unflatten([spec.unflatten(column) for column in columns])


def _flatten_registered(tree: Any, is_leaf: IsLeaf) -> tuple[list[Any], optree.PyTreeSpec]:
    """The leaves and the structure of a pytree."""
    result = pytrees.flatten(tree)  # registers the classes in it
    if is_leaf is None:
        return result
    return optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)


def _flattened_with_paths(tree: Any, is_leaf: IsLeaf) -> tuple[list, optree.PyTreeSpec]:
    """The leaves with their paths, and the structure of a pytree."""
    flat, spec = _flatten_registered(tree, is_leaf)
    paths = [
        tuple(
            [
                entry.field if isinstance(entry, optree.NamedTupleEntry) else entry.entry
                for entry in path
            ]
        )
        for path in optree.treespec_accessors(spec)
    ]
    return [*zip(paths, flat, strict=True)], spec


def _subtrees_at(spec: optree.PyTreeSpec, trees: Iterable[Any], caller: str) -> list[list]:
    """For each tree, its subtrees at the positions of the leaves of ``spec``."""
    result = []
    for i, tree in enumerate(trees, start=2):
        pytrees.flatten(tree)
        try:
            result.append(spec.flatten_up_to(tree))
        except ValueError:
            nested = _flatten_registered(tree, None)[1]
            which = f"argument {i}" if caller.startswith("tree.map") else "the tree"
            raise ShapeError(
                f"{caller}: {which} is nested as {Tree(nested)}, expected {Tree(spec)}{at_user()}\n"
                "  nest it with the same keys, lengths and classes"
            ) from None
    return result


def _spec_of(structure: Any, caller: str) -> optree.PyTreeSpec:
    """A structure of optree. Raises DTypeError for another object."""
    if type(structure) is Tree:
        return structure.spec
    if not isinstance(structure, optree.PyTreeSpec):
        raise DTypeError(
            f"{caller}: a structure is expected, found {structure!r} of type "
            f"{type(structure).__name__}{at_user()}\n  letir.tree.structure(tree) returns one"
        )
    return structure
