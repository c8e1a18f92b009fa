"""Staged traces: forward, backward and double backward as stages of one program [E5]."""

import gc

import numpy as np
import pytest

import letir as lt
from letir import Variable, eager
from letir.eager.staged_tracing import staged_trace

X, Y = np.array([1.0, 2.0]), np.array([0.5, -0.25])


def inputs():
    return Variable(X, requires_grad=True, name="x"), Variable(Y, requires_grad=True, name="y")


def product(x, y):
    return np.tanh(x * y), x.sum()


def test_a_trace_with_n_derivatives_has_n_plus_one_stages():
    """[E5]"""
    x, y = inputs()
    trace, (a, b) = staged_trace(product, x, y, derivatives=2)
    assert (1, False) == (len(trace.stages), trace.is_complete)

    dx, _ = eager.gradients([a.sum(), b], [x, y], create_graph=True)
    assert (2, False) == (len(trace.stages), trace.is_complete)

    eager.gradients(dx.sum(), x)
    assert (3, True) == (len(trace.stages), trace.is_complete)


def test_each_stage_has_its_own_parameters_and_results():
    """[E5]"""
    x, y = inputs()
    trace, (a, b) = staged_trace(product, x, y, derivatives=2)
    dx, dy = eager.gradients([a.sum(), b], [x, y], create_graph=True)
    (ddx,) = eager.gradients(dx.sum(), [x])
    one = np.ones(2)

    for stage in trace.stages:
        lt.check(stage.program)
    assert [2, 2, 1] == [len(stage.params) for stage in trace.stages]
    assert [2, 2, 2] == [len(stage.results) for stage in trace.stages]
    found = trace.program(X, Y, one, np.float64(1.0), one)

    for expected, value in zip((a, b, dx, dy, ddx), found, strict=False):
        np.testing.assert_allclose(expected.numpy(), value)


def test_a_trace_prints_stage_by_stage():
    """[E5]"""
    x = Variable(X, requires_grad=True, name="x")
    trace, y = staged_trace(lambda x: (x * x).sum(), x)

    y.backward()

    lines = [line.split("  #")[0] for line in str(trace).splitlines()]
    assert [
        "stage 0 (%0:x: float64[2]):",
        "  %2: float64[2] = mul(%0, %0)",
        "  %3: float64[] = sum(%2)",
        "  return (%3)",
        "stage 1 (%1: float64[]):",
        "  %4: float64[2] = broadcast_to(%1, shape=(2,))",
        "  %5: float64[2] = mul(%4, %0)",
        "  %6: float64[2] = add(%5, %5)",
        "  return (%6)",
    ] == lines


def test_a_stage_has_only_the_gradients_that_arrived():
    """[E5]"""
    x, y = inputs()
    trace, (a, _) = staged_trace(product, x, y)

    a.sum().backward()

    assert 1 == len(trace.stages[1].params)
    np.testing.assert_allclose(
        x.grad.numpy(), trace.stages[1].program(np.ones(2), np.tanh(X * Y), Y, X)[0]
    )


def test_a_trace_expires_when_its_results_are_freed():
    """[E5]"""
    gc.disable()
    try:
        x, y = inputs()
        trace, out = staged_trace(product, x, y)
        assert not trace.is_expired

        del out

        assert trace.is_expired
        assert str(trace).endswith("expired: 1 of 2 stages")
    finally:
        gc.enable()


def test_a_complete_trace_does_not_expire_and_records_nothing_more():
    """[E5]"""
    x, y = inputs()
    trace, (a, _) = staged_trace(product, x, y)
    a.sum().backward(retain_graph=True)
    a.sum().backward()
    text = str(trace)
    del a, _
    x.grad = None
    (x * 3).sum().backward()

    assert trace.is_complete
    assert not trace.is_expired
    assert text == str(trace)
    np.testing.assert_array_equal([3.0, 3.0], x.grad.numpy())


