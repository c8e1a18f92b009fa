"""Passes that remove what is not needed: dead_code."""

from letir.ast.liveness import has_effect as has_effect
from letir.ast.liveness import live_binds
from letir.ast.terms import Lambda


def dead_code(fn: Lambda) -> Lambda:
    """Drop every bind that has no effect and none of whose binders is used.

    Linear in the number of binds. Keeps binders, order, effects, parameters and results.
    """
    return fn.with_binds(live_binds(fn))
