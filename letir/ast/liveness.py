"""Liveness: the binds that a program needs for its results, and those that have an effect."""

from collections.abc import Callable, Sequence

from letir.ast.bodies import bodies_of
from letir.ast.terms import Bind, Lambda, Local, Ret


def live_binds(fn: Lambda) -> tuple[Bind, ...]:
    """The binds of ``fn`` whose results are used, or that have an effect, in their order."""
    return needed_binds(fn.binds, fn.ret, has_effect)


def needed_binds(
    binds: Sequence[Bind], ret: Ret, is_root: Callable[[Bind], bool]
) -> tuple[Bind, ...]:
    """The binds that the results ``ret`` need, those for which ``is_root(bind)``, and what these
    need, in their order.
    """
    live, kept = set(ret.locals()), []
    for bind in reversed(binds):
        if not live.isdisjoint(bind.binders) or is_root(bind):
            live.update([arg for arg in bind.args if type(arg) is Local])
            kept.append(bind)
    return tuple(reversed(kept))


def has_effect(bind: Bind) -> bool:
    """Whether the operation of a bind has an effect, or a bind in its bodies."""
    if bind.op.effect or not bind.op.holds_lambdas:
        return bind.op.effect
    # once a body: many binds may hold the same one
    return any(body.memo(_body_has_effect) for body in bodies_of(bind))


def _body_has_effect(body: Lambda) -> bool:
    return any(map(has_effect, body.binds))
