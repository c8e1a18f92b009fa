"""Progress of long work: a line after half a second, and nothing of it afterwards."""

import contextlib
import io
import subprocess
import sys
import time

import pytest

from letir import progress
from letir.ast import is_watched
from letir.progress import Display, count_items, with_progress


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        """The present line, as a terminal shows it."""
        line = ""
        for part in self.getvalue().split("\r"):
            line = part + line[len(part) :]
        return line.rstrip()

    def tick(self, seconds: float, stderr: io.StringIO | None = None) -> None:
        """Look at the stages this long after the first one began, on this terminal."""
        display = progress.DISPLAY
        with contextlib.redirect_stderr(stderr or self):
            display.tick(display.stages[0].begun + seconds)


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    """A terminal, and a display without a thread."""
    monkeypatch.delenv("LETIR_PROGRESS", raising=False)
    monkeypatch.setattr(Display, "_start", lambda self: None)
    monkeypatch.setattr(progress, "DISPLAY", Display())
    for name in ("tqdm", "tqdm.auto"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return Terminal()


def test_short_work_shows_nothing(terminal):
    with_progress("recording", lambda: terminal.tick(0.4))()

    assert terminal.getvalue() == ""


def test_long_work_shows_a_line_that_is_removed(terminal):
    def work():
        terminal.tick(0.6)
        lines.append(terminal.shown())
        terminal.tick(2.0)
        lines.append(terminal.shown())
        return 3

    lines: list[str] = []
    assert with_progress("recording", work)() == 3
    assert [line.startswith("letir: recording [-") for line in lines] == [True, True]
    assert [line[-5:] for line in lines] == ["0.6 s", "2.0 s"]
    assert terminal.shown() == ""


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_errors_and_interrupts_leave_no_half_line(error, terminal):
    def work():
        terminal.tick(1.0)
        raise error

    with pytest.raises(error):
        with_progress("recording", work)()
    assert terminal.getvalue()
    assert terminal.shown() == ""
    assert not progress.DISPLAY.stages


def test_an_interrupt_between_the_end_and_the_removal_is_mended_by_the_thread(terminal):
    display = progress.DISPLAY
    stage = display.begin("recording")
    terminal.tick(1.0)
    display.stages.remove(stage)

    with contextlib.redirect_stderr(terminal):
        display.tick(0.0)
    assert terminal.shown() == ""


def test_the_outermost_stage_is_shown_with_what_is_done(terminal):
    lines: list[str] = []

    def inner():
        terminal.tick(1.0)
        lines.append(terminal.shown())

    def outer():
        for _ in count_items("abcd"):
            with_progress("recording", inner)()

    with_progress("running passes", outer)()
    assert [line.split("] ")[1].split()[0] for line in lines] == ["0/4", "1/4", "2/4", "3/4"]
    assert "running passes [############------------] 2/4" in lines[2]


def test_items_are_counted_without_a_stage_too(terminal):
    assert [1, 2] == [*count_items([1, 2])]


def test_tqdm_draws_where_it_is_loaded(terminal):
    pytest.importorskip("tqdm")  # loads it, after the fixture has hidden it

    def work():
        for _ in count_items([1, 2]):
            terminal.tick(1.0)

    with_progress("compiling kernels", work)()
    assert "1/2" in terminal.getvalue()
    assert terminal.shown() == ""


@pytest.mark.parametrize("reason", ["redirected", "silenced", "debugged"])
def test_the_line_is_not_drawn_where_it_would_disturb(reason, terminal, monkeypatch):
    def work():
        terminal.tick(1.0, stderr)

    stderr = io.StringIO() if reason == "redirected" else terminal
    if reason == "silenced":
        monkeypatch.setenv("LETIR_PROGRESS", "0")
    else:
        names = {"__name__": "bdb", "work": work}
        exec("def debugged(): work()", names)
        work = names["debugged"]
    with_progress("recording", work)()

    assert terminal.getvalue() == ""


def test_the_thread_draws_and_ends(terminal, monkeypatch):
    monkeypatch.undo()
    monkeypatch.delenv("LETIR_PROGRESS")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "TICK", 0.001)
    monkeypatch.setattr(progress, "_IDLE_TICKS", 2)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    display = Display()
    stage = display.begin("recording")
    thread = display.thread
    end = time.monotonic() + 30
    while "recording" not in terminal.getvalue() and time.monotonic() < end:
        pass
    display.end(stage)
    thread.join(10)

    assert terminal.shown() == ""
    assert display.thread is None


def test_functions_stay_as_they_are_where_nobody_watches():
    code = (
        "import sys, letir; from letir.passes.pipeline import run_pipeline;"
        "print(hasattr(run_pipeline, '__wrapped__'), 'letir.progress' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert not is_watched()
    assert done.stdout.split() == [b"False", b"False"]
    assert done.stderr == b""