def test_backward_without_create_graph_does_not_record_the_next_stage():
    """[E5]"""
    x, y = inputs()
    trace, (a, b) = staged_trace(product, x, y, derivatives=2)
    a.sum().backward()
    del a, b

    assert 2 == len(trace.stages)
    assert trace.is_expired


def test_results_and_gradients_equal_the_functions():
    """[E5]"""
    x, y = inputs()
    _, (a, _) = staged_trace(product, x, y)
    u, v = inputs()
    expected, _ = product(u, v)

    a.sum().backward()
    expected.sum().backward()

    np.testing.assert_array_equal(expected.numpy(), a.numpy())
    np.testing.assert_array_equal(u.grad.numpy(), x.grad.numpy())


def test_arguments_may_be_nested_and_need_not_require_grad():
    x, _ = inputs()
    trace, out = staged_trace(lambda p, n: {"y": p["x"] * p["z"] * n}, {"x": x, "z": Y}, 2.0)

    out["y"].sum().backward()

    np.testing.assert_array_equal(2 * Y, x.grad.numpy())
    assert trace.is_complete


@pytest.mark.parametrize("number", [-1, 1.5, None])
def test_an_invalid_number_of_derivatives_is_an_error(number):
    with pytest.raises(lt.LetirError, match="derivatives must be"):
        staged_trace(np.sin, inputs()[0], derivatives=number)


@pytest.mark.parametrize("derivatives", [1, 2, 3])
@pytest.mark.parametrize("wanted", [[0], [1], [0, 1]])
def test_backward_after_gradients_reaches_inputs_that_gradients_left_out(derivatives, wanted):
    a, b = inputs()
    trace, z = staged_trace(lambda x, y: y * 2 * x, a, b, derivatives=derivatives)
    ct = Variable(np.ones(2), requires_grad=True)

    found = eager.gradients(z, [(a, b)[i] for i in wanted], ct, create_graph=True)
    sum(dx.sum() for dx in found).backward(create_graph=True)

    assert min(3, derivatives + 1) == len(trace.stages)
    for stage in trace.stages:
        lt.check(stage.program)


def test_gradients_within_a_trace_are_not_parameters_of_a_stage():
    """A result from which another one is computed gets a gradient that no caller passed."""
    x, y = inputs()
    trace, (_, b) = staged_trace(lambda x, y: (x * y, x * y * 3), x, y)
    trace_of_used, (_, c) = staged_trace(lambda x, y: (lambda a: (a, a * 3))(x * y), x, y)

    b.sum().backward()
    c.sum().backward()

    one = np.ones(2)
    assert [2, 1] == [len(stage.params) for stage in trace.stages]
    assert [2, 1] == [len(stage.params) for stage in trace_of_used.stages]
    np.testing.assert_array_equal(3 * Y, trace_of_used.program(X, Y, one)[2])


def test_a_pass_through_results_of_two_stages_has_both_gradients():
    x, y = inputs()
    trace, z = staged_trace(lambda x, y: np.tanh(x * y) * x, x, y, derivatives=2)
    dx, dy = eager.gradients(z, [x, y], np.ones(2), create_graph=True)

    (dx * dy + z * 2).sum().backward()

    assert [2, 1, 3] == [len(stage.params) for stage in trace.stages]
    cts = 2 * np.ones(2), dy.numpy(), dx.numpy()
    *_, ddx, ddy = trace.program(X, Y, np.ones(2), *cts)
    np.testing.assert_allclose(x.grad.numpy(), ddx)
    np.testing.assert_allclose(y.grad.numpy(), ddy)


def test_a_second_pass_through_the_same_results_is_not_a_stage():
    x, y = inputs()
    trace, (a, b) = staged_trace(product, x, y, derivatives=2)

    for _ in range(3):
        eager.gradients([a, b], [x, y], [X, np.float64(1.0)], create_graph=True)

    assert 2 == len(trace.stages)
