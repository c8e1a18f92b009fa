"""``Plan``: a program as a list of steps on a list of slots.

A run puts the arguments in front of a copy of the list of constants and executes the steps.
Results, errors, and the points at which values are freed are the same as in ``run_forward``.
"""

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from operator import length_hint
from types import FrameType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.bodies import all_bodies
from letir.ast.signatures import dir_of
from letir.ast.source import Source
from letir.ast.terms import Lambda
from letir.errors import GuardError, InternalError
from letir.eval.array_modules import ARRAY_CLASSES
from letir.eval.float_warnings import (
    ERROR_STATE,
    KERNEL_STATES,
    LOUD,
    NO_REGISTRY,
    PLACES,
    SETTING_FILES,
    current_state,
)
from letir.eval.memory_checks import memory_owner
from letir.plan.effect_log import EffectLog
from letir.plan.instructions import reference_counts
from letir.plan.slot_allocation import (
    MANY,
    ONE,
    ONE_AND_CLEAR,
    TWO,
    TWO_AND_CLEAR,
    StepTable,
    finish_run,
    step_table,
)

# NumPy warns at the line that calls it, here a line of letir. This is not a dict, so that Python
# raises TypeError instead; then the run goes on in a state that warns at the user's lines. Setting
# that state at the start of every run would take longer than a small ufunc.
__warningregistry__ = "see finish_run"
SETTING_FILES.add(__file__)
# Then the steps become a function. An executor's eighth call has made another one before that.
RUNS_BY_STEPS = 9


_MOST_STEPS = 1 << 15  # of the function of a plan: compiling it takes about 15 us a step


class Miss:
    """The result of a function, generated for certain argument types, for other arguments."""


