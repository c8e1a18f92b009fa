"""Batching rules of ``while_loop``, ``while_scan`` and ``fori_loop``.

Where all examples go round equally often it stays one loop. Where the test differs between them
the loop goes on until all are done: those that are done keep what they carry, and the body gets, in
the place of theirs, the values of the first one that goes on, so that it sees nothing that it was
not meant for.
"""

from collections.abc import Sequence

from letir.ast.builder import LetBuilder, Value
from letir.ast.terms import Lambda
from letir.ops.autodiff.checkpoint_and_custom_jvp import suited
from letir.ops.autodiff.gradient_step_batching import axes_of, slice_types
from letir.ops.control_flow.conditional_batching import first_in, like_rank, sheltered
from letir.ops.control_flow.fori_as_while import below, counting
from letir.ops.control_flow.scan_batching import batched_body
from letir.ops.define.batch_rules import broadcast_batch, emit_op, first_mapped, move_to_front


def _in_front(args: Sequence, axes: Sequence) -> tuple[list, list[bool]]:
    """(operands with the batch in front, which of them have it)."""
    pairs = zip(args, axes, strict=True)
    operands = [arg if axis is None else move_to_front(arg, axis) for arg, axis in pairs]
    return operands, [axis is not None for axis in axes]


def _spread_carry(operands: list, before: Sequence[bool], mapped: Sequence[bool]) -> list:
    """The operands, with the batch where only ``mapped`` has it."""
    like = first_mapped(operands, before)
    return [
        broadcast_batch(operand, a or not b, like)
        for operand, a, b in zip(operands, before, mapped, strict=True)
    ]


def _places(mapped: Sequence[bool], axis: int = 0) -> tuple:
    """The axes of results that have the batch there."""
    return tuple([axis if there else None for there in mapped])


# ---- until a test fails ----


def while_batch(args, axes, *, test, body, transform):
    """The rule of ``while_loop``."""
    loop = _Batched(args, axes, test, body, len(body.ret.args), transform)
    if not loop.is_masked:
        found = emit_op("while_loop", loop.operands, test=loop.test, body=loop.body)
        return found, _places(loop.out)
    test, body, operands = loop.masked(stacks=False, numbered=False)
    found = emit_op("while_loop", operands, test=test, body=body)
    return found[1:], _places(loop.out)


def while_scan_batch(args, axes, *, test, body, n_carry, numbered, transform):
    """The rule of ``while_scan``: the number of an iteration is -1 for examples that are done."""
    loop = _Batched(args, axes, test, body, n_carry, transform)
    carry, rows = _places(loop.out[:n_carry]), _places(loop.out[n_carry:], 1)
    if not loop.is_masked:
        attrs = {"test": loop.test, "body": loop.body, "n_carry": n_carry, "numbered": numbered}
        found = emit_op("while_scan", loop.operands, **attrs)
        return found, (*carry, *([] if numbered else [None]), *rows)
    test, body, operands = loop.masked(stacks=True, numbered=numbered)
    attrs = {"test": test, "body": body, "n_carry": n_carry + 1, "numbered": True}
    _, *found = emit_op("while_scan", operands, **attrs)
    return tuple(found), (*carry, 1, *rows[numbered:])


