"""grad, value_and_grad, vjp, jvp, linearize: of functions and Lambdas, nested, on pytrees."""

import functools
from collections import namedtuple

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same

X = np.array([0.5, 1.5, -2.0])
Params = namedtuple("Params", "w b")


def loss(params, x, scale=1.0):
    return (np.tanh(x @ params.w + params.b) ** 2).sum() * scale


PARAMS = Params(np.linspace(-1, 1, 6).reshape(3, 2), np.array([0.1, -0.2]))


def test_a_function_gives_a_function_and_a_lambda_a_lambda_with_the_same_gradient():
    by_function = lt.grad(loss)(PARAMS, X)
    program = lt.grad(lt.trace(loss, PARAMS, X))

    assert isinstance(program, lt.Lambda)
    assert isinstance(by_function, Params) and isinstance(program(PARAMS, X), Params)
    np.testing.assert_array_equal(by_function.w, program(PARAMS, X).w)
    lt.check(program)


@pytest.mark.parametrize("argnums", [0, 1, -1, (0, 1), [1]])
def test_argnums_choose_the_arguments(argnums):
    found = lt.grad(lambda x, y: (x * x * y).sum(), argnums)(X, 3 * X)
    both = (2 * X * 3 * X, X * X)
    expected = both[argnums] if isinstance(argnums, int) else tuple(both[i] for i in argnums)

    for a, b in zip(np.atleast_2d(expected), np.atleast_2d(found), strict=True):
        np.testing.assert_allclose(a, b)


def test_an_argnum_out_of_range_is_an_error():
    with pytest.raises(lt.BoundsError, match="no positional argument 2 among 1"):
        lt.grad(np.sum, 2)(X)


def test_value_and_grad_with_aux_nests_as_in_jax():
    def f(x):
        return (x**2).sum(), {"twice": 2 * x}

    (value, aux), gradient = lt.value_and_grad(f, has_aux=True)(X)
    only, same = lt.grad(f, has_aux=True)(X)

    assert value == (X**2).sum()
    np.testing.assert_array_equal(2 * X, aux["twice"])
    np.testing.assert_array_equal(gradient, only)
    np.testing.assert_array_equal(2 * X, same["twice"])


def test_keywords_bound_methods_and_partials_work():
    class Model:
        w = 3.0

        def loss(self, x, *, power=2):
            return (self.w * x**power).sum()

    model = Model()

    np.testing.assert_allclose(9 * X**2, lt.grad(model.loss)(X, power=3))
    np.testing.assert_allclose(6 * X, lt.grad(functools.partial(model.loss, power=2))(X))
    np.testing.assert_array_equal(
        2 * lt.grad(loss)(PARAMS, X).w,
        lt.grad(lt.trace(loss, PARAMS, X, scale=1.0))(PARAMS, X, scale=2.0).w,
    )


def test_nested_gradients_see_the_outer_variables():
    """[B3]: perturbation confusion is a wrong answer here, 1 instead of 2."""
    assert 1.0 == lt.grad(lambda x: x * lt.grad(lambda y: x + y)(2.0))(1.0)
    found = lt.grad(lambda x: lt.grad(lambda y: np.sin(y) * x * y)(x))(1.3)
    x = 1.3

    np.testing.assert_allclose(
        np.cos(x) * x + np.sin(x) + x * (np.cos(x) - x * np.sin(x) + np.cos(x)), found, rtol=1e-14
    )


def test_gradients_nest_to_any_order():
    f = np.tanh
    for _ in range(4):
        f = lt.grad(f)
    t, s = np.tanh(0.7), 1 - np.tanh(0.7) ** 2

    np.testing.assert_allclose(16 * t * s * s - 8 * t**3 * s, f(0.7), rtol=1e-13)


def test_a_gradient_inside_a_trace_is_inlined():
    program = lt.trace(lambda x: lt.grad(lambda y: (y**3).sum())(x) * 2, X)

    np.testing.assert_array_equal(6 * X**2, program(X))
    assert all(bind.op.name != "grad_of" for bind in program.binds)


def test_a_function_with_a_guard_is_differentiated_along_the_branch_taken():
    def f(x):
        return (x**2).sum() if x.sum() > 0 else (x**3).sum()

    np.testing.assert_array_equal(2 * np.abs(X), lt.grad(f)(np.abs(X)))
    np.testing.assert_array_equal(3 * X**2, lt.grad(f)(-np.abs(X)))


def test_a_function_without_guards_computes_its_primal_once():
    calls = []
    counted = lt.primitive(
        "tests.counted",
        lambda xp, x: calls.append(1) or x * 1,
        lambda x: x,
        vjp=lambda ct, y, x: (ct * y,),
    )

    lt.value_and_grad(lambda x: counted(x).sum())(X)

    assert [1] == calls


