"""Progress of long work, as one line on a terminal or in a notebook, while it lasts.

A stage is entered by ``with_progress`` around a function. A thread looks at the stages four times a
second, and draws a line for the outermost one after half a second, so that short calls pay for
nothing but two changes of a list. tqdm draws the line in notebooks, and in programs that have
loaded it. This module is loaded on terminals and in notebooks only, see ``with_progress_bar``.
"""

import contextlib
import functools
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO

from attrs import define, field

from letir.ast import LATE_BOUND, is_notebook, is_watched

DELAY, TICK = 0.5, 0.25  # seconds: before a line is drawn, and between its changes
_IDLE_TICKS = 40  # after which the thread ends
_BAR = 24  # characters
_DEBUGGERS = ("bdb", "pdb", "code")  # modules that read lines from the user


@define(eq=False)
class _Stage:
    """A long task under way: its title, and how much of it is done, if that is known."""

    title: str
    thread: int
    begun: float
    done: int = 0
    total: int | None = None


class _PlainLine:
    """A line of plain text that is redrawn in place."""

    def __init__(self, out: TextIO) -> None:
        self.out, self.width = out, 0

    def draw(self, stage: _Stage, seconds: float) -> None:
        """Draw the line of a stage in place of the previous line."""
        text = f"letir: {stage.title} {_bar_text(stage, seconds)} {seconds:.1f} s"
        self.out.write(f"\r{text.ljust(self.width)}")
        self.out.flush()
        self.width = len(text)

    def close(self) -> None:
        """Remove the line."""
        self.out.write(f"\r{' ' * self.width}\r")
        self.out.flush()


class _TqdmLine:
    """A progress bar of tqdm, for terminals and notebooks."""

    def __init__(self, out: TextIO, bar: Callable) -> None:
        self.out, self.make = out, bar
        self.bar: Any = None
        self.stage: _Stage | None = None

    def draw(self, stage: _Stage, seconds: float) -> None:
        """Show how much of the stage is done."""
        if self.bar is None or self.stage is not stage or self.bar.total != stage.total:
            self.close()
            form = {} if stage.total else {"bar_format": "{desc}: {elapsed}"}
            name = f"letir: {stage.title}"
            self.bar = self.make(desc=name, total=stage.total, file=self.out, leave=False, **form)
            self.bar.start_t -= seconds
            self.stage = stage
        self.bar.n = stage.done
        self.bar.refresh()

    def close(self) -> None:
        """Remove the line."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None


def _bar_text(stage: _Stage, seconds: float) -> str:
    """A bar of what is done; if the total is unknown, a mark that moves."""
    if stage.total:
        full = min(stage.done, stage.total) * _BAR // stage.total
        return f"[{'#' * full}{'-' * (_BAR - full)}] {stage.done}/{stage.total}"
    place = int(seconds / TICK) % _BAR
    return f"[{'-' * place}#{'-' * (_BAR - 1 - place)}]"


def _new_line(out: TextIO) -> Any:
    """A line on ``out``, of tqdm if the program has loaded it.

    Not imported here: beside a thread that computes, an import takes seconds.
    """
    module = sys.modules.get("tqdm.auto") or sys.modules.get("tqdm")
    return _PlainLine(out) if module is None else _TqdmLine(out, module.tqdm)


def _load_tqdm() -> None:
    """Load tqdm, where it is installed, for its bars in notebooks."""
    with warnings.catch_warnings(), contextlib.suppress(ImportError):
        warnings.simplefilter("ignore")  # that ipywidgets are missing
        import tqdm.auto  # noqa: F401


@define(eq=False)
class Display:
    """The stages under way, and the line that is drawn, if any."""

    stages: list[_Stage] = field(factory=list)
    line: Any = None
    lock: threading.Lock = field(factory=threading.Lock)  # held while the line changes
    thread: threading.Thread | None = None

    def begin(self, title: str) -> _Stage:
        """Enter a stage."""
        stage = _Stage(title, threading.get_ident(), time.monotonic())
        self.stages.append(stage)
        if self.thread is None:
            self._start()
        return stage

    def end(self, stage: _Stage) -> None:
        """Leave a stage, and remove its line."""
        with contextlib.suppress(ValueError):  # a forked child has forgotten it
            self.stages.remove(stage)
        if self.line is not None and not self.stages:
            with self.lock:
                self._close()

    def tick(self, now: float) -> None:
        """Draw the line if the outermost stage is old enough; remove it if there is none."""
        with self.lock:
            stage = self.stages[0] if self.stages else None
            if stage is None or not is_watched() or _is_debugging(stage.thread):
                self._close()
            elif now - stage.begun >= DELAY:
                self.line = self.line or _new_line(getattr(sys.stderr, "original", sys.stderr))
                self.line.draw(stage, now - stage.begun)

    def _close(self) -> None:
        if self.line is not None:
            line, self.line = self.line, None
            line.close()

    def _start(self) -> None:
        """Start the thread that draws, unless another one has, or Python is about to end."""
        thread = threading.Thread(target=self._watch, name="letir progress", daemon=True)
        with self.lock, contextlib.suppress(RuntimeError):
            if self.thread is None:
                self.thread = thread
                thread.start()

    def _watch(self) -> None:
        """Look at the stages until nothing has happened for a while; the thread's function."""
        idle = 0
        while idle < _IDLE_TICKS and self.thread is threading.current_thread():
            time.sleep(TICK)
            idle = 0 if self.stages else idle + 1
            try:
                self.tick(time.monotonic())
            except (OSError, ValueError):  # the stream is closed
                self.line = None
        self.thread = None


def _is_debugging(thread: int) -> bool:
    """Whether a thread waits for a user in a debugger, whose line must not be drawn over."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_globals.get("__name__") in _DEBUGGERS:
            return True
        frame = frame.f_back
    return False


DISPLAY = Display()
if is_notebook():
    _load_tqdm()


def with_progress(title: str, function: Callable) -> Callable:
    """``function``, during whose calls a line with ``title`` is shown after half a second."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        stage = DISPLAY.begin(title)
        try:
            return function(*args, **kwargs)
        finally:
            DISPLAY.end(stage)

    return call


def count_items(items: Sequence | Iterable) -> Iterator:
    """The items; the present stage of this thread shows how many of them have been taken."""
    all_items, thread = [*items], threading.get_ident()
    stage = next((s for s in reversed(DISPLAY.stages) if s.thread == thread), None)
    for done, item in enumerate(all_items):
        if stage is not None:
            stage.done, stage.total = done, len(all_items)
        yield item


def _reset_in_child() -> None:
    """Reset the display in a forked child process, which has no stages and no thread."""
    DISPLAY.stages.clear()
    DISPLAY.line, DISPLAY.lock, DISPLAY.thread = None, threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_in_child)
LATE_BOUND["with_progress"], LATE_BOUND["count_items"] = with_progress, count_items
