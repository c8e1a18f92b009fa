"""Derivatives of ``while_loop``, ``while_scan`` and ``fori_loop``.

Forward mode carries the tangents beside the values, in a loop of the same kind. Reverse mode is a
``scan`` over the iterations in the opposite order that reads stacked residuals: the
``with_residuals`` rule of a record makes the forward loop stack them, else the loop is rerun. To
stack residuals, a ``fori_loop`` becomes a ``scan`` if its bounds are constants, else a
``while_scan``.
"""

from collections.abc import Callable, Sequence
from typing import Any

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Arg, Bind, Const, Lambda, Local, Ret
from letir.ast.types import WEAK
from letir.ops.autodiff.checkpoint_and_custom_jvp import (
    body_type,
    fit_body_keeping_numbers,
    without_effects,
)
from letir.ops.control_flow.fori_as_while import bound_test, counting_body
from letir.ops.control_flow.loop_analysis import restore_number_results
from letir.ops.control_flow.scan_vjp import (
    ReverseStep,
    ScanBuilder,
    scan_backward,
    stack_residuals,
    tangent_body,
)
from letir.ops.define.records import takes_gradient
from letir.ops.shape.shape_and_creation import zeros, zeros_like

# ---- reverse mode of while_loop and while_scan ----


def _as_while_scan(bind: Bind) -> Bind:
    """A ``while_loop`` as a ``while_scan`` without stacked results."""
    op, attrs = PRIMITIVES["while_scan"], bind.attrs
    attrs = op.complete({**attrs, "n_carry": len(bind.binders), "numbered": False})
    numbers = Local(_while_scan_types(bind.args, attrs)[len(bind.binders)])
    return Bind((*bind.binders, numbers), op, bind.args, attrs, bind.source)


def _while_scan_types(args: Sequence[Arg], attrs: dict) -> tuple:
    """The result types of a ``while_scan``."""
    return PRIMITIVES["while_scan"].aval(*[arg.type for arg in args], **attrs)


def while_with_residuals(
    bind: Bind, needed: Sequence[bool], defined: Sequence[bool], differentiate: Callable
) -> Bind:
    """The ``while_loop`` as a ``while_scan`` that stacks the residuals of the backward pass."""
    return while_scan_with_residuals(_as_while_scan(bind), needed, [*defined, False], differentiate)


def while_scan_with_residuals(
    bind: Bind, needed: Sequence[bool], defined: Sequence[bool], differentiate: Callable
) -> Bind:
    """``bind`` with its residuals as further stacked results; ``bind`` if it stacks them all."""
    attrs, n_carry = bind.attrs, bind.attrs["n_carry"]
    defined = _body_results(defined, n_carry, attrs["numbered"])
    body = fit_body_keeping_numbers(attrs["body"], [arg.type for arg in bind.args])
    reverse_step = stack_residuals(body, n_carry, 0, needed, defined, differentiate)
    if reverse_step.body is body:
        return bind
    attrs = bind.op.complete({**attrs, "body": reverse_step.body})
    more = _while_scan_types(bind.args, attrs)[len(bind.binders) :]
    return Bind((*bind.binders, *map(Local, more)), bind.op, bind.args, attrs, bind.source)


def _body_results(values: Sequence, n_carry: int, numbered: bool) -> list:
    """``values``, one for each result of a ``while_scan``, without the iteration numbers' entry."""
    return [*values[:n_carry], *values[n_carry + (not numbered) :]]


def while_scan_vjp(
    cts: Sequence,
    outs: Sequence,
    *args: Any,
    test: Lambda,
    body: Lambda,
    n_carry: int,
    numbered: bool,
    transform: Any,
    wanted: Sequence[bool] | None = None,
) -> tuple:
    """A scan over the iterations in the opposite order, carrying cotangents of carried values."""
    wanted = [True] * len(args) if wanted is None else wanted
    needed = [w and takes_gradient(arg) for w, arg in zip(wanted, args, strict=True)]
    body = fit_body_keeping_numbers(without_effects(body), tuple(map(body_type, args)))
    cts = _body_results(cts, n_carry, numbered)
    defined = [ct is not None for ct in cts]
    reverse_step = ReverseStep.from_body(body, n_carry, 0, needed, defined, transform.program)
    if reverse_step.missing_residuals():  # rerun the loop, which then stacks the missing residuals
        reverse_step = stack_residuals(body, n_carry, 0, needed, defined, transform.program)
        attrs = {"test": without_effects(test), "body": reverse_step.body, "n_carry": n_carry}
        attrs |= {"numbered": numbered}
        outs = _emit_loop("while_scan", args, attrs)
    more = [None] * (len(reverse_step.body.ret.args) - len(cts))
    loop = ScanBuilder(None, True, outs[n_carry])
    return scan_backward(
        reverse_step, [*cts, *more], _body_results(outs, n_carry, numbered), args, loop
    )


