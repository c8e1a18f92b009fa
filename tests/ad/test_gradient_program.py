"""The Gradient record: how it runs, prints and nests its arguments and results."""

import numpy as np
import pytest

import letir as lt

X = np.array([1.0, 2.0])


def test_forward_nests_the_results_as_the_function_does():
    g = lt.differentiate(lt.trace(lambda p: {"y": p["w"] * 2, "z": [np.exp(p["w"])]}, {"w": X}))

    out, _ = g.forward({"w": X})

    np.testing.assert_array_equal(2 * X, out["y"])
    np.testing.assert_array_equal(np.exp(X), out["z"][0])


def test_backward_takes_one_cotangent_for_each_result_that_requires_grad():
    g = lt.differentiate(lt.trace(lambda x: (x * 2, x > 0, x * x), X))
    _, residuals = g.forward(X)

    np.testing.assert_array_equal(2 + 2 * X, g.backward(residuals, np.ones(2), np.ones(2))[0])
    with pytest.raises(lt.ShapeError, match="2 results require grad, found 1"):
        g.backward(residuals, np.ones(2))


def test_both_programs_print_side_by_side():
    g = lt.differentiate(lt.trace(lambda x: np.exp(x) * x, X))

    assert (
        "%1 = exp %0     | df(%0 vjp of %2, %1 vjp of %1, %2 x, %3 %1):\n"
        "%2 = mul %1, %0 |   %4, %5 = grad_of[mul](%0) "
        "{ %6 = mul(%0, %2); %7 = mul(%0, %3) -> (%6, %7) }\n"
        "return (%2, %1) |   %8 = autograd_add(%1, %4)\n"
        "                |   %9 = grad_of[exp](%8) { %10 = mul(%8, %3) -> (%10) }\n"
        "                |   %11 = autograd_add(%5, %9)\n"
        "                |   return (%11)"
    ) == str(g)


def test_residuals_are_the_captured_values_only():
    g = lt.differentiate(lt.trace(lambda x: np.tanh(np.exp(x)), X))

    _, residuals = g.forward(X)

    assert len(g.df_input_captured_inputs) + len(g.df_input_captured_outputs) == len(residuals)


def cubed(x, y):
    return (x * x * x * y).sum()


@pytest.mark.parametrize("defined", [None, [True]])
def test_the_joined_program_returns_results_and_cotangents(defined):
    g = lt.differentiate(lt.trace(cubed, X, X), defined=defined)

    out, (x, y) = g.joined()(X, X, np.float64(2.0))

    assert (X**4).sum() == out
    np.testing.assert_allclose(6 * X**3, x)
    np.testing.assert_allclose(2 * X**3, y)
    lt.check(g.joined())


def test_the_joined_program_nests_as_the_function_does():
    def f(p, *, scale):
        return {"y": p["w"] * scale, "n": p["w"] > 0}

    g = lt.differentiate(lt.trace(f, {"w": X}, scale=2.0))

    out, cts = g.joined()({"w": X}, np.ones(2), scale=2.0)

    np.testing.assert_array_equal(2 * X, out["y"])
    np.testing.assert_array_equal([2.0, 2.0], cts[0])
    assert cts[1] == 3.0


def test_an_undefined_cotangent_is_zeros_in_the_joined_program():
    g = lt.differentiate(lt.trace(lambda x, y: np.exp(x), X, X))

    np.testing.assert_array_equal(np.zeros(2), g.joined()(X, X, np.ones(2))[1][1])


def test_transforms_of_a_gradient_use_its_joined_program():
    g = lt.differentiate(lt.trace(cubed, X, X))

    (out, cts), (out_t, cts_t) = lt.jvp(g, (X, X, np.float64(1.0)), (np.ones(2), None, None))
    second, _ = lt.grad(g, has_aux=True)(X, X, np.float64(1.0))

    assert (X**4).sum() == out
    np.testing.assert_allclose((3 * X**3).sum(), out_t)
    np.testing.assert_allclose(6 * X**2, cts_t[0])
    np.testing.assert_allclose(3 * X**2, cts_t[1])
    np.testing.assert_allclose(cts[0], second)
