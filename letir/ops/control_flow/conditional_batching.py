"""Batching rules of ``cond`` and ``switch``.

Where all examples choose the same it stays one choice. Where each has its own, every branch that
any example takes is evaluated for all of them, and each gets the result of its own branch. The
others get, in the place of their operands, those of the first example that takes the branch: so
that a branch never sees what it was not meant for, and no nan comes out of it, nor a derivative.
"""

from collections.abc import Callable, Sequence

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.ops.autodiff.checkpoint_and_custom_jvp import suited
from letir.ops.autodiff.gradient_step_batching import axes_of, slice_types
from letir.ops.control_flow.conditional_derivatives import branches_in, choice_attrs, choose
from letir.ops.define.batch_rules import broadcast_batch, emit_op, first_mapped, move_to_front


def choice_batch(name: str) -> Callable:
    """The batching rule of ``cond`` or ``switch``."""

    def rule(args, axes, *, transform, **attrs):
        pairs = zip(args, axes, strict=True)
        args = [arg if axis is None else move_to_front(arg, axis) for arg, axis in pairs]
        mapped = [axis is not None for axis in axes]
        size = first_mapped(args, mapped).shape[0]
        types = slice_types(args, mapped)[1:]
        bodies = [suited(body, types) for body in branches_in(attrs)]
        programs = [transform(body, axes_of(mapped[1:]), size) for body in bodies]
        kinds = _result_types(bodies)
        if mapped[0]:
            return _each_its_own(name, args, mapped, programs, kinds)
        return _one_for_all(name, args, mapped, programs, kinds)

    return rule


def _result_types(bodies: Sequence[Lambda]) -> list[ArrayType | None]:
    """The types of one example's results."""
    return [arg.type for arg in bodies[0].ret.args]


# ---- all choose the same ----


def _one_for_all(name: str, args, mapped, programs, kinds) -> tuple:
    """One choice among the bodies for all examples."""
    places = zip(*[axes for _, axes in programs], strict=True)
    out = [any(axis is not None for axis in axes) for axes in places]
    bodies = [_with_batch(*pair, out, mapped[1:], kinds) for pair in programs]
    found = emit_op(name, args, **choice_attrs(name, bodies))
    return found, tuple([0 if there else None for there in out])


def _with_batch(program: Lambda, axes, out: Sequence[bool], mapped, kinds) -> Lambda:
    """``program`` with the batch in the results where ``out`` says so, in their dtypes."""
    builder = LetBuilder()
    params = [builder.param(param.type, param.name) for param in program.params]
    like = next((param for param, there in zip(params, mapped, strict=True) if there), None)
    results = []
    for i, found in enumerate(builder.call(program, params)):
        value = broadcast_batch(found, axes[i] is not None, like) if out[i] else found
        results.append(_in_dtype(value, kinds[i]))
    return builder.build(results)


def _in_dtype(value, kind: ArrayType | None):
    """A result of a body in the dtype that it has for one example."""
    if not isinstance(value, Value) or kind is None or value.type is None:
        return value
    return value if value.dtype == kind.dtype else value.astype(kind.dtype)


# ---- each has its own ----


def _each_its_own(name: str, args, mapped, programs, kinds) -> tuple:
    """All branches that are taken, and a choice between their results."""
    masks = _chosen_by(name, args[0], len(programs))
    found = [
        _taken(mask, args[1:], mapped[1:], program, axes, kinds)
        for mask, (program, axes) in zip(masks, programs, strict=True)
    ]
    results = []
    for i, kind in enumerate(kinds):
        value = _in_dtype(found[-1][i], kind)
        if len(masks) == 1:
            value = broadcast_batch(value, programs[-1][1][i] is not None, args[0])
        for mask, others in zip(masks[:-1], found[:-1], strict=True):
            is_its = like_rank(mask, len(kind.shape))
            value = emit_op("where", (is_its, _in_dtype(others[i], kind), value))
        results.append(value)
    return tuple(results), (0,) * len(results)


def _chosen_by(name: str, choice: Value, count: int) -> list[Value]:
    """For each branch, which examples take it."""
    if name == "cond":
        is_true = choice if choice.dtype.kind == "b" else choice != 0
        return [is_true, ~is_true]
    if choice.dtype.kind == "b" or choice.dtype.itemsize < 8:
        choice = choice.astype(np.dtype("int64"))  # else count may not fit it
    index = emit_op("minimum", (emit_op("maximum", (choice, 0)), count - 1))
    return [index == k for k in range(count)]


def first_in(mask: Value) -> Value:
    """The number of the first example in ``mask``; anything where there are no examples at all."""
    if mask.shape[0] == 0:  # argmax refuses that, and what reads the number is not evaluated
        return emit_op("sum", (mask,), axis=None, keepdims=False)
    return emit_op("argmax", (mask,), axis=None, keepdims=False)


def _taken(mask: Value, operands, mapped, program: Lambda, axes, kinds) -> tuple:
    """The results of a branch for the examples in ``mask``; if there is none it is not
    evaluated.
    """

    def branch(params):
        mask, *operands = params
        is_mapped = any(mapped)  # else all examples have one result
        first = first_in(mask) if is_mapped else None
        safe = [
            sheltered(mask, operand, first) if there else operand
            for operand, there in zip(operands, mapped, strict=True)
        ]
        return mask.emitter.call(program, safe)

    pairs = zip(kinds, axes, strict=True)
    shapes = [kind and (*mask.shape, *kind.shape)[axis is None :] for kind, axis in pairs]
    if not all(map(is_static_shape, shapes)):
        return branch([mask, *operands])

    def zero(i: int, params):
        op = PRIMITIVES["zeros"]
        attrs = {"shape": shapes[i], "dtype": kinds[i].dtype}
        return params[0].emitter.apply(op, (), op.complete(attrs))

    def nobody(params):
        return (None,) * len(kinds)

    is_any = emit_op("any", (mask,), axis=None, keepdims=False)
    return choose("cond", is_any, [mask, *operands], [branch, nobody], zero)


def sheltered(mask: Value, x: Value, first: Value) -> Value:
    """``x`` with the first example in ``mask`` in the place of those that are not in it."""
    other = emit_op("stop_gradient", (x[first],))
    return emit_op("where", (like_rank(mask, x.ndim - 1), x, other))


def like_rank(mask: Value, ndim: int) -> Value:
    """``mask`` with axes of length 1 for those of an example."""
    return emit_op("expand_dims", (mask,), axis=tuple(range(1, 1 + ndim))) if ndim else mask
