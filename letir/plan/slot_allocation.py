"""How a program is laid out on slots: which value is in which, what each step calls, and what is
cleared after it.

A result takes the slot of an operand that is used for the last time: to write it is to free that
operand. Constants have slots that nothing takes.
"""

from collections.abc import Callable

import numpy as np
from attrs import define

from letir.ast.gc_pause import paused_gc
from letir.ast.terms import Bind, Lambda, Local
from letir.ops.shape.shape_and_creation import constant
from letir.plan.effect_log import before_guards
from letir.plan.instructions import (
    in_donated,
    is_simple,
    key_of,
    numerics,
    operand_values,
    special,
    spliced,
    ufunc_of,
)
from letir.visitors.usedef import use_counts

# How a step is done: f is what it calls, i and j are slots of operands, k is that of the result,
# c what is cleared after it (OTHER clears before it).
ONE, TWO, TWO_AND_CLEAR, ONE_AND_CLEAR, MANY, _OTHER = range(6)
_KEPT = 1 << 60  # uses left of a constant


@define(eq=False)
class Table:
    """The steps of a program for one array module.

    ``rest``: what is in the slots behind those of the parameters before the first step; ``unused``:
    slots of parameters that nobody reads; ``where``: the bind of each step; ``results``: their
    slots; ``constants``: ids of the arrays that results must not share memory with, and ``shared``
    which results might.
    """

    steps: tuple
    where: tuple
    rest: list
    unused: tuple
    results: tuple
    constants: frozenset
    shared: tuple
    donated: tuple
    counts: int | None
    log: int | None


def laid_out(fn: Lambda, xp, call: Callable, donated: tuple = ()) -> Table:
    """The table of ``fn`` for arrays of the module ``xp``; bodies are run by ``call``. Linear.

    ``donated``: positions of parameters whose arrays may be written to.
    """
    program, origins = spliced(fn)
    layout, effects = _Layout(program, xp, call, donated), before_guards(program)
    if effects:
        layout.log = layout.new(None)
    with paused_gc():
        for n, bind in enumerate(program.binds):
            if bind.op is constant and xp is np:
                layout.place_constant(bind)
            else:
                layout.place(bind, origins.get(n, bind) if origins else bind, n in effects)
    return layout.table(program)


class _Layout:
    """The state of laying out one program: where each local is, and which slots are free."""

    def __init__(self, fn: Lambda, xp, call: Callable, donated: tuple):
        self.xp, self.call, self.first = xp, call, len(fn.params)
        self.donated: set[Local] = {fn.params[n] for n in donated}  # and what is written in them
        self.left = use_counts(fn).copy()
        self.at: dict[Local, int] = {p: n for n, p in enumerate(fn.params)}
        self.unused = tuple([n for n, p in enumerate(fn.params) if p not in self.left])
        self.free: list[int] = list(self.unused)
        self.rest: list = []
        self.numbers: dict = {}  # slots of the Python numbers among the operands
        self.arrays: list = []  # constants, which results must not share memory with
        self.fresh: set[Local] = set()  # what shares memory with nothing else
        self.steps: list[tuple] = []
        self.where: list = []
        self.counts = self.new(None) if donated else None
        self.log: int | None = None

    def table(self, fn: Lambda) -> Table:
        """The layout of the whole program, whose binds have been placed."""
        shared = [n for n, arg in enumerate(fn.ret.args) if arg not in self.fresh]
        results, _ = self.operands(fn.ret.args, None)
        return Table(
            *(tuple(self.steps), tuple(self.where), self.rest, self.unused, tuple(results)),
            *(frozenset(map(id, self.arrays)), tuple(shared)),
            *(tuple([n for n, p in enumerate(fn.params) if p in self.donated]), self.counts),
            self.log,
        )

    def place_constant(self, bind: Bind) -> None:
        """Give an array constant a slot of its own, and no step."""
        (binder,) = bind.binders
        if binder in self.left:
            value = bind.attrs["value"]
            self.at[binder], self.left[binder] = self.new(value), _KEPT
            self.arrays.append(value)

    def place(self, bind: Bind, where, is_logged: bool) -> None:
        """Add the step of ``bind``, which is told as ``where``; ``is_logged``: an effect before a
        guard.
        """
        self.where.append(where)
        ufunc = ufunc_of(bind) if self.xp is np else None
        slots, dying = self.operands(bind.args, ufunc)
        if is_logged or not is_simple(bind):
            if bind.op.update is not None and bind.args[0] in self.donated:
                f = in_donated(bind, self.xp, self.counts)
                self.donated.update(bind.binders)
            else:
                f = special(bind, self.xp, self.call, self.log if is_logged else None)
            self.free += dying
            k = tuple([self.slot_for(b) if b in self.left else None for b in bind.binders])
            self.steps.append((_OTHER, f, tuple(slots), None, k, tuple(dying)))
            return
        (binder,) = bind.binders
        if ufunc is not None:
            self.fresh.add(binder)
        f = numerics(bind, self.xp) if ufunc is None else ufunc
        k = dying[0] if dying else self.slot_for(binder)
        cleared = dying[1:]
        self.free += cleared
        if binder in self.left:
            self.at[binder] = k
        else:
            cleared.append(k)
            self.free.append(k)
        self.add(f, slots, k, cleared)

    def add(self, f: Callable, slots: list[int], k: int, cleared: list[int]) -> None:
        """Add the step ``slot k = f(slots)``, after which others are cleared."""
        if len(cleared) > 1 or not 1 <= len(slots) <= 2:
            step = (MANY, f, tuple(slots), None, k, tuple(cleared))
        elif len(slots) == 1:
            kind = ONE_AND_CLEAR if cleared else ONE
            step = (kind, f, slots[0], None, k, cleared[0] if cleared else None)
        else:
            kind = TWO_AND_CLEAR if cleared else TWO
            step = (kind, f, *slots, k, cleared[0] if cleared else None)
        self.steps.append(step)

    def operands(self, args: tuple, ufunc) -> tuple[list[int], list[int]]:
        """(the slots of operands, those of values that are used here for the last time)."""
        left, at, slots, dying, values = self.left, self.at, [], [], None
        for n, arg in enumerate(args):
            if type(arg) is not Local:
                values = operand_values(args, ufunc) if values is None else values
                slots.append(self.number(values[n]))
                continue
            slot = at[arg]
            slots.append(slot)
            uses = left[arg] = left[arg] - 1
            if not uses:
                dying.append(slot)
        return slots, dying

    def number(self, value) -> int:
        """The slot of a Python number, or of the array that stands for it."""
        key = key_of(value)
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = self.new(value)
        return found

    def slot_for(self, binder: Local) -> int:
        """A slot for a new value."""
        slot = self.at[binder] = self.free.pop() if self.free else self.new(None)
        return slot

    def new(self, value) -> int:
        """One more slot, with what is in it before the first step."""
        self.rest.append(value)
        return self.first + len(self.rest) - 1
