"""Maxima whose derivatives cancel: which gradients leave out, and the numbers of gradients."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close
from tests.each_sample import in_one_test

X, W = np.random.default_rng(0).normal(size=(2, 6, 6))
PLACES = np.random.default_rng(1).integers(0, 6, 6)


def shifted(x, axis=1):
    return x - np.max(x, axis=axis, keepdims=True)


def softmax(x, axis=1):
    e = np.exp(shifted(x, axis) / 0.7)
    return e / e.sum(axis, keepdims=True)


def log_softmax(x):
    z = shifted(x)
    return z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))


def logsumexp(x):
    m = x.max(1)
    return np.log(np.exp(x - m[:, None]).sum(1)) + m


def logsumexp_of_columns(x):
    m = np.max(x, axis=0, keepdims=True)
    return np.log(np.sum(np.exp(x - m), axis=0)) + m[0, :]


def softmax_of_all(x):
    e = np.exp(x - x.max())
    return e / np.sum(e)


def cross_entropy(x):
    z = shifted(x)
    return np.log(np.exp(z).sum(1)) - z[np.arange(6), PLACES]


def softmin(x):
    e = np.exp(-(x - x.min(1, keepdims=True)))
    return 1 / (e.sum(1, keepdims=True) / e)


def twice(x):
    return softmax(log_softmax(softmax(x)), 0)


def other_axis(x):
    e = np.exp(shifted(x))
    return e / e.sum(0, keepdims=True)


def misaligned(x):
    e = np.exp(shifted(x))
    return e / e.sum(1)


def of_other_rows(x):
    z = shifted(x)
    return z[np.arange(6)[::-1], PLACES] - z.mean(1)


def returned(x):
    z = shifted(x)
    return z.mean(1) - z[:, 0] + x.max(1)


def two_maxima(x):
    return shifted(x) - shifted(x, 0) + x.max(1, keepdims=True)


def weighted(x):
    z = shifted(x)
    return 2 * z - z.mean(1, keepdims=True)


def softmax_by_ellipses(x):
    e = np.exp(x - np.max(x, axis=-1)[..., None])
    return e / e.sum(-1)[..., np.newaxis]


def logsumexp_by_ellipses(x):
    m = np.max(x, axis=0)
    return np.log(np.exp(x - m[None, ...]).sum(0)) + m[...]


def divided_by_the_maximum_of_all(x):
    return x * (1 / np.max(x))[..., None]


def half_a_row(x):
    e = np.exp(shifted(x))
    return e / (e[:, :3].sum(1, keepdims=True) + 1)


LEFT_OUT = [softmax, log_softmax, logsumexp, logsumexp_of_columns, softmax_of_all, cross_entropy]
LEFT_OUT += [softmin, twice, softmax_by_ellipses, logsumexp_by_ellipses]
KEPT = [other_axis, misaligned, of_other_rows, returned, two_maxima, weighted, half_a_row, shifted]
KEPT += [divided_by_the_maximum_of_all]


def loss(f):
    return lambda x: np.sum(f(x) * W[: 6 if f(x).ndim == 2 else 1])


def has_derivative_of_maximum(f, x) -> bool:
    """Whether a gradient finds the elements that equal the maximum."""
    return any(bind.op.name == "equal" for bind in lt.trace(lt.grad(loss(f)), x).binds)


@pytest.mark.parametrize("f", LEFT_OUT)
def test_a_derivative_that_cancels_is_left_out(f):
    assert not has_derivative_of_maximum(f, X)


@pytest.mark.parametrize("f", KEPT)
def test_other_derivatives_are_computed(f):
    assert has_derivative_of_maximum(f, X)


@in_one_test
@pytest.mark.parametrize("f", LEFT_OUT + KEPT)
def test_the_gradient_is_the_derivative(f):
    g, step = loss(f), 1e-6 * W

    slope = (g(X + step) - g(X - step)) / 2e-6
    assert_close(np.sum(lt.grad(g)(X) * W), slope, rtol=1e-7, atol=1e-8)


def test_second_derivatives_are_those_of_forward_mode():
    g = loss(softmax)

    assert_close(lt.hvp(g, X, W), lt.jvp(lt.grad(g), (X,), (W,))[1], rtol=1e-10, atol=1e-12)


def test_a_maximum_that_is_a_result_keeps_its_derivative():
    def f(x):
        m = x.max()
        return m + 0 * np.sum(np.exp(x - m) / np.exp(x - m).sum())

    np.testing.assert_array_equal(lt.grad(f)(X), (X == X.max()).astype(float))


def test_an_operand_of_unknown_type_keeps_the_derivative():
    f = lt.parse("""lambda %0: float64[6], %1 {
        %2: float64[] = max(%0)
        %3: float64[6] = sub(%0, %2)
        %4: float64[6] = mul(%3, %1)
        return %4 }""")

    assert "max" in str(lt.differentiate(f).df)
