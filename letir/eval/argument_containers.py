"""``ArgumentContainers``: what a call stores in lists, dicts and objects among its arguments.

Read ``letir.ast.tree_nodes.stored_results`` first, which says how a program describes it.
"""

import ast
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import optree
from attrs import define

from letir.ast import LATE_BOUND
from letir.ast.pytrees import LEAF, NODES, Leaf, Static, Tree
from letir.ast.terms import Arg, Const, Lambda, Ret
from letir.ast.tree_nodes.stored_results import (
    Place,
    SameAs,
    Stores,
    can_store,
    containers_in,
    is_changeable,
    joined_call,
    parse_place,
    part_at,
    parts_along_path,
    parts_of,
    places_of,
    resolve_parts,
    store_part,
)
from letir.ast.types import PYTHON_NUMBERS
from letir.errors import DTypeError


@define(eq=False)
class ArgumentContainers:
    """The containers of a call in which the results of a program with ``Stores`` belong."""

    roots: dict[str, Any]
    places: Sequence[Place]
    owners: list  # the container that is changed, for each place

    @classmethod
    def from_call(cls, places: Sequence[Place], args: tuple, kwargs: dict) -> "ArgumentContainers":
        """The containers at these places of a call, found before the program runs.

        Raises DTypeError if a place is missing, or if a container that changes is there twice.
        """
        roots = {"args": args, "kwargs": kwargs}
        owners = []
        occurrences = Counter([id(container) for _, container in containers_in((args, kwargs))])
        for place in places:
            owner, repeated = args, None
            for owner in parts_along_path(roots, place, len(place.steps) - 1):
                if (
                    occurrences[id(owner)] > 1
                ):  # parts of it are met once, but are at two places as well
                    repeated = owner
                if _is_one_object(owner):
                    repeated = None
            if repeated is not None:
                raise DTypeError(_not_one_container(place, repeated, occurrences[id(repeated)]))
            if not is_changeable(owner) or not can_store(owner, place):
                raise DTypeError(_not_one_container(place, owner, 1))
            owners.append(owner)
        return cls(roots, places, owners)

    def store(self, nested: Stores) -> Any:
        """Store the values of a call in the containers; returns its result."""
        roots: dict[str, Any] = {**self.roots, "stores": (nested.result, *nested.values)}
        arguments = self.parts_before(nested)

        def find(reference: SameAs) -> Any:
            if reference.place in arguments:
                return arguments[reference.place]
            found = part_at(roots, parse_place(reference.place))
            if not is_changeable(found) or type(found) is SameAs:
                raise DTypeError(
                    f"same_as({reference.place!r}) does not refer to a container that is stored\n"
                    "  write same_as(...) for the second place of a list, a dict or an object"
                )
            return found

        result, *values = [resolve_parts(part, find) for part in roots["stores"]]
        for owner, place, value in zip(self.owners, self.places, values, strict=True):
            store_part(owner, place, value)
        return result

    def parts_before(self, nested: Stores) -> dict[str, Any]:
        """The containers of the arguments for which ``SameAs`` stand, before the first change."""
        result: dict[str, Any] = {}
        todo: list[Any] = [nested.result, *nested.values]
        while todo:
            value = todo.pop()
            if type(value) is SameAs:
                place = parse_place(value.place)
                if place.root != "stores":
                    result[value.place] = part_at(self.roots, place)
            else:
                todo += [part for _, part in parts_of(value)]
        return result


def _is_one_object(owner: Any) -> bool:
    """Whether a container is one in the program, too, if it is at two places of a call."""
    return not isinstance(owner, list | deque | dict) and type(owner) not in NODES


def _not_one_container(place: Place, owner: Any, count: int) -> str:
    """The message for a place in a value without such parts, or that is there ``count`` times."""
    if count > 1:
        return (
            f"the program changes {place}, but the {type(owner).__name__} with this part is among "
            f"the arguments {count} times\n  pass it once, or a copy: copy.deepcopy"
        )
    return (
        f"the program stores a result at {place}, which a {type(owner).__name__} cannot have\n"
        "  pass arguments of the classes of the recording"
    )


