"""``errstate``: operations that a user wrote inside ``with np.errstate(...)``.

The attributes are the handling of floating-point errors and a body, which runs with it, as do the
derivatives. Only operations whose handling differs from the default are recorded this way.
``hidden``: patterns of the texts of further warnings of NumPy's that are not shown, those that
filters of ``warnings.catch_warnings`` ignore.
"""

import warnings
from collections.abc import Callable

from letir.ast import LATE_BOUND
from letir.ast.builder import LetBuilder, Value
from letir.ast.liveness import may_raise
from letir.ast.record_fields import BodyLayout
from letir.ops.autodiff.checkpoint_and_custom_jvp import body_type, fit_body, fitted_result_types
from letir.ops.autodiff.gradient_step_batching import axes_of, mapped_body, slice_types
from letir.ops.define.batch_rules import batch_first, emit_op, first_mapped
from letir.ops.define.records import define


def _errstate_impl(xp, *args, call, body, divide, over, under, invalid, hidden=()):
    """Run the body with this error handling; CuPy has none, and ignores it."""
    modes = {"divide": divide, "over": over, "under": under, "invalid": invalid}
    return _errstate_consume(xp, list(args), call=call, body=body, hidden=hidden, **modes)


def _errstate_consume(xp, operands, *, call, body, divide, over, under, invalid, hidden):
    """``_errstate_impl`` on a list of operands, which the body empties."""
    if not hasattr(xp, "errstate"):
        return call(body, operands)
    run, modes = LATE_BOUND["run_error_region"], (divide, over, under, invalid)
    if hidden:
        return LATE_BOUND["run_hiding_warnings"](hidden, run, modes, call, body, operands)
    return run(modes, call, body, operands)


def _apply_rule_in_state(rule: Callable, values: tuple, state: dict) -> tuple:
    """``rule(*values)``, its operations recorded as one ``errstate`` bind.

    Results that are not Values (None, absent rules) are returned unchanged.
    """
    inner = LetBuilder()
    stand_ins = [inner.param(v.type) if isinstance(v, Value) else v for v in values]
    result = tuple(rule(*stand_ins))
    program = inner.build([answer for answer in result if isinstance(answer, Value)])
    if not program.ret.args:
        return result
    operands = [v for v in values if isinstance(v, Value)]
    results = iter(emit_op("errstate", operands, body=program, **state))
    return tuple(next(results) if isinstance(answer, Value) else answer for answer in result)


def _errstate_vjp(cts, outs, *args, body, transform, wanted=None, **state):
    """Differentiate the body in reverse, with the same error handling."""
    body = fit_body(body, tuple(map(body_type, args)))
    count, results = len(args), len(outs)

    def rule(*values):
        known = dict(enumerate(values[count : count + results]))
        operands, directions = values[:count], values[count + results :]
        return transform(body, operands, directions, wanted=wanted, known=known)

    return _apply_rule_in_state(rule, (*args, *outs, *cts), state)


def _errstate_jvp(tangents, outs, *args, body, transform, **state):
    """Differentiate the body in forward mode, with the same error handling."""
    body = fit_body(body, tuple(map(body_type, args)))
    count = len(args)

    def rule(*values):
        return transform(body, values[:count], values[count:])

    return _apply_rule_in_state(rule, (*args, *tangents), state)


@batch_first
def _batched_errstate(args, mapped, *, body, transform, **state):
    """The batched body, with the same error handling."""
    body = fit_body(body, slice_types(args, mapped))
    size, summed = first_mapped(args, mapped).shape[0], [False] * len(body.ret.args)
    body = mapped_body(body, axes_of(mapped), size, transform, summed)
    return emit_op("errstate", args, body=body, **state)


def _errstate_source(write, *args, body, hidden, **state):
    """The body in a ``with`` statement."""
    words = ", ".join(f"{name}={value!r}" for name, value in state.items())
    names, catch = write.results(), ""
    if hidden:
        catch = f"{write.imported(warnings.catch_warnings)}(), "
    with write.block(f"with {catch}np.errstate({words}):"):
        for pattern in hidden:
            ignore = write.imported(warnings.filterwarnings)
            write.line(f"{ignore}('ignore', {pattern!r}, RuntimeWarning)")
        write.body(body, args, names)


errstate = define(
    "errstate",
    _errstate_impl,
    lambda *types, body, **_: fitted_result_types(body, types),
    consume=_errstate_consume,
    vjp=_errstate_vjp,
    jvp=_errstate_jvp,
    batch=_batched_errstate,
    results=lambda *, body, **_: len(body.ret.args),
    holds_lambdas=True,
    source=_errstate_source,
    no_float_errors=True,
    role="error_region",
    raises=lambda *types, body, **state: (
        "raise" in state.values() or any(map(may_raise, body.binds))
    ),
    bodies=BodyLayout(),
)