def _emit_loop(name: str, operands: Sequence, attrs: dict) -> tuple:
    """Record the loop ``name`` where its operands are recorded."""
    emitter = next(v.emitter for v in operands if isinstance(v, Value))
    op = PRIMITIVES[name]
    return emitter.apply(op, tuple(operands), op.complete(attrs))


def while_vjp(
    cts: Sequence,
    outs: Sequence,
    *args: Any,
    transform: Any,
    wanted: Sequence[bool] | None = None,
    **attrs: Any,
) -> tuple:
    """VJP without saved residuals: rerun the loop as a ``while_scan`` that stacks them."""
    attrs = {name: without_effects(fn) for name, fn in attrs.items()}
    return _vjp_through("while_loop", _as_while_scan, cts, args, attrs, transform, wanted)


def _vjp_through(name: str, change: Callable, cts, args, attrs: dict, transform, wanted) -> tuple:
    """The VJP of loop ``name`` through the equivalent bind that ``change`` makes of it."""
    op, params = PRIMITIVES[name], [Local(arg.type) for arg in args if isinstance(arg, Value)]
    rest = iter(params)
    operands = tuple([next(rest) if isinstance(arg, Value) else Const(arg) for arg in args])
    outs = [Local(arg.type) for arg in attrs["body"].ret.args]
    bind = change(Bind(tuple(outs), op, operands, op.complete(attrs)))
    program = Lambda(params, restore_number_results(bind), Ret(tuple(outs)))
    flags = [wanted is None or wanted[i] for i, arg in enumerate(args) if isinstance(arg, Value)]
    variable = [arg for arg in args if isinstance(arg, Value)]
    pulled = iter(transform(program, variable, cts, wanted=flags))
    return tuple([next(pulled) if isinstance(arg, Value) else None for arg in args])


# ---- reverse mode of fori_loop ----


def fori_vjp(
    cts: Sequence,
    outs: Sequence,
    *args: Any,
    body: Lambda,
    transform: Any,
    wanted: Sequence[bool] | None = None,
) -> tuple:
    """VJP without saved residuals: rerun the loop as a scan that stacks them."""
    attrs = {"body": without_effects(body)}
    return _vjp_through("fori_loop", _as_stacking_loop, cts, args, attrs, transform, wanted)


def fori_with_residuals(
    bind: Bind, needed: Sequence[bool], defined: Sequence[bool], differentiate: Callable
) -> Bind:
    """The ``fori_loop`` as a loop that stacks the residuals of the backward pass."""
    result, n_carry = _as_stacking_loop(bind), len(bind.binders)
    flags = [*needed[2 : 2 + n_carry], False, *needed[2 + n_carry :]]
    flags += [False] * (len(result.args) - len(flags))
    more = [False] * (len(result.binders) - len(defined))
    return result.op.with_residuals(result, flags, [*defined, *more], differentiate)


