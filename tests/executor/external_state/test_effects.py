"""What a function does outside of itself happens in each call under jit, also in the first one."""

import builtins
import contextlib
import csv
import functools
import io
import logging
import os
import sys
import threading
import time
import warnings
from ctypes import c_int
from time import perf_counter
from warnings import warn

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same

X = np.array([1.0, 2.0])
OUT = io.StringIO()
WRITER, COUNTS = csv.writer(OUT), bytearray(1)
HISTORY: list = []
TOTALS = {"calls": 0, "last": None}
CALLS = 0
ORIGINALS = (sys.stdout, sys.stderr, builtins.open, io.open, time.time, warnings.warn)


def prints(x):
    print("the sum is", x.sum(), end=";\n", flush=True)
    return x * 2


def prints_formatted(x):
    y = x * 2
    print(f"{y.sum():.3f} of %s and {x.max()}" % x)
    print(f"{y[0]:8.2f}", str(y).rjust(20))
    return y


def prints_constants(x):
    print("called")
    return x * 2


def prints_to_stderr(x):
    print(x.shape, file=sys.stderr)
    return x * 2


def writes_to_stdout(x):
    sys.stdout.write(f"{x[0]}\n")
    sys.stderr.writelines(["a\n", "b\n"])
    return x * 2


def logs(x):
    logging.getLogger("user").warning("largest %s", x.max())
    return x * 2


def warns(x):
    warnings.warn(f"largest is {x.max()}", UserWarning, stacklevel=2)
    return x * 2


def warns_by_an_imported_name(x):
    warn(f"smallest is {x.min()}", UserWarning, stacklevel=2)
    return x * 2


def writes_rows(x):
    WRITER.writerow([1, 2])
    return x * 2


def counts_in_bytes(x):
    COUNTS[0] += 1
    return x * 2


def writes_to_a_buffer(x):
    OUT.write("line\n")
    return x * 2


def appends(x):
    HISTORY.append(1)
    return x * 2


def appends_results(x):
    y = x * 2
    HISTORY.append(y.sum())
    return y


def counts(x):
    global CALLS  # noqa: PLW0603
    CALLS += 1
    return x * 2


def counts_in_a_dict(x):
    y = x * 2
    TOTALS["calls"] += 1
    TOTALS["last"] = float(y.sum())
    return y


def prints_before_an_error(x):
    print("checked")
    if x[0] > 3:
        raise ValueError("too large")
    return x * 2


def prints_where_it_catches(x):
    try:
        print("tried")
    except BaseException:
        return x * 3
    finally:
        print("done")
    return x * 2


EFFECTS = [
    prints,
    prints_formatted,
    prints_constants,
    prints_to_stderr,
    writes_to_stdout,
    logs,
    warns,
    warns_by_an_imported_name,
    writes_rows,
    counts_in_bytes,
    writes_to_a_buffer,
    appends,
    appends_results,
    counts,
    counts_in_a_dict,
    prints_before_an_error,
    prints_where_it_catches,
]


def outcome_of_calls(f, capsys, caplog):
    """Results, output, warnings, log and state after 13 calls."""
    global CALLS
    HISTORY.clear()
    TOTALS.update(calls=0, last=None)
    OUT.seek(0)
    OUT.truncate()
    caplog.clear()
    CALLS, COUNTS[0], results = 0, 0, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(13):
            try:
                results.append(f(X + n))
            except ValueError as error:
                results.append(str(error))
    said = [str(w.message) for w in caught if w.category is UserWarning]
    logged = [r.getMessage() for r in caplog.records if r.name == "user"]
    state = [str(value) for value in (*HISTORY, *TOTALS.values(), *COUNTS, CALLS, OUT.getvalue())]
    return results, *capsys.readouterr(), said, logged, state


@pytest.mark.parametrize("f", EFFECTS)
def test_effects_happen_in_each_call(f, capsys, caplog):
    expected = outcome_of_calls(f, capsys, caplog)

    found = outcome_of_calls(lt.jit(f), capsys, caplog)

    assert_same(expected[0], found[0])
    assert expected[1:] == found[1:]


