"""``pull``: what the vjp rules of operations with bodies call to differentiate these.

It is late bound, as ``pull`` and ``differentiate_body``: ``letir.ad.reverse``, which runs the
rules, stands before it in the order of imports.
"""

from collections.abc import Sequence

from letir.ad.differentiation import differentiate, recorder
from letir.ad.gradient_program import Gradient
from letir.ad.remat.policies import with_policy
from letir.ast.builder import Value
from letir.ast.primitive import LATE_BOUND
from letir.ast.terms import Bind, Lambda, Local
from letir.ops.control_flow.loop_analysis import has_fixed_shape
from letir.passes.lowering import lowered


def pull(
    fn: Lambda, args: Sequence[Value], cts, *, wanted: Sequence[bool] | None = None, known=None
) -> tuple[Value | None, ...]:
    """The cotangents of ``args`` for the cotangents ``cts`` of the results of ``fn``, emitted where
    ``args`` are: for rules.

    ``cts``: one for each result, None for zero. Results: one for each argument, None for zero.
    ``wanted``: for which arguments; ``known``: {position: Value} of results that need not be
    computed again.
    """
    cts = cts if isinstance(cts, tuple | list) else (cts,)
    gradient = differentiate(fn, wanted, defined=[ct is not None for ct in cts])
    builder = next(v.emitter for v in (*args, *cts) if isinstance(v, Value))
    operands = [builder.enter(arg) for arg in args]  # numbers of a rule become constants
    primal, given = _with_known_results(gradient.f, known or {})
    outs = builder.inline(primal, [*operands, *map(builder.enter, given)])
    captured = [operands[i] for i in gradient.df_input_captured_inputs]
    captured += [outs[i] for i in gradient.df_input_captured_outputs]
    found = builder.inline(
        gradient.df, [builder.enter(cts[i]) for i in gradient.df_input_vjps] + captured
    )
    by_input = dict(zip(gradient.df_output_vjps, found, strict=True))
    return tuple(
        Value(builder, by_input[i]) if type(by_input.get(i)) is Local else None
        for i in range(len(args))
    )


def differentiate_body(
    f: Lambda, requires_grad: Sequence[bool] | None = None, *, defined: Sequence[bool]
) -> Gradient:
    """``differentiate`` of a loop's body: its residuals have the same shape in each iteration, so
    that the loop can stack them; other values are computed again.
    """
    again = recorder(lowered(f), requires_grad, defined, fixed_shapes=True)
    gradient = again()
    if all(map(has_fixed_shape, gradient.f.ret.args[gradient.f_real_outputs :])):
        return gradient
    return with_policy(gradient, _keeps_fixed_shapes, again=again)


def _keeps_fixed_shapes(bind: Bind) -> bool:
    """The policy that keeps the values whose shape does not vary between iterations."""
    return all(map(has_fixed_shape, bind.binders))


def _with_known_results(fn: Lambda, known: dict) -> tuple[Lambda, list]:
    """(``fn`` with further parameters for the results that are ``known``, the Values for these).

    A bind is dropped if all its results are known.
    """
    if not known:
        return fn, []
    values = {fn.ret.args[i]: value for i, value in known.items()}
    made = {b: bind for bind in fn.binds for b in bind.binders if b in values}
    # one result that is not known needs the whole bind
    dropped = {id(bind) for bind in made.values() if all(b in values for b in bind.binders)}
    given = {b: values[b] for b, bind in made.items() if id(bind) in dropped}
    binds = tuple([bind for bind in fn.binds if id(bind) not in dropped])
    return Lambda([*fn.params, *given], binds, fn.ret), list(given.values())


pull.program = differentiate_body  # type: ignore[attr-defined]  # for rules of loops
LATE_BOUND.update(pull=pull, differentiate_body=differentiate_body)