class _Batched:
    """A loop for all examples: its programs, its operands, and which of them have the batch."""

    def __init__(self, args, axes, test: Lambda, body: Lambda, n_carry: int, transform):
        operands, before = _in_front(args, axes)
        size, kinds = first_mapped(operands, before).shape[0], slice_types(operands, before)
        body, test = suited(body, kinds), suited(test, kinds)
        self.n_carry = n_carry
        made = batched_body(body, before, n_carry, size, transform)
        self.test, (axis,) = transform(test, axes_of(made[1]), size)
        self.is_masked = axis is not None
        if self.is_masked:  # whoever is done keeps what it carries
            every = [True] * n_carry + before[n_carry:]
            made = batched_body(body, every, n_carry, size, transform)
            self.test, _ = transform(test, axes_of(made[1]), size)
        self.body, self.mapped, self.out = made
        self.operands = _spread_carry(operands, before, self.mapped)

    def masked(self, stacks: bool, numbered: bool) -> tuple[Lambda, Lambda, list]:
        """(test, body, operands) of the loop that carries first which examples go on; ``stacks``:
        and whose iterations give first their number, -1 for those that are done.
        """
        first = self.operands[0].emitter.call(self.test, self.operands)[0]
        operands = [_truth(first), *self.operands]
        body = self.masked_body(operands, stacks, numbered)
        return self.any_left(operands), body, operands

    def any_left(self, operands: Sequence) -> Lambda:
        """Whether any example goes on."""
        mask, *_ = self.params(operands)
        return mask.emitter.build([emit_op("any", (mask,), axis=None, keepdims=False)])

    def params(self, operands: Sequence) -> list:
        """Parameters for the operands of the masked loop, in a program of their own."""
        builder, own = LetBuilder(), self.body.params
        mask = builder.param(operands[0].type)
        return [mask, *[builder.param(param.type, param.name) for param in own]]

    def masked_body(self, operands: Sequence, stacks: bool, numbered: bool) -> Lambda:
        """One iteration for the examples that go on."""
        mask, *values = self.params(operands)
        first = first_in(mask)
        pairs = zip(values, self.mapped, strict=True)
        safe = [sheltered(mask, value, first) if there else value for value, there in pairs]
        found = mask.emitter.call(self.body, safe)
        carry = [
            emit_op("where", (like_rank(mask, value.ndim - 1), new, value))
            for new, value in zip(found, values[: self.n_carry], strict=False)
        ]
        left = mask.emitter.call(self.test, [*carry, *values[self.n_carry :]])[0]
        further = list(found[self.n_carry :])
        if stacks:
            number = further.pop(0) if numbered else 0
            rank = number.ndim - self.out[self.n_carry] if numbered else 0
            further.insert(0, emit_op("where", (like_rank(mask, rank), number, -1)))
        return mask.emitter.build([mask & _truth(left), *carry, *further])


def _truth(found: Value) -> Value:
    """Numbers as truth values."""
    return found if found.dtype.kind == "b" else found != 0


# ---- counted ----


def fori_batch(args, axes, *, body, transform):
    """The rule of ``fori_loop``; bounds of its own for each example make it a ``while_loop``."""
    if axes[0] is None and axes[1] is None:
        return _same_bounds(args, axes, body, transform)
    lower, upper, *rest = args
    n_carry = len(body.ret.args)
    kinds = slice_types(*_in_front(args, axes))
    loop = counting(body, kinds[0], n_carry, kinds[1])
    operands = [*rest[:n_carry], lower, *rest[n_carry:], upper]
    along = [*axes[2 : 2 + n_carry], axes[0], *axes[2 + n_carry :], axes[1]]
    test = below(loop.params, n_carry)
    found, out = while_batch(operands, along, test=test, body=loop, transform=transform)
    return found[:n_carry], out[:n_carry]


def _same_bounds(args, axes, body: Lambda, transform):
    """One loop for all examples."""
    operands, before = _in_front(args[2:], axes[2:])
    size = first_mapped(operands, before).shape[0]
    index, n_carry = body.params[0], len(body.ret.args)
    body = suited(body, (index.type, *slice_types(operands, before)))
    index, *params = body.params
    # the rule of bodies has what is carried first
    last = Lambda([*params, index], body.binds, body.ret)
    program, mapped, out = batched_body(last, [*before, False], n_carry, size, transform)
    *params, index = program.params
    program = Lambda([index, *params], program.binds, program.ret)
    operands = _spread_carry(operands, before, mapped[:-1])
    return emit_op("fori_loop", [*args[:2], *operands], body=program), _places(out)
