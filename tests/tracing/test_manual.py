"""Manual tracing: traces started and ended by hand, functions recorded as one operation [B13]."""

import math

import numpy as np
import pytest

import letir as lt
from letir import extend
from letir.errors import TraceError
from letir.testing import assert_same

X = np.array([1.0, 2.0, 3.0])


# ---- by hand ----


def test_a_trace_is_started_and_ended_by_hand():
    x, y = lt.tracer_enter((X, 2.0))
    f = lt.tracer_exit(np.sin(x) * y)

    assert_same(np.sin(X) * 3.0, f(X, 3.0))
    assert not lt.is_tracing()


def test_traced_values_nest_as_the_inputs_do():
    model = lt.tracer_enter({"weights": [X, X], "bias": 1.0})
    f = lt.tracer_exit({"sum": model["weights"][0] + model["weights"][1] * model["bias"]})

    assert_same({"sum": X + 2 * X}, f(2.0, X, X))


def test_traces_by_hand_nest():
    x = lt.tracer_enter(X)
    y = lt.tracer_enter(X)
    inner = lt.tracer_exit(y * 2.0)
    outer = lt.tracer_exit(inner(x) + 1.0)

    assert ["mul", "add"] == [bind.op.name for bind in outer.binds]


def test_a_trace_by_hand_uses_values_of_the_outer_one():
    x = lt.tracer_enter(X)
    y = lt.tracer_enter(X)
    inner = lt.tracer_exit(y * x)
    lt.tracer_exit(x)

    assert 2 == len(inner.params)


def test_a_trace_by_hand_may_be_abstract():
    x = lt.tracer_enter(lt.ShapeDtype(3), abstract=True)
    f = lt.tracer_exit(np.sqrt(x))

    assert_same(np.sqrt(X), f(X))


def test_the_end_of_a_trace_that_was_not_begun_is_an_error():
    with pytest.raises(TraceError, match="begin one with tracer_enter"):
        lt.tracer_exit(X)


def test_a_result_that_is_not_an_array_still_ends_the_trace():
    lt.tracer_enter(X)
    with pytest.raises(TraceError):
        lt.tracer_exit(np.sin)

    assert not lt.is_tracing()


# ---- is_tracing ----


def test_is_tracing_says_whether_a_trace_is_active():
    seen = []
    lt.trace(lambda x: seen.append(lt.is_tracing()) or x, X)

    assert ([True], False) == (seen, lt.is_tracing())


def test_is_tracing_asks_about_values_in_containers():
    def program(x):
        assert lt.is_tracing(X, {"weights": [x]})
        assert not lt.is_tracing(X, 2.0)
        return x

    lt.trace(program, X)


def test_a_value_of_an_outer_trace_is_not_traced_by_the_inner_one():
    seen = []

    def program(x):
        lt.trace(lambda y: seen.append(lt.is_tracing(x)) or y, X)
        return x

    lt.trace(program, X)

    assert [False] == seen


# ---- pause_tracing ----


def test_operations_in_a_pause_compute_without_being_recorded():
    def program(x):
        with lt.pause_tracing():
            scale = np.sin(x).max()
            assert isinstance(scale, np.float64)
        return x * scale

    f = lt.trace(program, X)

    assert ["mul"] == [bind.op.name for bind in f.binds if bind.op.name != "constant"]


def test_functions_of_python_compute_in_a_pause():
    def program(x):
        with lt.pause_tracing():
            total = x.sum()
            numbers = [math.sqrt(x[1]), float(x[0]), complex(x[2]), x.tolist(), total.item()]
            arrays = [np.asarray(x), np.full(2, x[0]), np.linalg.norm(np.array(x))]
        seen.extend(numbers + arrays)
        return x

    seen = []
    lt.trace(program, X)

    assert [math.sqrt(2.0), 1.0, 3 + 0j, [1.0, 2.0, 3.0]] == seen[:4]
    assert_same(X, seen[5])


def test_tracing_continues_after_a_pause():
    def program(x):
        with pytest.raises(ZeroDivisionError), lt.pause_tracing():
            assert not lt.is_tracing()
            1 / 0  # noqa: B018
        assert lt.is_tracing()
        return np.sin(x)

    assert 1 == len(lt.trace(program, X))


def test_a_pause_in_a_pause_is_a_pause():
    def program(x):
        with lt.pause_tracing() as outer, lt.pause_tracing() as inner:
            assert inner is outer
            assert isinstance(np.sin(x), np.ndarray)
        return x

    assert 0 == len(lt.trace(program, X))


def test_a_pause_where_nothing_is_traced_does_nothing():
    with lt.pause_tracing() as paused:
        assert paused is None
        assert_same(np.sin(X), np.sin(X))


def test_a_pause_in_an_abstract_trace_is_an_error():
    def program(x):
        with lt.pause_tracing():
            return np.asarray(x)

    with pytest.raises(TraceError, match="trace with concrete arguments"):
        lt.trace(program, X, abstract=True)


def test_a_program_that_is_called_in_a_pause_computes():
    f = lt.trace(lambda x: (np.sin(x), x * 2.0), X)

    def program(x):
        with lt.pause_tracing():
            sine, double = f(x)
        assert_same((np.sin(X), 2.0 * X), (sine, double))
        return x

    assert 0 == len(lt.trace(program, X))


def test_a_trace_in_a_pause_is_a_trace():
    def program(x):
        with lt.pause_tracing():
            return x * lt.trace(np.sin, X)(X)

    assert_same(X * np.sin(X), lt.trace(program, X)(X))


# ---- local_of and set_local ----


def test_a_function_is_recorded_as_an_operation_of_the_users_own():
    """[B13] Its body computes while tracing is paused; the program has one bind for it."""
    median = lt.primitive(
        "test_levers.median", lambda xp, x: xp.median(x), lambda x: lt.ArrayType(x.dtype)
    )

    def recorded_median(x):
        if not lt.is_tracing(x):
            return np.median(x)
        with lt.pause_tracing() as trace:
            value = np.median(np.asarray(x))
            (local,) = trace.emit(median, (extend.local_of(x),))
        return extend.set_local(value, local)

    f = lt.trace(lambda x: x - recorded_median(x), X)

    assert """\
%1 = test_levers.median %0
%2 = sub %0, %1
return %2
""" == f.listing()
    assert_same(X + 5.0 - 7.0, f(X + 5.0))


def test_locals_of_containers_nest_as_the_containers():
    def program(x):
        locals_ = extend.local_of({"one": x, "both": (x, 2.0)})
        assert locals_["one"] is locals_["both"][0]
        assert lt.Const(2.0) == locals_["both"][1]
        return x

    lt.trace(program, X)


def test_an_ordinary_array_has_a_local_too():
    f = lt.trace(lambda x: extend.set_local(X, extend.local_of(X)) + x, X)

    assert 1 == len(f.constants)


def test_values_are_set_in_containers():
    def program(x):
        values = {"a": x * 1.0, "b": x * 2.0}
        return extend.set_local({"a": X, "b": X}, extend.local_of(values))["b"]

    assert_same(2.0 * X, lt.trace(program, X)(X))


def test_set_local_needs_as_many_locals_as_values():
    with pytest.raises(TraceError, match="2 values need as many locals"):
        lt.trace(lambda x: extend.set_local((x, x), extend.local_of(x)), X)


@pytest.mark.parametrize("lever", [extend.local_of, lambda x: extend.set_local(x, lt.Const(1.0))])
def test_a_manual_function_without_a_trace_is_an_error(lever):
    with pytest.raises(TraceError, match="no trace is active in this thread"):
        lever(X)
