"""Passes that remove what is not needed: dead_code."""

from letir.ast.terms import Bind, Lambda, Local


def dead_code(fn: Lambda) -> Lambda:
    """Drop every bind that has no effect and none of whose binders is used.

    Linear in the number of binds. Keeps binders, order, effects, parameters and results.
    """
    live, kept = set(fn.ret.locals()), []
    for bind in reversed(fn.binds):
        if not live.isdisjoint(bind.binders) or has_effect(bind):
            live.update([arg for arg in bind.args if type(arg) is Local])
            kept.append(bind)
    return fn.with_binds(tuple(reversed(kept)))


def has_effect(bind: Bind) -> bool:
    """Whether its operation has an effect, or a body that it holds."""
    if bind.op.effect or not bind.op.holds_lambdas:
        return bind.op.effect
    bodies = [value for value in bind.attrs.values() if type(value) is Lambda]
    return any(body.memo(_body_has_effect) for body in bodies)


def _body_has_effect(body: Lambda) -> bool:
    return any(map(has_effect, body.binds))
