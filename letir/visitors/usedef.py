"""Where locals are bound and used: ``UseDef`` and the use counts by which the evaluator frees.

Both are computed once per Lambda and kept with it.
"""

from functools import cached_property

from attrs import define

from letir.ast.terms import Bind, Lambda, Local

RETURN = None  # stands for the Ret in a use


def use_counts(fn: Lambda) -> dict[Local, int]:
    """How often each local is used, returns included; 0 for those that never are. Kept with ``fn``."""
    return fn.memo(_count)


def _count(fn: Lambda) -> dict[Local, int]:
    counts = dict.fromkeys(fn.params, 0)
    for bind in fn.binds:
        for arg in bind.args:
            if type(arg) is Local:
                counts[arg] += 1
        for binder in bind.binders:
            counts[binder] = 0
    for local in fn.ret.locals():
        counts[local] += 1
    return counts


def uses(fn: Lambda) -> "UseDef":
    """The definitions and uses of ``fn``'s locals, computed once."""
    return fn.memo(UseDef)


@define(eq=False, slots=False)
class UseDef:
    """Definitions, uses and live ranges. Positions count binds; the return is at ``len(fn)``.

    >>> from letir.ast.parser import parse
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = mul(%1, %0); return %2 }")
    >>> ud = uses(f)
    >>> ud.last_use(f.params[0]), ud.is_returned(f.binds[1].binders[0]), ud.uses_left(f.params[0], 1)
    (1, True, 1)
    """

    fn: Lambda

    @cached_property
    def _positions(self) -> dict[Local, int]:
        return {b: i for i, bind in enumerate(self.fn.binds) for b in bind.binders}

    @cached_property
    def _uses(self) -> dict[Local, list[tuple[int, int]]]:
        found: dict = {}
        for i, bind in enumerate(self.fn.binds):
            for position, arg in enumerate(bind.args):
                if type(arg) is Local:
                    found.setdefault(arg, []).append((i, position))
        for position, arg in enumerate(self.fn.ret.args):
            if type(arg) is Local:
                found.setdefault(arg, []).append((len(self.fn.binds), position))
        return found

    def definition(self, local: Local) -> Bind | None:
        """The bind of ``local``; None for a parameter."""
        position = self._positions.get(local)
        return None if position is None else self.fn.binds[position]

    def position(self, local: Local) -> int:
        """The index of the bind of ``local``; -1 for a parameter."""
        return self._positions.get(local, -1)

    def uses(self, local: Local) -> list[tuple[Bind | None, int]]:
        """All uses as (bind, operand position); the bind is None for the return."""
        binds = self.fn.binds
        return [(binds[i] if i < len(binds) else RETURN, p) for i, p in self._uses.get(local, ())]

    def is_returned(self, local: Local) -> bool:
        """Whether it is among the results."""
        return self.last_use(local) == len(self.fn.binds)

    def last_use(self, local: Local) -> int | None:
        """The index of the bind that uses it last; ``len(fn)`` for the return, None if nothing does."""
        found = self._uses.get(local)
        return found[-1][0] if found else None

    def uses_left(self, local: Local, index: int) -> int:
        """How many operand positions still use it when bind ``index`` is about to run."""
        return sum(i >= index for i, _ in self._uses.get(local, ()))

    def live_at(self, index: int) -> list[Local]:
        """The locals that are bound before bind ``index`` and used by it or later, in order of definition."""
        bound = [*self.fn.params, *(b for bind in self.fn.binds[:index] for b in bind.binders)]
        return [local for local in bound if (self.last_use(local) or -1) >= index]
