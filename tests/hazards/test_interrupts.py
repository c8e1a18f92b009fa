"""Calls that are interrupted anywhere leave the process as it was, and the next call works."""

import sys
from types import FrameType

import numpy as np
import pytest

import letir as lt
from letir.ast.process_state import TemporaryChange, float_errors, restore_abandoned
from tests.hazards.interrupts import ROOT, Interrupt, restores
from tests.hazards.public_calls import ACTIONS, changed, state_of_process
from tests.own_thread import in_own_thread

tried: set[tuple[str, int]] = set()  # lines, each of which is interrupted once


def lines_of(action):
    """The distinct lines of letir that an action executes, as (file, line, function).

    Without those of finalizers: Python reports what they raise, and goes on.
    """
    seen = {}

    def local(frame: FrameType, event, arg):
        code = frame.f_code
        if event == "line" and code.co_name != "__del__":
            seen[code.co_filename, frame.f_lineno] = code.co_name
        return local

    old = sys.gettrace()
    sys.settrace(lambda frame, *_: local if frame.f_code.co_filename.startswith(ROOT) else None)
    try:
        action()
    finally:
        sys.settrace(old)
    return [(*place, name) for place, name in sorted(seen.items())]


def interrupted(action, file, line, error):
    """Run an action with ``error`` raised where it first comes to a line; what it raises."""

    def local(frame: FrameType, event, arg):
        if event == "line" and frame.f_lineno == line:
            sys.settrace(None)
            raise error
        return local

    old = sys.gettrace()
    sys.settrace(lambda frame, *_: local if frame.f_code.co_filename == file else None)
    try:
        action()
    except BaseException as raised:
        return raised
    finally:
        sys.settrace(old)
    return None


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ACTIONS)
@in_own_thread
def test_an_interrupt_at_any_line_leaves_the_process_as_it_was(name, step):
    """At each line, or at one of three."""
    action = ACTIONS[name]
    for _ in range(3):  # caches are filled
        expected = action()
    before, wrong = state_of_process(), []

    for file, line, function in lines_of(action)[::step]:
        if (file, line) in tried:
            continue
        tried.add((file, line))
        planted = Interrupt()
        raised = interrupted(action, file, line, planted)
        if raised is None:
            continue  # a line that runs only now and then
        place = f"{file.removeprefix(ROOT)}:{line}, in {function}"
        if raised is not planted:
            wrong.append(f"{place}: raised {raised!r}")
        if not restores(file, line, function) and state_of_process() != before:
            wrong.append(f"{place}: left {changed(before)}")
        # otherwise the next interrupted call finds what a whole one would find
        if restores(file, line, function) or len(tried) % 8 == 0:
            np.testing.assert_equal(action(), expected, place)
            if state_of_process() != before:
                wrong.append(f"{place}: the next call left {changed(before)}")

    assert wrong == [], "\n".join(wrong)


def test_a_change_whose_undoing_was_interrupted_is_undone_later():
    class Change(TemporaryChange):
        __slots__ = ()
        undone = 0

        def make(self):
            pass

        def undo(self):
            Change.undone += 1
            if Change.undone == 1:
                raise Interrupt

    def call():
        with Change():
            restore_abandoned()  # does nothing: the call is running

    with pytest.raises(Interrupt):
        call()
    assert Change.undone == 1

    restore_abandoned()
    restore_abandoned()

    assert Change.undone == 2


class Setting(TemporaryChange):
    """Sets a value, and brings back the one before; ``fails`` at the first undoing."""

    __slots__ = ("before", "fails", "value")
    current = 0

    def __init__(self, value, *, fails=False):
        self.value, self.fails, self.before = value, fails, Setting.current

    def make(self):
        Setting.current = self.value

    def undo(self):
        if self.fails:
            self.fails = False
            raise Interrupt
        Setting.current = self.before


def test_an_outer_change_is_undone_after_an_inner_one_whose_undoing_was_interrupted():
    def inner():
        with Setting(2, fails=True):
            pass

    def outer():
        with Setting(1):
            inner()

    with pytest.raises(Interrupt):
        outer()
    restore_abandoned()

    assert Setting.current == 0


def test_the_next_operation_restores_the_error_state_of_numpy():
    program, before = lt.trace(np.exp, 1.0), np.geterr()

    def fold():
        errors = float_errors(all="raise")
        errors.__enter__()  # an interrupt keeps ``__exit__`` from beginning

    for run in (program, lt.compile(program), lambda x: lt.run_forward(program, x)):
        fold()
        assert run(1.0) == np.exp(1.0)
        assert np.geterr() == before