def test_a_file_is_written_in_each_call(tmp_path):
    path = tmp_path / "log.txt"

    @lt.jit
    def f(x):
        with open(path, "a", encoding="utf-8") as file:
            file.write("line\n")
        return x * 2

    for _ in range(13):
        assert_same(X * 2, f(X))

    assert path.read_text(encoding="utf-8") == "line\n" * 13


def test_directories_and_variables_of_the_environment_change_in_each_call(tmp_path, monkeypatch):
    monkeypatch.setenv("LETIR_TEST_CALLS", "0")

    @lt.jit
    def f(x):
        os.environ["LETIR_TEST_CALLS"] = str(int(os.environ["LETIR_TEST_CALLS"]) + 1)
        return x * 2

    @lt.jit
    def g(x):
        (tmp_path / str(len([*tmp_path.iterdir()]))).mkdir()
        return x * 2

    for _ in range(6):
        assert_same((X * 2, X * 2), (f(X), g(X)))

    assert os.environ["LETIR_TEST_CALLS"] == "6"
    assert len([*tmp_path.iterdir()]) == 6


def test_a_clock_is_read_in_each_call():
    for read in (lambda x: (x * 2, time.perf_counter_ns()), lambda x: (x * 2, perf_counter())):
        clock = lt.jit(read)
        times = [clock(X + n)[1] for n in range(13)]

        assert len({*times}) == 13


def test_calls_that_print_nothing_have_a_plan(capsys):
    def step(w, n, verbose):
        loss = ((w - 1) ** 2).sum()
        if n % 5 == 0:
            print(n, loss)
        if verbose:
            print("verbose")
        return w - 0.1 * w

    fast, expected, found = lt.jit(step), X, X
    for n in range(40):
        expected, found = step(expected, n, False), fast(found, n, False)

    assert_same(expected, found)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 16
    assert lines[::2] == lines[1::2]
    assert fast.debug_state().plans
    assert fast.counters["compiles"] <= 4


def test_a_function_that_prints_in_each_call_is_recorded_a_few_times(capsys):
    recorded = (c_int * 1)()  # which no search for state finds

    @lt.jit
    def f(x):
        recorded[0] += lt.is_tracing()
        print(x)
        return x

    for _ in range(50):
        f(X)

    assert 0 < recorded[0] <= 4
    assert len(capsys.readouterr().out.splitlines()) == 50


def test_what_the_function_did_before_it_printed_is_undone(capsys):
    numbers, rng = [1.0, 2.0], np.random.default_rng(3)

    def f(x):
        numbers.append(3.0)
        noise = rng.normal()
        print(len(numbers))
        return x * noise

    fast = lt.jit(f)
    found = [fast(X) for _ in range(3)]
    del numbers[2:]
    rng = np.random.default_rng(3)

    assert_same([f(X) for _ in range(3)], found)
    assert capsys.readouterr().out == "3\n4\n5\n" * 2


def test_a_function_that_reaches_very_many_objects_prints_in_each_call(capsys):
    tables = {n: [n] for n in range(2000)}

    @lt.jit
    def f(x):
        print("size", x.size)
        return x * tables[3][0]

    assert_same([X * 3] * 13, [f(X) for _ in range(13)])
    assert capsys.readouterr().out == "size 2\n" * 13


def test_output_that_the_function_keeps_is_no_effect():
    def f(x):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            print("kept")
        return x * len(out.getvalue())

    fast = lt.jit(f)

    assert_same([X * 5] * 3, [fast(X) for _ in range(3)])
    assert fast.counters["compiles"] == 1


class Copying:
    """A stream that keeps a copy of the text."""

    def __init__(self, stream):
        self.stream, self.kept = stream, []

    def write(self, text):
        self.kept.append(text)
        return self.stream.write(text)

    def flush(self):
        self.stream.flush()


