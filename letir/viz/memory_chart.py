"""``memory`` and ``live_ranges``: the arrays of a call of a plan over its steps, as pictures."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import define, field

from letir.ast import entry_point
from letir.ast.terms import Bind
from letir.executor.measurements.memory_timeline import LiveArray, MemoryTimeline, memory_timeline
from letir.viz.chart import Chart
from letir.viz.picture import (
    format_bytes,
    line_shape,
    rect_shape,
    shorten_text,
    text_shape,
    width_of,
)
from letir.viz.shown_programs import shown_plan, source_line_of
from letir.viz.view_page import html_table

_WIDTH, _HEIGHT = 860.0, 240.0  # of the part of a picture with the areas
_LEFT, _TOP = 70.0, 24.0
_RANGES = 520.0  # the width of the part with the live ranges
_MAX_STEPS = 430  # columns; of more steps each column shows the highest
_MAX_LINES = 7  # of code with a colour of their own
_MAX_ARRAYS = 60
_ROW = 15.0
_MAX_LENGTH = 64
_BARS = " ▁▂▃▄▅▆▇█"
_COLUMNS = 64  # of the text


@entry_point
def memory(program: Any, **sizes: int) -> Chart:
    """The memory of a call over the steps of its plan, by the line of your code that made it.

    The peak is marked, and the arrays that exist at the peak are listed. ``program``: a Lambda,
    which is compiled, a Gradient, a compiled program, or a jitted function that has been called.
    ``sizes``: the values of symbolic sizes. Nothing runs; arguments are not counted, as in
    ``memory()`` of a compiled program. Linear in the number of binds.

    >>> from letir import compile, parse
    >>> f = parse('''lambda %0: float64[1000] {
    ...   %1: float64[1000] = sin(%0)  # model.py:3
    ...   %2: float64[1000] = sort(%1)  # model.py:4
    ...   %3: float64[] = sum(%2)  # model.py:5
    ...   return %3
    ... }''')
    >>> print(memory(compile(f)))
    peak: 16 kB at sort, step 2 of 3
         |▄█▄|
         8 kB  sin: float64[1000]  model.py:3
         8 kB  sort: float64[1000]  model.py:4
    """
    timeline = memory_timeline(shown_plan("memory", program), sizes)
    chart = _Timeline(timeline)
    at_peak = _held_at_peak(timeline)
    heads = ("bytes", "arrays", "array", "line", "code")
    rows = [(f"{size:,}", count, *texts) for size, count, *texts in at_peak]
    table = html_table(heads, rows, numbers=(0, 1), label="arrays at the peak")
    head = "<h4>what exists at the peak</h4>"
    return Chart(
        title=chart.title(),
        body=(head + table if at_peak else "") + _inexact_note(timeline),
        text=chart.text(at_peak),
        shapes="".join(chart.shapes()),
        width=_LEFT + _WIDTH + 10,
        height=_TOP + _HEIGHT + 30 + _ROW * (len(chart.lines) + 1),
        about=chart.title() + ". " + ", ".join(chart.lines),
        draw=chart.draw_memory,
    )


@entry_point
def live_ranges(program: Any, **sizes: int) -> Chart:
    """When each array of a call exists: a bar from the step that makes it to its last step.

    The largest arrays are shown, in the order in which they are made, coloured by the line of your
    code. ``program`` and ``sizes``: as for ``memory``.

    >>> from letir import compile, parse
    >>> f = parse('''lambda %0: float64[1000] {
    ...   %1: float64[1000] = sin(%0)  # model.py:3
    ...   %2: float64[1000] = sort(%1)  # model.py:4
    ...   %3: float64[] = sum(%2)  # model.py:5
    ...   return %3
    ... }''')
    >>> print(live_ranges(compile(f)))
    2 arrays in 3 steps
    8 kB  ██.  sin: float64[1000]  model.py:3
    8 kB  .██  sort: float64[1000]  model.py:4
    """
    timeline = memory_timeline(shown_plan("live_ranges", program), sizes)
    shown = _largest_arrays(timeline.arrays)
    omitted = len(timeline.arrays) - len(shown)
    more = f", the {len(shown)} largest" if omitted else ""
    title = f"{len(timeline.arrays):,} arrays in {len(timeline.steps):,} steps{more}"
    chart = _Timeline(timeline)
    return Chart(
        title=title,
        body=_inexact_note(timeline),
        text="\n".join([title, *_range_lines(shown, len(timeline.steps))]),
        shapes="".join(chart.range_shapes(shown)),
        width=_LEFT
        + _RANGES
        + 20
        + width_of([shorten_text(array.text, _MAX_LENGTH) for array in shown])
        + 120,
        height=_TOP + _ROW * (len(shown) + len(chart.lines) + 3),
        about=title,
        draw=lambda axes: chart.draw_ranges(axes, shown),
    )


def _held_at_peak(timeline: MemoryTimeline) -> list[tuple[int, int, str, str, str]]:
    """(bytes, number, array, line, code) of the arrays that exist at the peak, the largest first.

    Equal arrays of one line are one row, with their number.
    """
    rows: dict[tuple[str, str, str], list[int]] = {}
    for array in timeline.at_peak():
        row = (array.text, _place_of(array.bind), source_line_of(array.bind.source))
        rows.setdefault(row, []).append(array.bytes)
    if timeline.live:
        inside = timeline.peak - sum(map(sum, rows.values()))
        bind = timeline.steps[timeline.peak_at]
        if inside:  # temporary arrays of this step
            row = (f"inside {bind.op.name}", _place_of(bind), source_line_of(bind.source))
            rows[row] = [inside]
    rows_at_peak = [(sum(sizes), len(sizes), *row) for row, sizes in rows.items()]
    return sorted(rows_at_peak, key=lambda row: row[0], reverse=True)[:_MAX_ARRAYS]


def _inexact_note(timeline: MemoryTimeline) -> str:
    """A line of a view that says that a prediction is not exact; empty if it is."""
    if timeline.is_exact:
        return ""
    return '<p class="q">About: a type is not known, or a step runs a body.</p>'


def _largest_arrays(arrays: Sequence[LiveArray]) -> list[LiveArray]:
    """The largest arrays, in the order in which they are made."""
    ranked = sorted(arrays, key=lambda array: array.bytes, reverse=True)[:_MAX_ARRAYS]
    return sorted(ranked, key=lambda array: array.first)


def _place_of(bind: Bind) -> str:
    """The line of the user's code."""
    return bind.source.short if bind.source else "no line"


