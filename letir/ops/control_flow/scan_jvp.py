"""The forward mode of ``scan``: the tangents go through a scan in the same direction.

It has three forms. ``scan_joint`` takes the place of the loop and carries tangents beside values:
what ``jvp`` is made of. ``scan_jvp`` is a loop of the tangents alone, where the first loop stacks
all that they read (``scan_saving_tangents`` makes it so): what ``linearize`` is made of. Else the
rule computes values once more, without their effects.
"""

from collections.abc import Callable, Sequence

from attrs import frozen

from letir.ast.builder import Value
from letir.ast.terms import Arg, Bind, Lambda
from letir.ops.autodiff.checkpoint_and_custom_jvp import body_type, fitted, without_effects
from letir.ops.control_flow.loop_analysis import is_counted, is_even
from letir.ops.control_flow.scan_vjp import (
    Loop,
    Reading,
    param_type,
    residuals,
    tangent_body,
    with_body,
)
from letir.ops.shape.shape_and_creation import zeros, zeros_like

_MOST_ROUNDS = 4  # as of saving for the reverse mode


def scan_joint(tangents, *args, body, n_carry, n_xs, length, reverse, transform):
    """(results, their tangents) by one loop in the place of that of the results."""
    body = fitted(body, [param_type(args, i, n_carry, n_xs) for i in range(len(args))])
    inputs, (program, outputs) = tangent_body(body, n_carry, tangents, transform.program)
    loop, end, count = Loop(length, reverse), n_carry + n_xs, len(body.ret.args)
    carry = [loop.carried(arg) for arg in args[:n_carry]]
    moving = [i for i in inputs if i < n_carry]
    primals = carry + [loop.row(arg) for arg in args[n_carry:end]]
    if is_counted(list(map(body_type, args)), n_carry, n_xs):
        loop.numbers = primals[n_carry]
    primals += [loop.share(arg) for arg in args[end:]]
    along = [_tangent_param(loop, i, tangents[i], args, n_carry, end) for i in inputs]
    found = loop.builder.call(program, [*primals, *along])
    by_output = dict(zip(outputs, found[count:], strict=True))
    first = [by_output[i] if i in by_output else zeros_like(carry[i]) for i in moving]
    ys = [i for i in outputs if i >= n_carry]
    last, rows = loop.emit(
        [*found[:n_carry], *first], [*found[n_carry:count], *[by_output[i] for i in ys]]
    )
    answers = dict(zip([*moving, *ys], [*last[n_carry:], *rows[count - n_carry :]], strict=True))
    outs = (*last[:n_carry], *rows[: count - n_carry])
    return outs, tuple([answers.get(i) for i in range(count)])


def _tangent_param(loop: Loop, i: int, tangent, args: Sequence, n_carry: int, end: int) -> Value:
    """The parameter for the tangent of an operand."""
    if i < n_carry:
        return loop.carried(_zero_tangent(args, i) if tangent is None else tangent)
    return loop.row(tangent) if i < end else loop.share(tangent)


def _zero_tangent(args: Sequence, i: int) -> Value:
    """A tangent of zeros for an operand, also for a number."""
    if isinstance(args[i], Value):
        return zeros_like(args[i])
    emitter = next(arg.emitter for arg in args if isinstance(arg, Value))
    attrs = zeros.complete({"shape": (), "dtype": body_type(args[i]).dtype})
    return emitter.apply(zeros, (), attrs)


# ---- tangents alone ----


@frozen
class _LinearOf:
    """The analysis of a body that ``Lambda.memo`` keeps: the linear program of its tangents."""

    linear: Callable
    inputs: tuple[int, ...]

    def __call__(self, body: Lambda):
        return self.linear(body, self.inputs)


@frozen(eq=False)
class _Along(Reading):
    """How the tangents of one step's parameters become those of its results."""

    body: Lambda
    n_carry: int
    n_xs: int
    program: object

    @classmethod
    def of(cls, body: Lambda, n_carry: int, n_xs: int, there: Sequence[bool], linear) -> "_Along":
        """The way of the tangents through a body, for operands of the loop that have one."""
        inputs = {i for i, flag in enumerate(there) if flag}
        while True:  # it only ever grows
            made = body.memo(_LinearOf(linear, tuple(sorted(inputs))))
            grown = inputs | {i for i in made.outputs if i < n_carry}
            if grown == inputs:
                return cls(body, n_carry, n_xs, made)
            inputs = grown

    @classmethod
    def saving(cls, body: Lambda, n_carry: int, n_xs: int, there, linear) -> "_Along":
        """As ``of``, with further results of the body so that nothing is missing."""
        found = cls.of(body, n_carry, n_xs, there, linear)
        for _ in range(_MOST_ROUNDS):
            if not found.missing():
                break
            found = cls.of(found.saving_body(), n_carry, n_xs, there, linear)
        return found

    @property
    def f(self) -> Lambda:
        """The body with temporaries."""
        return self.program.f

    @property
    def captured(self) -> list[Arg]:
        """What the linear program of a step reads."""
        f, p = self.program.f, self.program
        inputs = [f.params[i] for i in p.captured_inputs]
        return inputs + [f.ret.args[i] for i in p.captured_outputs]


def scan_saving_tangents(bind: Bind, there: Sequence[bool], linear: Callable) -> Bind:
    """``bind`` with further results, which its tangents read; itself where it has them."""
    attrs = bind.attrs
    along = _Along.saving(attrs["body"], attrs["n_carry"], attrs["n_xs"], there, linear)
    if not all(map(is_even, along.body.ret.args[len(bind.binders) :])):
        return bind  # no array can stack them: values are computed again beside the tangents
    return with_body(bind, along.body)


def scan_jvp(tangents, outs, *args, body, n_carry, n_xs, length, reverse, transform):
    """A loop of the tangents, which reads what the other stacks; else one of both."""
    attrs = {"n_carry": n_carry, "n_xs": n_xs, "length": length, "reverse": reverse}
    body = fitted(body, [param_type(args, i, n_carry, n_xs) for i in range(len(args))])
    there = [t is not None for t in tangents]
    along = _Along.of(body, n_carry, n_xs, there, transform.linear)
    if along.missing():  # effects happened the first time
        attrs["body"] = without_effects(body)
        return scan_joint(tangents, *args, **attrs, transform=transform)[1]
    return _go_along(along, tangents, outs, args, length, reverse)


def _go_along(along: _Along, tangents, outs, args, length: int | None, reverse: bool) -> tuple:
    """The tangents of the results by a loop that has no values in its carry."""
    p, n_carry, end = along.program, along.n_carry, along.n_carry + along.n_xs
    is_ragged = is_counted(list(map(body_type, args)), n_carry, along.n_xs)
    loop = Loop(length, reverse, args[n_carry] if is_ragged else None)
    given = [_tangent_param(loop, i, tangents[i], outs, n_carry, end) for i in p.inputs]
    reads = residuals(along, outs, args, loop)
    found = dict(zip(p.outputs, loop.builder.call(p.linear, [*given, *reads]), strict=True))
    moving = [i for i in p.inputs if i < n_carry]
    by_input = dict(zip(p.inputs, given, strict=True))
    carry = [found[i] if i in found else zeros_like(by_input[i]) for i in moving]
    ys = [i for i in p.outputs if i >= n_carry]
    last, rows = loop.emit(carry, [found[i] for i in ys], args[n_carry:])
    answers = dict(zip([*moving, *ys], [*last, *rows], strict=True))
    return tuple([answers.get(i) for i in range(len(along.body.ret.args))])
