"""Batching rules of guards, custom derivative rules, and the steps of gradient programs.

An operation that holds bodies becomes the same operation with batched bodies, so that a user's
derivative rule survives ``vmap``. If any operand has a batch axis, all results have one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from letir.ast.builder import LetBuilder, Value
from letir.ast.terms import Lambda
from letir.errors import TraceError
from letir.ops.define.batch_rules import (
    batch_first,
    broadcast_batch,
    emit_op,
    first_mapped,
    integer_constant,
    known_size,
    stack_sizes,
    type_without_batch,
)
from letir.ops.shape.shape_batching import refuse_mapped_shape


def mapped_guard(args: Sequence, axes: Sequence, *, value: Any) -> NoReturn:
    """Raise TraceError: a guard on a mapped value cannot hold for all examples."""
    raise TraceError(
        f"vmap: the program chose its path where a mapped value was {value!r}, for one example\n"
        "  choose with numpy.where, which decides for each example"
    )


# ---- bodies ----


def mapped_body(
    body: Lambda, axes: list, size: Any, transform: Callable, summed: list[bool]
) -> Lambda:
    """``body`` for all examples: each result has the batch as axis 0, or is the sum over it.

    ``axes``: the batch axis of each parameter, or None. ``size``: the number of examples.
    ``summed``: which results are summed over the batch.
    """
    # transform leaves results that do not vary without a batch axis; here all results get one
    program, result_axes = transform(body, axes, size)
    builder = LetBuilder()
    params = [builder.param(param.type, param.name) for param in program.params]
    like = next(param for param, axis in zip(params, axes, strict=True) if axis == 0)
    results = []
    for result, axis, is_sum in zip(
        builder.call(program, params), result_axes, summed, strict=True
    ):
        value = broadcast_batch(result, axis == 0, like)
        results.append(emit_op("sum", (value,), axis=0) if is_sum else value)
    return builder.build(results)


def axes_of(mapped: Iterable[bool]) -> list[int | None]:
    """The batch axes of operands: 0 where ``mapped``, else None."""
    return [0 if has_axis else None for has_axis in mapped]


@batch_first
def mapped_custom_vjp(
    args: Sequence,
    mapped: Sequence[bool],
    *,
    n_outs: int,
    n_residuals: int,
    backward: Lambda,
    transform: Callable,
) -> tuple:
    """The batching rule of custom_vjp; the cotangent of an operand that is not mapped is summed."""
    like, split = first_mapped(args, mapped), n_outs + n_residuals
    outs = [
        broadcast_batch(*pair, like) for pair in zip(args[:n_outs], mapped[:n_outs], strict=True)
    ]
    axes = [*axes_of(mapped[n_outs:split]), *[0] * n_outs]
    # an operand that all examples share gets one cotangent from each example
    summed = [not has_axis for has_axis in mapped[split : split + len(backward.ret.args)]]
    backward = mapped_body(backward, axes, like.shape[0], transform, summed)
    attrs = {"n_outs": n_outs, "n_residuals": n_residuals, "backward": backward}
    return emit_op("custom_vjp", (*outs, *args[n_outs:]), **attrs)


def slice_types(args: Sequence, mapped: Sequence[bool]) -> list:
    """The type of each operand for one example, without the batch; None for None."""
    return [
        type_without_batch(arg, 0 if has_axis else None)
        for arg, has_axis in zip(args, mapped, strict=True)
    ]


def mapped_checkpoint(fitted: Callable, args: Sequence, axes: Sequence, /, **attrs: Any) -> Any:
    """The batching rule of checkpoint; ``fitted`` is ``fit_body``, whose module loads this one."""

    @batch_first
    def rule(args, mapped, *, body, saved, transform):
        body = fitted(body, slice_types(args, mapped))
        size, summed = first_mapped(args, mapped).shape[0], [False] * len(body.ret.args)
        program = mapped_body(body, axes_of(mapped), size, transform, summed)
        return emit_op("checkpoint", args, body=program, saved=saved)

    return rule(args, axes, **attrs)


def mapped_custom_jvp(
    fitted: Callable, directed: Callable, args: Sequence, axes: Sequence, /, **attrs: Any
) -> Any:
    """The batching rule of custom_jvp: the function and the user's rule, both batched.

    ``fitted`` is ``fit_body``, ``directed`` says which types have a tangent.
    """

    @batch_first
    def rule(args, mapped, *, name, primal, rule, closed_over, transform):
        like, count = first_mapped(args, mapped), len(primal.params)
        if not any(mapped[:count]):  # only operands that the user's rule alone reads are mapped
            args = [broadcast_batch(arg, i >= count, like) for i, arg in enumerate(args)]
            mapped = (*[True] * count, *mapped[count:])
        size, kinds = like.shape[0], slice_types(args, mapped)
        primal = fitted(primal, kinds[:count])
        outs = [arg.type for arg in primal.ret.args]
        axes, summed = axes_of(mapped), [False] * len(outs)
        attrs = {"name": name, "rule": rule, "closed_over": closed_over}
        if rule is not None:
            along = [i for i, kind in enumerate(kinds[: count - closed_over]) if directed(kind)]
            tangents = [kinds[i] and kinds[i].with_dtype(kinds[i].dtype) for i in along]
            rule = fitted(rule, [*kinds, *outs, *tangents])
            places = [*axes, *[0] * len(outs), *[axes[i] for i in along]]
            every = [False] * len(rule.ret.args)
            attrs["rule"] = mapped_body(rule, places, size, transform, every)
        primal = mapped_body(primal, axes[:count], size, transform, summed)
        return emit_op("custom_jvp", args, primal=primal, **attrs)

    return rule(args, axes, **attrs)


# ---- gradient programs ----


def mapped_step(name: str, args: Sequence, axes: Sequence, /, **attrs: Any) -> Any:
    """The batching rule of grad_of or when_defined."""

    @batch_first
    def rule(args, mapped, *, body, transform, **attrs):
        size = first_mapped(args, mapped).shape[0]
        summed = [False] * len(body.ret.args)
        program = mapped_body(body, axes_of(mapped), size, transform, summed)
        return emit_op(name, args, body=program, **attrs)

    return rule(args, axes, **attrs)


@batch_first
def mapped_autograd_add(args: Sequence, mapped: Sequence[bool]) -> Any:
    """The batching rule of autograd_add; an operand that is not mapped gets a batch axis."""
    like = first_mapped(args, mapped)
    operands = [_spread_if_defined(*pair, like) for pair in zip(args, mapped, strict=True)]
    return emit_op("autograd_add", operands)


def _spread_if_defined(ct, is_mapped: bool, like: Value):
    """``ct`` broadcast over the batch of ``like``; ``Undef`` if it is ``Undef`` at run time."""
    if is_mapped or not isinstance(ct, Value):
        return ct
    builder = LetBuilder()
    # only a run shows whether ct is Undef: when_defined then skips the broadcast
    value, size = builder.param(ct.type), builder.param(like.type)
    body = builder.build([broadcast_batch(value, False, size)])
    return emit_op("when_defined", (ct, like), n_cts=1, body=body)[0]


@batch_first
def mapped_instantiate(args: Sequence, mapped: Sequence[bool], *, shape: Any, dtype: Any) -> Any:
    """The batching rule of instantiate; zeros for ``Undef`` have a batch axis too."""
    ct, *sizes = args
    refuse_mapped_shape("instantiate", sizes, mapped)
    n = known_size(ct.shape[0], "instantiate")
    if sizes:
        sizes = [stack_sizes([integer_constant(ct.emitter, [n]), *sizes])]
    shape = None if shape is None else (n, *shape)
    return emit_op("instantiate", (ct, *sizes), shape=shape, dtype=dtype)
