"""``vmap``: a function of one example as a vectorised function of a batch of examples."""

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any, overload

import optree
from attrs import frozen

from letir.ad.gradient_program import Gradient
from letir.ast import LATE_BOUND, entry_point
from letir.ast.builder import LetBuilder, Value
from letir.ast.checker import retype
from letir.ast.pytrees import NAMESPACE, Leaf, Tree, flatten, with_texts
from letir.ast.signatures import P, R
from letir.ast.terms import Arg, Lambda, Local
from letir.ast.types import ArrayType, ShapeDtype, Size
from letir.errors import BoundsError, DTypeError, ShapeError, TraceError
from letir.eval.arguments import is_static, leaf_names, mark_static, unmark_arguments
from letir.eval.array_modules import type_of
from letir.ops.define.batch_rules import emit_with_shape, move_from_front, rank_of, shape_of
from letir.tracing.entry import DISCARD_WRITES, Recording, record
from letir.tracing.trace_state import LAZY
from letir.transforms.batching import batch_program
from letir.transforms.jitted_functions import option_token, shared_with_executors
from letir.transforms.program_call import (
    ProgramCall,
    as_program,
    copy_shared_results,
    nested_example,
    tree_of_arguments,
    tree_of_results,
)
from letir.transforms.repeated_programs import Transformed, prepared_run, repeated_function


