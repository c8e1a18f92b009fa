"""``keep_raising``: unused binds that may raise stay in the program, as ``exact=True`` promises."""

from letir.ast.attrs import Attrs
from letir.ast.bodies import map_bodies
from letir.ast.liveness import live_binds, may_raise
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Bind, Lambda


def keep_raising(fn: Lambda) -> Lambda:
    """``fn`` with a ``guard_computed`` after each unused bind that may raise, also in bodies.

    Dead-code elimination keeps such a bind, so that the program raises what NumPy would raise.
    Linear in the number of binds.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0: float64[2, 2] { %1: float64[2, 2] = inv(%0); return %0 }")
    >>> print(keep_raising(f).listing(), end="")
    %1 = inv %0
    guard_computed %1, False
    return %0
    """
    return map_bodies(fn, _keep_raising_level)


def _keep_raising_level(fn: Lambda) -> Lambda:
    """``keep_raising`` of the binds of ``fn`` itself."""
    live, binds = set(map(id, live_binds(fn))), []
    attrs = Attrs(caught=False)
    for bind in fn.binds:
        binds.append(bind)
        if id(bind) not in live and bind.binders and may_raise(bind):
            binds.append(
                Bind((), PRIMITIVES["guard_computed"], (bind.binders[0],), attrs, bind.source)
            )
    return fn if len(binds) == len(fn.binds) else fn.with_binds(binds)
