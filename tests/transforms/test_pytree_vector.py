"""ravel: a pytree as one vector, for optimisers and solvers."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, assert_same

TREE = {"a": np.arange(3), "b": (1.5, 2, np.float32(3)), "n": None, "e": np.zeros((0, 2))}


def test_the_vector_has_the_promoted_dtype_and_unravel_restores_each_dtype():
    vector, unravel = lt.ravel(TREE)

    assert_same(np.array([0, 1, 2, 1.5, 2, 3.0]), vector)
    assert_same(TREE, unravel(vector))


@pytest.mark.parametrize(
    ("leaves", "dtype"),
    [
        ((np.float16(1), np.ones(2, np.float32)), np.float32),
        ((np.ones(2), 1j * np.ones(2)), np.complex128),
        ((np.array([True]), np.array([1], np.int8)), np.int8),
        (([], {}), np.float64),
    ],
)
def test_mixed_dtypes_are_promoted_as_numpy_does(leaves, dtype):
    vector, unravel = lt.ravel(leaves)

    assert dtype == vector.dtype
    assert_same(leaves, unravel(vector))


def test_strings_and_booleans_are_not_in_the_vector():
    vector, unravel = lt.ravel({"x": 1.0, "mode": "fast", "on": True})

    assert_same({"x": 2.0, "mode": "fast", "on": True}, unravel(2 * vector))


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (
            np.zeros(5),
            lt.ShapeError,
            r"a vector of type float64\[6\] is expected, found float64\[5\]",
        ),
        (np.zeros((2, 3)), lt.ShapeError, r"found float64\[2, 3\]"),
        (np.zeros(6, "f4"), lt.DTypeError, r"found float32\[6\]\n  convert it: vector.astype"),
    ],
)
def test_unravel_takes_a_vector_of_the_same_size_and_dtype_only(wrong, error, message):
    with pytest.raises(error, match=message):
        lt.ravel(TREE)[1](wrong)


def test_unravelled_arrays_share_no_memory_with_the_vector():
    """[C4]: optimisers write into their vectors."""
    vector, unravel = lt.ravel(np.ones(3))
    found = unravel(vector)

    vector[:] = 0

    assert_same(np.ones(3), found)


def test_ravel_and_unravel_are_differentiated():
    p = {"w": np.ones((2, 2), np.float32), "b": np.float64(3.0)}
    vector, unravel = lt.ravel(p)

    by_tree = lt.grad(lambda p: (lt.ravel(p)[0] ** 2).sum())(p)
    by_vector = lt.grad(lambda v: unravel(v)["w"].sum() * unravel(v)["b"])(vector)

    assert_close({"w": np.full((2, 2), 2, np.float32), "b": np.float64(6.0)}, by_tree)
    assert_close(np.array([4.0, 3, 3, 3, 3]), by_vector)


def test_ravel_and_unravel_are_recorded():
    vector, unravel = lt.ravel({"x": np.ones(3), "y": 2.0})
    program = lt.trace(lambda v: lt.ravel(unravel(v))[0] * 2, vector)

    assert_same(2 * np.arange(4.0), program(np.arange(4.0)))


def test_a_leaf_that_is_not_an_array_is_refused():
    with pytest.raises(lt.DTypeError, match="not an array"):
        lt.ravel([np.ones(2), {1, 2}])


# ---- SciPy ----

optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "CG"])
def test_scipy_minimizes_with_value_and_grad(method):
    found = optimize.minimize(
        lt.value_and_grad(rosenbrock), np.full(4, 0.5), jac=True, method=method
    )

    np.testing.assert_allclose(np.ones(4), found.x, atol=1e-3)


def test_scipy_minimizes_with_hvp_over_a_pytree():
    start, unravel = lt.ravel({"x": np.full(3, 0.5), "y": 1.5})
    f = lambda v: rosenbrock(unravel(v)["x"]) + (unravel(v)["y"] - 2.0) ** 2  # noqa: E731

    found = optimize.minimize(
        lt.value_and_grad(f),
        start,
        jac=True,
        method="Newton-CG",
        hessp=lambda x, v: lt.hvp(f, (x,), (v,)),
    )

    np.testing.assert_allclose(np.ones(3), unravel(found.x)["x"], atol=1e-4)
    assert abs(unravel(found.x)["y"] - 2) < 1e-4


def equations(x):
    return np.stack([x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1, 0.5 * (x[1] - x[0]) ** 3 + x[1]])


@pytest.mark.parametrize("jacobian", ["jacobian", "jacrev", "jacfwd"])
def test_scipy_finds_roots_with_a_jacobian(jacobian):
    found = optimize.root(equations, np.zeros(2), jac=getattr(lt, jacobian)(equations))

    assert found.success
    np.testing.assert_allclose(np.zeros(2), equations(found.x), atol=1e-10)


def test_scipy_fits_with_a_jacobian():
    t = np.linspace(0, 1, 20)
    residuals = lambda p: p[0] * np.exp(-p[1] * t) - 2 * np.exp(-3 * t)  # noqa: E731

    found = optimize.least_squares(residuals, np.array([1.0, 1.0]), jac=lt.jacobian(residuals))

    np.testing.assert_allclose([2.0, 3.0], found.x, rtol=1e-6)