def _as_stacking_loop(bind: Bind) -> Bind:
    """A ``fori_loop`` as a ``scan``, or as a ``while_scan`` if its bounds are not constants.

    The iteration number is carried after the carried values of the ``fori_loop``.
    """
    (lower, upper, *args), n_carry = bind.args, len(bind.binders)
    carry, captured = args[:n_carry], args[n_carry:]
    own = bind.attrs["body"]
    own = fit_body_keeping_numbers(own, [own.params[0].type, *[arg.type for arg in args]])
    if type(lower) is Const and type(upper) is Const:
        op, kind = PRIMITIVES["scan"], WEAK[int].with_dtype(WEAK[int].dtype)
        body = counting_body(own, kind, n_carry)
        length = max(upper.value - lower.value, 0)
        attrs = {"body": body, "n_carry": n_carry + 1, "n_xs": 0, "length": length}
        attrs = op.complete({**attrs, "reverse": False})
        return Bind(
            (*bind.binders, Local(kind)), op, (*carry, lower, *captured), attrs, bind.source
        )
    body = counting_body(own, lower.type, n_carry, upper.type)
    test = bound_test(body.params, n_carry)
    op = PRIMITIVES["while_scan"]
    attrs = {"test": test, "body": body, "n_carry": n_carry + 1, "numbered": False}
    attrs = op.complete(attrs)
    operands = (*carry, lower, *captured, upper)
    index, numbers = _while_scan_types(operands, attrs)[n_carry : n_carry + 2]
    binders = (*bind.binders, Local(index), Local(numbers))
    return Bind(binders, op, operands, attrs, bind.source)


# ---- forward mode ----


def while_fused_jvp(
    tangents: Sequence, *args: Any, test: Lambda, body: Lambda, transform: Any
) -> tuple:
    """(results, their tangents) by one loop, which carries tangents beside values."""
    loop = _LoopWithTangents.from_loop(tangents, args, body, len(body.ret.args), 0, transform)
    attrs = {"test": loop.fit_test(test), "body": loop.body()}
    results = _emit_loop("while_loop", loop.operands, attrs)
    return results[: loop.n_carry], loop.tangents_of_results(results)


def fori_fused_jvp(
    tangents: Sequence, lower: Any, upper: Any, *args: Any, body: Lambda, transform: Any
) -> tuple:
    """(results, their tangents) by one loop, which carries tangents beside values."""
    loop = _LoopWithTangents.from_loop(tangents[2:], args, body, len(body.ret.args), 1, transform)
    results = _emit_loop("fori_loop", (lower, upper, *loop.operands), {"body": loop.body()})
    return results[: loop.n_carry], loop.tangents_of_results(results)


def while_scan_fused_jvp(
    tangents: Sequence,
    *args: Any,
    test: Lambda,
    body: Lambda,
    n_carry: int,
    numbered: bool,
    transform: Any,
) -> tuple:
    """(results, their tangents) by one loop, which carries and stacks tangents beside values."""
    loop = _LoopWithTangents.from_loop(tangents, args, body, n_carry, 0, transform)
    carry, count = n_carry + len(loop.moving), len(body.ret.args)
    attrs = {
        "test": loop.fit_test(test),
        "body": loop.body(),
        "n_carry": carry,
        "numbered": numbered,
    }
    outs = _emit_loop("while_scan", loop.operands, attrs)
    rest = outs[carry : carry + (not numbered) + count - n_carry]
    by_result = loop.tangents_of_results(_body_results(outs, carry, numbered))
    along = (*by_result[:n_carry], *([] if numbered else [None]), *by_result[n_carry:])
    return (*outs[:n_carry], *rest), along


def _jvp_from_fused(fused_jvp: Callable) -> Callable:
    """The jvp of a loop from its ``fused_jvp`` rule: rerun it with tangents and without effects."""

    def jvp(tangents, outs, *args, transform, **attrs):
        attrs = {k: without_effects(v) if type(v) is Lambda else v for k, v in attrs.items()}
        return fused_jvp(tangents, *args, transform=transform, **attrs)[1]

    return jvp


while_jvp = _jvp_from_fused(while_fused_jvp)
fori_jvp = _jvp_from_fused(fori_fused_jvp)
while_scan_jvp = _jvp_from_fused(while_scan_fused_jvp)


