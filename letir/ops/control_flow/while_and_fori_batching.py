"""Batching rules of ``while_loop``, ``while_scan`` and ``fori_loop``.

If the trip count is the same for all examples, the batched bind is one loop of the batched body. If
the test differs between examples, the loop runs until all are finished: a finished example keeps
its carried values, and the body gets the values of the first unfinished example in their place, so
that it never computes on values that its test excluded.
"""

from collections.abc import Callable, Sequence
from typing import Any

from letir.ast.builder import LetBuilder, Value
from letir.ast.terms import Lambda
from letir.ops.autodiff.checkpoint_and_custom_jvp import fit_body_keeping_numbers
from letir.ops.autodiff.gradient_step_batching import axes_of, slice_types
from letir.ops.control_flow.conditional_batching import align_mask, first_selected, shelter_operand
from letir.ops.control_flow.fori_as_while import bound_test, counting_body
from letir.ops.control_flow.scan_batching import batched_body
from letir.ops.define.batch_rules import broadcast_batch, emit_op, first_mapped, move_to_front


def _batch_in_front(args: Sequence, axes: Sequence) -> tuple[list, list[bool]]:
    """(operands with the batch as axis 0, which of them have a batch)."""
    pairs = zip(args, axes, strict=True)
    operands = [arg if axis is None else move_to_front(arg, axis) for arg, axis in pairs]
    return operands, [axis is not None for axis in axes]


def _spread_carry(operands: list, before: Sequence[bool], mapped: Sequence[bool]) -> list:
    """The operands, broadcast over the batch where ``mapped`` says so and ``before`` does not."""
    like = first_mapped(operands, before)
    return [
        broadcast_batch(operand, a or not b, like)
        for operand, a, b in zip(operands, before, mapped, strict=True)
    ]


def _result_axes(mapped: Sequence[bool], axis: int = 0) -> tuple:
    """The batch axes of results: ``axis`` where ``mapped``, else None."""
    return tuple([axis if is_mapped else None for is_mapped in mapped])


# ---- while_loop, while_scan ----


def while_batch(
    args: Sequence, axes: Sequence, *, test: Lambda, body: Lambda, transform: Callable
) -> tuple:
    """The batching rule of ``while_loop``."""
    loop = _BatchedLoop(args, axes, test, body, len(body.ret.args), transform)
    if not loop.is_masked:
        result = emit_op("while_loop", loop.operands, test=loop.test, body=loop.body)
        return result, _result_axes(loop.out)
    test, body, operands = loop.masked_loop(stacks=False, numbered=False)
    result = emit_op("while_loop", operands, test=test, body=body)
    return result[1:], _result_axes(loop.out)


def while_scan_batch(
    args: Sequence,
    axes: Sequence,
    *,
    test: Lambda,
    body: Lambda,
    n_carry: int,
    numbered: bool,
    transform: Callable,
) -> tuple:
    """The batching rule of ``while_scan``; iteration numbers are -1 for finished examples."""
    loop = _BatchedLoop(args, axes, test, body, n_carry, transform)
    carry, rows = _result_axes(loop.out[:n_carry]), _result_axes(loop.out[n_carry:], 1)
    if not loop.is_masked:
        attrs = {"test": loop.test, "body": loop.body, "n_carry": n_carry, "numbered": numbered}
        result = emit_op("while_scan", loop.operands, **attrs)
        return result, (*carry, *([] if numbered else [None]), *rows)
    test, body, operands = loop.masked_loop(stacks=True, numbered=numbered)
    attrs = {"test": test, "body": body, "n_carry": n_carry + 1, "numbered": True}
    _, *result = emit_op("while_scan", operands, **attrs)
    return tuple(result), (*carry, 1, *rows[numbered:])