class Plan:
    """An executable program: ``run(leaves)`` takes a flat list of arrays of the expected types.

    ``donated``: positions of the arguments whose memory a run may reuse.

    Several threads may run one plan at once: the state of a run is in its own list of slots.
    """

    __slots__ = (
        *("__weakref__", "binds", "donated", "left", "params", "ret", "runs", "straight"),
        *("table", "tables"),
    )
    __dir__ = dir_of("binds", "kernels", "memory", "params", "profile", "ret", "run")

    def __init__(self, fn: Lambda, donated: tuple = ()):
        # no reference to fn, which holds its plan: that would be a cycle
        self.params, self.binds, self.ret, self.donated = fn.params, fn.binds, fn.ret, donated
        # by array module
        self.table = step_table(fn, np, _run_body, donated)
        self.tables: dict[object, StepTable] = {np: self.table}
        self.runs = 0  # the runs by steps, approximately: threads may count at once
        self.left = 0  # the runs that ``straight`` left to the steps
        self.straight: Any = None  # a StraightLine once the plan has run often

    def run(
        self, leaves: list, xp: Any = np, tries: bool = False, log: EffectLog | None = None
    ) -> tuple:
        """The results as a flat tuple; ``leaves`` is emptied.

        ``tries``: a failed guard raises without its location, because the caller then tries another
        plan. ``log``: the effects that happened before a guard failed, not to be repeated.
        """
        table = self.table if xp is np else self.tables.get(xp) or self.table_for(xp)
        if len(leaves) != len(self.params):
            raise InternalError(
                f"a plan with {len(self.params)} arguments was called with {len(leaves)}"
            )
        if table is self.table:
            straight = self.straight
            if straight is None:
                runs = self.runs = self.runs + 1  # read once: another thread may count, too
                if runs == RUNS_BY_STEPS:
                    straight = self.straight = LATE_BOUND["straight_line_of"](self)
            if straight is not None and ARRAY_CLASSES.issuperset(map(type, leaves)):
                return self.run_straight_line(leaves, tries)
        v = leaves + table.rest
        leaves.clear()
        return self.run_steps(table, v, tries, log)

    def run_steps(self, table: StepTable, v: list, tries: bool, log: EffectLog | None) -> tuple:
        """The results of the steps on the slots ``v``."""
        # after an error the iterator has the position: no counter is needed in the loop
        steps, outer, token = iter(table.steps), sys.exception(), None
        try:
            if table.needs_start:
                _prepare_slots(table, v, log)
            if table.may_warn and (state := LOUD[current_state()]) is not None:
                token = ERROR_STATE.set(state)
            try:
                for kind, f, i, j, k, c in steps:
                    if kind == ONE:
                        v[k] = f(v[i])
                    elif kind == TWO:
                        v[k] = f(v[i], v[j])
                    elif kind == TWO_AND_CLEAR:
                        v[k] = f(v[i], v[j])
                        v[c] = None
                    elif kind == ONE_AND_CLEAR:
                        v[k] = f(v[i])
                        v[c] = None
                    elif kind == MANY:
                        v[k] = f(*[v[n] for n in i])
                        for n in c:
                            v[n] = None
                    else:
                        f(v, i, k, c)
            except TypeError as error:
                if error.args != NO_REGISTRY:
                    raise
                finish_run(table, v, (kind, f, i, j, k, c), steps)
            results = tuple([v[k] for k in table.results])
        except BaseException as error:
            self.fail(error, outer, table, v, steps, tries)
            raise
        finally:
            if token is not None:
                ERROR_STATE.reset(token)
        return without_constants(table, results) if table.constants else results

    def run_straight_line(self, leaves: list, tries: bool = True) -> tuple:
        """``run`` by the function that the steps were translated into."""
        straight = self.straight or self.translated()
        outer, token = sys.exception(), None
        if straight.kernels > 0 and KERNEL_STATES[current_state()] < straight.kernels:
            return self.run_steps(self.table, leaves + self.table.rest, tries, None)
        try:
            if straight.is_loud and (state := LOUD[current_state()]) is not None:
                token = ERROR_STATE.set(state)
            return straight.run(leaves)
        except BaseException as error:
            if tries and type(error) is GuardError:
                raise
            v, at = LATE_BOUND["rest_of_run"](self, straight, error, outer)
        finally:
            if token is not None:
                ERROR_STATE.reset(token)
        # outside of ``except``: a later error would get this one as its context
        return self.finish(v, at, outer, tries)

    def translated(self) -> Any:
        """The ``StraightLine`` of a plan that ``may_be_straight``, made now."""
        result = self.straight = LATE_BOUND["straight_line_of"](self)
        return result

    @property
    def may_be_straight(self) -> bool:
        """Whether the steps may become a function: they are not too many or special."""
        table = self.table
        return len(table.steps) <= _MOST_STEPS and not table.donated and table.log is None

    def finish(self, v: list, at: int, outer: BaseException | None, tries: bool) -> tuple:
        """The results of a run whose slots are ``v`` before step ``at``."""
        table = self.table
        steps = iter(table.steps[at + 1 :])
        try:
            finish_run(table, v, table.steps[at], steps)
            results = tuple([v[k] for k in table.results])
        except BaseException as error:
            self.fail(error, outer, table, v, steps, tries)
            raise
        return without_constants(table, results) if table.constants else results

    def fail(
        self,
        error: BaseException,
        outer: BaseException | None,
        table: StepTable,
        v: list,
        steps: Iterator,
        tries: bool,
    ) -> None:
        """Empty the slots ``v`` of a run that raised ``error``, and add its place to the error.

        ``steps``: the steps that were left; ``outer``: the exception handled before the run.
        """
        v.clear()
        if tries and type(error) is GuardError:
            return
        LATE_BOUND["forget_values"](error, outer)
        self.add_location_note(error, table, len(table.steps) - length_hint(steps) - 1)

    def table_for(self, xp: Any) -> StepTable:
        """The step table for another array module."""
        result = self.tables[xp] = step_table(self.program(), xp, partial(_run_body, xp=xp))
        return result

    def program(self) -> Lambda:
        """The program from which the plan was made."""
        return Lambda(self.params, self.binds, self.ret)

    @property
    def has_kernels(self) -> bool:
        """Whether ``kernels`` is not empty, which is known without the modules for their texts."""
        if not any(bind.op.role == "kernel" or bind.op.holds_lambdas for bind in self.binds):
            return False
        bodies = all_bodies(self.program())
        return any(bind.op.role == "kernel" for body in bodies for bind in body.binds)

    @property
    def kernels(self) -> tuple:
        """The kernels of the plan, each a ``PlanKernel`` with its texts; () without llvmlite."""
        return LATE_BOUND["plan_kernels"](self) if self.has_kernels else ()

    def memory(self, **sizes: int) -> Any:
        """The ``PlanMemory`` of the next call: the most bytes at once, and their arrays.

        ``sizes``: the values of symbolic sizes by name.
        """
        return LATE_BOUND["plan_memory"](self, sizes)

    def profile(self, leaves: Sequence) -> Any:
        """The ``PlanProfile`` of a run on a flat list of arguments: time and bytes by group."""
        return LATE_BOUND["plan_profile"](self, list(leaves))

    def add_location_note(self, error: BaseException, table: StepTable, at: int) -> None:
        """Add a note with the bind of the step ``at`` and the user's line to the error.

        Raises GuardError from ``error`` if the recorded function may catch it.
        """
        where = table.where[at] if at >= 0 else ()
        lines = where if type(where) is tuple else ((self.program(), where),)
        for fn, bind in lines:
            LATE_BOUND["add_location_note"](error, fn, bind)