def test_the_pullback_returns_None_for_primals_without_a_derivative():
    _, pull = lt.vjp(lambda x, n, unused: (x * n, np.exp(x)), X, np.array([1, 2, 3]), X)

    by_x, by_n, by_unused = pull((np.ones(3), np.zeros(3)))

    assert by_n is None
    np.testing.assert_array_equal([1.0, 2.0, 3.0], by_x)
    np.testing.assert_array_equal(np.zeros(3), by_unused)
    assert isinstance(pull.program, lt.Lambda)


def test_vjp_returns_aux_separately():
    _, pull, aux = lt.vjp(lambda x: (x**2, {"n": x + 1}), X, has_aux=True)

    np.testing.assert_array_equal(2 * X, pull(np.ones(3))[0])
    np.testing.assert_array_equal(X + 1, aux["n"])


@pytest.mark.parametrize(
    "f", [lambda x: (x**2, {"n": x + 1}), lt.jit(lambda x: (x**2, {"n": x + 1}))]
)
def test_jvp_returns_aux_without_a_tangent(f):
    out, tangent, aux = lt.jvp(f, (X,), (np.ones(3),), has_aux=True)

    assert_same(X**2, out)
    np.testing.assert_array_equal(2 * X, tangent)
    assert_same({"n": X + 1}, aux)


def test_jvp_with_aux_nests_and_is_recorded():
    def f(params, x):
        out = np.tanh(x @ params.w)
        return {"y": out, "sizes": [out.sum(), 3]}, (out.max(), "text", None)

    def pushed(x):
        return lt.jvp(lambda p: f(p, x), (PARAMS,), (PARAMS,), has_aux=True)

    out, tangent, aux = pushed(X)
    expected = lt.jvp(lambda p: f(p, X)[0], (PARAMS,), (PARAMS,))
    assert_same(expected, (out, tangent))
    assert_same(f(PARAMS, X)[1], aux)
    assert_same((out, tangent, aux), lt.trace(pushed, X)(X))
    assert_same((out, tangent, aux), lt.jit(pushed)(X))


def test_jvp_needs_no_rule_for_what_only_aux_depends_on():
    """In plain code, and beside a loop, where values and tangents are computed together."""
    odd = lt.primitive("tests.no_jvp", lambda xp, x: x + 1, lambda x: x)

    def f(x, loops):
        y = lt.fori_loop(0, 2, lambda i, y: y * x, x) if loops else x**3
        return y, odd(lt.cond(x.sum() > 0, np.sin, np.cos, x))

    for loops in (False, True):
        _, tangent, aux = lt.jvp(lambda x: f(x, loops), (X,), (np.ones(3),), True)  # noqa: B023
        np.testing.assert_allclose(tangent, 3 * X**2)
        assert_same(f(X, loops)[1], aux)
        with pytest.raises(lt.MissingRule):
            lt.jvp(lambda x: f(x, loops), (X,), (np.ones(3),))  # noqa: B023


def test_jvp_with_aux_needs_a_pair():
    with pytest.raises(lt.ShapeError, match=r"has_aux: the function must return \(value, aux\)"):
        lt.jvp(np.sin, (X,), (X,), has_aux=True)
    with pytest.raises(lt.DTypeError, match="has_aux"):
        lt.jvp(np.sin, (X,), (X,), has_aux="no")


def test_a_cotangent_of_the_wrong_shape_or_nesting_is_refused():
    _, pull = lt.vjp(np.exp, X)

    with pytest.raises(
        lt.ShapeError, match=r"a cotangent of type float64\[3\] is expected, found float64\[2\]"
    ):
        pull(np.ones(2))
    with pytest.raises(lt.DTypeError, match=r"nested as \*"):
        pull((np.ones(3), np.ones(3)))


def test_jvp_agrees_with_differences_and_linearize_with_jvp():
    tangent = np.array([1.0, -1.0, 0.5])
    f = functools.partial(loss, PARAMS)

    out, slope = lt.jvp(f, (X,), (tangent,))
    same, linear = lt.linearize(f, X)

    h = 1e-6
    np.testing.assert_allclose(
        (f(X + h * tangent) - f(X - h * tangent)) / (2 * h), slope, rtol=1e-8
    )
    assert out == same
    assert slope == linear(tangent)
    assert 2 * slope == linear(2 * tangent)
    assert isinstance(linear.program, lt.Lambda)


def test_a_tangent_of_none_is_a_zero():
    _, slope = lt.jvp(lambda x, y: (x * y).sum(), (X, X), (np.ones(3), None))

    assert X.sum() == slope


