"""Variables combined with traces and transforms."""

import numpy as np
import pytest

import letir as lt
from letir import Variable
from letir.eager import gradients, history

A, B = np.array([0.5, 2.0]), np.array([3.0, -1.0])


def leaf(array=A, **options):
    return Variable(array, requires_grad=True, **options)


# ---- histories ----


def test_the_parameters_of_a_history_are_its_leaves_in_order_of_first_use():
    x, y, c = leaf(name="x"), leaf(B, name="y"), Variable(np.array([7.0, 8.0]))
    program = history((y + c) * x + 1.0)

    assert ["y", "x"] == [param.name for param in program.params]
    assert ["constant", "add", "mul", "add"] == [bind.op.name for bind in program.binds]
    lt.check(program)
    np.testing.assert_array_equal((B + c.data) * A + 1.0, program(B, A))


def test_a_history_has_the_source_lines_of_the_user():
    program = history(np.sin(leaf()))

    assert "test_nesting.py" in program.binds[0].source.file


def test_the_inputs_of_a_history_may_be_chosen():
    x, y = leaf(), leaf(B)
    program = history([x * y, y], [y, x])

    np.testing.assert_array_equal(A * B, program(B, A)[0])
    with pytest.raises(lt.TraceError, match="requires grad and is not among the inputs"):
        history(x * y, [x])


def test_a_constant_is_bound_once():
    """[B1]"""
    c = np.array([7.0, 8.0])
    program = history(leaf() * c + c)

    assert 1 == len(program.constants)


def test_history_after_backward_is_an_error_that_names_retain_graph():
    y = leaf() * leaf(B)
    y.sum().backward()

    with pytest.raises(lt.TraceError, match=r"retain_graph=True"):
        history(y)


def test_a_history_can_be_differentiated_as_a_program():
    x = leaf()
    program = history((np.sin(x) * x).sum())

    np.testing.assert_allclose(np.cos(A) * A + np.sin(A), lt.grad(program)(A))


def test_a_history_may_have_several_results():
    x = leaf(np.arange(4.0))
    first, second = np.split(x, 2)
    program = history([second, first * 2.0])

    np.testing.assert_array_equal([2.0, 3.0], program(np.arange(4.0))[0])
    np.testing.assert_array_equal([0.0, 2.0], program(np.arange(4.0))[1])


def test_the_history_of_a_gradient_is_a_program():
    """[D15] With create_graph the rules record."""
    x = leaf()
    dx = gradients((x**3).sum(), x, create_graph=True)
    program = history(dx, [x])

    np.testing.assert_allclose(3 * B**2, program(B))


# ---- traces ----


def test_a_variable_may_be_an_input_of_several_traces():
    """[B3] A trace reads its array."""
    x = leaf()
    first, second = lt.trace(np.sin, x), lt.trace(lambda v: v * 2.0, x)

    np.testing.assert_array_equal(np.sin(A), first(A))
    np.testing.assert_array_equal(2 * A, second(x).data)


def test_variables_in_trees_are_inputs():
    x, y = leaf(), leaf(B)
    program = lt.trace(lambda d: d["a"][0] * d["b"], {"a": [x], "b": y})
    program({"a": [x], "b": y}).sum().backward()

    np.testing.assert_allclose(B, x.grad.data)


@pytest.mark.parametrize(
    "use", [lambda t, v: t * v, lambda t, v: v * t, lambda t, v: np.sin(v) + t]
)
def test_a_captured_variable_that_requires_grad_is_an_error(use):
    """[B1]"""
    x = leaf()
    with pytest.raises(lt.TraceError, match=r"(?s)make it an argument, or detach it"):
        lt.trace(lambda t: use(t, x), A)


def test_a_captured_variable_that_requires_no_grad_is_a_constant():
    """[B1]"""
    x = leaf()
    program = lt.trace(lambda t: t * x.detach() + Variable(B), A)

    assert 2 == len(program.constants)
    np.testing.assert_array_equal(A * A + B, program(A))