def test_a_function_may_replace_the_stream(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # it gets back its value after the test

    def f(x):
        if not isinstance(sys.stdout, Copying):
            sys.stdout = Copying(sys.stdout)
        return x * 2

    silent, loud = lt.jit(f), lt.jit(prints_constants)

    assert_same([X * 2] * 4, [silent(X), loud(X), loud(X + 0), silent(X)])
    assert capsys.readouterr().out == "called\n" * 2
    assert "".join(sys.stdout.kept) == "called\n" * 2


def test_derivatives_under_jit_print_in_each_call(capsys):
    def f(x):
        print(f"{x.sum():.1f}")
        return (x * x).sum()

    slope = lt.jit(lt.grad(f))

    for n in range(6):
        assert_same(2 * (X + n), slope(X + n))
    assert capsys.readouterr().out.split() == [f"{3 + 2 * n:.1f}" for n in range(6)]


def test_another_thread_prints_while_a_function_is_recorded(capsys):
    begun, printed = threading.Event(), threading.Event()

    def other():
        assert begun.wait(10)
        print("other thread")
        warnings.warn("of another thread", stacklevel=1)
        printed.set()

    @lt.jit
    def f(x):
        begun.set()
        assert printed.wait(10)
        return x * 2

    thread = threading.Thread(target=other)
    with pytest.warns(UserWarning, match="of another thread") as caught:
        thread.start()
        assert_same(X * 2, f(X))
        thread.join()

    assert capsys.readouterr().out == "other thread\n"
    assert caught[0].filename == __file__
    assert f.counters["compiles"] == 1


@pytest.mark.parametrize("f", [prints, prints_before_an_error, np.sin])
def test_a_recording_leaves_streams_and_functions_as_they_were(f, capsys):
    before = sys.stdout, sys.stderr, logging.Logger.handle

    with contextlib.suppress(ValueError):
        lt.jit(f)(X + 9)

    assert (sys.stdout, sys.stderr, logging.Logger.handle) == before
    assert (builtins.open, io.open, time.time, warnings.warn) == ORIGINALS[2:]


def test_explain_names_the_effect(capsys):
    text = str(lt.explain(lt.jit(prints_constants), X))

    assert "called as Python" in text
    assert "it writes to sys.stdout" in text
    assert "test_effects.py" in text
    assert capsys.readouterr().out == ""


def warned(x, scale=2.0):
    warnings.warn("rounded", UserWarning, 2)
    return x * scale


def warned_further(x):
    def warn(x):
        warnings.warn("rounded", stacklevel=3)
        return x

    return warn(x)


def warned_at_times(x, n):
    return x * n if n % 3 else warned(x)


jitted_of_sets = lt.jit(lambda values: warned(1.0) and values)


class Warned:
    scale = 1.5

    def __init__(self):
        self.w = np.ones(2)

    @lt.jit
    def scaled(self, x):
        warnings.warn("rounded", UserWarning, 2)
        return self.w * x

    def plain(self, x):
        warnings.warn("rounded", UserWarning, 2)
        return self.w * x


@pytest.mark.parametrize(
    "call",
    [
        lt.jit(warned),
        functools.partial(lt.jit(warned), scale=3.0),
        lt.jit(functools.partial(warned, scale=3.0)),
        lt.jit(warned_further),
        functools.partial(lt.jit(lambda name, x: warned(x) and name, static_argnums=0), "a"),
        functools.partial(lt.jit(lambda x, n: warned_at_times(x, n)), n=3),  # noqa: PLW0108
        Warned().scaled,
        lt.jit(Warned().plain),
        functools.partial(lt.jit(Warned.plain), Warned()),
        lambda x: jitted_of_sets({x}),
    ],
)
def test_the_stacklevel_of_a_warning_counts_no_frames_of_letir(call):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        for _ in range(20):
            call(np.float64(0.5))

    places = [(w.filename, w.category) for w in shown if str(w.message) == "rounded"]
    assert [(__file__, UserWarning)] * 20 == places


def test_a_warning_names_the_line_that_calls_the_jitted_function():
    jitted = lt.jit(warned)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        for _ in range(20):
            jitted(np.ones(2))
    line = test_a_warning_names_the_line_that_calls_the_jitted_function.__code__.co_firstlineno + 5

    assert {(__file__, line)} == {(warning.filename, warning.lineno) for warning in shown}