@overload
def vmap(
    f: Lambda | Gradient, in_axes: Any = 0, out_axes: Any = 0, axis_size: int | Size | None = None
) -> Lambda: ...
@overload
def vmap(
    f: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0, axis_size: int | Size | None = None
) -> Callable[P, R]: ...
@shared_with_executors
def vmap(
    f: Any,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | Size | None = None,
) -> Callable[..., Any]:
    """``f`` mapped over an axis of its arguments: each operation runs once, on all examples.

    ``in_axes`` and ``out_axes`` are the batch axes of arguments and results: an int, None for a
    value that all examples share, or a tree of these that is a prefix of the arguments or of the
    result. Keyword arguments are mapped along axis 0. A function gives a function, a Lambda a
    Lambda. ``axis_size`` is the number of examples, needed if no argument is mapped; the
    default for a Lambda is a symbolic size. A Python ``if`` on a mapped value is a TraceError: use
    ``np.where``. Raises ShapeError if the sizes of mapped axes differ.

    >>> import numpy as np
    >>> vmap(np.dot, in_axes=(0, None))(np.eye(2), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    f = as_program(f)
    if isinstance(f, Lambda):
        return _mapped_lambda(f, in_axes, out_axes, axis_size)

    axes = in_axes, out_axes, axis_size
    options = None if _may_change(axes) else ("vmap", option_token(axes))

    @entry_point
    @functools.wraps(f)
    def mapped(*args, **kwargs):
        known = repeated_function(f, options)
        if known.calls and (results := known.results(args, kwargs)) is not None:
            return results
        leaves, spec = flatten((args, kwargs))
        LATE_BOUND["refuse_objects"](leaves)
        mapping = _Mapping.from_leaves(
            leaves, _argument_axes(in_axes, args, kwargs), leaf_names(f, args, kwargs), axis_size
        )
        examples = spec.unflatten(mapping.examples(leaves))
        record = functools.partial(_record_example, f, *examples)
        keep = known.keeper(args, args, kwargs, record)
        call = mapping.call_of(record(), args, kwargs)
        transform = functools.partial(_mapped_call, mapping, out_axes)
        of_mapping = None if options is None else (*options, *mapping.axes, mapping.size)
        return prepared_run(call, None, of_mapping, transform, keep)()

    return mapped


def _may_change(options: Any) -> bool:
    """Whether a user may change the options later: there are lists, dicts or others among them."""
    if type(options) is tuple:
        return any(map(_may_change, options))
    return options is not None and type(options) is not int


def _mapped_call(mapping: "_Mapping", out_axes: Any, call: ProgramCall) -> Transformed:
    """The mapped program of a recording of one example, and the nesting of its results."""
    fn, tree, static = call.fn, call.out_tree, dict(call.tree.statics)
    # static arguments are not parameters; constants and lifted values are shared
    axes = [axis for i, axis in enumerate(mapping.axes) if i not in static]
    axes += [None] * (len(fn.params) - len(axes))
    program = _mapped_program(fn, axes, mapping.size, tree, out_axes)

    def finish(inputs: list, results: tuple) -> Any:
        # copied: a result that all examples share may be an argument, or a view of one
        return tree.unflatten(copy_shared_results(results, inputs))

    return Transformed(program, finish=finish)


def _record_example(f: Callable, args: tuple, kwargs: dict) -> Recording:
    """``f`` recorded for one example, of which only the type is known."""
    try:
        return record(f, *mark_static(f, args, kwargs, (), ()), LAZY, DISCARD_WRITES)
    except TraceError as error:
        LATE_BOUND["explain_abstract"](
            error, "vmap records one example, of which only the type is known"
        )
        raise


def _mapped_lambda(fn: Lambda, in_axes, out_axes, axis_size) -> Lambda:
    """``vmap`` of a Lambda; the parameters and results nest as in ``fn``."""
    fn, tree = _with_known_types(fn), tree_of_arguments(fn)
    static = dict(tree.statics)
    args, kwargs = tree.unflatten([Leaf(i) for i in range(tree.spec.num_leaves)])
    axes = [a for i, a in enumerate(_argument_axes(in_axes, args, kwargs)) if i not in static]
    axes = [_nonnegative_axis(fn.params[i], axis, i) for i, axis in enumerate(axes)]
    is_mapped = any(axis is not None for axis in axes)
    # a symbolic size, so that one program serves any number of examples
    size = _fresh_size(fn) if axis_size is None and is_mapped else _common_size({}, axis_size)
    out_tree = fn.out_tree or tree_of_results(len(fn.ret.args))
    result = _mapped_program(fn, axes, size, out_tree, out_axes)
    return Lambda(result.params, result.binds, result.ret, fn.in_tree, fn.out_tree)


def _with_known_types(fn: Lambda) -> Lambda:
    """``fn`` with the types inferred from its parameters, if any type is unknown."""
    avals = [param.type for param in fn.params]
    unknown = any(b.type is None for bind in fn.binds for b in bind.binders)
    return retype(fn, *avals) if unknown and None not in avals else fn


def _nonnegative_axis(param: Local, axis: int | None, position: int) -> int | None:
    """The batch axis ``axis`` of a mapped parameter, counted from the front."""
    rank = None if param.type is None else param.type.ndim + 1
    return _axis_from_front(axis, rank, param.name or f"argument {position}", "in_axes")


def _fresh_size(fn: Lambda) -> Size:
    """A symbolic size called batch, or batch2 and so on if the parameters use that name."""
    avals = [param.type for param in fn.params if param.type is not None]
    used = {name for aval in avals for n in aval.shape if type(n) is Size for name in n.names}
    names = itertools.chain(["batch"], map("batch{}".format, itertools.count(2)))
    return Size.named(next(name for name in names if name not in used))


# ---- batch axes ----


@frozen
class _Mapping:
    """The batch axis of each leaf, None if all examples share it, and the size of the batch."""

    axes: tuple[int | None, ...]
    size: int | Size

    @classmethod
    def from_leaves(cls, leaves: list, axes: list, names: list, axis_size) -> "_Mapping":
        """The mapping of these leaves. Raises ShapeError if sizes differ or an axis is missing."""
        result: list[int | None] = []
        sizes: dict[str, int | Size] = {}
        for i, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
            # bools and strings are static arguments, not operands
            if axis is None or is_static(leaf):
                result.append(None)
                continue
            name = names[i] or f"argument {i}"
            shape = _argument_type(leaf, name).shape
            place = _axis_from_front(axis, len(shape), name, "in_axes")
            result.append(place)
            sizes[f"{name} has {shape[place]} along axis {axis}"] = shape[place]
        return cls(tuple(result), _common_size(sizes, axis_size))

    def call_of(self, recording: Recording, args: tuple, kwargs: dict) -> ProgramCall:
        """The recording of one example with the arguments of all examples."""
        leaves = recording.tree.leaves_of(unmark_arguments(args, kwargs), "vmap")
        return ProgramCall(recording.fn, recording.tree, [*leaves, *recording.lifted])

    def examples(self, leaves: list) -> list:
        """The arguments to record ``f`` with: the type of one example, or a shared value."""
        return [
            leaf if axis is None else _example_of(_argument_type(leaf, "argument"), axis)
            for leaf, axis in zip(leaves, self.axes, strict=True)
        ]


def _argument_type(leaf, name: str) -> ArrayType:
    """The type of an argument, traced or not. Raises DTypeError with its name."""
    try:
        return leaf.type if hasattr(leaf, "emitter") else type_of(leaf)
    except DTypeError as error:
        error.args = (f"vmap: {name}: {error}",)
        raise


def _example_of(aval: ArrayType, axis: int) -> ShapeDtype:
    """The type of one example, for a batch of type ``aval`` along ``axis``."""
    return ShapeDtype(aval.shape[:axis] + aval.shape[axis + 1 :], aval.dtype)


def _common_size(sizes: dict[str, int | Size], axis_size):
    """The size that all mapped axes have. Raises ShapeError that lists them if they differ."""
    if axis_size is not None:
        if type(axis_size) is not Size:
            axis_size = _as_axis(axis_size, "axis_size")
        sizes = sizes | {f"axis_size is {axis_size}": axis_size}
    if not sizes:
        raise ShapeError(
            "vmap: no argument is mapped, so the size of the batch is not known\n  "
            "pass axis_size, or name a mapped axis in in_axes"
        )
    if len(set(sizes.values())) > 1:
        listed = "".join(f"\n  {line}" for line in sizes)
        raise ShapeError(
            f"vmap: the sizes of the mapped axes differ{listed}\n"
            "  map arrays of equal sizes, or pass None in in_axes for shared ones"
        )
    return next(iter(sizes.values()))


def _argument_axes(in_axes, args: tuple, kwargs: dict) -> list[int | None]:
    """An axis or None for each leaf of the arguments; keyword arguments are mapped along axis 0."""
    prefix = tuple(in_axes) if type(in_axes) is list else in_axes
    if isinstance(prefix, tuple) and len(prefix) != len(args):
        raise ShapeError(
            f"vmap: in_axes has {len(prefix)} entries for {len(args)} positional arguments: "
            f"{in_axes!r}\n"
            "  give one entry for each positional argument, or one for all"
        )
    return _prefix_leaves(prefix, args, "in_axes", "arguments") + [0] * len(flatten(kwargs)[0])


def _prefix_leaves(prefix, tree, name: str, role: str) -> list[int | None]:
    """The axis for each leaf of ``tree``, from ``prefix``, a tree of axes that ends earlier."""
    _, spec = flatten(tree)  # registers its classes with optree
    # for optree, None is an empty tree: leaves under a None of the prefix would get no axis
    marked = optree.tree_map(
        lambda axis: _SHARED if axis is None else axis,
        prefix,
        is_leaf=lambda node: node is None,
        namespace=NAMESPACE,
    )
    try:
        axes = optree.broadcast_prefix(marked, tree, namespace=NAMESPACE)
    except ValueError:
        raise ShapeError(
            f"vmap: {name}={prefix!r} is not a prefix of the {role}, which nest as {Tree(spec)}\n"
            "  nest it like the upper levels of the arguments or results"
        ) from None
    return [None if axis is _SHARED else _as_axis(axis, name) for axis in axes]


_SHARED = object()  # replaces None as a leaf of a tree of axes


def _as_axis(axis, name: str) -> int:
    """An axis as an int. Raises DTypeError if it is not an integer."""
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise DTypeError(
            f"vmap: {name} takes ints (or None), found {axis!r}\n"
            "  pass the number of an axis, or None for values that all examples share"
        )
    return operator.index(axis)


def _axis_from_front(axis: int | None, rank: int | None, name: str, option: str) -> int | None:
    """``axis`` counted from the front. Raises BoundsError if it is out of range."""
    if axis is None or (rank is None and axis >= 0):
        return axis
    if rank is None:
        raise ShapeError(f"vmap: the rank of {name} is not known: count {option} from the front")
    if not -rank <= axis < rank:
        raise BoundsError(
            f"vmap: {option} says axis {axis} of {name}, which has rank {rank}\n"
            "  pass None for values that all examples share"
        )
    return axis % rank


# ---- the program ----


def _mapped_program(fn: Lambda, axes: list, size, tree: Tree, out_axes) -> Lambda:
    """``fn`` batched along ``axes``, with the batch axes of its results at ``out_axes``."""
    program, axes_of_results = batch_program(fn, axes, size)
    out_positions = _prefix_leaves(out_axes, with_texts(nested_example(tree)), "out_axes", "result")
    builder = LetBuilder()
    builder.params, builder.binds = list(program.params), list(program.binds)
    # a symbolic batch size is read from a mapped argument when the program runs
    like = next((p for p, axis in zip(program.params, axes, strict=True) if axis is not None), None)
    results = [
        _place_batch(builder, *quadruple, size, None if like is None else Value(builder, like), i)
        for i, quadruple in enumerate(
            zip(program.ret.args, axes_of_results, out_positions, strict=True)
        )
    ]
    return builder.build(results)


def _place_batch(
    builder, arg: Arg, axis: int | None, out_axis: int | None, size, like, position: int
):
    """A result with its batch axis at ``out_axis``; a shared result is broadcast."""
    name = f"result {position}"
    if out_axis is None:
        if axis is not None:
            raise ShapeError(
                f"vmap: out_axes is None for {name}, which depends on mapped arguments\n"
                "  pass the axis along which its examples are stacked"
            )
        return arg
    value = Value(builder, arg) if type(arg) is Local else arg.value
    place = _axis_from_front(out_axis, 1 + rank_of(value, axis is not None), name, "out_axes")
    if axis is None:
        shape = (size, *shape_of(value))
        value = emit_with_shape("broadcast_to", value, shape, like, builder)
    return move_from_front(value, place)
