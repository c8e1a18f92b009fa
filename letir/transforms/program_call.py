"""A function or a Lambda at some arguments: what the transforms of both start from."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from letir.ad.gradient_program import Gradient
from letir.ast.pytrees import LEAF, Leaf, Tree, flatten
from letir.ast.terms import Lambda
from letir.errors import ShapeError
from letir.eval.arguments import flat_arguments
from letir.eval.memory_checks import root
from letir.passes.lowering import without_writes
from letir.tracing.entry import DROP, record
from letir.tracing.trace_state import LAZY


@frozen(eq=False)
class Call:
    """A program at some arguments: ``leaves`` are its array arguments, ``tree`` says how the user
    nested them.
    """

    fn: Lambda
    tree: Tree
    leaves: list

    @property
    def out_tree(self) -> Tree:
        """How its results nest."""
        return self.fn.out_tree or tree_of_results(len(self.fn.ret.args))


def called(f: Any, args: tuple, kwargs: dict, writes: str | None = DROP) -> Call:
    """``f`` recorded at these arguments; a Lambda as it is, a Gradient as its joined program.

    ``writes``: what becomes of those into arguments, see ``record``.
    """
    f = as_program(f)
    if isinstance(f, Lambda):
        return Call(f, tree_of_arguments(f), flat_arguments(f, args, kwargs))
    # LAZY: only what Python asks for is computed here, all else by the transformed program alone
    recording = record(f, args, kwargs, LAZY, writes)
    # lifted: traced values that f closes over; they are further parameters, behind its own
    return Call(recording.fn, recording.tree, [*recording.leaves, *recording.lifted])


def as_program(f: Any) -> Any:
    """``f``; of a Gradient its joined program; a program that leaves its arguments as they are."""
    f = f.joined() if isinstance(f, Gradient) else f
    return without_writes(f) if isinstance(f, Lambda) else f


def tree_of_arguments(fn: Lambda) -> Tree:
    """How the arguments of ``fn`` nest, also where they are arrays in a row."""
    return fn.in_tree or Tree.of(((LEAF,) * len(fn.params), {}))  # (args, kwargs)


@functools.cache
def tree_of_results(count: int) -> Tree:
    """One result, or a tuple of them."""
    return Tree.of(LEAF if count == 1 else (LEAF,) * count)


def arguments_of(tree: Tree, argnums: int | Sequence[int]) -> tuple[list[int], Tree]:
    """(parameter positions, tree) of the positional arguments ``argnums``: what a gradient consists
    of.
    """
    of_args, _ = tree.spec.children()
    count = of_args.num_children
    one = isinstance(argnums, int)
    for n in (argnums,) if one else argnums:
        if not -count <= n < count:
            raise ShapeError(f"argnums: there is no positional argument {n} among {count}")
    if one and of_args.num_leaves == count == of_args.num_nodes - 1 and not tree.statics:
        return [argnums % count], tree_of_results(1)  # each argument an array
    args, _ = tree.nest([Leaf(i) for i in range(tree.arrays)])
    leaves, spec = flatten(args[argnums] if one else tuple(args[n] for n in argnums))
    return [leaf.place for leaf in leaves], Tree(spec)


def apart(args: tuple, argnums: Sequence[int]) -> tuple[tuple, tuple]:
    """(arguments in ``argnums``, others)."""
    chosen = {n % len(args) for n in argnums}
    return (
        tuple([arg for i, arg in enumerate(args) if i in chosen]),
        tuple([arg for i, arg in enumerate(args) if i not in chosen]),
    )


def joined(chosen: Sequence, others: Sequence, argnums: Sequence[int]) -> tuple:
    """What ``apart`` took apart."""
    count = len(chosen) + len(others)
    places = {n % count for n in argnums}
    first, second = iter(chosen), iter(others)
    return tuple([next(first) if i in places else next(second) for i in range(count)])


def given_apart(f: Callable, chosen: Sequence, argnums: Sequence[int]) -> Callable:
    """``f`` as a function of the other arguments."""
    if not argnums:
        return f  # with the names of its parameters
    return lambda *others, **kwargs: f(*joined(chosen, others, argnums), **kwargs)


def separate(results: tuple, arguments: Sequence = ()) -> list:
    """The results, each an array that its owner may write to, in memory that no argument has.

    Rules hand one cotangent to several operands, whole or as views, and broadcasting gives
    read-only views.
    """
    seen = {id(root(array)) for array in arguments}  # ids hold: both tuples keep the owners alive
    found = []
    for array in results:
        owner = id(root(array))
        # not isinstance: a traced value says that it is one
        is_array = issubclass(type(array), np.ndarray)
        if is_array and (owner in seen or not array.flags.writeable):
            found.append(array.copy())
        else:
            seen.add(owner)
            found.append(array)
    return found


def example(tree: Tree):
    """The nesting with ``LEAF`` for every leaf."""
    return tree.unflatten([LEAF] * tree.spec.num_leaves)
