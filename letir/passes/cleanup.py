"""Passes that remove what is not needed: dead_code."""

from letir.ast.liveness import has_effect as has_effect
from letir.ast.terms import Lambda
from letir.passes.narrowing import Narrowing


def dead_code(fn: Lambda) -> Lambda:
    """Drop every bind that has no effect and none of whose binders is used.

    Of conditionals, steps of gradients and loops also the results that nobody uses go [F4], with
    what their bodies compute for them; a carried value goes if no other that stays depends on it.
    Linear in the number of binds. Keeps binders, order, effects, parameters and results; a program
    in which nothing is dead is returned as it is.
    """
    return Narrowing().program(fn)
