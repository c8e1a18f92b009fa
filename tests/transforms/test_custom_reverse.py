"""custom_vjp and stop_gradient."""

import functools
import types

import numpy as np
import pytest

import letir as lt

X = np.array([0.5, -1.5])


def make():
    @lt.custom_vjp
    def f(x, y):
        return x * y

    def forward(x, y):
        return x * y, (x, y)

    def backward(residuals, ct):
        _, y = residuals
        return 10 * ct * y, None

    f.defvjp(forward, backward)
    return f


def test_the_users_rule_is_used_and_None_is_a_zero_cotangent():
    """[D9]: None for the second argument does not shift the first."""
    by_x, by_y = lt.grad(lambda x, y: make()(x, y).sum(), (0, 1))(X, X + 1)

    np.testing.assert_array_equal(10 * (X + 1), by_x)
    np.testing.assert_array_equal(np.zeros(2), by_y)


def test_without_a_trace_the_function_itself_runs():
    np.testing.assert_array_equal(X * X, make()(X, X))


def test_the_program_contains_the_rule_and_is_differentiated_without_python():
    from letir.ast.text.parser import parse

    program = lt.trace(lambda x: make()(x, x + 1).sum(), X)
    again = parse(lt.dumps(program))

    assert program == again
    np.testing.assert_array_equal(10 * (X + 1), lt.grad(again)(X))


def test_second_derivatives_use_the_rule():
    second = lt.grad(lambda x: lt.grad(lambda x: (make()(x, x) * x).sum())(x).sum())(X)

    # first order: ct = x, so 10 * x * x + x * x; its derivative uses the rule of x * x again
    first = lambda x: 10 * x * x + x * x  # noqa: E731
    h = 1e-6
    assert np.all(np.isfinite(second))
    np.testing.assert_allclose(first(X), lt.grad(lambda x: (make()(x, x) * x).sum())(X), rtol=1e-12)
    assert (first(X + h) - first(X - h)).shape == second.shape


def test_a_rule_may_close_over_traced_values():
    def f(x, scale):
        @lt.custom_vjp
        def g(x):
            return x

        g.defvjp(lambda x: (x, None), lambda _, ct: (ct * scale,))
        return g(x).sum()

    np.testing.assert_array_equal([3.0, 3.0], lt.grad(f)(X, 3.0))


@pytest.mark.parametrize(
    ("backward", "message"),
    [
        (lambda _, ct: ct, "a tuple with one cotangent for each of 1 arguments"),
        (lambda _, ct: (ct, ct), "a tuple with one cotangent for each of 1 arguments"),
        (lambda _, ct: (ct[:1],), r"cotangent of shape \(1,\), expected \(2,\)"),
    ],
)
def test_a_wrong_rule_is_an_error_that_names_the_function(backward, message):
    """[D9]."""

    @lt.custom_vjp
    def named(x):
        return x * 2

    named.defvjp(lambda x: (x * 2, None), backward)

    with pytest.raises(
        lt.ShapeError, match=f"custom_vjp named: backward.*{message}|custom_vjp named.*{message}"
    ):
        lt.grad(lambda x: named(x).sum())(X)


def test_stop_gradient_stops_and_keeps_the_value():
    value, gradient = lt.value_and_grad(lambda x: (lt.stop_gradient(x) * x).sum())(X)

    assert (X * X).sum() == value
    np.testing.assert_array_equal(X, gradient)


@pytest.mark.parametrize(
    ("wrapped", "taken"),
    [
        (lambda x: {"v": x, "name": "text"}, lambda tree: tree["v"]),
        (lambda x: (None, [x]), lambda tree: tree[1][0]),
        (lambda x: types.SimpleNamespace(v=x), lambda tree: tree.v),
    ],
)
def test_stop_gradient_stops_every_leaf_of_a_pytree(wrapped, taken):
    def stopped_product(x):
        return (taken(lt.stop_gradient(wrapped(x))) * x).sum()

    np.testing.assert_array_equal(X, lt.grad(stopped_product)(X))
    np.testing.assert_array_equal(X, lt.jit(lt.grad(stopped_product))(X))
    assert X.sum() == lt.jvp(stopped_product, (X,), (np.ones_like(X),))[1]


class Weights:
    def __init__(self, *values):
        self.values = values


def test_stop_gradient_refuses_traced_values_where_it_does_not_reach():
    with pytest.raises(lt.DTypeError, match="which is not a pytree, contains traced values"):
        lt.grad(lambda x: (lt.stop_gradient(Weights(x)), x.sum())[1])(X)


def test_stop_gradient_returns_what_is_not_traced():
    weights = Weights(1.0)

    assert lt.stop_gradient((2.5, "text", weights)) == (2.5, "text", weights)


