"""Tracing is re-entrant, safe in threads, and leaves nothing behind when it fails [B3]."""

import contextvars
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import letir as lt
from letir.errors import EscapedTracerError, TraceError
from letir.testing import assert_same

X = np.array([1.0, 2.0, 3.0])


# ---- traces inside traces ----


def test_a_trace_in_a_trace_is_a_separate_program():
    inner = []

    def program(x):
        inner.append(lt.trace(lambda y: np.cos(y) * 2.0, X))
        return np.sin(x)

    outer = lt.trace(program, X)

    assert ["sin"] == [bind.op.name for bind in outer.binds]
    assert ["cos", "mul"] == [bind.op.name for bind in inner[0].binds]


def test_an_outer_value_becomes_a_parameter_of_the_inner_program():
    inner = []

    def program(x):
        scale = np.exp(x)
        inner.append(lt.trace(lambda y: y * scale + scale, X))
        return scale

    lt.trace(program, X)

    (f,) = inner
    assert ["y", "scale"] == [param.name for param in f.params]
    assert_same(X * 5.0 + 5.0, f(X, np.full(3, 5.0)))


def test_an_inner_program_that_returns_an_outer_value_lifts_it():
    inner = []
    lt.trace(lambda x: inner.append(lt.trace(lambda y: x, X)) or x, X)

    assert "return %1\n" == inner[0].listing()


def test_an_outer_value_may_be_an_argument_of_the_inner_trace():
    def program(x):
        f = lt.trace(lambda y: y * y, np.sin(x))
        return f(np.cos(x))

    assert_same(np.cos(X) * np.cos(X), lt.trace(program, X)(X))


def test_a_value_is_lifted_through_every_trace_between():
    def program(x):
        return lt.grad(lambda y: lt.grad(lambda z: x * y * y * z)(1.0) * y)(2.0)

    assert_same(np.float64(12 * 3.0), lt.trace(program, 3.0)(3.0))


def test_a_gradient_in_a_trace_is_inlined():
    f = lt.trace(lambda x: lt.grad(lambda y: (y**3).sum())(x) + 1.0, X)

    assert_same(3 * X**2 + 1.0, f(X))
    assert all(bind.op.name != "grad_of" for bind in f.binds)


def test_a_gradient_of_a_replay_in_a_trace_is_right():
    g = lt.trace(lambda y: (np.sin(y) * y).sum(), X)
    f = lt.trace(lambda x: lt.grad(g)(2.0 * x), X)

    assert_same(np.cos(2 * X) * (2 * X) + np.sin(2 * X), f(X))


def test_a_guard_of_an_inner_function_on_an_outer_value_is_kept():
    def program(x):
        return lt.grad(lambda y: y * y if x > 0 else -y)(3.0) * x

    f = lt.trace(program, 2.0)

    assert_same(np.float64(6.0 * 4.0), f(4.0))
    with pytest.raises(lt.GuardError):
        f(-1.0)


def test_an_array_may_be_an_argument_of_several_traces():
    programs = [lt.trace(lambda x, n=n: x * n, X) for n in range(3)]

    assert [0.0, 2.0, 4.0] == [f(X)[1] for f in programs]


def test_after_a_trace_nothing_is_traced():
    lt.trace(np.sin, X)

    assert not lt.is_tracing()
    assert type(np.sin(X)) is np.ndarray


# ---- escaped values ----

KEPT = []


def keep(x):
    KEPT[:] = [2 * x]  # here
    return x


ESCAPED = """\
a traced value of type float64[3] belongs to a trace that is over
  it was made at test_nesting.py:NN
  used at {file}
  return it from the traced function, or pass it as an argument"""
USES = {
    "an operator": lambda: KEPT[0] + 1,
    "a function": lambda: np.sum(KEPT[0]),
    "a truth value": lambda: bool(KEPT[0].sum() > 0),
    "an index": lambda: KEPT[0][0],
    "another trace": lambda: lt.trace(lambda x: x + KEPT[0], X),
    "an argument": lambda: lt.trace(lambda x: x, KEPT[0]),
    "a result": lambda: lt.trace(lambda x: KEPT[0], X),
    "a program": lambda: lt.trace(lambda x: x, X)(KEPT[0]),
    "a gradient": lambda: lt.grad(lambda x: x.sum())(KEPT[0]),
    "a change in place": lambda: KEPT[0].__setitem__(0, 1.0),
}


@pytest.mark.parametrize("use", USES.values(), ids=list(USES))
def test_the_error_for_an_escaped_value_has_both_lines(told_by, use):
    lt.trace(keep, X)

    kind, message = told_by(use, keep)

    place = f"test_nesting.py:{use.__code__.co_firstlineno}"
    assert (EscapedTracerError, ESCAPED.format(file=place)) == (kind, message)


def test_the_error_for_an_escaped_argument_names_it():
    kept = []
    lt.trace(lambda x: kept.append(x) or x, X)

    with pytest.raises(EscapedTracerError, match="it was an argument of the traced function"):
        kept[0] + 1


