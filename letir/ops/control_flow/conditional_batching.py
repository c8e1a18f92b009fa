"""Batching rules of ``cond`` and ``switch``.

If the choice is the same for all examples, the batched bind is still one choice. If each example
has its own, every branch that some example takes is evaluated for the whole batch, and each example
selects the result of its own branch. Inside a branch, the operands of the examples that do not take
it are replaced by the operands of the first example that does: a branch never computes on values
that its test excluded, which could make nans in its results or derivatives.
"""

from collections.abc import Callable, Sequence

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.ops.autodiff.checkpoint_and_custom_jvp import fit_body_keeping_numbers
from letir.ops.autodiff.gradient_step_batching import axes_of, slice_types
from letir.ops.control_flow.conditional_derivatives import branches_in, choice_attrs, emit_choice
from letir.ops.define.batch_rules import broadcast_batch, emit_op, first_mapped, move_to_front


def choice_batch(name: str) -> Callable:
    """The batching rule of ``cond`` or ``switch``."""

    def rule(args, axes, *, transform, **attrs):
        pairs = zip(args, axes, strict=True)
        args = [arg if axis is None else move_to_front(arg, axis) for arg, axis in pairs]
        mapped = [axis is not None for axis in axes]
        size = first_mapped(args, mapped).shape[0]
        types = slice_types(args, mapped)[1:]
        bodies = [fit_body_keeping_numbers(body, types) for body in branches_in(attrs)]
        programs = [transform(body, axes_of(mapped[1:]), size) for body in bodies]
        kinds = _result_types(bodies)
        if mapped[0]:
            return _choose_per_example(name, args, mapped, programs, kinds)
        return _choose_once(name, args, mapped, programs, kinds)

    return rule


def _result_types(bodies: Sequence[Lambda]) -> list[ArrayType | None]:
    """The types of the results for one example."""
    return [arg.type for arg in bodies[0].ret.args]


# ---- one choice for all examples ----


def _choose_once(name: str, args, mapped, programs, kinds) -> tuple:
    """The results, and their batch axes, of one choice among the batched bodies."""
    places = zip(*[axes for _, axes in programs], strict=True)
    out = [any(axis is not None for axis in axes) for axes in places]
    bodies = [_with_batched_results(fn, axes, out, mapped[1:], kinds) for fn, axes in programs]
    result = emit_op(name, args, **choice_attrs(name, bodies))
    return result, tuple([0 if has_axis else None for has_axis in out])


def _with_batched_results(program: Lambda, axes, out: Sequence[bool], mapped, kinds) -> Lambda:
    """``program`` with a batch axis in the results that ``out`` marks, in the dtypes of ``kinds``.

    ``axes``: where the results have it already. ``mapped``: which parameters have it.
    """
    builder = LetBuilder()
    params = [builder.param(param.type, param.name) for param in program.params]
    like = next((param for param, has_axis in zip(params, mapped, strict=True) if has_axis), None)
    results = []
    for i, result in enumerate(builder.call(program, params)):
        value = broadcast_batch(result, axes[i] is not None, like) if out[i] else result
        results.append(_cast_to_dtype(value, kinds[i]))
    return builder.build(results)


def _cast_to_dtype(value, aval: ArrayType | None):
    """A result of a body, cast to the dtype that it has for one example."""
    if not isinstance(value, Value) or aval is None or value.type is None:
        return value
    return value if value.dtype == aval.dtype else value.astype(aval.dtype)


# ---- a choice for each example ----


def _choose_per_example(name: str, args, mapped, programs, kinds) -> tuple:
    """All branches, each evaluated if any example takes it, and a selection among their results."""
    masks = _branch_masks(name, args[0], len(programs))
    by_branch = [
        _run_branch(mask, args[1:], mapped[1:], program, axes, kinds)
        for mask, (program, axes) in zip(masks, programs, strict=True)
    ]
    results = []
    for i, aval in enumerate(kinds):
        value = _cast_to_dtype(by_branch[-1][i], aval)
        if len(masks) == 1:
            value = broadcast_batch(value, programs[-1][1][i] is not None, args[0])
        for mask, others in zip(masks[:-1], by_branch[:-1], strict=True):
            is_its = align_mask(mask, len(aval.shape))
            value = emit_op("where", (is_its, _cast_to_dtype(others[i], aval), value))
        results.append(value)
    return tuple(results), (0,) * len(results)


def _branch_masks(name: str, choice: Value, count: int) -> list[Value]:
    """For each branch a mask of the examples that take it."""
    if name == "cond":
        is_true = choice if choice.dtype.kind == "b" else choice != 0
        return [is_true, ~is_true]
    if choice.dtype.kind == "b" or choice.dtype.itemsize < 8:
        choice = choice.astype(np.dtype("int64"))  # count may not fit a smaller dtype
    index = emit_op("minimum", (emit_op("maximum", (choice, 0)), count - 1))
    return [index == k for k in range(count)]


def first_selected(mask: Value) -> Value:
    """The index of the first example in ``mask``; an arbitrary number if the batch is empty."""
    if mask.shape[0] == 0:  # argmax refuses an empty array; readers of the index are not evaluated
        return emit_op("sum", (mask,), axis=None, keepdims=False)
    return emit_op("argmax", (mask,), axis=None, keepdims=False)


def _run_branch(mask: Value, operands, mapped, program: Lambda, axes, kinds) -> tuple:
    """The results of a branch for the examples in ``mask``; not evaluated if there are none."""

    def branch(params):
        mask, *operands = params
        is_mapped = any(mapped)  # else the result is the same for all examples
        first = first_selected(mask) if is_mapped else None
        safe = [
            shelter_operand(mask, operand, first) if has_axis else operand
            for operand, has_axis in zip(operands, mapped, strict=True)
        ]
        return mask.emitter.call(program, safe)

    pairs = zip(kinds, axes, strict=True)
    shapes = [aval and (*mask.shape, *aval.shape)[axis is None :] for aval, axis in pairs]
    if not all(map(is_static_shape, shapes)):
        return branch([mask, *operands])

    def zero(i: int, params):
        op = PRIMITIVES["zeros"]
        attrs = {"shape": shapes[i], "dtype": kinds[i].dtype}
        return params[0].emitter.apply(op, (), op.complete(attrs))

    def skip(params):
        return (None,) * len(kinds)

    is_any = emit_op("any", (mask,), axis=None, keepdims=False)
    return emit_choice("cond", is_any, [mask, *operands], [branch, skip], zero)


def shelter_operand(mask: Value, x: Value, first: Value) -> Value:
    """``x`` with the examples outside of ``mask`` replaced by example number ``first``."""
    other = emit_op("stop_gradient", (x[first],))
    return emit_op("where", (align_mask(mask, x.ndim - 1), x, other))


def align_mask(mask: Value, ndim: int) -> Value:
    """``mask`` with ``ndim`` axes of length 1 appended, so that it broadcasts over examples."""
    return emit_op("expand_dims", (mask,), axis=tuple(range(1, 1 + ndim))) if ndim else mask
