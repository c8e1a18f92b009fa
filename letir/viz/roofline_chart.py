"""``roofline``: the groups of a plan by operations per byte, compared with the machine's limits."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import define, field, frozen

from letir.ast import entry_point
from letir.ast.terms import Lambda
from letir.executor.measurements.plan_profile import GroupTime, PlanProfile
from letir.viz.chart import Chart
from letir.viz.machine_roofs import Roofs, machine_roofs
from letir.viz.operation_counts import count_operations
from letir.viz.picture import (
    circle_shape,
    format_bytes,
    format_seconds,
    line_shape,
    shorten_text,
    text_shape,
)
from letir.viz.profile_chart import compile_and_profile
from letir.viz.shown_programs import shown_program
from letir.viz.view_page import html_table

_WIDTH, _HEIGHT = 640.0, 300.0  # of the part of the picture inside of the axes
_LEFT, _TOP = 70.0, 20.0
_ROW = 15.0
_MAX_LENGTH = 100
_MAX_GROUPS = 12
_COLORS = 8
_HEADS = ("", "time", "share", "op/byte", "Gop/s", "GB/s", "roof", "limit", "group", "line")


@frozen
class _Point:
    """A group of the plan. ``operations``: of one run, None if they are not known.

    ``roof``: the best possible time divided by the time that the group took.
    """

    number: int
    group: GroupTime
    operations: int | None
    share: float
    roof: float
    limit: str

    @property
    def intensity(self) -> float:
        """Arithmetic operations per byte."""
        return (self.operations or 0) / max(self.group.bytes, 1)

    @property
    def rate(self) -> float:
        """Arithmetic operations per second."""
        return (self.operations or 0) / self.group.seconds

    @property
    def is_drawn(self) -> bool:
        """Whether the group computes and moves bytes, so that it has a place in the picture."""
        return bool(self.operations) and self.group.bytes > 0

    def words(self) -> tuple[str, ...]:
        """The group as cells of a table."""
        is_known = self.operations is not None
        return (
            format_seconds(self.group.seconds),
            f"{self.share:.0%}",
            f"{self.intensity:.2g}" if is_known and self.group.bytes else "-",
            f"{self.rate / 1e9:.3g}" if is_known else "-",
            f"{self.group.bytes / self.group.seconds / 1e9:.3g}",
            f"{self.roof:.0%}",
            self.limit,
        )


@entry_point
def roofline(f: Any, *args: Any) -> Chart:
    """How close each group of a plan comes to the limits of this machine (Williams, Waterman and
    Patterson, Communications of the ACM, 2009).

    A group is a kernel or a call of NumPy. The picture shows its arithmetic operations per byte and
    per second. Above it is the roof: memory limits a group of few operations per byte, the
    arithmetic units limit any other group. Both limits are measured on this machine, at the first
    call in a process. "roof" is the share of the highest possible speed that the group reaches;
    it can exceed 100 % if arrays stay in a cache. Operations are counted from types, and elementary
    functions by their instructions: an exponential has about thirty. "-": the number is not known.

    ``f`` and ``args``: as for ``profile``, including how often the program runs.

    >>> import numpy as np
    >>> found = roofline(lambda x: np.tanh(x * x), np.ones(100_000))
    >>> found.title.startswith("memory ")
    True
    """
    compiled, times = compile_and_profile("roofline", f, args)
    roofs = machine_roofs(_float_dtype(shown_program("roofline", compiled)))
    points = _slowest_points(times, roofs)
    plot = _Plot(roofs, [point for point in points if point.is_drawn])
    meeting = roofs.operations / roofs.bytes
    title = (
        f"memory {format_bytes(roofs.bytes)}/s, peak {roofs.operations / 1e9:.3g} Gop/s "
        f"({roofs.dtype}), which meet at {meeting:.2g} operations per byte"
    )
    rows = [(point.number, *point.words(), point.group.name, point.group.line) for point in points]
    return Chart(
        title=title,
        body=html_table(_HEADS, rows, numbers=range(7), label="groups of the plan"),
        text="\n".join([title, *_text_lines(rows)]),
        shapes="".join([*plot.shapes(), *_legend_shapes(points, _TOP + _HEIGHT + 52)]),
        width=_LEFT + _WIDTH + 130,
        height=_TOP + _HEIGHT + 52 + _ROW * len(points),
        about=title,
        draw=plot.draw,
    )


def _float_dtype(fn: Lambda) -> str:
    """ "float32" if the program has no other floats, else "float64"."""
    dtypes = {
        str(local.type.dtype)
        for local in (*fn.params, *[x for bind in fn.binds for x in bind.binders])
        if local.type is not None and local.type.dtype.kind == "f" and not local.type.weak
    }
    return "float32" if dtypes == {"float32"} else "float64"


def _slowest_points(times: PlanProfile, roofs: Roofs) -> list[_Point]:
    """The slowest groups, the slowest first."""
    ranked = sorted(times.groups, key=lambda group: group.seconds, reverse=True)[:_MAX_GROUPS]
    total = sum([group.seconds for group in times.groups])
    return [_point_of(n, group, total, roofs) for n, group in enumerate(ranked, start=1)]


def _point_of(number: int, group: GroupTime, total: float, roofs: Roofs) -> _Point:
    """The point of a group."""
    counts = [count_operations(step.bind) for step in group.steps]
    operations = None if None in counts else sum([n for n in counts if n is not None])
    best = roofs.seconds(operations or 0, group.bytes)
    is_memory = best == group.bytes / roofs.bytes
    limit = ("memory" if is_memory else "arithmetic") if group.bytes or operations else "calls"
    return _Point(number, group, operations, group.seconds / total, best / group.seconds, limit)


def _legend_shapes(points: Sequence[_Point], y: float) -> Iterator[str]:
    """A line for each group, with the number that is at its point."""
    for n, point in enumerate(points):
        at = y + _ROW * n
        if point.is_drawn:
            yield circle_shape(_LEFT + 5, at - 4, 5, f"c{n % _COLORS}")
        shares = f"{point.share:.0%} of the time, {point.roof:.0%} of the roof"
        text = shorten_text(f"{point.number}  {shares}  {_label_of(point)}", _MAX_LENGTH)
        yield text_shape(_LEFT + 16, at, text)


def _label_of(point: _Point) -> str:
    return f"{point.group.name}  {point.group.line}".rstrip()


def _text_lines(rows: list[tuple]) -> Iterator[str]:
    """The table as text."""
    cells = [[str(cell) for cell in row] for row in (_HEADS, *rows)]
    widths = [max([len(row[n]) for row in cells]) for n in range(8)]
    for row in cells:
        numbers = [f"{row[n]:>{w}}" for n, w in enumerate(widths)]
        yield "  ".join([*numbers, *row[8:]]).rstrip()


@define(eq=False)
class _Plot:
    """The picture: both axes are logarithmic, from ``low`` to ``high``, as powers of ten."""

    roofs: Roofs
    points: list[_Point]
    low: tuple[float, float] = field(init=False)
    high: tuple[float, float] = field(init=False)

    def __attrs_post_init__(self) -> None:
        meeting = self.roofs.operations / self.roofs.bytes
        xs = [meeting / 30, meeting * 10, *[point.intensity for point in self.points]]
        ys = [self.roofs.operations / 100, *[point.rate for point in self.points]]
        tops = [1.5 * y for y in (self.roofs.operations, *ys)]
        self.low = math.floor(math.log10(min(xs))), math.log10(min(ys)) - 0.2
        self.high = math.log10(max(xs)) + 0.2, math.log10(max(tops))

    def roof_at(self, intensity: float) -> float:
        """The operations per second that are possible at most."""
        return min(self.roofs.operations, intensity * self.roofs.bytes)

    def place(self, intensity: float, rate: float) -> tuple[float, float]:
        """Where a point is in the picture."""
        (left, bottom), (right, top) = self.low, self.high
        x = (math.log10(intensity) - left) / (right - left)
        y = (math.log10(rate) - bottom) / (top - bottom)
        return _LEFT + _WIDTH * x, _TOP + _HEIGHT * (1 - y)

    def corners(self) -> list[tuple[float, float]]:
        """The corners of the roof, in operations per byte and per second."""
        meeting = self.roofs.operations / self.roofs.bytes
        first = max(10 ** self.low[0], 10 ** self.low[1] / self.roofs.bytes)
        return [(x, self.roof_at(x)) for x in (first, meeting, 10 ** self.high[0])]

    def shapes(self) -> Iterator[str]:
        """The axes, the roof and the points."""
        yield from self.grid()
        places = [self.place(*corner) for corner in self.corners()]
        for start, end in itertools.pairwise(places):
            yield line_shape(*start, *end, "edge use")
        x, y = places[2]
        yield text_shape(x + 6, y + 4, "peak arithmetic", "q")
        (x, y), (to_x, to_y), _ = places
        yield text_shape((x + to_x) / 2 + 8, (y + to_y) / 2 + 14, "memory", "q")
        for point in self.points:
            x, y = self.place(point.intensity, point.rate)
            kind = f"c{(point.number - 1) % _COLORS}"
            yield circle_shape(x, y, 4 + 8 * point.share, kind, title=_label_of(point))
            yield text_shape(x + 8 + 8 * point.share, y + 4, str(point.number), "strong")

    def grid(self) -> Iterator[str]:
        """Lines at the powers of ten, and the labels of the axes."""
        bottom, right = _TOP + _HEIGHT, _LEFT + _WIDTH
        for n in range(math.ceil(self.low[0]), math.floor(self.high[0]) + 1):
            x, _ = self.place(10.0**n, 10 ** self.low[1])
            yield line_shape(x, _TOP, x, bottom, "axis")
            yield text_shape(x, bottom + 14, f"{10.0**n:g}", "q", end="middle")
        for n in range(math.ceil(self.low[1]), math.floor(self.high[1]) + 1):
            _, y = self.place(10 ** self.low[0], 10.0**n)
            yield line_shape(_LEFT, y, right, y, "axis")
            yield text_shape(_LEFT - 6, y + 4, f"{10.0 ** (n - 9):g}", "q", end="end")
        yield text_shape(right, bottom + 30, "operations per byte", "q", end="end")
        yield text_shape(_LEFT - 6, _TOP - 8, "Gop/s", "q", end="end")

    def draw(self, axes: Any) -> None:
        """Draw the roof and the points with matplotlib."""
        xs, ys = zip(*self.corners(), strict=True)
        axes.loglog(xs, [y / 1e9 for y in ys], color="black")
        for point in self.points:
            size = (2 * (4 + 8 * point.share)) ** 2
            label = f"{point.number}  {shorten_text(_label_of(point), 50)}"
            axes.scatter(point.intensity, point.rate / 1e9, s=size, label=label, zorder=3)
            axes.annotate(f"  {point.number}", (point.intensity, point.rate / 1e9))
        axes.set(xlabel="operations per byte", ylabel="Gop/s")
        if self.points:
            axes.legend(fontsize="small", markerscale=0.5)
