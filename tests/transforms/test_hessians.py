"""hessian, hvp and ggnvp against each other, closed forms and Lambdas."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, assert_same

X = np.linspace(0.1, 1.0, 4)
V = np.array([1.0, -1.0, 0.5, 2.0])
W = np.cos(np.arange(12.0)).reshape(3, 4)


def loss(x):
    return (np.sin(W @ x) ** 2).sum() * x[0]


def layer(x):
    return np.tanh(W @ x)


def bowl(y):
    return np.exp(y).sum() + y[0] * y[1]


def test_the_hessian_is_the_jacobian_of_the_jacobian_in_any_modes():
    expected = lt.hessian(loss)(X)

    assert_close(expected, expected.T)
    for outer in (lt.jacfwd, lt.jacrev):
        for inner in (lt.jacfwd, lt.jacrev, lt.grad):
            assert_close(expected, outer(inner(loss))(X))


def test_the_hessian_of_a_lambda_is_a_lambda():
    program = lt.hessian(lt.trace(loss, X))

    assert isinstance(lt.check(program), lt.Lambda)
    assert_close(lt.hessian(loss)(X), program(X))


def test_the_hessian_nests_as_the_arguments_twice():
    def f(p):
        return (p["a"] ** 2).sum() * p["b"]

    found = lt.hessian(f)({"a": X, "b": 3.0})

    assert_close(
        {"a": {"a": 6 * np.eye(4), "b": 2 * X}, "b": {"a": 2 * X, "b": np.float64(0.0)}}, found
    )


def test_hessian_takes_argnums_and_has_aux():
    def f(x, y):
        return (x**2 * y).sum(), x + 1

    (by_x, by_y), aux = lt.hessian(f, (0, 1), has_aux=True)(X, V)

    assert_close((np.diag(2 * V), np.diag(2 * X)), by_x)
    assert_close((np.diag(2 * X), np.zeros((4, 4))), by_y)
    assert_same(X + 1, aux)


def test_the_hessian_of_an_array_result_has_the_result_axes_first():
    found = lt.hessian(lambda x: x**3)(X)

    expected = np.zeros((4, 4, 4))
    expected[np.arange(4), np.arange(4), np.arange(4)] = 6 * X
    assert_close(expected, found)


@pytest.mark.parametrize(
    "product",
    [
        lambda f, x, v: lt.hvp(f, (x,), (v,)),
        lt.hvp,
        lambda f, x, v: lt.hvp(f)(x, v),
        lambda f, x, v: lt.hvp(lt.trace(f, x))(x, v),
        lambda f, x, v: lt.hvp(lt.trace(f, x), (x,), (v,)),
        lambda f, x, v: lt.trace(lambda x, v: lt.hvp(f, (x,), (v,)), x, v)(x, v),
        lambda f, x, v: lt.jvp(lt.grad(f), (x,), (v,))[1],
    ],
    ids=["tuples", "arrays", "function", "Lambda", "of a Lambda", "in a trace", "by hand"],
)
def test_all_hessian_vector_products_agree(product):
    assert_close(lt.hessian(loss)(X) @ V, product(loss, X, V))


def test_several_primals_give_a_tuple_and_None_is_a_zero_tangent():
    def f(x, n, y):
        return (x**2 * y).sum() * n.sum()

    by_x, by_n, by_y = lt.hvp(f, (X, np.arange(3), V), (X, None, None))

    assert_close(3 * 2 * V * X, by_x)
    assert by_n is None
    assert_close(3 * 2 * X * X, by_y)


def test_the_lambda_takes_the_arguments_then_the_tangents_then_the_keywords():
    def f(p, n, *, k):
        return (p["a"] ** 2 * p["b"]).sum() * k * n.sum()

    p, n, t = {"a": X, "b": np.float32(3)}, np.arange(3), {"a": V, "b": np.float32(1)}

    by_p, by_n = lt.hvp(lt.trace(f, p, n, k=2.0))(p, n, t, None, k=2.0)

    expected = lt.hvp(lambda p: f(p, n, k=2.0), p, t)
    assert by_n is None
    assert_close(expected, by_p)


def test_without_a_forward_rule_the_product_and_the_hessian_are_taken_in_reverse_mode():
    @lt.custom_vjp
    def sine(x):
        return np.sin(x)

    sine.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (ct * np.cos(x),))
    expected = np.diag(2 * np.cos(2 * X))

    assert_close(expected, lt.hessian(lambda x: (sine(x) ** 2).sum())(X))
    assert_close(expected @ V, lt.hvp(lambda x: (sine(x) ** 2).sum(), X, V))
    assert_close(expected, lt.hessian(lt.trace(lambda x: (sine(x) ** 2).sum(), X))(X))


@pytest.mark.parametrize(
    "product",
    [
        lambda: lt.ggnvp(layer, bowl, (X,), (V,)),
        lambda: lt.ggnvp(layer, bowl, X, V),
        lambda: lt.ggnvp(layer, bowl)(X, V),
        lambda: lt.ggnvp(lt.trace(layer, X), bowl)(X, V),
        lambda: lt.ggnvp(lt.trace(layer, X), lt.trace(bowl, layer(X)))(X, V),
        lambda: lt.trace(lambda x, v: lt.ggnvp(layer, bowl, (x,), (v,)), X, V)(X, V),
    ],
    ids=["tuples", "arrays", "function", "Lambda", "Lambdas", "in a trace"],
)
def test_the_gauss_newton_product_agrees_with_the_explicit_matrices(product):
    jacobian, curvature = lt.jacobian(layer)(X), lt.hessian(bowl)(layer(X))

    assert_close(jacobian.T @ curvature @ jacobian @ V, product())


def test_the_gauss_newton_product_of_a_linear_function_agrees_with_the_hessian():
    f = lambda x: {"y": W @ x, "n": 3}  # noqa: E731
    g = lambda out: bowl(out["y"]) * out["n"]  # noqa: E731

    assert_close(lt.hvp(lambda x: g(f(x)), X, V), lt.ggnvp(f, g, X, V))


def test_the_gauss_newton_product_evaluates_the_function_once():
    calls = []
    counted = lt.primitive(
        "tests.counted_layer",
        lambda xp, x: calls.append(1) or x * 1,
        lambda x: x,
        vjp=lambda ct, y, x: (ct,),
        jvp=lambda t, y, x: t[0],
    )

    lt.ggnvp(lambda x: np.tanh(counted(x)), bowl, X, V)

    assert [1] == calls


def test_hessians_of_complex_and_low_precision_arguments():
    z = X + 1j
    found = lt.hessian(lambda z: (z**3).sum(), holomorphic=True)(z)

    assert_close(np.diag(6 * z), found)
    narrow = X.astype(np.float16)
    assert np.float16 == lt.hvp(lambda x: np.tanh(x).sum(), narrow, narrow).dtype
    assert np.float16 == lt.ggnvp(np.tanh, lambda y: (y * y).sum(), narrow, narrow).dtype
    assert np.float32 == lt.hessian(lambda x: np.tanh(x).sum())(X.astype("f4")).dtype


def test_wrong_calls_are_errors_that_say_what_to_do():
    with pytest.raises(lt.ShapeError, match=r"float64\[4\]"):
        lt.hvp(np.sin, X, V)
    with pytest.raises(lt.ShapeError, match="expected as many tangents as primals"):
        lt.hvp(loss)(X)
    with pytest.raises(lt.ShapeError, match=r"tangent of type float64\[4\] is expected"):
        lt.hvp(loss, X, V[:2])
    with pytest.raises(lt.ShapeError, match="the number of primals is 1, of tangents 2"):
        lt.hvp(loss, (X,), (V, V))
    with pytest.raises(lt.ShapeError, match="one scalar, found 2"):
        lt.hvp(lambda x: (loss(x), x), X, V)
    with pytest.raises(lt.ShapeError, match=r"letir\.retype"):
        lt.ggnvp(lt.parse("lambda %0 { %1 = exp(%0); return %1 }"), bowl)


def test_vmap_gives_products_with_many_directions():
    found = lt.vmap(lambda v: lt.hvp(loss, (X,), (v,)))(np.eye(4))

    assert_close(lt.hessian(loss)(X), found)
