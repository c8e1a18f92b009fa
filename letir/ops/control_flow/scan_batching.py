"""The batching rule of ``scan``: a scan whose steps compute all examples at once."""

from collections.abc import Callable, Sequence
from typing import Any

from letir.ast.builder import LetBuilder, Value
from letir.ast.checker import retype
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Lambda, Local
from letir.ops.control_flow.conditional_derivatives import emit_choice
from letir.ops.control_flow.loop_analysis import follows_while_scan
from letir.ops.define.batch_rules import broadcast_batch, emit_op, move_to_front, type_without_batch


def scan_batch(
    args: Sequence,
    axes: Sequence,
    *,
    body: Lambda,
    n_carry: int,
    n_xs: int,
    length: int | None,
    reverse: bool,
    transform: Callable,
) -> tuple:
    """One loop for all examples. In scanned operands and stacked results the batch is axis 1."""
    end, mapped = n_carry + n_xs, [axis is not None for axis in axes]
    first = next(i for i, is_mapped in enumerate(mapped) if is_mapped)
    size = args[first].shape[axes[first]]
    kinds = [type_without_batch(arg, axis) for arg, axis in zip(args, axes, strict=True)]
    is_ragged = mapped[n_carry] and follows_while_scan(kinds, n_carry, n_xs) if n_xs else False
    kinds[n_carry:end] = [aval and aval.with_shape(aval.shape[1:]) for aval in kinds[n_carry:end]]
    kinds[:n_carry] = [aval and aval.with_shape(aval.shape) for aval in kinds[:n_carry]]
    if any(aval is not param.type for aval, param in zip(kinds, body.params, strict=True)):
        body = retype(body, *kinds)
    if is_ragged:
        body = _skip_missing_steps(body, n_carry)
    program, mapped, out_mapped = batched_body(body, mapped, n_carry, size, transform)
    operands = [
        arg if axis is None else move_to_front(arg, axis)
        for arg, axis in zip(args, axes, strict=True)
    ]
    like = operands[first]
    operands[:n_carry] = [
        broadcast_batch(arg, axis is not None or not is_mapped, like)
        for arg, axis, is_mapped in zip(operands, axes, mapped[:n_carry], strict=False)
    ]
    operands[n_carry:end] = [
        move_to_front(x, 1) if is_mapped else x
        for x, is_mapped in zip(operands[n_carry:end], mapped[n_carry:end], strict=True)
    ]
    attrs = {"n_carry": n_carry, "n_xs": n_xs, "length": length, "reverse": reverse}
    outs = emit_op("scan", operands, body=program, **attrs)
    places = [
        None if not is_mapped else 0 if i < n_carry else 1 for i, is_mapped in enumerate(out_mapped)
    ]
    return outs, tuple(places)


def _skip_missing_steps(body: Lambda, n_carry: int) -> Lambda:
    """``body`` for an example that may have fewer steps than others: number -1 means no step."""
    builder = LetBuilder()
    params = [builder.param(param.type, param.name) for param in body.params]
    is_step = params[n_carry] >= 0
    if is_step.ndim:
        is_step = emit_op("any", (is_step,), axis=None, keepdims=False)

    def zero(i: int, inputs):
        aval = body.ret.args[i].type
        op = PRIMITIVES["zeros"]
        attrs = op.complete({"shape": aval.shape, "dtype": aval.dtype})
        return inputs[0].emitter.apply(op, (), attrs)

    def step(inputs):
        return inputs[0].emitter.call(body, inputs)

    def skip(inputs):
        return [*inputs[:n_carry], *[None] * (len(body.ret.args) - n_carry)]

    return builder.build(emit_choice("cond", is_step, params, [step, skip], zero))


def _has_other_dtype(value, aval) -> bool:
    """Whether a value has another dtype than ``aval``; False if either is unknown."""
    actual = getattr(value, "type", None)
    return (
        isinstance(value, Value | Local)
        and None not in (actual, aval)
        and actual.dtype != aval.dtype
    )


def batched_body(
    body: Lambda, mapped: Sequence[bool], n_carry: int, size: Any, transform: Callable
) -> tuple:
    """(batched body, which operands have a batch axis, which results).

    A carried value is batched if its result is in any step: a fixpoint.
    """
    mapped = list(mapped)
    while True:  # terminates: the set only grows
        program, axes = transform(body, [0 if is_mapped else None for is_mapped in mapped], size)
        out = [axis is not None for axis in axes]
        grown = [a or b for a, b in zip(mapped, out[:n_carry], strict=False)] + mapped[n_carry:]
        if grown == mapped:
            break
        mapped = grown
    avals = [param.type for param in body.params[:n_carry]]
    pairs = list(zip(program.ret.args, avals, strict=False))
    if out[:n_carry] == mapped[:n_carry] and not any(_has_other_dtype(*pair) for pair in pairs):
        return program, mapped, out
    builder = LetBuilder()
    params = [builder.param(param.type, param.name) for param in program.params]
    like = next(param for param, is_mapped in zip(params, mapped, strict=True) if is_mapped)
    results = list(builder.call(program, params))
    for i in range(n_carry):
        if mapped[i] and not out[i]:
            results[i] = broadcast_batch(results[i], False, like)
        if _has_other_dtype(results[i], avals[i]):  # a batch of Python numbers promotes as an array
            results[i] = results[i].astype(avals[i].dtype)
    return builder.build(results), mapped, [*mapped[:n_carry], *out[n_carry:]]