def test_an_escaped_value_can_still_be_printed():
    lt.trace(keep, X)

    assert "Traced(%1: float64[3] = array([2., 4., 6.]))" == repr(KEPT[0])


def test_a_value_of_an_inner_trace_cannot_be_used_in_the_outer_one():
    def program(x):
        kept = []
        lt.trace(lambda y: kept.append(y * 2) or y, X)
        return x + kept[0]

    with pytest.raises(EscapedTracerError, match="belongs to a trace that is over"):
        lt.trace(program, X)


def test_a_generator_that_outlives_its_trace_raises():
    generators = []

    def program(x):
        generators.append(row * 2 for row in x)
        return x

    lt.trace(program, X)

    with pytest.raises(EscapedTracerError):
        next(generators[0])


def test_a_value_of_another_thread_is_named():
    def program(x):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: x + 1).result()

    with pytest.raises(EscapedTracerError, match="belongs to a trace of another thread"):
        lt.trace(program, X)


def test_a_value_of_a_trace_that_is_not_around_this_one_is_named():
    kept = contextvars.copy_context().run(lt.tracer_enter, X)

    with pytest.raises(EscapedTracerError, match="a trace that is not around this one"):
        lt.trace(lambda x: x + kept, X)
    with pytest.raises(EscapedTracerError, match="a trace that is not around this one"):
        kept + 1


def changes(inner):
    """A function whose inner function changes an array."""

    def program(x):
        y = x * 2
        lt.grad(lambda z: inner(y, z))(x)
        return y

    return program


def whole(y, z):
    y += z  # here
    return z.sum()


def part(y, z):
    y[1:] += z[1:]  # here
    return z.sum()


@pytest.mark.parametrize("inner", [whole, part])
def test_an_inner_function_cannot_change_an_outer_array(told_by, inner):
    message = """\
a traced float64[3] of an outer function cannot be changed in place
  at test_nesting.py:NN
  return the new value from the inner function"""

    assert (TraceError, message) == told_by(lambda: lt.trace(changes(inner), X), inner)


def test_an_inner_function_may_replace_an_outer_scalar_for_itself():
    def program(x):
        total = x.sum()

        def inner(z):
            scaled = total
            scaled *= 2.0
            return (scaled * z).sum()

        return lt.grad(inner)(x) + total

    assert_same(np.full(3, 18.0), lt.trace(program, X)(X))


# ---- threads ----


def test_threads_trace_at_once():
    barrier = threading.Barrier(8)

    def traced(n):
        barrier.wait()
        return [lt.trace(lambda x: np.sin(x * n) + n, X) for _ in range(20)]

    with ThreadPoolExecutor(8) as pool:
        programs = list(pool.map(traced, range(8)))

    for n, same in enumerate(programs):
        assert 1 == len(set(same))
        assert_same(np.sin(X * n) + n, same[0](X))


def test_a_thread_within_a_trace_does_not_trace():
    def program(x):
        with ThreadPoolExecutor(1) as pool:
            assert not pool.submit(lt.is_tracing).result()
        return x

    lt.trace(program, X)


# ---- failures ----


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_failure_leaves_no_trace_behind(error):
    def program(x):
        np.sin(x)
        raise error

    with pytest.raises(error):
        lt.trace(program, X)

    assert not lt.is_tracing()


def test_a_failure_of_an_inner_trace_leaves_the_outer_one_as_it_was():
    def program(x):
        with pytest.raises(ZeroDivisionError):
            lt.trace(lambda y: y * (1 // 0), X)
        return np.sin(x)

    assert ["sin"] == [bind.op.name for bind in lt.trace(program, X).binds]


def test_an_operation_that_fails_is_recorded_as_a_guard():
    def program(x):
        with pytest.raises(lt.ShapeError):
            x @ np.ones(4)
        with pytest.raises(IndexError):
            x[np.array([7])]
        return x * 2.0

    assert ["guard_raised", "mul"] == [bind.op.name for bind in lt.trace(program, X).binds][-2:]


def test_the_error_of_the_user_is_the_error_that_the_user_sees():
    error = ValueError("mine")

    def program(x):
        raise error

    with pytest.raises(ValueError, match="mine") as caught:
        lt.trace(program, X)

    assert error is caught.value
    assert caught.value.__cause__ is None
    assert not caught.value.__suppress_context__


def test_an_argument_that_is_refused_leaves_no_trace_behind():
    with pytest.raises(lt.DTypeError):
        lt.trace(lambda x, y: x, X, object())

    assert not lt.is_tracing()


def test_garbage_is_collected_again_after_a_failure():
    with pytest.raises(KeyboardInterrupt):
        lt.trace(lambda x: (_ for _ in ()).throw(KeyboardInterrupt), X)

    assert gc.isenabled()


def test_a_derivative_inside_jit_may_write_into_drawn_arrays():
    def f(x):
        order = np.random.permutation(3)
        np.random.shuffle(order)
        order[0] = 1
        return (np.arange(3.0)[order] * x).sum()

    for seed in (1, 2):
        np.random.seed(seed)
        expected = lt.grad(f)(2.0)
        np.random.seed(seed)
        assert expected == lt.jit(lt.grad(f))(2.0)