class _BatchedLoop:
    """A loop for all examples: its programs, its operands, and which of them have a batch axis."""

    def __init__(
        self,
        args: Sequence,
        axes: Sequence,
        test: Lambda,
        body: Lambda,
        n_carry: int,
        transform: Callable,
    ):
        operands, before = _batch_in_front(args, axes)
        size, kinds = first_mapped(operands, before).shape[0], slice_types(operands, before)
        body, test = fit_body_keeping_numbers(body, kinds), fit_body_keeping_numbers(test, kinds)
        self.n_carry = n_carry
        batched = batched_body(body, before, n_carry, size, transform)
        self.test, (axis,) = transform(test, axes_of(batched[1]), size)
        self.is_masked = axis is not None
        if self.is_masked:  # a finished example keeps its carried values: all need a batch axis
            every = [True] * n_carry + before[n_carry:]
            batched = batched_body(body, every, n_carry, size, transform)
            self.test, _ = transform(test, axes_of(batched[1]), size)
        self.body, self.mapped, self.out = batched
        self.operands = _spread_carry(operands, before, self.mapped)

    def masked_loop(self, stacks: bool, numbered: bool) -> tuple[Lambda, Lambda, list]:
        """(test, body, operands) of the loop whose first carried value masks unfinished examples.

        ``stacks``: its first stacked result is the iteration number, -1 for finished examples.
        ``numbered``: the body returns that number already.
        """
        first = self.operands[0].emitter.call(self.test, self.operands)[0]
        operands = [_as_truth_values(first), *self.operands]
        body = self.masked_body(operands, stacks, numbered)
        return self.any_left(operands), body, operands

    def any_left(self, operands: Sequence) -> Lambda:
        """The loop test: whether any example is unfinished."""
        mask, *_ = self.params(operands)
        return mask.emitter.build([emit_op("any", (mask,), axis=None, keepdims=False)])

    def params(self, operands: Sequence) -> list:
        """Parameters for the operands of the masked loop, in a new program."""
        builder, own = LetBuilder(), self.body.params
        mask = builder.param(operands[0].type)
        return [mask, *[builder.param(param.type, param.name) for param in own]]

    def masked_body(self, operands: Sequence, stacks: bool, numbered: bool) -> Lambda:
        """One iteration, which changes the carried values of unfinished examples only."""
        mask, *values = self.params(operands)
        first = first_selected(mask)
        pairs = zip(values, self.mapped, strict=True)
        safe = [
            shelter_operand(mask, value, first) if is_mapped else value
            for value, is_mapped in pairs
        ]
        results = mask.emitter.call(self.body, safe)
        carry = [
            emit_op("where", (align_mask(mask, value.ndim - 1), new, value))
            for new, value in zip(results, values[: self.n_carry], strict=False)
        ]
        continues = mask.emitter.call(self.test, [*carry, *values[self.n_carry :]])[0]
        further = list(results[self.n_carry :])
        if stacks:
            number: Any = further.pop(0) if numbered else 0
            rank = number.ndim - self.out[self.n_carry] if numbered else 0
            further.insert(0, emit_op("where", (align_mask(mask, rank), number, -1)))
        return mask.emitter.build([mask & _as_truth_values(continues), *carry, *further])


def _as_truth_values(test: Value) -> Value:
    """The array as booleans: whether each number is not zero."""
    return test if test.dtype.kind == "b" else test != 0


# ---- fori_loop ----


def fori_batch(args: Sequence, axes: Sequence, *, body: Lambda, transform: Callable) -> tuple:
    """The batching rule of ``fori_loop``: a ``while_loop`` if examples have different bounds."""
    if axes[0] is None and axes[1] is None:
        return _same_bounds(args, axes, body, transform)
    lower, upper, *rest = args
    n_carry = len(body.ret.args)
    kinds = slice_types(*_batch_in_front(args, axes))
    loop = counting_body(body, kinds[0], n_carry, kinds[1])
    operands = [*rest[:n_carry], lower, *rest[n_carry:], upper]
    along = [*axes[2 : 2 + n_carry], axes[0], *axes[2 + n_carry :], axes[1]]
    test = bound_test(loop.params, n_carry)
    results, out = while_batch(operands, along, test=test, body=loop, transform=transform)
    return results[:n_carry], out[:n_carry]


def _same_bounds(args, axes, body: Lambda, transform):
    """One ``fori_loop`` for all examples, whose bounds are the same."""
    operands, before = _batch_in_front(args[2:], axes[2:])
    size = first_mapped(operands, before).shape[0]
    index, n_carry = body.params[0], len(body.ret.args)
    body = fit_body_keeping_numbers(body, (index.type, *slice_types(operands, before)))
    index, *params = body.params
    # batched_body expects the carried values first
    last = Lambda([*params, index], body.binds, body.ret)
    program, mapped, out = batched_body(last, [*before, False], n_carry, size, transform)
    *params, index = program.params
    program = Lambda([index, *params], program.binds, program.ret)
    operands = _spread_carry(operands, before, mapped[:-1])
    return emit_op("fori_loop", [*args[:2], *operands], body=program), _result_axes(out)