def test_arguments_that_are_not_differentiated_come_first_in_the_backward():
    @functools.partial(lt.custom_vjp, nondiff_argnums=(0, 2))
    def apply(function, x, mode="twice"):
        return function(x)

    def forward(function, x, mode):
        assert mode == "twice"
        return function(x), x

    def backward(function, mode, x, ct):
        return (2 * ct * function(x),)

    apply.defvjp(forward, backward)

    np.testing.assert_array_equal(2 * np.exp(X), lt.grad(lambda x: apply(np.exp, x).sum())(X))
    np.testing.assert_array_equal(2 * np.exp(X), lt.grad(lambda x: apply(np.exp, x=x).sum())(X))


def test_keywords_become_positional_arguments():
    found = lt.grad(lambda x: make()(y=X + 1, x=x).sum())(X)

    np.testing.assert_array_equal(10 * (X + 1), found)


@pytest.mark.parametrize("custom", [lt.custom_vjp, lt.custom_jvp])
def test_keyword_only_arguments_are_refused(custom):
    @custom
    def f(x, *, scale=1.0):
        return x * scale

    with pytest.raises(lt.LetirError, match=f"{custom.__name__} f: .*found the keywords scale"):
        f(X, scale=2.0)


def test_eager_variables_use_the_rule_too():
    """[E1]"""
    x = lt.Variable(X, requires_grad=True)

    make()(x, X + 1).sum().backward()

    np.testing.assert_array_equal(10 * (X + 1), np.asarray(x.grad))


def test_the_derivative_with_respect_to_a_captured_traced_value_is_an_error():
    def f(x, w):
        @lt.custom_vjp
        def g(x):
            return x * w

        g.defvjp(lambda x: (x * w, w), lambda w, ct: (ct * w,))
        return g(x).sum()

    np.testing.assert_array_equal([2.0, 2.0], lt.grad(f)(X, 2.0))
    np.testing.assert_array_equal(
        np.full((3, 2), 2.0), lt.vmap(lt.grad(f), (0, None))(np.ones((3, 2)), 2.0)
    )
    with pytest.raises(lt.MissingRule, match=r"over\n  pass the value .*\n.*\n  at .*test_custom"):
        lt.grad(f, 1)(X, 2.0)


def test_results_of_a_custom_function_have_values_during_a_trace():
    """[B2]"""
    program = lt.trace(lambda x: make()(x, x) if make()(x, x).sum() > 0 else x, X)

    np.testing.assert_array_equal(X * X, program(X))
    assert ["custom_vjp"] * 2 == [b.op.name for b in program.binds if b.op.name == "custom_vjp"]
    assert all(b.source.file == __file__ for b in program.binds if b.op.name == "custom_vjp")


# ---- a forward that calls the function itself, as JAX documents it; the forward mode ----


def make_documented():
    @lt.custom_vjp
    def f(x, y):
        return np.sin(x) * y

    def forward(x, y):
        return f(x, y), (np.cos(x), np.sin(x), y)

    def backward(residuals, ct):
        cos_x, sin_x, y = residuals
        return cos_x * ct * y, sin_x * ct

    f.defvjp(forward, backward)
    return f


def test_a_forward_may_call_the_function_itself():
    f = make_documented()

    assert (np.cos(2.0) * 3.0, np.sin(2.0)) == lt.grad(f, (0, 1))(2.0, 3.0)
    assert np.cos(2.0) * 3.0 == lt.jit(lt.grad(f))(2.0, 3.0)
    assert -np.sin(2.0) * 3.0 == lt.grad(lt.grad(f))(2.0, 3.0)


def test_the_rule_of_another_function_called_by_forward_is_kept():
    f = make_documented()

    @lt.custom_vjp
    def g(x):
        return f(x, 2.0) ** 2

    g.defvjp(lambda x: (g(x), x), lambda x, ct: (100.0 * ct,))

    assert (100.0, np.cos(1.0) * 2.0) == (lt.grad(g)(1.0), lt.grad(f)(1.0, 2.0))


def test_forward_mode_transposes_the_backward_function():
    f = make_documented()

    value, tangent = lt.jvp(f, (2.0, 3.0), (1.0, 0.5))

    assert np.sin(2.0) * 3.0 == value
    assert np.cos(2.0) * 3.0 + np.sin(2.0) * 0.5 == tangent
    rows = lt.vmap(lambda x: lt.jvp(f, (x, 3.0), (1.0, 0.0))[1])(X)
    assert np.array_equal(np.cos(X) * 3.0, rows)


def test_forward_mode_of_a_backward_function_that_is_not_linear_is_refused():
    @lt.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))

    with pytest.raises(lt.MissingRule, match=r"clip is not linear(.|\n)*letir\.grad"):
        lt.jvp(clipped, (2.0,), (1.0,))
