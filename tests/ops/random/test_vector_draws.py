"""Draws of vectors from NumPy's generators: the numbers, the next state, derivatives."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close
from tests.each_sample import in_one_test

MEAN = np.array([0.5, -1.0])
COV = np.array([[1.0, 0.3], [0.3, 2.0]])
DRAWS = {
    "normal": lambda g, x: g.multivariate_normal(x, COV),
    "normal of a size": lambda g, x: g.multivariate_normal(x, COV, size=(2, 3)),
    "normal of a traced covariance": lambda g, x: g.multivariate_normal(
        MEAN, COV + np.outer(x, x), 4
    ),
    "dirichlet": lambda g, x: g.dirichlet(x**2 + 0.5),
    "dirichlet of a size": lambda g, x: g.dirichlet(x**2 + 0.5, size=3),
    "dirichlet of numbers": lambda g, x: x * g.dirichlet([1.0, 2.0], (2, 1)),
    "multinomial": lambda g, x: g.multinomial(10, x**2 / (x**2).sum()),
    "multinomial of a size": lambda g, x: g.multinomial(10, [0.3, 0.7], size=(2, 3)),
}
GENERATOR_DRAWS = {
    "by eigenvalues": lambda g, x: g.multivariate_normal(x, COV, 3, method="eigh"),
    "by a Cholesky factor": lambda g, x: g.multivariate_normal(x, COV, 3, method="cholesky"),
    "permuted": lambda g, x: g.permuted(np.outer(x, x + 1)),
    "permuted in columns": lambda g, x: g.permuted(np.outer(x, [1.0, 2.0, 3.0]).T),
    "permuted along an axis": lambda g, x: g.permuted(np.outer(x, np.arange(4.0)), axis=1),
    "permuted rows": lambda g, x: g.permuted(np.outer(np.arange(4.0), x), axis=-2),
    "permuted numbers": lambda g, x: x[0] * g.permuted([1.0, 2.0, 3.0]),
    "permuted into an array": lambda g, x: g.permuted(x, out=np.empty(2)) + x,
}


def assert_draws_as_numpy(draw, make):
    program, jitted = lt.trace(draw, make(0), MEAN), lt.jit(draw)

    for seed in range(4):  # the third call of jit draws in the generator itself
        expected = draw(numpys := make(seed), MEAN)
        last = numpys.random(2)
        for f in (program, jitted):
            assert_close(expected, f(ours := make(seed), MEAN))
            np.testing.assert_array_equal(ours.random(2), last)


@in_one_test
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_vectors_are_drawn_as_numpy_does(draw, make):
    assert_draws_as_numpy(draw, make)


@pytest.mark.parametrize("draw", GENERATOR_DRAWS.values(), ids=GENERATOR_DRAWS)
def test_a_generator_has_methods_of_factorising(draw):
    assert_draws_as_numpy(draw, np.random.default_rng)


def test_normal_vectors_have_derivatives():
    def loss(mean, scale):
        return (np.random.default_rng(3).multivariate_normal(mean, COV * scale, 5) ** 2).sum()

    slope = lt.grad(loss)(MEAN, 1.0)
    numeric = [(loss(MEAN + h, 1.0) - loss(MEAN - h, 1.0)) / 2e-6 for h in np.eye(2) * 1e-6]

    np.testing.assert_allclose(slope, numeric, rtol=1e-6)
    scaled = (loss(MEAN, 1.0 + 1e-6) - loss(MEAN, 1.0 - 1e-6)) / 2e-6
    assert lt.grad(loss, argnums=1)(MEAN, 1.0) == pytest.approx(scaled, rel=1e-6)


def test_a_wrong_parameter_is_numpys_error():
    with pytest.raises(ValueError, match="alpha"):
        lt.trace(lambda g, a: g.dirichlet(a), np.random.default_rng(0), -np.ones(2))
    with pytest.raises(ValueError, match="pvals"):
        lt.trace(lambda g, p: g.multinomial(3, p), np.random.default_rng(0), np.ones(3))
    for generator in (np.random.default_rng(0), np.random.RandomState(0)):
        with pytest.raises(ValueError, match="positive-semidefinite"):
            lt.trace(
                lambda g: g.multivariate_normal(np.zeros(2), -np.eye(2), check_valid="raise"),
                generator,
            )
    with pytest.raises(lt.MissingRule, match=r"all of alpha is below 0\.1"):
        lt.trace(lambda g, a: g.dirichlet(a), np.random.default_rng(0), np.full(3, 0.01))
    with pytest.raises(lt.ShapeError, match="square matrix of its length"):
        lt.trace(lambda g, m: g.multivariate_normal(m, np.eye(3)), np.random.default_rng(0), MEAN)


def test_a_traced_parameter_of_a_hidden_generator_has_a_derivative():
    np.random.seed(0)
    slope = lt.grad(lambda mean: (np.random.normal(mean) ** 2).sum())(MEAN)
    np.random.seed(0)

    np.testing.assert_allclose(slope, 2 * np.random.normal(MEAN))
