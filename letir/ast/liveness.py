"""Liveness: the binds that a program needs for its results, have an effect, or may raise."""

from collections.abc import Callable, Sequence

from letir.ast.bodies import bodies_of
from letir.ast.terms import NO_TYPE, Bind, Lambda, Local, Ret


def live_binds(fn: Lambda) -> tuple[Bind, ...]:
    """The binds of ``fn`` whose results are used, or that have an effect, in their order."""
    return needed_binds(fn.binds, fn.ret, has_effect)


def needed_binds(
    binds: Sequence[Bind], ret: Ret, is_root: Callable[[Bind], bool]
) -> tuple[Bind, ...]:
    """The binds that the results ``ret`` need, the binds for which ``is_root(bind)`` is true, and
    the binds that these need, in their order.
    """
    live, needed = set(ret.locals()), []
    for bind in reversed(binds):
        if not live.isdisjoint(bind.binders) or is_root(bind):
            live.update([arg for arg in bind.args if type(arg) is Local])
            needed.append(bind)
    return tuple(reversed(needed))


def has_effect(bind: Bind) -> bool:
    """Whether the operation of a bind has an effect, or a bind in its bodies."""
    if bind.op.effect or not bind.op.holds_lambdas:
        return bind.op.effect
    # once a body: many binds may hold the same one
    return any(body.memo(_body_has_effect) for body in bodies_of(bind))


def _body_has_effect(body: Lambda) -> bool:
    return any(map(has_effect, body.binds))


def may_raise(bind: Bind) -> bool:
    """Whether a bind raises for some values of its operands, or a bind in its bodies does."""
    op = bind.op
    if op.raises:
        types = [arg.type for arg in bind.args]
        return op.raises is True or None in types or op.raises(*types, **bind.attrs)
    if any(body.memo(_body_may_raise) for body in bodies_of(bind)):
        return True
    # Python's own arithmetic: 7 % 0, 2.0**5000; not ``weaken`` of a float, which follows x + 1.0
    avals = [binder.type for binder in bind.binders]
    kept = "f" if op.cost == "free" else ""
    return any(
        aval is not None and aval is not NO_TYPE and aval.weak and aval.dtype.kind != kept
        for aval in avals
    )


def _body_may_raise(body: Lambda) -> bool:
    return any(map(may_raise, body.binds))
