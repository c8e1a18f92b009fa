"""The forward transform: from a program to the linear program of its tangents.

``linear_program`` makes a separate program of tangents, which captures primal values
(``linearize``); ``jvp_program`` makes one program of values and tangents (``jvp``).
"""

from collections.abc import Sequence

from attrs import frozen

from letir.ad.gradient_program import Captures
from letir.ad.rule_cache import rule_body
from letir.ast import LATE_BOUND
from letir.ast.builder import LetBuilder, Value
from letir.ast.derivative_types import carries_derivative, strong_type
from letir.ast.process_state import paused_gc
from letir.ast.record_fields import is_final
from letir.ast.source import error_at_bind
from letir.ast.terms import Arg, Bind, Lambda, Let, Local, Ret
from letir.errors import LetirError
from letir.passes.lowering import without_combinators
from letir.visitors.visitor import ExprVisitor, TailCall


class _Forward(ExprVisitor):
    """Emits the tangents of a body into ``builder``; returns the results' tangents, None for zero.

    ``capture(local)``: the operand for a primal value. ``with_residuals(bind, mask)``: a loop with
    the residuals that its tangents read as further results. ``wanted``: the locals on which the
    results to differentiate depend; None for all.
    """

    def __init__(self, builder: LetBuilder, capture, with_residuals=None, wanted=None):
        self.builder, self.capture, self.with_residuals = builder, capture, with_residuals
        self.wanted: set[Local] | None = wanted

    def mask(self, bind: Bind, tangents: dict) -> tuple[bool, ...]:
        """Which operands have a tangent; none if no wanted result depends on the bind."""
        if self.wanted is not None and self.wanted.isdisjoint(bind.binders):
            return (False,) * len(bind.args)
        return tuple([type(arg) is Local and arg in tangents for arg in bind.args])

    def visit_let(self, let: Let, tangents: dict):
        bind = let.bind
        mask = self.mask(bind, tangents)
        # a final rule is missing because the derivative is zero; others raise MissingRule
        if True in mask and not is_final(bind.op.jvp):
            if bind.op.with_tangent_residuals is not None and self.with_residuals is not None:
                bind = self.with_residuals(bind, mask)
            self.emit_jvp(bind, mask, tangents)
        return TailCall(let.body, tangents)

    def visit_ret(self, ret: Ret, tangents: dict):
        return [tangents.get(arg) if type(arg) is Local else None for arg in ret.args]

    def emit_jvp(self, bind: Bind, mask: tuple, tangents: dict) -> None:
        """Emit the jvp of ``bind``; ``mask``: which operands have a tangent."""
        if not any(carries_derivative(binder) for binder in bind.binders):
            return
        try:
            rule = rule_body("jvp", bind, mask, None)
        except LetirError as error:
            raise error_at_bind(error, bind) from None
        places = bind.args + bind.binders
        directions = [
            tangents[arg] for arg, has_tangent in zip(bind.args, mask, strict=True) if has_tangent
        ]
        self.builder.source = bind.source
        tangents_of_results = rule.emit(
            self.builder, [*directions, *(self.capture(places[i]) for i in rule.captured)]
        )
        for position, tangent in zip(rule.results, tangents_of_results, strict=True):
            if carries_derivative(bind.binders[position]):
                tangents[bind.binders[position]] = tangent


class _Interleaving(_Forward):
    """Emits values and tangents bind by bind, so that one loop can compute both."""

    def visit_let(self, let: Let, tangents: dict):
        bind = let.bind
        if True in self.mask(bind, tangents) and bind.op.fused_jvp is not None:
            self.join(bind, tangents)
            return TailCall(let.body, tangents)
        self.builder.binds.append(bind)
        return super().visit_let(let, tangents)

    def join(self, bind: Bind, tangents: dict) -> None:
        """Replace ``bind`` by one loop or branch that computes values and tangents."""
        builder, builder.source = self.builder, bind.source
        args = [Value(builder, a) if type(a) is Local else a.value for a in bind.args]
        operand_tangents = [
            Value(builder, tangents[a]) if a in tangents else None for a in bind.args
        ]
        try:
            outs, new_tangents = bind.op.fused_jvp(
                operand_tangents, *args, **bind.attrs, transform=_push_forward
            )
        except LetirError as error:
            raise error_at_bind(error, bind) from None
        names = {out.arg: binder for out, binder in zip(outs, bind.binders, strict=True)}
        last = builder.binds.pop()
        binders = tuple([names.get(b, b) for b in last.binders])
        builder.binds.append(Bind(binders, last.op, last.args, last.attrs, bind.source))
        pairs = zip(bind.binders, new_tangents, strict=True)
        tangents.update({b: t.arg for b, t in pairs if t is not None and carries_derivative(b)})


