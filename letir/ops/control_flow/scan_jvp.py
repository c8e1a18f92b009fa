"""The forward mode of ``scan``: a scan of the tangents in the same direction.

It has three forms. For ``jvp``, ``scan_fused_jvp`` replaces the loop by one that carries tangents
beside values. For ``linearize``, ``scan_with_tangent_residuals`` makes the loop stack the
residuals that the tangents read, and ``scan_jvp`` is then a loop of the tangents alone. Without
these residuals ``scan_jvp`` computes the values once more, without their effects.
"""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from letir.ast.builder import Value
from letir.ast.terms import Bind, Lambda
from letir.ops.autodiff.checkpoint_and_custom_jvp import body_type, without_effects
from letir.ops.control_flow.loop_analysis import fit_step, follows_while_scan, has_fixed_shape
from letir.ops.control_flow.scan_vjp import (
    ScanBuilder,
    StepDerivative,
    residual_params,
    stack_missing,
    tangent_body,
    with_stacking_body,
)
from letir.ops.shape.shape_and_creation import zeros, zeros_like


def scan_fused_jvp(
    tangents: Sequence,
    *args: Any,
    body: Lambda,
    n_carry: int,
    n_xs: int,
    length: int | None,
    reverse: bool,
    transform: Any,
) -> tuple:
    """(results, their tangents) by one loop, which replaces the loop of the results."""
    body = fit_step(body, list(map(body_type, args)), n_carry, n_xs)
    inputs, (program, outputs) = tangent_body(body, n_carry, tangents, transform.program)
    loop, end, count = ScanBuilder(length, reverse), n_carry + n_xs, len(body.ret.args)
    carry = [loop.carried(arg) for arg in args[:n_carry]]
    moving = [i for i in inputs if i < n_carry]
    primals = carry + [loop.row(arg) for arg in args[n_carry:end]]
    if follows_while_scan(list(map(body_type, args)), n_carry, n_xs):
        loop.numbers = primals[n_carry]
    primals += [loop.share(arg) for arg in args[end:]]
    along = [_tangent_param(loop, i, tangents[i], args, n_carry, end) for i in inputs]
    results = loop.builder.call(program, [*primals, *along])
    by_output = dict(zip(outputs, results[count:], strict=True))
    first = [by_output[i] if i in by_output else zeros_like(carry[i]) for i in moving]
    ys = [i for i in outputs if i >= n_carry]
    last, rows = loop.emit(
        [*results[:n_carry], *first], [*results[n_carry:count], *[by_output[i] for i in ys]]
    )
    answers = dict(zip([*moving, *ys], [*last[n_carry:], *rows[count - n_carry :]], strict=True))
    outs = (*last[:n_carry], *rows[: count - n_carry])
    return outs, tuple([answers.get(i) for i in range(count)])


def _tangent_param(
    loop: ScanBuilder, i: int, tangent, args: Sequence, n_carry: int, end: int
) -> Value:
    """The parameter for the tangent of an operand."""
    if i < n_carry:
        return loop.carried(_zero_tangent(args, i) if tangent is None else tangent)
    return loop.row(tangent) if i < end else loop.share(tangent)


def _zero_tangent(args: Sequence, i: int) -> Value:
    """A tangent of zeros for operand ``i``, which may be a Python number."""
    if isinstance(args[i], Value):
        return zeros_like(args[i])
    emitter = next(arg.emitter for arg in args if isinstance(arg, Value))
    attrs = zeros.complete({"shape": (), "dtype": body_type(args[i]).dtype})
    return emitter.apply(zeros, (), attrs)


# ---- tangents alone ----


@frozen
class _LinearizedBody:
    """An analysis for ``Lambda.memo``: the linear program that maps tangents through a body."""

    linear: Callable
    inputs: tuple[int, ...]

    def __call__(self, body: Lambda) -> Any:
        return self.linear(body, self.inputs)


