"""Definitions and uses of locals: ``UseDef``, and the counts by which the evaluator frees values.

Both are computed once for a Lambda and cached on it.
"""

import bisect
from functools import cached_property

from attrs import define

from letir.ast import entry_point
from letir.ast.terms import Bind, Lambda, Local, Ret

RETURN = None  # the bind of a use in the Ret


def use_counts(fn: Lambda) -> dict[Local, int]:
    """The number of uses of each local, returns included; locals without a use are left out."""
    return fn.memo(_use_counts)


def _use_counts(fn: Lambda) -> dict[Local, int]:
    """How often each local is used in ``fn``, without its bodies."""
    counts: dict[Local, int] = {}
    so_far = counts.get
    terms: tuple[Bind | Ret, ...] = (*fn.binds, fn.ret)
    for term in terms:
        for arg in term.args:  # faster than term.locals(): a tenth of a first evaluation
            if type(arg) is Local:
                counts[arg] = so_far(arg, 0) + 1
    return counts


@entry_point
def uses(fn: Lambda) -> "UseDef":
    """The definitions and uses of ``fn``'s locals, computed once.

    >>> from letir import parse
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = mul(%1, %0); return %2 }")
    >>> found = uses(f)
    >>> found.last_use(f.params[0]), found.is_returned(f.params[0])
    (1, False)
    """
    return fn.memo(_analysis)


def _analysis(fn: Lambda) -> "UseDef":
    """The UseDef of ``fn``."""
    return UseDef(fn.params, fn.binds, fn.ret)  # not fn, which caches it: a reference cycle


@define(eq=False, slots=False)
class UseDef:
    """Definitions, uses and live ranges.

    Positions count binds; the return is at ``len(fn)``.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = mul(%1, %0); return %2 }")
    >>> ud = uses(f)
    >>> (x,), (y, z) = f.params, [bind.binders[0] for bind in f.binds]
    >>> ud.last_use(x), ud.is_returned(z), ud.uses_left(x, 1)
    (1, True, 1)
    """

    params: tuple[Local, ...]
    binds: tuple[Bind, ...]
    ret: Ret

    @cached_property
    def _positions(self) -> dict[Local, int]:
        return {b: i for i, bind in enumerate(self.binds) for b in bind.binders}

    @cached_property
    def _uses(self) -> dict[Local, list[tuple[int, int]]]:
        result: dict[Local, list[tuple[int, int]]] = {}
        terms: tuple[Bind | Ret, ...] = (*self.binds, self.ret)
        for i, term in enumerate(terms):
            for position, arg in enumerate(term.args):
                if type(arg) is Local:
                    # in ascending order: uses_left bisects
                    result.setdefault(arg, []).append((i, position))
        return result

    def definition(self, local: Local) -> Bind | None:
        """The bind of ``local``; None for a parameter."""
        position = self._positions.get(local)
        return None if position is None else self.binds[position]

    def position(self, local: Local) -> int:
        """The index of the bind of ``local``; -1 for a parameter."""
        return self._positions.get(local, -1)

    def uses(self, local: Local) -> list[tuple[Bind | None, int]]:
        """All uses as (bind, operand position); the bind is None for the return."""
        binds = self.binds
        return [(binds[i] if i < len(binds) else RETURN, p) for i, p in self._uses.get(local, ())]

    def is_returned(self, local: Local) -> bool:
        """Whether ``local`` is among the results."""
        return self.last_use(local) == len(self.binds)

    def last_use(self, local: Local) -> int | None:
        """The index of the bind that uses ``local`` last, ``len(fn)`` for the return, or None."""
        result = self._uses.get(local)
        return result[-1][0] if result else None

    def uses_left(self, local: Local, index: int) -> int:
        """The number of operand positions that use ``local`` at bind ``index`` or later."""
        positions = self._uses.get(local, ())
        return len(positions) - bisect.bisect_left(positions, (index, 0))

    def live_at(self, index: int) -> list[Local]:
        """The locals bound before bind ``index`` and used at it or later, in order. Linear time."""
        bound = [*self.params, *(b for bind in self.binds[:index] for b in bind.binders)]
        return [local for local in bound if self.uses_left(local, index)]
