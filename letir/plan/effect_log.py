"""Effects before a guard that may fail: they happen once, whichever plan completes the call.

Plans for the same arguments begin with the same binds, up to the first guard that differs.
``EffectLog`` stores the results of a call's effects for the plan that is tried next.
"""

from collections.abc import Callable

from attrs import define, field

from letir.ast.bodies import bodies_of
from letir.ast.liveness import has_effect
from letir.ast.terms import Bind, Lambda


@define(eq=False)
class EffectLog:
    """The results of the effects of one call, in order, and how many of them this run has used."""

    done: list = field(factory=list)
    count: int = 0


def is_guard(bind: Bind) -> bool:
    """Whether a bind, or a bind in its bodies, is a guard."""
    guards = bind.op.guards
    is_one = guards(**bind.attrs) if callable(guards) else guards
    return is_one or any(body.memo(_has_guard) for body in bodies_of(bind))


def _has_guard(body: Lambda) -> bool:
    return any(map(is_guard, body.binds))


def before_guards(fn: Lambda) -> frozenset[int]:
    """The positions of effects (other than guards) that precede a guard."""
    result, is_after_guard = [], False
    for n in range(len(fn.binds) - 1, -1, -1):
        bind = fn.binds[n]
        if is_guard(bind):
            is_after_guard = True
        elif is_after_guard and has_effect(bind):
            result.append(n)
    return frozenset(result)


def log_effect(f: Callable, slot: int) -> Callable:
    """A step for ``f``, a function of a list of operands. If the log in ``slot`` already has the
    results of the step, it takes these and does not call ``f``.
    """

    def compute(v: list, operands: list):
        log: EffectLog | None = v[slot]
        if log is None:
            return f(operands)
        if log.count == len(log.done):
            log.done.append(f(operands))
        log.count += 1
        return log.done[log.count - 1]

    return compute