class _LoopWithTangents:
    """A loop whose body also computes the tangents of the carried values.

    Its operands are the carried values, the tangents of the carried values ``moving``, the captured
    values, and the tangents of the captured values ``shared``. The body has ``leading`` parameters
    before all these.
    """

    def __init__(
        self,
        program: Lambda,
        outputs: Sequence[int],
        inputs: Sequence[int],
        n_carry: int,
        leading: int,
        count: int,
    ):
        self.program, self.outputs, self.n_carry = program, outputs, n_carry
        self.leading, self.count = leading, count  # the results of one iteration without tangents
        places = [i - leading for i in inputs]
        self.moving = [i for i in places if i < n_carry]
        self.shared = [i for i in places if i >= n_carry]
        self.operands: tuple = ()

    @classmethod
    def from_loop(
        cls,
        tangents: Sequence,
        args: Sequence,
        body: Lambda,
        n_carry: int,
        leading: int,
        transform: Any,
    ) -> "_LoopWithTangents":
        """The loop for operands ``args`` with these ``tangents``."""
        types = (*[param.type for param in body.params[:leading]], *map(body_type, args))
        body = fit_body_keeping_numbers(body, types)
        directions = [*[None] * leading, *tangents]
        inputs, (program, outputs) = _tangent_program(
            body, leading, n_carry, directions, transform.program
        )
        result = cls(program, outputs, inputs, n_carry, leading, len(body.ret.args))
        emitter = next(t.emitter for t in tangents if t is not None)
        pairs = [(tangents[i], args[i]) for i in result.moving]
        along = [_zero_tangent(arg, emitter) if t is None else t for t, arg in pairs]
        captured = [tangents[i] for i in result.shared]
        result.operands = (*args[:n_carry], *along, *args[n_carry:], *captured)
        return result

    def sort_params(self, params: Sequence) -> tuple[list, list]:
        """(values, tangents): the parameters of the loop's body, sorted."""
        end = self.leading + self.n_carry
        carry, along = params[:end], params[end : end + len(self.moving)]
        rest = params[end + len(self.moving) :]
        captured = rest[: len(rest) - len(self.shared)]
        return [*carry, *captured], [*along, *rest[len(captured) :]]

    def body(self) -> Lambda:
        """The body of the loop."""
        builder = LetBuilder()
        count = len(self.program.params) - len(self.moving) - len(self.shared)
        own, along = self.program.params[:count], self.program.params[count:]
        end, moving = self.leading + self.n_carry, len(self.moving)
        order = (*own[:end], *along[:moving], *own[end:], *along[moving:])
        params = [builder.param(param.type, param.name) for param in order]
        values, tangents = self.sort_params(params)
        results = builder.call(self.program, [*values, *tangents])
        by_output = dict(zip(self.outputs, results[self.count :], strict=True))
        moved = [
            by_output[i] if i in by_output else zeros_like(values[self.leading + i])
            for i in self.moving
        ]
        stacked = [by_output[i] for i in self.outputs if i >= self.n_carry]
        carry, further = results[: self.n_carry], results[self.n_carry : self.count]
        return builder.build([*carry, *moved, *further, *stacked])

    def fit_test(self, test: Lambda) -> Lambda:
        """The test of the loop, for operands with tangents, which it does not read."""
        builder = LetBuilder()
        params = [builder.param(body_type(operand)) for operand in self.operands]
        values, _ = self.sort_params(params)
        return builder.build(builder.call(test, values))

    def tangents_of_results(self, results: Sequence) -> tuple:
        """The tangents of the results, from the results of the loop; None for zero."""
        start, stacked = self.n_carry, [i for i in self.outputs if i >= self.n_carry]
        along = results[start : start + len(self.moving)]
        rows = results[len(results) - len(stacked) :] if stacked else ()
        answers = dict(zip([*self.moving, *stacked], [*along, *rows], strict=True))
        return tuple([answers.get(i) for i in range(self.count)])


def _zero_tangent(arg, emitter) -> Value:
    """A tangent of zeros for ``arg``, which may be a Python number."""
    if isinstance(arg, Value):
        return zeros_like(arg)
    attrs = zeros.complete({"shape": (), "dtype": WEAK[type(arg)].dtype})
    return emitter.apply(zeros, (), attrs)


def _tangent_program(
    body: Lambda, leading: int, n_carry: int, tangents: Sequence, program: Callable
):
    """Like ``tangent_body``, for a body with ``leading`` operands before the carried values."""
    if not leading:
        return tangent_body(body, n_carry, tangents, program)
    inputs = [i for i, t in enumerate(tangents) if t is not None]
    while True:
        result = program(body, inputs)
        grown = sorted({*inputs, *[leading + i for i in result[1] if i < n_carry]})
        if grown == inputs:
            return inputs, result
        inputs = grown