def _prepare_slots(table: StepTable, v: list, log: EffectLog | None) -> None:
    """Prepare the slots ``v`` for a run: unused arguments, donated arrays, the effect log."""
    for c in table.unused:
        v[c] = None
    if table.donated:
        v[table.counts] = reference_counts(v, table.donated)
    if log is not None and table.log is not None:
        log.count, v[table.log] = 0, log


def _place_of_step(frame: FrameType) -> Source | None:
    """The source location of the step that a frame of ``Plan.run_steps`` executes."""
    table, steps = frame.f_locals["table"], frame.f_locals["steps"]
    return table.bind_at(len(table.steps) - length_hint(steps) - 1).source


def _place_of_line(frame: FrameType) -> Source | None:
    """The source location of the step that a function called by ``run_straight_line`` executes."""
    straight, table = frame.f_locals["straight"], frame.f_locals["self"].table
    caller: FrameType | None = sys._getframe(1)
    while caller is not None and caller.f_code is not straight.code:
        caller = caller.f_back
    if caller is None:
        return None
    return table.bind_at(max(straight.steps[caller.f_lineno - 1], 0)).source


PLACES.update({f.__code__: _place_of_step for f in (Plan.run_steps, finish_run)})
PLACES[Plan.run_straight_line.__code__] = _place_of_line


def without_constants(table: StepTable, results: tuple) -> tuple:
    """The results, copied where they share memory with a constant of the program.

    A value that is returned several times is copied once.
    """
    result, constants = list(results), table.constants
    copies: dict[int, Any] = {}
    for i in table.shared:
        slot = table.results[i]
        if slot in copies:
            result[i] = copies[slot]
        elif id(memory_owner(result[i])) in constants:
            result[i] = copies[slot] = result[i].copy(order="K")
    return tuple(result)


LATE_BOUND["without_constants"] = without_constants


def plan_of(fn: Lambda) -> Plan:
    """The plan of ``fn``, made once and cached on it."""
    return fn.memo(Plan)


def _run_body(fn: Lambda, args: Sequence, xp=np) -> tuple:
    """The results of a body; operations that hold Lambdas get this function as ``call``."""
    return fn.memo(Plan).run(args if type(args) is list else list(args), xp)
