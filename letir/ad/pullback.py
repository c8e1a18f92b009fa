"""``pull``: differentiates the body of a loop or branch inside the vjp rule of that operation.

Rules reach ``pull`` and ``differentiate_body`` through the late-bound table, because ``letir/ops``
comes before ``letir/ad`` in the order of imports.
"""

from collections.abc import Sequence
from typing import Any

from letir.ad.differentiation import backward_recorder, differentiate
from letir.ad.gradient_program import Gradient
from letir.ad.remat.policies import with_policy
from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.terms import Bind, Lambda, Local
from letir.ops.control_flow.loop_analysis import has_fixed_shape
from letir.passes.lowering import lower_for_derivatives


def pull(
    fn: Lambda,
    args: Sequence[Value],
    cts: Any,
    *,
    wanted: Sequence[bool] | None = None,
    known: dict[int, Value] | None = None,
) -> tuple[Value | None, ...]:
    """The vjp of ``fn`` at ``args``, emitted into the builder of ``args``; for use in rules.

    ``cts``: the cotangents of the results of ``fn``, None for zero. Returns the cotangents of
    ``args``, None for zero. ``wanted``: which arguments require grad. ``known``: {position: Value}
    of results of ``fn`` that are known already and need not be recomputed.
    """
    cts = cts if isinstance(cts, tuple | list) else (cts,)
    gradient = differentiate(fn, wanted, defined=[ct is not None for ct in cts])
    builder = next(v.emitter for v in (*args, *cts) if isinstance(v, Value))
    operands = [builder.enter(arg) for arg in args]  # Python numbers become constants
    primal, lifted = _with_known_results(gradient.f, known or {})
    outs = builder.inline(primal, [*operands, *map(builder.enter, lifted)])
    captured = [operands[i] for i in gradient.df_input_captured_inputs]
    captured += [outs[i] for i in gradient.df_input_captured_outputs]
    cotangents = builder.inline(
        gradient.df, [builder.enter(cts[i]) for i in gradient.df_input_vjps] + captured
    )
    by_input = dict(zip(gradient.df_output_vjps, cotangents, strict=True))
    return tuple(
        Value(builder, by_input[i]) if type(by_input.get(i)) is Local else None
        for i in range(len(args))
    )


def differentiate_body(
    f: Lambda, requires_grad: Sequence[bool] | None = None, *, defined: Sequence[bool]
) -> Gradient:
    """``differentiate`` for the body of a loop, whose residuals the loop has to stack.

    Residuals are values whose shape is the same in each iteration; others are rematerialised.
    """
    redifferentiate = backward_recorder(
        lower_for_derivatives(f), requires_grad, defined, fixed_shapes=True
    )
    gradient = redifferentiate()
    if all(map(has_fixed_shape, gradient.f.ret.args[gradient.f_real_outputs :])):
        return gradient
    return with_policy(gradient, _keeps_fixed_shapes, redifferentiate=redifferentiate)


def _keeps_fixed_shapes(bind: Bind) -> bool:
    """Residual policy: keep only values whose shape does not vary between iterations."""
    return all(map(has_fixed_shape, bind.binders))


def _with_known_results(fn: Lambda, known: dict) -> tuple[Lambda, list]:
    """``fn`` with parameters in place of its ``known`` results, and the Values for them.

    A bind is dropped if all its results are known.
    """
    if not known:
        return fn, []
    values = {fn.ret.args[i]: value for i, value in known.items()}
    makers = {b: bind for bind in fn.binds for b in bind.binders if b in values}
    # a bind with an unknown result stays, and computes the known ones too
    dropped = {id(bind) for bind in makers.values() if all(b in values for b in bind.binders)}
    lifted = {b: values[b] for b, bind in makers.items() if id(bind) in dropped}
    binds = tuple([bind for bind in fn.binds if id(bind) not in dropped])
    return Lambda([*fn.params, *lifted], binds, fn.ret), list(lifted.values())


pull.program = differentiate_body  # type: ignore[attr-defined]  # used by the rules of loops
LATE_BOUND.update(pull=pull, differentiate_body=differentiate_body)
