"""Floating-point warnings: as often as NumPy gives them, and at the user's line."""

import os
import sys
import warnings

import numpy as np
import pytest

import letir as lt
from letir.errors import TraceError
from letir.eval.float_warnings import ERROR_STATE, LOUD, QUIET, current_state
from letir.executor import calls, executor
from letir.executor.calls import general_call
from letir.executor.executor import Executor
from letir.testing import assert_same
from letir.tracing.source_locations import is_letir_file, is_user_file

ONES, ZEROS = np.ones(2), np.zeros(2)
LOG, QUOTIENT = "divide by zero encountered in log", "divide by zero encountered in divide"


def first(x):
    return np.log(x) * (1.0 / x)


def second(x):
    return 2.0 * np.log(x)


def line_in(f, offset=1) -> int:
    return f.__code__.co_firstlineno + offset


def told(action, mode="default") -> list[tuple[str, int]]:
    """(text, line) of the warnings that an action gives in this file."""
    globals().get("__warningregistry__", {}).clear()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(mode)
        action()
    assert {__file__} >= {w.filename for w in found}
    return [(str(w.message), w.lineno) for w in found]


def replay(f):
    program = lt.trace(f, ONES)
    return lambda: program(ZEROS)


def planned(f):
    plan = lt.compile(lt.trace(f, ONES))
    return lambda: plan(ZEROS)


def jitted(f):
    made = lt.jit(f)
    return lambda: made(ZEROS)


WAYS = {
    "trace": lambda f: lambda: lt.trace(f, ZEROS),
    "run_forward": replay,
    "compile": planned,
    "jit": jitted,
}


WARNING_CALLS = {  # NumPy warns of these in Python, at the line of its caller
    "nanmean": (lambda x: np.nanmean(x, axis=0), np.full(2, np.nan)),
    "nanvar": (lambda x: np.nanvar(x, ddof=2), np.full(2, np.nan)),
    "nanmax": (lambda x: np.nanmax(x, axis=0), np.full(2, np.nan)),
    "nanmedian": (lambda x: np.nanmedian(x, axis=0), np.full(2, np.nan)),
    "cast": (lambda x: x.astype(float), np.full(2, 1j)),
    "polyfit": (lambda x: np.polyfit(x, x, 2), np.ones(4)),
}


@pytest.mark.parametrize("name", WARNING_CALLS)
def test_warnings_of_python_are_at_the_users_line(name):
    f, x = WARNING_CALLS[name]
    expected = told(lambda: f(x))
    calls = [lt.jit(f), lambda y: lt.trace(f, y)]
    with warnings.catch_warnings(action="ignore"):
        calls += [lt.trace(f, x), lt.compile(lt.trace(f, x))]

    assert len(expected) == 1
    for call in calls:
        assert told(lambda call=call: call(x)) == expected


def test_calls_that_do_not_warn_do_not_look_for_the_users_line():
    """The search takes longer than most of these functions."""
    x, called = np.arange(4.0), set()
    fast = lt.jit(lambda x: np.nanmean(x, axis=0))
    fast(x)

    sys.setprofile(lambda frame, event, _: called.add(frame.f_code.co_name))
    fast(x)
    sys.setprofile(None)

    assert "call_at_user" in called
    assert "_user_place" not in called


@pytest.mark.parametrize("way", WAYS)
def test_two_programs_warn_twice_at_their_lines(way):
    one, other = WAYS[way](first), WAYS[way](second)

    def both():
        one()
        other()
        one()

    def with_numpy():
        first(ZEROS)
        second(ZEROS)
        first(ZEROS)

    expected = [(LOG, line_in(first)), (QUOTIENT, line_in(first)), (LOG, line_in(second))]
    assert expected == told(with_numpy) == told(both)
    assert len(told(with_numpy, "always")) == 5 == len(told(both, "always"))


@pytest.mark.parametrize("way", WAYS)
def test_a_warning_that_is_an_error_is_raised(way):
    run = WAYS[way](second)

    with warnings.catch_warnings(action="error"), pytest.raises(RuntimeWarning, match=LOG):
        run()


@pytest.mark.parametrize("way", WAYS)
def test_the_users_error_state_decides(way):
    run = WAYS[way](second)

    with np.errstate(divide="ignore"):
        assert [] == told(run, "always")
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        run()
    assert {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"} == np.geterr()


def test_a_recorded_state_warns_as_numpy():
    def partly(x):
        with np.errstate(divide="ignore"):
            y = np.log(x)
        with np.errstate(invalid="ignore"):
            return y + np.log(x)

    expected = [(LOG, line_in(partly, 4))]
    assert expected == told(lambda: partly(ZEROS))
    for way in WAYS.values():
        assert expected == told(way(partly))


def test_bodies_and_gradients_warn_at_their_lines():
    def total(x):
        def step(carry, row):
            return carry + np.log(row), row

        return lt.scan(step, 0.0, x)[0]

    where = line_in(total, 2)
    for way in WAYS.values():
        assert [(LOG, where)] == told(way(total))
    assert [(LOG, line_in(second)), (QUOTIENT, line_in(second))] == told(
        lambda: lt.value_and_grad(lambda x: second(x).sum())(ZEROS)
    )


def test_a_program_without_lines_warns_where_it_is_called():
    program = lt.parse("lambda %0: float64[2] { %1: float64[2] = log(%0); return %1 }")

    def call():
        program(ZEROS)

    assert [(LOG, line_in(call))] == told(call)


def test_a_function_that_makes_errors_of_warnings_runs_as_python(told_by):
    """A replay does not see its filters: it would take another path in silence."""

    def caught(x):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                return np.log(x)  # here
            except RuntimeWarning:
                return x

    kind, text = told_by(lambda: lt.trace(caught, ONES), caught)
    assert kind is TraceError
    assert "np.errstate" in text or "numpy.errstate" in text
    fast = lt.jit(caught)
    for x in (ONES, ZEROS):
        assert_same(caught(x), fast(x))


@pytest.mark.parametrize("count", [255, 300, 600, 1000])
def test_an_abandoned_state_is_found_after_many_others(count):
    before = np.geterr()
    for _ in range(count):
        LOUD[current_state()]  # of the user, whenever the tables are cleared
        with np.errstate(under="warn"):  # each has a state of its own
            LOUD[current_state()], QUIET[current_state()]

    ERROR_STATE.set(LOUD[current_state()])  # as an interrupted call leaves it
    lt.trace(np.log, ONES)

    assert np.geterr() == before


def test_frames_left_out_of_warnings_have_paths_that_lead_to_their_files():
    code = Executor.call_by_key.__code__
    inner = [part for part in general_call.__code__.co_consts if hasattr(part, "co_filename")]

    assert code.co_filename != executor.__file__ == os.path.normpath(code.co_filename)
    assert [calls.__file__] == [os.path.normpath(part.co_filename) for part in inner]
    assert is_letir_file(code.co_filename)
    assert not is_user_file(code.co_filename)
