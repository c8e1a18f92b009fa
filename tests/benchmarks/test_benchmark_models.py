"""The models of the benchmarks compute the documented functions and have right gradients."""

import math
from functools import partial

import numpy as np
import pytest

import letir as lt
from benchmarks import models
from benchmarks.harness import DemoSettings
from letir.testing import assert_close

MODELS = {
    "gmm": models.gmm_model,
    "lstm of vectors": partial(models.lstm_model, 0),
    "lstm of a batch": partial(models.lstm_model, 2),
    "diagonal lstm": models.diagonal_lstm_model,
}


def test_the_gaussian_mixture_agrees_with_adbench():
    """As in ADBench's own loops over points and components, with gamma 1 and m 0."""
    (alphas, means, factors, x), d, k = models.gmm_model().args, models.DIMENSION, models.COMPONENTS
    x = x[:5]
    inner = np.empty((len(x), k))
    for c in range(k):
        lower = np.diag(np.exp(factors[c, :d]))
        entries = iter(factors[c, d:])
        for j in range(d):
            for i in range(j + 1, d):
                lower[i, j] = next(entries)
        for p in range(len(x)):
            z = lower @ (x[p] - means[c])
            inner[p, c] = alphas[c] + factors[c, :d].sum() - 0.5 * (z @ z)
    n = d + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi)
    log_gamma += sum(math.lgamma(0.5 * n + 0.5 * (1 - j)) for j in range(1, d + 1))
    constant = n * d * (-0.5 * math.log(2)) - log_gamma
    squares = (np.exp(factors[:, :d]) ** 2).sum() + (factors[:, d:] ** 2).sum()
    expected = np.log(np.exp(inner).sum(axis=1)).sum() - len(x) * np.log(np.exp(alphas).sum())
    expected += -len(x) * d * 0.5 * math.log(2 * math.pi) + 0.5 * squares - k * constant

    assert_close(expected, models.gmm(np, alphas, means, factors, x))


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_gradient_of_a_model_agrees_with_a_finite_difference(make):
    model = make()
    loss = lt.trace(partial(model.f, np), *model.args)
    given = model.args[: model.parameters]
    rng = np.random.default_rng(1)
    vector, unravel = lt.ravel(given)
    along = rng.normal(size=vector.shape)

    def at(step: float) -> float:
        return loss(*unravel(vector + step * along), *model.args[model.parameters :])

    gradient = lt.grad(loss, tuple(range(model.parameters)))(*model.args)

    slope = (at(1e-5) - at(-1e-5)) / 2e-5
    assert_close(slope, lt.ravel(gradient)[0] @ along, rtol=1e-5, atol=1e-8)


def test_a_ratio_is_a_figure():
    text = models.figure(models.letir_ratio, {" here": models.gmm_model})(DemoSettings(((1, 1),)))

    assert text.endswith(" here")
    assert float(text.split()[0]) > 1
