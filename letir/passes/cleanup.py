"""Passes that remove what is not needed: dead_code."""

from letir.ast.terms import Lambda


def dead_code(fn: Lambda) -> Lambda:
    """Drop every bind that has no effect and none of whose binders is used.

    Linear in the number of binds. Keeps binders, order, effects, parameters and results.
    """
    live, kept = set(fn.ret.locals()), []
    for bind in reversed(fn.binds):
        if bind.op.effect or not live.isdisjoint(bind.binders):
            live.update(bind.args)
            kept.append(bind)
    return fn.with_binds(tuple(reversed(kept)))
