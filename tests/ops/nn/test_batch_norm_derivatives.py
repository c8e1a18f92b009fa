"""Batch normalisation to second order, for every combination of missing cotangents [D11]."""

import itertools

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close
from letir.testing.gradient_checks import pair_sum
from tests.each_sample import in_one_test

X = np.sin(np.arange(12.0)).reshape(4, 3) * 2
GAMMA, BETA = np.array([0.5, -1.5, 2.0]), np.array([0.1, 0.2, -0.3])
MASKS = list(itertools.product([True, False], repeat=3))


def batch_norm(x, gamma=None, beta=None):
    """(normalised, mean, variance) of a batch, affine if gamma and beta are given."""
    mean = x.mean(axis=0)
    var = ((x - mean) ** 2).mean(axis=0)
    out = (x - mean) / np.sqrt(var + 1e-5)
    return (out if gamma is None else out * gamma + beta), mean, var


def composite(x, gamma=None, beta=None):
    """The batch norm of letir.nn, whose variance is the unbiased estimate."""
    return lt.nn.batch_norm(x, None, None, gamma, beta)


FORMS = {"direct": batch_norm, "checkpoint": lt.checkpoint(batch_norm), "composite": composite}
every_form = pytest.mark.parametrize("norm", FORMS.values(), ids=FORMS)


def directions(arrays, seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=np.shape(array)) for array in arrays]


def check_masked(program, args, mask):
    """Check the gradient for the cotangents in ``mask`` against the one with zeros for the others,
    and against finite differences.
    """
    gradient = lt.differentiate(program)
    results, residuals = gradient.forward(*args)
    cts = directions(results, 1)
    zeros = [ct * there for ct, there in zip(cts, mask, strict=True)]
    missing = [ct if there else None for ct, there in zip(cts, mask, strict=True)]
    found = gradient.backward(residuals, *missing)
    steps, h = directions(args, 2), 1e-6
    ahead, behind = (
        program(*[arg + s * h * step for arg, step in zip(args, steps, strict=True)])
        for s in (1, -1)
    )
    change = [(a - b) / (2 * h) for a, b in zip(ahead, behind, strict=True)]

    assert_close(gradient.backward(residuals, *zeros), found)
    np.testing.assert_allclose(
        pair_sum(zeros, change)[0], pair_sum(found, steps)[0], rtol=1e-6, atol=1e-8
    )


@in_one_test
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("args", [(X,), (X, GAMMA, BETA)], ids=["plain", "affine"])
@every_form
def test_gradients_for_every_combination_of_missing_cotangents(norm, args, mask):
    """[D7, D11]"""
    check_masked(lt.trace(norm, *args), args, mask)


def backward(norm):
    """The gradients with respect to x, gamma and beta, as a function of the cotangent and these."""

    def by_all(ct, x, gamma, beta):
        return lt.vjp(lambda *args: norm(*args)[0], x, gamma, beta)[1](ct)

    return by_all


@in_one_test
@pytest.mark.parametrize("mask", MASKS)
@every_form
def test_second_gradients_for_every_combination_of_missing_cotangents(norm, mask):
    """[D11]: of the gradients with respect to x, gamma and beta."""
    args = (np.cos(X), X, GAMMA, BETA)

    check_masked(lt.trace(backward(norm), *args), args, mask)


@in_one_test
@pytest.mark.parametrize("mask", MASKS)
@every_form
def test_second_gradients_with_cotangents_of_the_statistics(norm, mask):
    """[D11]: not affine, with cotangents of the mean and the variance too."""

    def by_x(x, *cts):
        given = [ct if there else ct * 0 for ct, there in zip(cts, mask, strict=True)]
        return lt.vjp(norm, x)[1](tuple(given))[0]

    lt.testing.check_grads(by_x, (X, *directions(batch_norm(X), 3)), order=1)


def test_third_derivatives_agree_with_differences():
    """[D11]"""
    lt.testing.check_grads(
        lambda *args: batch_norm(*args)[0], (X[:, :2], GAMMA[:2], BETA[:2]), order=3
    )


@pytest.mark.parametrize("batch", [2, 4, 9])
def test_one_gradient_program_serves_every_batch_size(batch):
    """[D14]"""
    n = lt.ShapeDtype(("n", 3))
    df = lt.grad(
        lt.trace(lambda x, g, b: (batch_norm(x, g, b)[0] ** 3).sum(), n, GAMMA, BETA), (0, 1, 2)
    )
    x = np.sin(np.arange(3.0 * batch)).reshape(batch, 3)

    expected = lt.grad(lambda *args: (batch_norm(*args)[0] ** 3).sum(), (0, 1, 2))(x, GAMMA, BETA)

    assert_close(expected, df(x, GAMMA, BETA))


def test_the_pair_of_programs_serves_every_batch_size():
    """[D14]: df itself, with its residuals."""
    gradient = lt.differentiate(lt.trace(batch_norm, lt.ShapeDtype(("n", 3)), GAMMA, BETA))

    for batch in (2, 4, 9):
        x = np.sin(np.arange(3.0 * batch)).reshape(batch, 3)
        results, residuals = gradient.forward(x, GAMMA, BETA)
        cts = directions(results, batch)
        expected = lt.vjp(batch_norm, x, GAMMA, BETA)[1](tuple(cts))
        assert_close(expected, gradient.backward(residuals, *cts))