def _range_lines(shown: Sequence[LiveArray], count: int) -> Iterator[str]:
    """The bars of arrays as text."""
    columns = min(count, _COLUMNS) or 1
    sizes = [format_bytes(array.bytes) for array in shown]
    most = max(map(len, sizes), default=0)
    for array, size in zip(shown, sizes, strict=True):
        first = array.first * columns // count
        last = max(min(array.last, count - 1) * columns // count, first)
        bar = "." * first + "█" * (last - first + 1) + "." * (columns - last - 1)
        text = f"{shorten_text(array.text, _MAX_LENGTH)}  {_place_of(array.bind)}"
        yield f"{size:>{most}}  {bar}  {text}"


@define(eq=False)
class _Timeline:
    """Draws a timeline. ``lines``: the lines of code that make most bytes, then "other lines"."""

    timeline: MemoryTimeline
    lines: list[str] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        sizes: Counter[str] = Counter()
        at_peak = set(map(id, self.timeline.at_peak()))
        for array in self.timeline.arrays:  # lines of the peak first
            sizes[_place_of(array.bind)] += array.bytes * (1 + 1000 * (id(array) in at_peak))
        self.lines = [line for line, _ in sizes.most_common(_MAX_LINES)]
        if len(sizes) > _MAX_LINES:
            self.lines.append("other lines")

    def title(self) -> str:
        """The peak in one line."""
        timeline = self.timeline
        if timeline.peak_at < 0:
            return "peak: 0 B, there are no steps"
        about = "" if timeline.is_exact else "about "
        name = timeline.steps[timeline.peak_at].op.name
        place = f"step {timeline.peak_at + 1} of {len(timeline.live)}"
        return f"peak: {about}{format_bytes(timeline.peak)} at {name}, {place}"

    def color(self, bind: Bind) -> int:
        """The number of the colour of a line of code."""
        place = _place_of(bind)
        return self.lines.index(place) if place in self.lines else len(self.lines) - 1

    # ---- columns ----

    def columns(self) -> int:
        """The number of columns of the picture."""
        return min(len(self.timeline.live), _MAX_STEPS)

    def column_of(self, step: int) -> int:
        """The column that shows a step."""
        return min(step, len(self.timeline.live) - 1) * self.columns() // len(self.timeline.live)

    def heights(self) -> list[list[int]]:
        """For each column, the bytes of each line, and last those of temporary arrays.

        A column for several steps shows the one with the most bytes.
        """
        timeline, columns = self.timeline, self.columns()
        shown = [0] * columns  # the step that each column shows
        for step, live in enumerate(timeline.live):
            column = self.column_of(step)
            if live >= timeline.live[shown[column]] or self.column_of(shown[column]) != column:
                shown[column] = step
        changes: dict[int, list[int]] = {}  # step -> change of the bytes of each line
        for array in timeline.arrays:
            color = self.color(array.bind)
            for step, sign in ((array.first, 1), (array.last + 1, -1)):
                row = changes.setdefault(step, [0] * len(self.lines))
                row[color] += sign * array.bytes
        heights, now, next_column = [], [0] * len(self.lines), 0
        for step, live in enumerate(timeline.live):
            for color, change in enumerate(changes.get(step, ())):
                now[color] += change
            if next_column < columns and shown[next_column] == step:
                heights.append([*now, max(live - sum(now), 0)])
                next_column += 1
        return heights

    # ---- shapes ----

    def shapes(self) -> Iterator[str]:
        """The picture of the memory."""
        timeline, top = self.timeline, max(self.timeline.peak, 1)
        bottom, wide = _TOP + _HEIGHT, _WIDTH / max(self.columns(), 1)
        for part in (0, 0.25, 0.5, 0.75, 1):
            y = bottom - part * _HEIGHT
            yield line_shape(_LEFT, y, _LEFT + _WIDTH, y, "axis")
            yield text_shape(_LEFT - 6, y + 4, format_bytes(part * top), "q", end="end")
        heights = self.heights()
        for color in range(len(self.lines) + 1):
            for first, last, low, high in _runs_of_areas(heights, color):
                y, height = bottom - high * _HEIGHT / top, (high - low) * _HEIGHT / top
                kind = f"c{color} area" if color < len(self.lines) else "soft"
                yield rect_shape(_LEFT + first * wide, y, (last - first) * wide, height, kind)
        yield from self.steps(bottom, _WIDTH)
        if timeline.live:
            x = _LEFT + (self.column_of(timeline.peak_at) + 0.5) * wide
            yield line_shape(x, _TOP - 6, x, bottom, "mark")
            end = "end" if x > _LEFT + _WIDTH / 2 else ""
            yield text_shape(x + (-5 if end else 5), _TOP - 10, self.title(), "strong", end=end)
        yield from self.legend(bottom + 36)

    def steps(self, y: float, width: float) -> Iterator[str]:
        """The first and the last step below the picture."""
        yield text_shape(_LEFT, y + 14, "step 1", "q")
        yield text_shape(_LEFT + width, y + 14, f"{len(self.timeline.live):,}", "q", end="end")

    def legend(self, y: float) -> Iterator[str]:
        """The colour of each line of code."""
        codes = {
            _place_of(array.bind): source_line_of(array.bind.source)
            for array in self.timeline.arrays
        }
        for i, line in enumerate(self.lines):
            yield rect_shape(_LEFT, y + _ROW * i - 9, 10, 10, f"c{i}")
            text = f"{line}  {codes.get(line, '')}".rstrip()
            yield text_shape(_LEFT + 16, y + _ROW * i, shorten_text(text, 2 * _MAX_LENGTH))

    def range_shapes(self, shown: Sequence[LiveArray]) -> Iterator[str]:
        """The picture of the live ranges, with the names of the arrays at the right."""
        count = max(len(self.timeline.steps), 1)
        wide, bottom = _RANGES / count, _TOP + _ROW * len(shown)
        for i, array in enumerate(shown):
            y, x = _TOP + _ROW * i, _LEFT + array.first * wide
            last = min(array.last, count - 1)
            title = f"{array.bytes:,} bytes, steps {array.first + 1} to {last + 1}"
            width = max((last + 1 - array.first) * wide, 1.5)
            yield line_shape(_LEFT, y + _ROW, _LEFT + _RANGES, y + _ROW, "axis")
            yield rect_shape(x, y + 2, width, _ROW - 4, f"c{self.color(array.bind)}", title=title)
            yield text_shape(_LEFT - 6, y + 11, format_bytes(array.bytes), "q", end="end")
            text = shorten_text(f"{array.text}  {_place_of(array.bind)}", _MAX_LENGTH)
            yield text_shape(_LEFT + _RANGES + 10, y + 11, text)
        yield from self.steps(bottom, _RANGES)
        yield from self.legend(bottom + 36)

    # ---- matplotlib ----

    def draw_memory(self, axes: Any) -> None:
        """Draw the picture of the memory on the axes of matplotlib."""
        heights = [(0,) * (len(self.lines) + 1), *self.heights()]
        rows = [[row[color] for row in heights] for color in range(len(self.lines) + 1)]
        count = len(self.timeline.live)
        ends = [count * n / max(len(heights) - 1, 1) for n in range(len(heights))]
        labels = [*self.lines, *(["inside a step"] if any(rows[-1]) else [])]
        axes.stackplot(ends, *rows[: len(labels)], step="pre", labels=labels)
        axes.set(xlabel="step", title=self.title(), xlim=(0, max(count, 1)))
        axes.yaxis.set_major_formatter(lambda size, _: format_bytes(size))
        if labels:
            axes.legend(fontsize="small")

    def draw_ranges(self, axes: Any, shown: Sequence[LiveArray]) -> None:
        """Draw the picture of the live ranges on the axes of matplotlib."""
        first = [array.first for array in shown]
        ends = [min(array.last + 1, len(self.timeline.steps)) for array in shown]
        colors = [f"C{self.color(array.bind)}" for array in shown]
        widths = [end - start for start, end in zip(first, ends, strict=True)]
        places = range(len(shown))
        axes.barh(places, widths, left=first, color=colors)
        names = [
            f"{shorten_text(array.text, _MAX_LENGTH)}, {format_bytes(array.bytes)}"
            for array in shown
        ]
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.set_xlabel("step")

    # ---- text ----

    def text(self, at_peak: Sequence[tuple[int, int, str, str, str]]) -> str:
        """The picture as text: a bar for each column, and the arrays at the peak."""
        timeline, count = self.timeline, len(self.timeline.live)
        columns, top = min(count, _COLUMNS), max(timeline.peak, 1)
        most = [0] * columns
        for step, live in enumerate(timeline.live):
            at = step * columns // count
            most[at] = max(most[at], live)
        bars = "".join([_BARS[-(-8 * live // top)] for live in most])
        lines = [
            f"{format_bytes(size):>9}  {f'{n} x ' if n > 1 else ''}{array}  {place}"
            for size, n, array, place, _ in at_peak
        ]
        return "\n".join([self.title(), f"     |{bars}|", *lines])


def _runs_of_areas(heights: list[list[int]], color: int) -> Iterator[tuple[int, int, int, int]]:
    """(first column, column after the last, low, high) of the areas of a colour, equal neighbours
    as one.
    """
    first, area = 0, (0, 0)
    for column in range(len(heights) + 1):
        row = heights[column] if column < len(heights) else None
        now = (sum(row[:color]), sum(row[: color + 1])) if row is not None else (0, 0)
        if row is None or now != area:
            if area[1] > area[0]:
                yield (first, column, *area)
            first, area = column, now
