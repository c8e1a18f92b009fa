"""``profile``: the time and the bytes of a call, by the line of the user's code."""

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import define

from letir.ad.gradient_program import Gradient
from letir.ast import entry_point
from letir.ast.bodies import all_bodies
from letir.ast.source import Source
from letir.ast.terms import Lambda
from letir.executor.compiled import Compiled
from letir.executor.compiled import compile as compile_program
from letir.executor.jit_api import JittedFunction
from letir.executor.measurements.plan_profile import PlanProfile
from letir.tracing.entry import trace
from letir.viz.chart import Chart
from letir.viz.picture import (
    format_bytes,
    format_seconds,
    rect_shape,
    shorten_text,
    text_shape,
    width_of,
)
from letir.viz.shown_programs import shown_program, source_line_of
from letir.viz.view_page import html_table

_MAX_LINES = 30
_MAX_NAMES = 6
_ROW = 18.0
_BARS, _LEFT = 300.0, 150.0
_MAX_LENGTH = 64


@define
class _LineTime:
    """The time and the bytes of a line of code, and the names of its operations."""

    line: str
    code: str
    seconds: float
    bytes: int
    names: dict[str, None]

    def words(self, total: float) -> tuple[str, str, str]:
        """Time, share and bytes as texts."""
        share = self.seconds / total if total else 0.0
        return format_seconds(self.seconds), f"{share:.0%}", format_bytes(self.bytes)


@entry_point
def profile(f: Any, *args: Any) -> Chart:
    """Where the time of the call ``f(*args)`` goes, and how many bytes are read and written, by the
    line of your code.

    ``f``: a function, which is recorded at these arguments; a Lambda, a Gradient (of both of its
    programs, with the cotangents as last arguments), or a compiled program. The program runs three
    times, or once if it has effects. The time of a kernel, which computes several lines at once,
    counts for the first of its lines that the plan knows.

    >>> import numpy as np
    >>> found = profile(lambda x: np.sort(np.sin(x)), np.ones(1000))
    >>> found.title.endswith("s in 1 line")
    True
    """
    compiled, profiled = compile_and_profile("profile", f, args)
    lines = _times_of_lines(profiled, _sources_in(compiled.program))
    total = sum([line.seconds for line in lines])
    omitted = len(lines) - _MAX_LINES
    count = f"{len(lines)} line{'' if len(lines) == 1 else 's'}"
    more = f", the {_MAX_LINES} slowest" if omitted > 0 else ""
    title = f"{format_seconds(total)} in {count}{more}"
    shown = lines[:_MAX_LINES]
    rows = [
        (*line.words(total), _names_of(line), line.line, shorten_text(line.code, _MAX_LENGTH))
        for line in shown
    ]
    heads = ("time", "share", "bytes", "operations", "line", "code")
    texts = [f"{line.line}  {line.code}".rstrip() for line in shown]
    groups = html_table(
        profiled.heads, profiled.rows(), numbers=range(4), label="groups of the plan"
    )
    return Chart(
        title=title,
        body=html_table(heads, rows, numbers=range(3), label="lines") + f"<h4>plan</h4>{groups}",
        text="\n".join([title, *_text_lines(shown, total)]),
        shapes="".join(_bar_shapes(shown, total)),
        width=_LEFT + _BARS + 20 + width_of([shorten_text(text, _MAX_LENGTH) for text in texts]),
        height=_ROW * len(shown) + 12,
        about=title
        + ": "
        + ", ".join([f"{line.line} {line.words(total)[1]}" for line in shown[:5]]),
        draw=lambda axes: _draw_bars(axes, shown, texts),
    )


def compile_and_profile(name: str, f: Any, args: tuple) -> tuple[Compiled, PlanProfile]:
    """The compiled program of ``f`` and its profile; ``name``: the calling function, for errors."""
    if isinstance(f, JittedFunction):
        f = f.__wrapped__
    if callable(f) and not isinstance(f, Lambda | Compiled | Gradient):
        f = trace(f, *args)
    compiled = f if isinstance(f, Compiled) else compile_program(shown_program(name, f))
    return compiled, compiled.profile(*args)


def _sources_in(fn: Lambda) -> dict[str, Source]:
    """The source of each line of a program, by its text."""
    binds = [bind for body in all_bodies(fn) for bind in body.binds]
    return {bind.source.short: bind.source for bind in binds if bind.source is not None}


def _times_of_lines(profiled: PlanProfile, sources: dict[str, Source]) -> list[_LineTime]:
    """The time of each line, the slowest first."""
    lines: dict[str, _LineTime] = {}
    for group in profiled.groups:
        for step in group.steps:
            line = lines.get(step.line)
            if line is None:
                code = source_line_of(sources.get(step.line))
                line = lines[step.line] = _LineTime(step.line or "no line", code, 0.0, 0, {})
            line.seconds += step.seconds
            line.bytes += step.bytes
            line.names[step.name] = None
    return sorted(lines.values(), key=lambda line: line.seconds, reverse=True)


def _names_of(line: _LineTime) -> str:
    """The operations of a line."""
    names = list(line.names)
    return ", ".join(names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")


def _bar_shapes(shown: Sequence[_LineTime], total: float) -> Iterator[str]:
    """A bar for each line, the time and the share at its left, the code at its right."""
    most = max([line.seconds for line in shown], default=0.0) or 1.0
    for i, line in enumerate(shown):
        y = 6 + _ROW * i
        time, share, _ = line.words(total)
        yield text_shape(_LEFT - 50, y + 13, time, end="end")
        yield text_shape(_LEFT - 8, y + 13, share, "q", end="end")
        width = max(_BARS * line.seconds / most, 1.0)
        yield rect_shape(_LEFT, y + 3, width, _ROW - 5, "c0", title=_names_of(line))
        text = shorten_text(f"{line.line}  {line.code}".rstrip(), _MAX_LENGTH)
        yield text_shape(_LEFT + _BARS + 10, y + 13, text)


def _draw_bars(axes: Any, shown: Sequence[_LineTime], texts: Sequence[str]) -> None:
    """Draw the bars with matplotlib."""
    places = range(len(shown))
    axes.barh(places, [line.seconds for line in shown])
    axes.set_yticks(places, [shorten_text(text, _MAX_LENGTH) for text in texts])
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(lambda seconds, _: format_seconds(seconds))
    axes.set_xlabel("time")


def _text_lines(shown: Sequence[_LineTime], total: float) -> Iterator[str]:
    """The bars as text."""
    words = [line.words(total) for line in shown]
    widths = [max(map(len, column)) for column in zip(*words, strict=True)]
    most = max([line.seconds for line in shown], default=0.0) or 1.0
    for line, texts in zip(shown, words, strict=True):
        bar = "█" * max(round(20 * line.seconds / most), 1)
        cells = "  ".join([f"{text:>{w}}" for text, w in zip(texts, widths, strict=True)])
        yield f"{cells}  {bar:<20}  {line.line}  {shorten_text(line.code, _MAX_LENGTH)}".rstrip()
