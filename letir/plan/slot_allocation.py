"""Slot allocation: the slot of each value, the callable of each step, and what each step clears.

A result reuses the slot of an operand at its last use, so that storing the result frees the
operand. The slots of constants are never reused.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from attrs import define

from letir.ast.process_state import paused_gc
from letir.ast.terms import Bind, Lambda, Local
from letir.eval.float_warnings import ERROR_STATE, LOUD, SETTING_FILES, current_state, is_silent
from letir.eval.memory_checks import writable_view
from letir.plan.effect_log import before_guards
from letir.plan.instructions import (
    direct_ufunc,
    donated_step,
    is_simple,
    number_key,
    numeric_callable,
    operand_values,
    special_step,
    splice_groups,
)
from letir.visitors.usedef import use_counts

# The kinds of steps: f is the callable, i and j are operand slots, k is the result slot, and c are
# the slots cleared after the step (OTHER clears before it).
ONE, TWO, TWO_AND_CLEAR, ONE_AND_CLEAR, MANY, OTHER = range(6)
SETTING_FILES.add(__file__)
_KEPT = 1 << 60  # the remaining uses of a constant: it is never freed


@define(eq=False)
class StepTable:
    """The steps of a program for one array module.

    ``rest``: the initial contents of the slots after the parameters; ``unused``: the slots of
    parameters without a use; ``where``: the bind of each step; ``results``: the slots of results;
    ``constants``: ids of arrays with which results must not share memory; ``shared``: the results
    that might; ``needs_start``: whether slots have to be prepared before the first step.
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
    may_warn: bool
    needs_start: bool

    def bind_at(self, n: int) -> Bind:
        """The bind of step ``n``; for a step of a group, the bind in the body of the group."""
        where = self.where[n]
        return where[0][1] if type(where) is tuple else where


def finish_run(table: StepTable, v: list, step: tuple, steps: Iterator) -> None:
    """Execute ``step`` and the rest of the ``steps``, with warnings at the user's lines."""
    state = LOUD[current_state()]
    token = None if state is None else ERROR_STATE.set(state)
    try:
        for kind, f, i, j, k, c in chain((step,), steps):
            if kind == OTHER:
                f(v, i, k, c)
                continue
            slots, cleared = slots_of_step(kind, i, j, c)
            v[k] = f(*[v[n] for n in slots])
            for n in cleared:
                v[n] = None
    finally:
        if token is not None:
            ERROR_STATE.reset(token)


def slots_of_step(kind: int, i: Any, j: Any, c: Any) -> tuple[tuple, tuple]:
    """(the operand slots of a step, the slots that it clears)."""
    if kind in (MANY, OTHER):
        return i, c
    return (i,) if kind in (ONE, ONE_AND_CLEAR) else (i, j), () if c is None else (c,)


def step_table(fn: Lambda, xp: Any, call: Callable, donated: tuple = ()) -> StepTable:
    """The step table of ``fn`` for arrays of the module ``xp``; ``call`` runs bodies.

    ``donated``: positions of parameters whose arrays may be overwritten. Linear time.
    """
    program, origins = splice_groups(fn)
    layout, effects = _Layout(program, xp, call, donated), before_guards(program)
    if effects:
        layout.log = layout.new_slot(None)
    keeps_constants = xp is np or hasattr(xp, "copy_to_device")
    with paused_gc():
        for n, bind in enumerate(program.binds):
            if bind.op.role == "constant" and keeps_constants:
                layout.place_constant(bind)
            else:
                layout.place_bind(bind, origins.get(n, bind) if origins else bind, n in effects)
    return layout.table(program)


