"""``straight_line``: the steps of a plan as a Python function, one local variable for each slot.

A plan that runs often becomes such a function: it has no loop over steps, and computes each
operation in its cheapest form. ``letir.plan.step_writer`` writes its text. After an error in it,
which includes floating-point warnings, the steps of the plan continue from the values in the failed
frame.
"""

from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.process_state import paused_gc
from letir.ops.as_numpy.quick_numbers import casts_for_stack, number_fact
from letir.plan.slot_allocation import OTHER, slots_of_step
from letir.plan.step_writer import StepWriter

_MAX_LEFT = 8  # runs by steps before the function is made again without scalar operators
# a path in this package: warnings must not name a line of a user's file
_FILE = str(Path(__file__).with_name("<steps>"))


@frozen
class StraightLine:
    """The generated function of a plan, and the step to which each of its lines belongs.

    ``run(leaves)`` returns the results and empties ``leaves``. ``may_repeat``: for each line,
    whether the plan may execute its step after the line failed. ``is_loud``: whether the
    floating-point state must be set for a run, because some steps warn in NumPy's own frames.
    ``kernels``: the least of ``KERNEL_STATES`` for a run, because some steps call kernels.
    """

    run: Callable[[list], tuple]
    code: CodeType
    steps: tuple[int, ...]
    may_repeat: tuple[bool, ...]
    slots: tuple[str, ...]
    is_loud: bool
    kernels: int

    def failed_at(self, error: BaseException) -> tuple[int, bool, FrameType | None]:
        """(step, whether the plan may repeat it, frame) of an error; step -1: before all steps."""
        at: TracebackType | None = error.__traceback__
        while at is not None:
            # an instruction that Python inserts, where an interrupt may come, has no line
            if at.tb_frame.f_code is self.code and at.tb_lineno is not None:
                line = at.tb_lineno - 1
                return self.steps[line], self.may_repeat[line], at.tb_frame
            at = at.tb_next
        return -1, False, None


@paused_gc()
def straight_line(
    table: Any, n_params: int, weak_params: dict[int, str], finish: Callable, plain: bool = False
) -> StraightLine:
    """The generated function for the steps of a table.

    ``weak_params``: FLOAT or INT for each parameter that is a Python number. ``finish``: a function
    for results that may share memory with constants. ``plain``: do not use operators of scalars,
    whose warnings have other texts. Linear time.
    """
    text = written_steps(table, n_params, weak_params, plain)
    text.finish(finish)
    return _compile_text(text)


def written_steps(
    table: Any,
    n_params: int,
    weak_params: dict[int, str],
    plain: bool = False,
    misses: bool = False,
) -> StepWriter:
    """The text of a function for the steps of a table, without its end; see ``straight_line``."""
    text = StepWriter(table, n_params, plain, misses, _stacked_casts(table))
    text.start(n_params, weak_params)
    skip = False
    for n, step in enumerate(table.steps):
        if not skip:
            text.step = n
            skip = text.add(step, table.bind_at(n))
        else:
            skip = False
    if text.is_loud and text.has_integers:
        return written_steps(table, n_params, weak_params, True, misses)
    return text


def _stacked_casts(table: Any) -> frozenset[int]:
    """The casts whose results are used by ``stack`` alone, see ``casts_for_stack``."""
    steps = []
    for n, (kind, _, i, j, k, c) in enumerate(table.steps):
        read, _ = slots_of_step(kind, i, j, c)
        steps.append((table.bind_at(n).op.name, read, k if kind == OTHER else (k,)))
    return casts_for_stack(steps, table.results)


def _compile_text(text: StepWriter) -> StraightLine:
    """The compiled function of this source code."""
    code = compile("\n".join(text.lines), _FILE, "exec")
    exec(code, text.names)  # the text holds names and numbers only
    run: Any = text.names.pop("run")  # else the function's globals would contain the function
    n_slots = text.n_params + len(text.table.rest)
    return StraightLine(
        *(run, run.__code__, tuple(text.steps), tuple(text.may_repeat)),
        *(tuple([f"s{n}" for n in range(n_slots)]), text.is_loud or text.plain),
        text.kernels,
    )


# ---- runs of plans ----


def straight_line_of(plan: Any, plain: bool = False) -> StraightLine | None:
    """The generated function for a plan; None if the plan has too many or special steps."""
    if not plan.may_be_straight:
        return None
    table, weak = plan.table, weak_params(plan)
    return straight_line(table, len(plan.params), weak, LATE_BOUND["without_constants"], plain)


def weak_params(plan: Any) -> dict[int, str]:
    """FLOAT or INT for each parameter of a plan that is a Python number, by position."""
    return {
        n: fact
        for n, param in enumerate(plan.params)
        if (fact := number_fact(param.type)) is not None and n not in plan.table.unused
    }


def rest_of_run(plan: Any, straight: StraightLine, error: BaseException, outer: Any) -> tuple:
    """(slots, step) from which the plan finishes a run that failed.

    Raises ``error`` with its place if the step cannot be repeated.
    """
    table = plan.table
    at, may_repeat, frame = straight.failed_at(error)
    if frame is None or not may_repeat or not isinstance(error, Exception):
        LATE_BOUND["forget_values"](error, outer)
        plan.add_location_note(error, table, at)
        raise error
    plan.left += 1
    if plan.left == _MAX_LEFT:
        plan.straight = straight_line_of(plan, plain=True)
    initial = chain(repeat(None, len(plan.params)), table.rest)
    variables = frame.f_locals
    v = [variables.get(name, value) for name, value in zip(straight.slots, initial, strict=True)]
    del variables
    frame.clear()  # else the frame would keep the values alive
    return v, max(at, 0)


LATE_BOUND.update(rest_of_run=rest_of_run, straight_line_of=straight_line_of)