def test_a_trace_keeps_no_variable_alive():
    """[B3]"""
    x = leaf()
    lt.trace(np.sin, x)

    assert x.is_leaf
    assert x.grad is None


def test_a_replay_on_variables_checks_its_arguments():
    """[B7]"""
    program = lt.trace(np.sin, A)
    with pytest.raises(lt.ShapeError, match=r"expected float64\[2\], found float64\[3\]"):
        program(leaf(np.ones(3)))


def test_a_replay_on_variables_keeps_the_source_lines_of_the_program():
    program = lt.trace(np.sin, A)
    y = program(leaf())

    assert program.binds[0].source == y.grad_fn.source


def test_python_numbers_stay_weak_in_a_replay_on_variables():
    program = lt.trace(lambda x, rate: x * (rate * 2.0), np.ones(2, np.float32), 0.5)

    assert np.float32 == program(leaf(np.ones(2, np.float32)), 0.5).dtype


def test_guards_hold_in_replays_on_variables():
    """[B2]"""
    program = lt.trace(lambda x: x * 2.0 if x.sum() > 0 else x, A)

    np.testing.assert_array_equal(2 * A, program(leaf()).data)
    with pytest.raises(lt.GuardError):
        program(leaf(-A))


# ---- transforms ----


def test_transforms_of_functions_accept_variables_and_are_recorded():
    x, y = leaf(), leaf(B)

    def f(a, b):
        return (np.sin(a) * b).sum()

    da = lt.grad(f)(x, y)
    np.testing.assert_allclose(np.cos(A) * B, da.data)
    np.testing.assert_allclose(np.cos(A), gradients(da.sum(), y).data)
    value, (da, db) = lt.value_and_grad(f, (0, 1))(x, y)
    assert all(isinstance(v, Variable) for v in (value, da, db))


def test_vjp_jvp_and_linearize_accept_variables():
    x, v = leaf(), Variable(B)
    out, pull = lt.vjp(np.sin, x)
    np.testing.assert_allclose(np.sin(A), out.data)
    np.testing.assert_allclose(np.cos(A) * B, pull(v)[0].data)
    _, tangent = lt.jvp(np.sin, (x,), (v,))
    np.testing.assert_allclose(np.cos(A) * B, tangent.data)
    _, lin = lt.linearize(np.sin, x)
    np.testing.assert_allclose(np.cos(A) * B, lin(v).data)
    np.testing.assert_allclose(-np.sin(A) * B, gradients(tangent.sum(), x).data)


def test_a_function_with_a_custom_rule_accepts_variables():
    @lt.custom_vjp
    def clipped(x):
        return x * 1.0

    clipped.defvjp(lambda x: (x * 1.0, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    x = leaf()
    lt.trace(clipped, A)(x).backward(np.array([5.0, 0.5]))

    np.testing.assert_allclose([1.0, 0.5], x.grad.data)


def test_running_statistics_are_returned_to_their_owner():
    """[B8] A buffer is an explicit input and an explicit result."""

    def normalised(x, mean):
        new_mean = 0.9 * mean + 0.1 * lt.stop_gradient(x.mean(0))
        return x - new_mean, new_mean

    program = lt.trace(normalised, np.ones((2, 2)), np.zeros(2))
    x, mean = leaf(np.ones((2, 2))), Variable(np.zeros(2))
    for _ in range(2):
        out, mean.data = program(x, mean)
        out.sum().backward()

    np.testing.assert_allclose([0.19, 0.19], mean.data)
    np.testing.assert_allclose(np.full((2, 2), 2.0), x.grad.data)
    assert not mean.requires_grad


def test_an_opaque_operation_without_a_rule_can_be_evaluated():
    """[B12]"""
    norm = lt.opaque(lambda x: np.float64((x * x).sum()), lt.ShapeDtype(()), name="tests.norm")

    assert 4.25 == norm(Variable(A)).item()