class _Layout:
    """The state of slot allocation for one program: the slot of each local, and the free slots."""

    def __init__(self, fn: Lambda, xp, call: Callable, donated: tuple):
        self.xp, self.call, self.first = xp, call, len(fn.params)
        self.donated: set[Local] = {fn.params[n] for n in donated}  # and results that reuse them
        self.left = use_counts(fn).copy()
        self.at: dict[Local, int] = {p: n for n, p in enumerate(fn.params)}
        self.unused = tuple([n for n, p in enumerate(fn.params) if p not in self.left])
        self.free: list[int] = list(self.unused)
        self.rest: list = []
        self.numbers: dict = {}  # slots of the Python numbers among the operands
        self.views: dict[int, int] = {}  # slots of writable views of constants, by their slots
        self.arrays: list = []  # constants: results must not share memory with them
        self.fresh: set[Local] = set()  # values that share memory with no constant
        self.steps: list[tuple] = []
        self.where: list = []
        self.counts = self.new_slot(None) if donated else None
        self.log: int | None = None
        self.may_warn = False  # whether a step that is not a ufunc may have floating-point errors

    def table(self, fn: Lambda) -> StepTable:
        """The finished table, once all binds have their steps."""
        shared = [
            n
            for n, arg in enumerate(fn.ret.args)
            if type(arg) is Local
            and arg not in self.fresh
            and not getattr(arg.type, "weak", False)  # Python's numbers have no memory
        ]
        results, _ = self.operands(fn.ret.args, None)
        return StepTable(
            *(tuple(self.steps), tuple(self.where), self.rest, self.unused, tuple(results)),
            *(frozenset(map(id, self.arrays)), tuple(shared)),
            *(tuple([n for n, p in enumerate(fn.params) if p in self.donated]), self.counts),
            *(self.log, self.may_warn),
            bool(self.unused or self.donated) or self.log is not None,
        )

    def place_constant(self, bind: Bind) -> None:
        """Allocate a permanent slot for an array constant, without a step."""
        (binder,) = bind.binders
        if binder in self.left:
            value = bind.attrs["value"]
            value = value if self.xp is np else self.xp.copy_to_device(value)
            self.at[binder], self.left[binder] = self.new_slot(value), _KEPT
            self.arrays.append(value)

    def place_bind(self, bind: Bind, where, is_logged: bool) -> None:
        """Append the step of ``bind``, named ``where`` in errors.

        ``is_logged``: the bind is an effect that precedes a guard.
        """
        self.where.append(where)
        ufunc = direct_ufunc(bind) if self.xp is np else None
        slots, dying = self.operands(bind.args, ufunc)
        if bind.op.role == "read_only_copied" and self.xp is np:
            slots = [self.writable_slot(slot) for slot in slots]
        is_called = not is_logged and is_simple(bind, self.xp)
        if ufunc is None or not is_called:  # else ``Plan.run`` calls the ufunc
            self.may_warn = self.may_warn or not is_silent(bind.op)
        if not is_called:
            if bind.op.update is not None and bind.args[0] in self.donated:
                f = donated_step(bind, self.xp, self.counts)
                self.donated.update(bind.binders)
            else:
                f = special_step(bind, self.xp, self.call, self.log if is_logged else None)
            if bind.op.update is not None and slots[0] in dying:
                dying.sort(key=slots[0].__eq__)  # the result takes the place of the array
            self.free += dying
            # an update: in place in an array that no constant shares, or of a copy
            if bind.op.update is not None or (
                bind.op.memory == "new" and not bind.op.is_user_defined
            ):
                self.fresh.update(bind.binders)
            targets = tuple([self.slot_for(b) if b in self.left else None for b in bind.binders])
            self.steps.append((OTHER, f, tuple(slots), None, targets, tuple(dying)))
            return
        (binder,) = bind.binders
        memory = None if bind.op.is_user_defined else bind.op.memory
        if memory == "new" or (memory == "view" and self.fresh.issuperset(bind.args)):
            self.fresh.add(binder)
        f = numeric_callable(bind, self.xp) if ufunc is None else ufunc
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
        """Append the step ``slot k = f(slots)`` and the slots to clear after it."""
        step: tuple
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
        """(operand slots, the slots among them that have their last use here)."""
        left, at, slots, dying, values = self.left, self.at, [], [], None
        for n, arg in enumerate(args):
            if type(arg) is not Local:
                values = operand_values(args, ufunc) if values is None else values
                slots.append(self.number_slot(values[n]))
                continue
            slot = at[arg]
            slots.append(slot)
            uses = left[arg] = left[arg] - 1
            if not uses:
                dying.append(slot)
        return slots, dying

    def number_slot(self, value) -> int:
        """The slot of a Python number, or of the array that replaces it."""
        key = number_key(value)
        result = self.numbers.get(key)
        if result is None:
            result = self.numbers[key] = self.new_slot(value)
        return result

    def writable_slot(self, slot: int) -> int:
        """A slot with a writable view of the array in this slot, if that is a read-only constant.

        The functions that read it copy read-only arrays first, and write into none.
        """
        value = self.rest[slot - self.first] if slot >= self.first else None
        if type(value) is not np.ndarray or value.flags.writeable or not value.shape:
            return slot
        result = self.views.get(slot)
        if result is None:
            result = self.views[slot] = self.new_slot(writable_view(value))
        return result

    def slot_for(self, binder: Local) -> int:
        """A free slot for a new value."""
        slot = self.at[binder] = self.free.pop() if self.free else self.new_slot(None)
        return slot

    def new_slot(self, value) -> int:
        """A new slot with this initial value."""
        self.rest.append(value)
        return self.first + len(self.rest) - 1
