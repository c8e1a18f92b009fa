"""Passes that remove what is not needed: dead_code."""

from letir.ast.terms import Lambda, Local


def dead_code(fn: Lambda) -> Lambda:
    """Drop every bind that has no effect and none of whose binders is used.

    Linear in the number of binds. Keeps binders, order, effects, parameters and results.
    """
    live, kept = set(fn.ret.locals()), []
    for bind in reversed(fn.binds):
        if not live.isdisjoint(bind.binders) or bind.op.effect:
            live.update([arg for arg in bind.args if type(arg) is Local])
            kept.append(bind)
    return fn.with_binds(tuple(reversed(kept)))
