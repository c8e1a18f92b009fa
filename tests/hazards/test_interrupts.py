"""Calls that are interrupted anywhere leave the process as it was, and the next call works."""

import ast
import functools
import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import letir as lt
from letir.ast.process_state import TemporaryChange, restore_abandoned
from tests.hazards.public_calls import ACTIONS, changed, state_of_process
from tests.own_thread import in_own_thread

ROOT = str(Path(lt.__file__).parent)
# functions whose work is to restore: an interrupt in them is healed by the next call
RESTORING = {
    *("__exit__", "undo", "end", "end_stand_ins", "exchange", "_exchange_some", "watch_imports"),
    *("_age", "close"),
}


tried: set[tuple[str, int]] = set()  # lines, each of which is interrupted once


class Interrupt(KeyboardInterrupt):
    """Planted by a test."""


@functools.cache
def ends_of_blocks(file):
    """The lines of ``finally`` blocks in a file, and of ``with``, to which blocks return.

    Also the lines with the word ``try`` inside of blocks, for which Python has no handler.
    """
    found = set()
    for node in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(node, ast.With | ast.Try):
            found |= {inner.lineno for inner in ast.walk(node) if isinstance(inner, ast.Try)}
        if isinstance(node, ast.With):
            found.add(node.lineno)
        if isinstance(node, ast.Try) and node.finalbody:
            found |= set(range(node.finalbody[0].lineno, node.end_lineno + 1))
    return found


def restores(file, line, function):
    """Whether a line of letir is one that restores; any line of generated code may be."""
    is_generated = "<" in Path(file).name
    return function in RESTORING or is_generated or line in ends_of_blocks(file)


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


@pytest.mark.parametrize("name", ACTIONS)
@in_own_thread
def test_an_interrupt_at_any_line_leaves_the_process_as_it_was(name):
    action = ACTIONS[name]
    for _ in range(3):  # caches are filled
        expected = action()
    before, wrong = state_of_process(), []

    for file, line, function in lines_of(action):
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
