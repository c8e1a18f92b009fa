"""``check_grads`` accepts right derivatives and finds wrong ones."""

import cmath
import functools
import math
import re

import numpy as np
import pytest
import scipy.signal
import scipy.special
from attrs import evolve

from letir import custom_vjp, stop_gradient, trace
from letir.ast.primitive import PRIMITIVES
from letir.errors import LetirError, MissingRule
from letir.testing import Sample, applied_program, assert_same, check_grads

X = np.array([0.5, -1.25, 2.0])


def wrong_at(order: int):
    """exp, whose derivative of this order is wrong by 1 %."""

    @custom_vjp
    def f(x):
        return np.exp(x)

    after = np.exp if order == 1 else wrong_at(order - 1)
    factor = 1.01 if order == 1 else 1.0
    f.defvjp(lambda x: (np.exp(x), x), lambda x, ct: (factor * ct * after(x),))
    return f


@pytest.mark.parametrize("order", [1, 2, 3])
def test_smooth_functions_pass_to_any_order(order):
    check_grads(lambda x, y: (np.sin(x) * y**3).sum(), (X, 0.7), order=order)


def test_functions_may_take_and_return_pytrees():
    def f(params, x):
        return {"out": np.tanh(x @ params["w"]), "size": x.shape[0], "sum": params["b"][0].sum()}

    check_grads(f, ({"w": np.ones((3, 2)), "b": [X]}, X))


def test_lambdas_are_checked_at_their_own_types():
    check_grads(trace(lambda p, x: (p[0] * x, p[1]), (X, 2.0), X), ((X, 2.0), X))


@pytest.mark.parametrize("f", [np.exp, np.abs, lambda z: (z * z.conj()).real, lambda z: z.imag * z])
def test_complex_arguments_follow_the_convention_of_jax(f):
    check_grads(f, (X + 1j * X[::-1],))


def test_results_and_arguments_that_are_not_floating_are_left_out():
    check_grads(lambda x, i: (x[i], np.argmax(x), x > 0), (X, np.array([2, 0])))


def test_functions_are_checked_in_double_precision_lambdas_in_their_own():
    single = X.astype(np.float32)

    check_grads(lambda x: np.sin(x).sum(), (single,), rtol=1e-8)
    check_grads(trace(lambda x: np.sin(x).sum(), single), (single,))


def test_a_complex_step_is_exact_to_rounding():
    check_grads(lambda x: np.exp(np.sin(x)) / (1 + x * x), (X,), analytic=True)
    check_grads(trace(lambda x, y: x * y, X, 2.0), (X, 2.0), analytic=True)


def test_a_complex_step_finds_what_differences_cannot_see():
    nearly = custom_vjp(np.exp)
    nearly.defvjp(lambda x: (np.exp(x), x), lambda x, ct: ((1 + 1e-9) * ct * np.exp(x),))

    check_grads(nearly, (X,), order=1, modes=("rev",))
    with pytest.raises(AssertionError, match="by a complex step"):
        check_grads(nearly, (X,), order=1, modes=("rev",), analytic=True)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_wrong_derivative_is_found_at_its_order(order):
    f = wrong_at(order)

    if order > 1:
        check_grads(f, (X,), order=order - 1, modes=("rev",))
    with pytest.raises(AssertionError, match=f"to argument 0 is wrong in .*, order {order}\n"):
        check_grads(f, (X,), order=order, modes=("rev",))


@pytest.mark.parametrize(("mode", "text"), [("rev", "reverse"), ("fwd", "forward")])
def test_the_message_names_argument_mode_order_and_values(mode, text):
    def f(x, params):
        return x.sum() + 2 * stop_gradient(params["w"][1])

    with pytest.raises(AssertionError) as caught:
        check_grads(f, (X, {"w": (1.0, 3.0)}), modes=(mode,))

    pattern = (
        rf"the derivative with respect to argument 1\['w'\]\[1\] is wrong in {text} mode, order 1\n"
    )
    assert re.match(
        pattern + r"  expected -?\d.* by central differences, got -?0.0", str(caught.value)
    )


def test_the_path_to_a_wrong_second_derivative_is_named():
    with pytest.raises(AssertionError, match="wrong in reverse mode of reverse mode, order 2"):
        check_grads(wrong_at(2), (X,), modes=("rev",))


def test_a_disagreement_of_modes_below_the_error_of_differences_is_found():
    exp = PRIMITIVES["exp"]
    wrong = evolve(exp, vjp=lambda ct, y, x: ((1 + 1e-9) * ct * y,))

    check_grads(*applied_program(exp, Sample((X,))))
    with pytest.raises(AssertionError, match="where reverse and forward mode must agree"):
        check_grads(*applied_program(wrong, Sample((X,))))


def test_a_missing_rule_is_an_error_that_says_which():
    @custom_vjp
    def f(x):
        return np.exp(x)

    f.defvjp(lambda x: (np.exp(x), x), lambda x, ct: (np.clip(ct, -1, 1) * np.exp(x),))
    with pytest.raises(MissingRule, match=r"custom_vjp defines the reverse mode(.|\n)*clip"):
        check_grads(f, (X,), modes=("fwd",))


def of_one(function, *others):
    """A function of an array that calls ``function``, which it holds."""
    return lambda x: function(x, *others)


@pytest.mark.parametrize(
    "function",
    [
        scipy.special.logsumexp,
        of_one(scipy.special.logsumexp),
        of_one(scipy.signal.convolve, np.ones(2)),
        of_one(lambda x: [cmath.exp, math.cos][1](x[0]) * x),
        functools.partial(scipy.special.logsumexp, keepdims=True),
        np.linalg.norm,
    ],
)
def test_functions_of_scipy_and_math_that_a_function_holds_are_recorded(function):
    check_grads(function, (X,))


def test_arguments_without_anything_to_check_are_an_error():
    with pytest.raises(LetirError, match="no argument is floating"):
        check_grads(lambda n: n + 1, (3,))
    with pytest.raises(LetirError, match="modes are 'rev' and 'fwd'"):
        check_grads(np.sin, (X,), modes=("reverse",))


def test_arguments_are_not_changed():
    x = X.copy()

    check_grads(lambda x: np.sin(x) * 2, (x,))

    assert_same(X, x)


@pytest.mark.parametrize("make", [lambda f: f, lambda f: trace(f, X.copy())])
def test_functions_that_change_their_arguments_are_checked_at_the_given_values(make):
    def f(x):
        x[0] *= x[1]
        return x * x

    given = X.copy()

    check_grads(make(f), (given,))
    np.testing.assert_array_equal(X, given)