@frozen(eq=False)
class Linearization:
    """A primal program with temporaries, and the linear program of its tangents.

    ``linear`` takes a tangent for each input in ``inputs``, then the captured inputs and results of
    ``f``, and returns the tangents of the results in ``outputs``.
    """

    f: Lambda
    linear: Lambda
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    captured_inputs: tuple[int, ...]
    captured_outputs: tuple[int, ...]

    def captured(self, inputs: Sequence, results: Sequence) -> list:
        """The values of the inputs and results of ``f`` that ``linear`` captures."""
        return [inputs[i] for i in self.captured_inputs] + [
            results[i] for i in self.captured_outputs
        ]


def linear_program(f: Lambda, inputs: Sequence[int]) -> Linearization:
    """``f``, and a linear program from the tangents of ``inputs`` to the tangents of the results.

    ``inputs``: positions of parameters. Linear in the number of binds.
    """
    f = without_combinators(f)
    with paused_gc():
        builder = LetBuilder()
        captures = Captures(f)
        tangents = {f.params[i]: Local(strong_type(f.params[i].type)) for i in inputs}
        params = list(tangents.values())
        loops: dict[int, Bind] = {}  # id of a bind -> the loop with residuals that replaces it

        def with_residuals(bind: Bind, mask: tuple) -> Bind:
            loops[id(bind)] = bind.op.with_tangent_residuals(bind, mask, linear_program)
            return loops[id(bind)]

        results = _Forward(builder, captures.capture, with_residuals).visit(f.body, tangents)
        outputs = tuple(i for i, tangent in enumerate(results) if tangent is not None)
        builder.params = [*params, *captures.params()]
        linear = builder.build([results[i] for i in outputs])
        primal = captures.primal()
        if loops:
            primal = primal.with_binds([loops.get(id(bind), bind) for bind in primal.binds])
        return Linearization(
            primal,
            linear,
            tuple(inputs),
            outputs,
            tuple(sorted(captures.inputs)),
            tuple(sorted(captures.outputs)),
        )


def jvp_program(
    f: Lambda, inputs: Sequence[int], count: int | None = None
) -> tuple[Lambda, tuple[int, ...]]:
    """(program, outputs): the program returns the results of ``f``, then tangents of ``outputs``.

    Its parameters are those of ``f``, then a tangent for each position in ``inputs``. ``count``:
    the number of results to differentiate, the first ones; what only the others depend on needs no
    derivative. Linear in the number of binds.
    """
    f = without_combinators(f)
    builder = LetBuilder()
    is_separate = not any(bind.op.fused_jvp for bind in f.binds)
    builder.binds = list(f.binds) if is_separate else []  # tangents come after all values
    directions = [Local(strong_type(f.params[i].type)) for i in inputs]
    tangents: dict[Local, Arg] = dict(zip([f.params[i] for i in inputs], directions, strict=True))
    with paused_gc():
        kind = _Forward if is_separate else _Interleaving
        wanted = None if count is None else _ancestors(f, f.ret.args[:count])
        # nothing is captured
        results = kind(builder, lambda local: local, wanted=wanted).visit(f.body, tangents)[:count]
    builder.params = [*f.params, *directions]
    outputs = tuple(i for i, tangent in enumerate(results) if tangent is not None)
    return builder.build([*f.ret.args, *(results[i] for i in outputs)]), outputs


def _ancestors(f: Lambda, results: Sequence[Arg]) -> set[Local]:
    """The locals on which these results depend, with themselves."""
    result = {arg for arg in results if type(arg) is Local}
    for bind in reversed(f.binds):
        if not result.isdisjoint(bind.binders):
            result.update(bind.locals())
    return result


def _push_forward(fn: Lambda, args: list[Value], tangents) -> tuple[Value | None, ...]:
    """The jvp of ``fn`` at ``args``, emitted into the builder of ``args``; for use in rules.

    ``tangents``: of the arguments, None for zero. Returns the tangents of the results.
    """
    inputs = [i for i, t in enumerate(tangents) if t is not None]
    program, outputs = jvp_program(fn, inputs)
    builder = next(v.emitter for v in (*args, *tangents) if isinstance(v, Value))
    results = builder.call(program, [*args, *(tangents[i] for i in inputs)])
    by_output = dict(zip(outputs, results[len(fn.ret.args) :], strict=True))
    return tuple(by_output.get(i) for i in range(len(fn.ret.args)))


# rules of loops use these; see ``pull.program``
_push_forward.program = jvp_program  # type: ignore[attr-defined]
_push_forward.linear = linear_program  # type: ignore[attr-defined]
LATE_BOUND["push"] = _push_forward