@frozen(eq=False)
class _ForwardStep(StepDerivative):
    """One step of the forward pass: the linear program from tangents of parameters to results."""

    body: Lambda
    n_carry: int
    n_xs: int
    program: Any

    @classmethod
    def from_body(
        cls, body: Lambda, n_carry: int, n_xs: int, with_tangent: Sequence[bool], linear: Callable
    ) -> "_ForwardStep":
        """The forward step of ``body``; ``with_tangent`` marks the operands that have a tangent."""
        inputs = {i for i, flag in enumerate(with_tangent) if flag}
        while True:  # terminates: the set only grows
            linearized = body.memo(_LinearizedBody(linear, tuple(sorted(inputs))))
            grown = inputs | {i for i in linearized.outputs if i < n_carry}
            if grown == inputs:
                return cls(body, n_carry, n_xs, linearized)
            inputs = grown

    @property
    def f(self) -> Lambda:
        """The body, with temporaries as further results."""
        return self.program.f

    @property
    def captured(self) -> list:
        """The residuals that the linear program of a step reads."""
        f, p = self.program.f, self.program
        inputs = [f.params[i] for i in p.captured_inputs]
        return inputs + [f.ret.args[i] for i in p.captured_outputs]


def scan_with_tangent_residuals(bind: Bind, with_tangent: Sequence[bool], linear: Callable) -> Bind:
    """``bind`` with the residuals that its tangents read as further results, if any are missing."""
    sizes = bind.attrs["n_carry"], bind.attrs["n_xs"]
    body = fit_step(bind.attrs["body"], [arg.type for arg in bind.args], *sizes)
    along = stack_missing(
        lambda body: _ForwardStep.from_body(body, *sizes, with_tangent, linear), body
    )
    if not all(has_fixed_shape(arg) for arg in along.body.ret.args[len(bind.binders) :]):
        return bind  # ragged values cannot be stacked: scan_jvp recomputes them
    return with_stacking_body(bind, along.body)


def scan_jvp(
    tangents: Sequence,
    outs: Sequence,
    *args: Any,
    body: Lambda,
    n_carry: int,
    n_xs: int,
    length: int | None,
    reverse: bool,
    transform: Any,
) -> tuple:
    """A loop of the tangents that reads stacked residuals; else one of values and tangents."""
    attrs: dict[str, Any] = {"n_carry": n_carry, "n_xs": n_xs, "length": length, "reverse": reverse}
    body = fit_step(body, list(map(body_type, args)), n_carry, n_xs)
    with_tangent = [t is not None for t in tangents]
    along = _ForwardStep.from_body(body, n_carry, n_xs, with_tangent, transform.linear)
    if along.missing_residuals():  # recompute, without effects, which must not happen again
        attrs["body"] = without_effects(body)
        return scan_fused_jvp(tangents, *args, **attrs, transform=transform)[1]
    return _scan_forward(along, tangents, outs, args, length, reverse)


def _scan_forward(
    along: _ForwardStep, tangents, outs, args, length: int | None, reverse: bool
) -> tuple:
    """The tangents of the results, by a loop that carries tangents only."""
    p, n_carry, end = along.program, along.n_carry, along.n_carry + along.n_xs
    is_ragged = follows_while_scan(list(map(body_type, args)), n_carry, along.n_xs)
    loop = ScanBuilder(length, reverse, args[n_carry] if is_ragged else None)
    directions = [_tangent_param(loop, i, tangents[i], outs, n_carry, end) for i in p.inputs]
    reads = residual_params(along, outs, args, loop)
    pushed = dict(zip(p.outputs, loop.builder.call(p.linear, [*directions, *reads]), strict=True))
    moving = [i for i in p.inputs if i < n_carry]
    by_input = dict(zip(p.inputs, directions, strict=True))
    carry = [pushed[i] if i in pushed else zeros_like(by_input[i]) for i in moving]
    ys = [i for i in p.outputs if i >= n_carry]
    last, rows = loop.emit(carry, [pushed[i] for i in ys], args[n_carry:])
    answers = dict(zip([*moving, *ys], [*last, *rows], strict=True))
    return tuple([answers.get(i) for i in range(len(along.body.ret.args))])
