"""``ProgramCall``, a program with its arguments: the start of transforms of functions and Lambdas.

Also pytrees of arguments and results, and ``copy_shared_results``.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any
from weakref import ref

import numpy as np
from attrs import frozen

from letir import passes
from letir.ad.gradient_program import Gradient
from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache
from letir.ast.pytrees import LEAF, Leaf, Tree
from letir.ast.terms import Lambda
from letir.errors import DTypeError, ShapeError
from letir.eval.arguments import flat_arguments
from letir.eval.array_modules import ARRAY_CLASSES
from letir.eval.memory_checks import copy_in_order, memory_owner
from letir.tracing.entry import DISCARD_WRITES, record
from letir.tracing.trace_state import DRAW_AT_ONCE, LAZY
from letir.tracing.tracer import Tracer

# the classes of most arguments
_ARRAYS: frozenset[type] = frozenset([np.ndarray, float, int, np.float64, Tracer])


@frozen(eq=False)
class ProgramCall:
    """A program and its arguments: ``leaves`` are the arrays, ``tree`` their nesting."""

    fn: Lambda
    tree: Tree
    leaves: list

    @property
    def out_tree(self) -> Tree:
        """The nesting of the results."""
        return self.fn.out_tree or tree_of_results(len(self.fn.ret.args))


def record_call(
    f: Any, args: tuple, kwargs: dict, writes: str | None = DISCARD_WRITES
) -> ProgramCall:
    """The call of ``f`` as a program: a function is recorded, a Gradient is joined to one program.

    ``writes``: how to treat writes into arguments, see ``record``.
    """
    f = f if type(f) is FunctionType else as_program(f)
    if isinstance(f, Lambda):
        return ProgramCall(f, tree_of_arguments(f), flat_arguments(f, args, kwargs))
    given = args
    for arg in given:
        if type(arg) is np.ndarray and arg.dtype.kind in "SUTMmV":  # texts, dates and records
            args = tuple(map(LATE_BOUND["marked_copy"], given))
            break
    if not _ARRAYS.issuperset(map(type, args)):
        f = LATE_BOUND["refusing_changes_at_two_places"](f, args, kwargs)
    try:
        # LAZY: while recording, compute only values that Python reads, such as conditions of an if
        recording = record(f, args, kwargs, LAZY, writes, draws=DRAW_AT_ONCE)
    except TypeError:
        if args is not given:
            # raises, naming the argument
            record(f, given, kwargs, LAZY, writes, draws=DRAW_AT_ONCE)
        raise
    # lifted: traced values that f closes over; they are the last parameters
    return ProgramCall(recording.fn, recording.tree, [*recording.leaves, *recording.lifted])


def kept_transform(f: Lambda, options: tuple | None, transform: Callable) -> Callable:
    """``transform``, whose results for calls of the program ``f`` are kept while it exists.

    ``options``: what the transform depends on besides; None if nothing is kept.
    """

    def transformed(call: ProgramCall, **given: Any) -> Any:
        if options is None or not ARRAY_CLASSES.issuperset(map(type, call.leaves)):
            return transform(call, **given)
        key = id(f), options, *given.get("inputs", ())
        function_ref, result = _kept.get(key, (None, None))
        if function_ref is None or function_ref() is not f:
            result = transform(call, **given)
            if not result.is_for_one_call:
                _kept[key] = ref(f), result
        return result

    return transformed


# (id of a program, options, ...) -> (a reference to it, its ``Transformed``)
_kept: dict[tuple, tuple] = BoundedCache(1 << 7)


def as_program(f: Any) -> Any:
    """``f``, or the joined program of a Gradient; writes into arguments are removed."""
    f = f.joined() if isinstance(f, Gradient) else f
    return passes.without_writes(f) if isinstance(f, Lambda) else f


def tree_of_arguments(fn: Lambda) -> Tree:
    """The nesting of the arguments of ``fn``, which is flat if the program has none."""
    return fn.in_tree or Tree.from_pytree(((LEAF,) * len(fn.params), {}))  # (args, kwargs)


@functools.cache
def tree_of_results(count: int) -> Tree:
    """The nesting of ``count`` results: a single one, or a tuple."""
    return Tree.from_pytree(LEAF if count == 1 else (LEAF,) * count)


def arguments_of(tree: Tree, argnums: int | Sequence[int]) -> tuple[list[int], Tree]:
    """(parameter positions, tree) of the positional arguments ``argnums``."""
    if type(argnums) is not int:
        LATE_BOUND["refuse_argnums"]("the transform", argnums)
    of_args, _ = tree.spec.children()
    count = of_args.num_children
    for n in (argnums,) if isinstance(argnums, int) else argnums:
        if not -count <= n < count:
            LATE_BOUND["refuse_positions"]("argnums", (n,), count)
    if isinstance(argnums, int) and is_row_of_arrays(tree):
        return [argnums % count], tree_of_results(1)
    args, _ = tree.nest([Leaf(i) for i in range(tree.arrays)])
    chosen = args[argnums] if isinstance(argnums, int) else tuple(args[n] for n in argnums)
    leaves, spec = LATE_BOUND["flatten_objects"](chosen)
    if tree.refers and Tree(spec).refers:
        raise DTypeError(
            "an argument in argnums has an object at two places, but the object has one gradient\n"
            "  differentiate with respect to its arrays, which the function puts into the object"
        )
    return [leaf.place for leaf in leaves], Tree(spec)


def is_row_of_arrays(tree: Tree) -> bool:
    """Whether each positional argument is an array."""
    of_args = tree.spec.child(0)
    return of_args.num_leaves == of_args.num_children == of_args.num_nodes - 1 and not tree.statics


def differentiated_arguments(tree: Tree, argnums: int | Sequence[int]) -> tuple[list[int], Tree]:
    """``arguments_of`` for arguments with respect to which a function is differentiated.

    Raises DTypeError if one of them is static itself: a function, a string, a bool ...
    """
    positions, chosen = arguments_of(tree, argnums)
    static = dict(tree.statics)
    if static:
        of_args = tree.spec.child(0)
        ends = list(itertools.accumulate(child.num_leaves for child in of_args.children()))
        for n in (argnums,) if isinstance(argnums, int) else argnums:
            if of_args.child(n).is_leaf() and ends[n] - 1 in static:
                raise DTypeError(
                    f"argument {n} is {static[ends[n] - 1].text}, which has no derivative\n"
                    "  name the positions of arrays or floats in argnums"
                )
    return positions, chosen


def split_arguments(
    args: tuple, argnums: Sequence[int], caller: str = "argnums"
) -> tuple[tuple, tuple]:
    """(arguments in ``argnums``, others). ``caller`` names the option in errors."""
    if argnums:
        LATE_BOUND["refuse_positions"](caller, argnums, len(args))
    chosen = {n % len(args) for n in argnums}
    return (
        tuple([arg for i, arg in enumerate(args) if i in chosen]),
        tuple([arg for i, arg in enumerate(args) if i not in chosen]),
    )


def merge_arguments(chosen: Sequence, others: Sequence, argnums: Sequence[int]) -> tuple:
    """The arguments in their original order; the inverse of ``split_arguments``."""
    count = len(chosen) + len(others)
    places = {n % count for n in argnums}
    first, second = iter(chosen), iter(others)
    return tuple([next(first) if i in places else next(second) for i in range(count)])


def bind_arguments(f: Callable, chosen: Sequence, argnums: Sequence[int]) -> Callable:
    """``f`` as a function of the other arguments, with the arguments in ``argnums`` fixed."""
    if not argnums:
        return f  # unchanged, with its parameter names
    return lambda *others, **kwargs: f(*merge_arguments(chosen, others, argnums), **kwargs)


def copy_shared_results(results: tuple, arguments: Sequence = ()) -> list:
    """The results, copied where they are read-only or share memory with each other or arguments.

    This happens because rules pass one cotangent to several operands, and because broadcasting
    makes read-only views.
    """
    if len(results) == 1 and not arguments and type(results[0]) is np.ndarray:  # most gradients
        return [results[0] if results[0].flags.writeable else results[0].copy()]
    # ids are valid: the tuples keep arrays alive
    owners = {id(memory_owner(array)) for array in arguments if _is_array(array)}
    result = []
    for array in results:
        if not _is_array(array):  # a traced value, whose memory is not known yet
            result.append(array)
            continue
        owner = id(memory_owner(array))
        result.append(array.copy() if owner in owners or not array.flags.writeable else array)
        owners.add(owner)
    return result


def keep_residuals(captured: Sequence, exposed: Sequence) -> list:
    """The ``captured`` values, copied where they share memory with ``exposed`` ones.

    The caller has the exposed values, primals and results, and may write into them.
    """
    owners = {id(memory_owner(value)) for value in exposed if not hasattr(value, "emitter")}
    values = []
    for value in captured:
        if hasattr(value, "emitter"):  # traced, or a Variable
            values.append(value.snapshot())
        else:
            values.append(copy_in_order(value) if id(memory_owner(value)) in owners else value)
    return values


def nested_results(tree: Tree, results: Sequence) -> Any:
    """The results nested as ``tree``."""
    return results[0] if tree is tree_of_results(1) else tree.unflatten(results)


def _is_array(value: Any) -> bool:
    """Whether a value is NumPy's array, unlike traced values, for which isinstance is True."""
    return issubclass(type(value), np.ndarray)


def result_and_aux(out: Any) -> tuple[Any, Any]:
    """The two results ``out`` of a function with ``has_aux``. Raises ShapeError for others."""
    if not (isinstance(out, tuple) and len(out) == 2):
        raise ShapeError(
            f"has_aux: the function must return (value, aux), found {Tree.from_pytree(out)}\n"
            "  write return value, aux in the function, or leave has_aux out"
        )
    return out


def nested_example(tree: Tree) -> Any:
    """A pytree nested as ``tree``, with ``LEAF`` for every leaf."""
    return tree.unflatten([LEAF] * tree.spec.num_leaves)