def containers_of_call(fn: Lambda, args: tuple, kwargs: dict) -> ArgumentContainers:
    """The containers of a call in which ``fn`` stores results."""
    return ArgumentContainers.from_call(fn.memo(_parsed_places), args, kwargs)


def _parsed_places(fn: Lambda) -> tuple[Place, ...]:
    """The places at which a program stores results."""
    return tuple(map(parse_place, places_of(fn)))


def without_stores(fn: Lambda) -> Lambda:
    """``fn`` without the results that it stores in its arguments.

    A container of the arguments among its results becomes a new one with the values that it would
    have after the call.
    """
    labels = [*fn.params, *fn.ret.args]
    nested = fn.out_tree.unflatten([Leaf(i) for i in range(len(fn.params), len(labels))])
    result = nested.result
    if _has_references(result):
        result = _labelled_result(fn, nested)
    try:
        leaves, spec = LATE_BOUND["flatten_objects"](result)
    except RecursionError:
        raise DTypeError(
            "a result of the program is an argument that contains itself, and cannot be flattened "
            "into arrays\n  return the part of it that is needed"
        ) from None
    kept = [_label_of(leaf, labels) for leaf in leaves]
    tree = None if optree.treespec_is_leaf(spec) else Tree.from_pytree(spec.unflatten(_marks(kept)))
    rest = [arg for arg in kept if not isinstance(arg, str)]
    return Lambda(fn.params, fn.binds, Ret(tuple(rest)), fn.in_tree, tree)


def _has_references(value: Any) -> bool:
    """Whether containers of the arguments are in a result."""
    return type(value) is SameAs or any(_has_references(part) for _, part in parts_of(value))


def _labelled_result(fn: Lambda, nested: Stores) -> Any:
    """The result of a call whose arguments are labels, after the labels were stored in them."""
    try:
        args, kwargs = _labelled_arguments(fn)
        return containers_of_call(fn, args, kwargs).store(nested)
    except (DTypeError, AttributeError):  # a loaded program has plain records for objects
        raise DTypeError(
            "an argument, or a part of one, is a result of the program, but its class is not known "
            f"here: {fn.out_tree}\n"
            "  load the program with its classes: letir.load(path, classes=(...))"
        ) from None


def _labelled_arguments(fn: Lambda) -> tuple[tuple, dict]:
    """The arguments of ``fn``, with ``Leaf(i)`` for parameter i, and its static leaves."""
    tree, labels = fn.in_tree, iter([Leaf(i) for i in range(len(fn.params))])
    static = dict(tree.statics)
    leaves = [static[i] if i in static else next(labels) for i in range(tree.spec.num_leaves)]
    labelled: Any = joined_call(tree.unflatten(leaves))
    return labelled


def _label_of(leaf: Any, labels: list[Arg]) -> Arg | str:
    """The argument of Ret for a leaf of a result, or the text that it is."""
    if type(leaf) is Leaf and leaf.place is not None:
        return labels[leaf.place]
    if type(leaf) is str:
        return leaf
    if type(leaf) is Static:
        try:
            value = ast.literal_eval(leaf.text)
        except (ValueError, SyntaxError):
            value = None
        if type(value) is str:
            return value
        if type(value) in PYTHON_NUMBERS:
            return Const(value)
    raise DTypeError(
        f"a result of the program is an argument with {leaf!r} in it, which is not an array\n"
        "  return the arrays"
    )


def _marks(kept: list[Arg | str]) -> list[Any]:
    """Texts as they are, and ``LEAF`` for the others."""
    return [arg if type(arg) is str else LEAF for arg in kept]


LATE_BOUND.update(containers_of_call=containers_of_call, without_stores=without_stores)
