"""``PlanProfile``: the time of each group of a plan, and the bytes that it reads and writes.

It prints as a table, and is written as a file of trace events, which ui.perfetto.dev and
chrome://tracing open.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from attrs import evolve, field, frozen

from letir.ast import LATE_BOUND
from letir.ast.bodies import all_bodies
from letir.ast.liveness import has_effect
from letir.ast.terms import Bind
from letir.plan.plan import Plan
from letir.plan.slot_allocation import OTHER

_RUNS = 3  # the fastest is shown: the first one fills caches
_MAX_LINES = 40
_MAX_NAMES = 6


@frozen
class StepTime:
    """One step of a run: a call of NumPy or of a kernel.

    ``begin``: seconds since the start of the run; ``bytes``: of all operands and results, 0 for a
    view; ``bind``: what the step computes.
    """

    name: str
    line: str
    begin: float
    seconds: float
    bytes: int
    bind: Bind = field(repr=False)


@frozen
class GroupTime:
    """A group of a plan: a kernel, fused operations, or one operation. Times are in seconds."""

    name: str
    line: str
    begin: float
    seconds: float
    bytes: int
    steps: tuple[StepTime, ...]


@frozen(repr=False)
class PlanProfile:
    """One run of a plan: ``seconds`` in total, and its ``groups`` in the order of their steps."""

    seconds: float
    groups: tuple[GroupTime, ...]
    heads: ClassVar = ("time", "share", "bytes", "GB/s", "group", "line")

    def rows(self) -> list[tuple[str, ...]]:
        """A row for each of the slowest groups, the slowest first, under the ``heads``."""
        result: list[tuple[str, ...]] = []
        for group in sorted(self.groups, key=lambda group: group.seconds, reverse=True)[
            :_MAX_LINES
        ]:
            rate = group.bytes / group.seconds / 1e9 if group.seconds else 0.0
            share = group.seconds / self.seconds if self.seconds else 0.0
            numbers = (
                f"{1e6 * group.seconds:.1f} us",
                f"{share:.0%}",
                f"{group.bytes:,}",
                f"{rate:.1f}",
            )
            result.append((*numbers, group.name, group.line))
        return result

    def __str__(self):
        rows = [self.heads, *self.rows()]
        widths = [max([len(row[n]) for row in rows]) for n in range(4)]
        lines = [
            "  ".join([*[f"{row[n]:>{w}}" for n, w in enumerate(widths)], *row[4:]]).rstrip()
            for row in rows
        ]
        omitted = len(self.groups) - len(rows) + 1
        more = [f"{omitted} faster groups"] if omitted else []
        return "\n".join([f"{1e6 * self.seconds:.1f} us", *lines, *more])

    __repr__ = __str__

    def _repr_html_(self):
        return LATE_BOUND["profile_html"](self)

    def trace_events(self) -> dict:
        """The run in the Trace Event Format of Chrome, with times in microseconds."""
        process = os.getpid()
        place = {"pid": process, "tid": 1}
        events = [{"ph": "M", "name": "process_name", "args": {"name": "letir plan"}, **place}]
        for group in self.groups:
            events.append(_trace_event(group, "group", place))
            if len(group.steps) > 1:
                events += [_trace_event(step, "step", place) for step in group.steps]
        return {"traceEvents": events, "displayTimeUnit": "ns"}

    def save(self, path: str | os.PathLike) -> None:
        """Write the trace events to a JSON file."""
        Path(path).write_text(json.dumps(self.trace_events()), encoding="utf-8")


def _trace_event(timed: GroupTime | StepTime, category: str, place: dict) -> dict:
    """A complete event of the format."""
    return {
        **{"ph": "X", "name": timed.name, "cat": category, **place},
        **{"ts": 1e6 * timed.begin, "dur": 1e6 * timed.seconds},
        "args": {"line": timed.line, "bytes": timed.bytes},
    }


def plan_profile(plan: Plan, leaves: list) -> PlanProfile:
    """The profile of a run of a plan on flat arguments, the fastest of three.

    A plan with effects, or that changes its arguments, runs once.
    """
    is_pure = not any(has_effect(bind) for bind in plan.binds) and not plan.donated
    return min(
        [_timed_run(plan, list(leaves)) for _ in range(_RUNS if is_pure else 1)],
        key=lambda profile: profile.seconds,
    )


def _timed_run(plan: Plan, leaves: list) -> PlanProfile:
    """The profile of one run."""
    table, times = plan.table, []

    def timed(f: Callable, kind: int) -> Callable:
        def call(*args):
            begin = time.perf_counter()
            size = sum([_array_bytes(args[0][n]) for n in args[1]]) if kind == OTHER else 0
            result = f(*args)
            end = time.perf_counter()
            if kind == OTHER:
                size += sum([_array_bytes(args[0][n]) for n in args[2] if n is not None])
            else:
                size = sum(map(_array_bytes, args)) + _array_bytes(result)
                size = 0 if getattr(result, "base", None) is not None else size  # only a view
            times.append((begin, end, size))
            return result

        return call

    steps = tuple([(kind, timed(f, kind), *rest) for kind, f, *rest in table.steps])
    begun = time.perf_counter()
    plan.run_steps(evolve(table, steps=steps), leaves + table.rest, False, None)
    seconds = time.perf_counter() - begun
    return PlanProfile(seconds, tuple(_group_times(table.where, times, begun)))


def _array_bytes(x: Any) -> int:
    """The bytes of an array with axes, 0 for a number."""
    return x.nbytes if isinstance(x, np.ndarray) and x.ndim else 0


def _group_times(where: tuple, times: list, begun: float) -> Iterator[GroupTime]:
    """The groups of steps with these times."""
    steps: list[StepTime] = []
    current: Bind | None = None
    for place, (begin, end, size) in zip(where, times, strict=True):
        pairs = place if type(place) is tuple else ((None, place),)
        inner, outer = pairs[0][1], pairs[-1][1]
        if outer is not current and steps:
            yield _group_time(steps)
            steps = []
        current = outer
        line = inner.source.short if inner.source else ""
        name, begin_at = _operation_name(inner), begin - begun
        steps.append(StepTime(name, line, begin_at, end - begin, size, inner))
    if steps:
        yield _group_time(steps)


def _operation_name(bind: Bind) -> str:
    """The name of a bind's operation in the profile."""
    if bind.op.role != "kernel":
        return bind.op.name
    impl: Any = bind.op.impl
    inner = [member for body in all_bodies(impl.body) for member in body.binds]
    names = [member.op.name for member in inner if member.op.role != "fused"]
    return f"kernel of {_first_names(names)}"


def _first_names(names: list[str]) -> str:
    """The first of some names."""
    return ", ".join(names[:_MAX_NAMES]) + (", ..." if len(names) > _MAX_NAMES else "")


def _group_time(steps: list[StepTime]) -> GroupTime:
    """The group of these steps."""
    first, last = steps[0], steps[-1]
    names = [step.name for step in steps]
    return GroupTime(
        names[0] if len(names) == 1 else f"group of {_first_names(names)}",
        first.line,
        first.begin,
        last.begin + last.seconds - first.begin,
        sum([step.bytes for step in steps]),
        tuple(steps),
    )


LATE_BOUND["plan_profile"] = plan_profile
