"""Complex numbers, integers, booleans, single and half precision in every transform."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, assert_same
from tests.each_sample import in_one_test

X = np.array([0.5, 0.25, -1.5])
LOW = [np.float16, np.float32]
EVERY = [*LOW, np.float64, np.complex64, np.complex128]


def vector(x):
    """A function with Python numbers, reductions, products, indexing and choices."""
    y = np.tanh(x * 2.0) / 3 + x[0] * x.mean() - x**2
    return np.where(np.isfinite(y), y, 0.0) + np.stack([x, 1.5 * x]).sum(0) @ np.ones((3, 3), "f2")


def scalar(x):
    return vector(x).sum() * 0.5


def analytic(z):
    """As ``scalar``, of complex numbers too."""
    return (np.sin(z * 2.0) / 3 + z[0] * z.mean() - z**2).sum() * 0.5


# name -> the program of a transform of a program
PROGRAMS = {
    "grad": lambda f, g, x: lt.grad(f, holomorphic=True),
    "value_and_grad": lambda f, g, x: lt.value_and_grad(f, holomorphic=True),
    "vjp": lambda f, g, x: lt.vjp(g, x)[1].program,
    "linearize": lambda f, g, x: lt.linearize(g, x)[1].program,
    "jvp": lambda f, g, x: lt.trace(lambda x: lt.jvp(g, (x,), (x,))[1], x),
    "transposed": lambda f, g, x: lt.linear_transpose(lt.linearize(g, x)[1].program, argnums=0),
    "jacfwd": lambda f, g, x: lt.jacfwd(g, holomorphic=True),
    "jacrev": lambda f, g, x: lt.jacrev(g, holomorphic=True),
    "hessian": lambda f, g, x: lt.hessian(f, holomorphic=True),
    "checkpoint": lambda f, g, x: lt.grad(lt.checkpoint(f), holomorphic=True),
    "mapped": lambda f, g, x: lt.vmap(lt.grad(f, holomorphic=True), axis_size=3),
}


def widths(program):
    """The bytes of a real number in each floating array of a program, bodies included."""
    for bind in program.binds:
        for binder in bind.binders:
            kind = binder.type
            if kind is not None and kind.inexact and kind.shape:
                yield kind.dtype.itemsize // (1 + (kind.dtype.kind == "c")), bind
        for body in bind.attrs.values():
            if type(body) is lt.Lambda:
                yield from widths(body)


@in_one_test
@pytest.mark.parametrize("dtype", LOW, ids=lambda d: d.__name__)
@pytest.mark.parametrize("transform", PROGRAMS.values(), ids=PROGRAMS)
def test_transforms_widen_no_dtype(transform, dtype):
    x = X.astype(dtype)
    program = transform(lt.trace(scalar, x), lt.trace(vector, x), x)

    assert isinstance(program, lt.Lambda)
    for width, bind in widths(program):
        assert width <= np.dtype(dtype).itemsize, bind
    assert {np.dtype(dtype)} == {arg.type.dtype for arg in program.ret.args}


@in_one_test
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128], ids=lambda d: d.__name__)
@pytest.mark.parametrize("transform", PROGRAMS.values(), ids=PROGRAMS)
def test_complex_numbers_stay_complex_and_as_precise(transform, dtype):
    z = (X + 0.5j).astype(dtype)
    program = transform(lt.trace(analytic, z), lt.trace(analytic, z), z)

    for width, bind in widths(program):
        assert width <= np.dtype(dtype).itemsize // 2, bind
    assert {np.dtype(dtype)} == {arg.type.dtype for arg in program.ret.args}


DERIVATIVES = {
    "grad": lambda f, x: lt.grad(f, holomorphic=True)(x),
    "vjp": lambda f, x: lt.vjp(f, x)[1](f(x) / f(x))[0],
    "jacfwd": lambda f, x: lt.jacfwd(f, holomorphic=True)(x),
    "jacrev": lambda f, x: lt.jacrev(f, holomorphic=True)(x),
    "directions": lambda f, x: lt.vmap(
        lambda t: lt.jvp(f, (x,), (t,))[1],
    )(np.eye(3, dtype=x.dtype)),
    "linearized": lambda f, x: lt.vmap(lt.linearize(f, x)[1])(np.eye(3, dtype=x.dtype)),
}


@in_one_test
@pytest.mark.parametrize("dtype", EVERY, ids=lambda d: d.__name__)
@pytest.mark.parametrize("derivative", DERIVATIVES.values(), ids=DERIVATIVES)
def test_derivatives_are_close_to_those_in_double_precision(derivative, dtype):
    x = (X + (0.5j if np.dtype(dtype).kind == "c" else 0)).astype(dtype)
    wide = x.astype(complex if np.dtype(dtype).kind == "c" else float)
    h = 1e-6
    expected = [(analytic(wide + h * e) - analytic(wide - h * e)) / (2 * h) for e in np.eye(3)]

    found = derivative(analytic, x)

    assert np.dtype(dtype) == found.dtype
    tolerance = 2e-2 if dtype is np.float16 else 1e-4
    np.testing.assert_allclose(expected, found, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", LOW, ids=lambda d: d.__name__)
def test_gradients_in_mixed_precision_have_the_dtype_of_their_argument(dtype):
    narrow, wide = X.astype(dtype), X + 1
    f = lambda p: (np.tanh(p["n"]) * p["w"]).sum() * p["k"]  # noqa: E731
    p = {"n": narrow, "w": wide, "k": 2.0}

    for found in (lt.grad(f)(p), lt.jacrev(f)(p), lt.hvp(f, p, lt.grad(f)(p))):
        dtypes = {name: np.dtype(value.dtype) for name, value in found.items()}
        assert {"n": np.dtype(dtype), "w": np.dtype(float), "k": np.dtype(float)} == dtypes


# ---- integers and booleans ----

INTEGERS = [np.array([1, 2, 3]), np.array([1, 2, 3], np.uint8), np.array([True, False, True]), 3]


def weighted(x, n):
    return (x**2 * n).sum()


@pytest.mark.parametrize("n", INTEGERS, ids=lambda n: str(np.asarray(n).dtype))
def test_arguments_that_are_not_floating_have_no_derivative_and_change_none(n):
    expected = 2 * X * n

    assert_close(expected, lt.grad(weighted)(X, n))
    assert_close(expected, lt.jacfwd(weighted)(X, n))
    assert_close(expected, lt.jacrev(weighted)(X, n))
    by_x, by_n = lt.vjp(weighted, X, n)[1](np.float64(1.0))
    assert_close(expected, by_x)
    assert by_n is None
    assert_close(expected @ X, lt.jvp(weighted, (X, n), (X, n))[1])
    assert_close(expected @ X, lt.linearize(weighted, X, n)[1](X, n))
    by_x, by_n = lt.hvp(weighted, (X, n), (X, None))
    assert_close(expected, by_x)
    assert by_n is None


@in_one_test
@pytest.mark.parametrize("n", INTEGERS, ids=lambda n: str(np.asarray(n).dtype))
@pytest.mark.parametrize(
    "transform", [lt.grad, lt.value_and_grad, lt.jacfwd, lt.jacrev, lt.jacobian, lt.hessian]
)
def test_the_derivative_with_respect_to_integers_is_an_error_with_the_remedy(transform, n):
    with pytest.raises(lt.DTypeError, match=r"n is .*which has no derivative\n.*argnums"):
        transform(weighted, 1)(X, n)
    with pytest.raises(lt.DTypeError, match="which has no derivative"):
        transform(weighted, (0, 1))(X, n)
    with pytest.raises(lt.DTypeError, match="which has no derivative"):
        transform(lt.trace(weighted, X, n), 1)


def test_results_that_are_not_floating_have_zero_tangents_and_take_any_cotangent():
    f = lambda x: (x * 2, np.argmax(x), x > 0)  # noqa: E731

    _, (by_y, of_index, of_mask) = lt.jvp(f, (X,), (X,))
    out, pull = lt.vjp(f, X)

    assert_same(2 * X, by_y)
    assert_same((0.0, np.zeros(3)), (float(of_index), of_mask))
    assert_same((2 * X,), pull((X, out[1], out[2])))


# ---- complex numbers ----

Z = X + 1j * np.array([1.0, -0.5, 2.0])


def test_a_real_loss_of_complex_arguments_descends_along_the_conjugate():
    """df/dx - i df/dy, the convention of JAX and autograd."""
    f = lambda z: (abs(z) ** 2).sum() + z.real.sum() * z.imag[0]  # noqa: E731
    h = 1e-6

    def slope(step):
        return np.array([(f(Z + h * step * e) - f(Z - h * step * e)) / (2 * h) for e in np.eye(3)])

    found = lt.grad(f)(Z)

    np.testing.assert_allclose(slope(1) - 1j * slope(1j), found, rtol=1e-7)
    assert_close(found, lt.jacrev(f)(Z))
    assert_close(found, lt.grad(lt.checkpoint(f))(Z))


def test_real_arguments_of_complex_functions_have_real_gradients():
    f = lambda x: abs(np.exp(1j * x) + x).sum()  # noqa: E731

    found = lt.grad(f)(X)

    assert np.float64 == found.dtype
    np.testing.assert_allclose(lt.jacfwd(f)(X), found, rtol=1e-13)


def test_the_pairing_of_cotangents_and_tangents_holds_for_complex_numbers():
    f = lambda z: np.exp(z) * z.conj() + z.real * z.imag  # noqa: E731
    ct, t = Z[::-1], 1j * Z + 1

    pushed = lt.jvp(f, (Z,), (t,))[1]
    (pulled,) = lt.vjp(f, Z)[1](ct)
    (transposed,) = lt.linear_transpose(lt.linearize(f, Z)[1], Z)(ct)

    np.testing.assert_allclose((ct * pushed).sum().real, (pulled * t).sum().real, rtol=1e-13)
    assert_close(pulled, transposed)


def test_a_real_cotangent_of_a_complex_result_is_refused():
    with pytest.raises(lt.DTypeError, match="cotangent of type complex128"):
        lt.vjp(np.exp, Z)[1](X)