def test_forward_and_reverse_nest_both_ways():
    def f(x):
        return (np.sin(x) * x**2).sum()

    v = np.array([1.0, 0.5, -0.25])
    forward_over_reverse = lt.jvp(lt.grad(f), (X,), (v,))[1]
    reverse_over_forward = lt.grad(lambda x: lt.jvp(f, (x,), (v,))[1])(X)
    reverse_over_reverse = lt.grad(lambda x: lt.grad(f)(x) @ v)(X)

    np.testing.assert_allclose(forward_over_reverse, reverse_over_forward, rtol=1e-13)
    np.testing.assert_allclose(forward_over_reverse, reverse_over_reverse, rtol=1e-13)


def test_complex_gradients_follow_the_convention_of_jax_and_autograd():
    z = np.array([1.0 + 2.0j, -0.5 + 0.1j])

    np.testing.assert_allclose(2 * z.conj(), lt.grad(lambda z: (abs(z) ** 2).sum())(z))
    np.testing.assert_allclose(2 * z, lt.grad(lambda z: (z * z).sum(), holomorphic=True)(z))
    np.testing.assert_allclose(z.conj() / abs(z), lt.grad(lambda z: abs(z).sum())(z))


def test_a_complex_result_needs_holomorphic():
    with pytest.raises(lt.DTypeError, match="holomorphic=True"):
        lt.grad(lambda z: (z * z).sum())(np.array([1.0 + 2.0j]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
def test_gradients_have_the_dtype_of_their_argument(dtype):
    x = np.array([0.5, 0.25], dtype)

    found = lt.grad(lambda x: (np.tanh(x) * 2.0 + x / 3).real.sum())(x)

    assert np.dtype(dtype) == found.dtype


@pytest.mark.parametrize(
    ("f", "x", "error", "message"),
    [
        (
            lambda x: x * 2.0,
            X,
            lt.ShapeError,
            r"grad needs a scalar, but the function returns float64\[3\]",
        ),
        (lambda x: (x.sum(), x), X, lt.ShapeError, "one scalar"),
        (lambda x: (x > 0).sum(), X, lt.DTypeError, "has no derivative"),
        (lambda x: x * 2.0, 3, lt.DTypeError, "pass a float, 3.0 instead of 3"),
        (lambda x: (x * 2.0).sum(), np.arange(3), lt.DTypeError, "convert it with .astype"),
    ],
)
def test_arguments_and_results_without_a_gradient_are_refused(f, x, error, message):
    with pytest.raises(error, match=message):
        lt.grad(f)(x)


def test_static_leaves_of_an_argument_become_None_in_the_gradient():
    found = lt.grad(lambda p: (p["w"] ** 2).sum() if p["square"] else 0.0)({"w": X, "square": True})

    assert found["square"] is None
    np.testing.assert_array_equal(2 * X, found["w"])


def test_gradients_share_no_memory():
    """[C2]: a rule hands one cotangent to both operands of a sum, and broadcasts it."""
    by_x, by_y = lt.grad(lambda x, y: (x + y).sum(), (0, 1))(X, X)

    by_x += 1

    np.testing.assert_array_equal(np.ones(3), by_y)


def test_a_result_of_one_element_has_a_gradient():
    def f(x):
        return (x**3).sum(keepdims=True)

    x = np.array([[1.0, 2.0]])

    assert_same(3 * x**2, lt.grad(f)(x))
    assert_same((f(x), 3 * x**2), lt.value_and_grad(f)(x))
    assert_same(3 * x**2, lt.jit(lt.grad(f))(x))
    assert_same(3 * x**2, lt.grad(lt.trace(f, x))(x))
    assert_same(6 * x, lt.hvp(f)(x, np.ones_like(x)))


@pytest.mark.parametrize("call", [lt.jvp, lambda f, x, v: lt.jvp(f, (x,), v)])
@pytest.mark.parametrize("x", [np.ones(3), np.ones((1, 3)), 2.0])
def test_bare_arrays_are_not_tuples_of_arguments(call, x):
    with pytest.raises(lt.DTypeError, match=r"a tuple with an entry for each argument, found"):
        call(lambda x: np.sin(x), x, x)  # noqa: PLW0108
    assert 2 == len(lt.jvp(np.sin, [x], [x]))


def test_a_pullback_takes_one_cotangent():
    _, pull = lt.vjp(lambda x, y: (x, y), 1.0, 2.0)

    with pytest.raises(lt.DTypeError, match=r"(?s)one cotangent.*2 were given.*pull\(\(ct, other"):
        pull(1.0, 1.0)
    assert_same((np.float64(1.0), np.float64(2.0)), pull((1.0, 2.0)))
