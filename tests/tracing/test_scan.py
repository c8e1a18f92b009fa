"""``lt.scan``: values, derivatives and errors, against the loop that it stands for."""

import itertools

import numpy as np
import pytest

import letir as lt

RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 3)) * 0.5


def network(w, h, xs, *, reverse=False, every=None):
    """Everything that a scan has: nested carry and ys, a number in the carry, a closed-over w."""

    def step(carry, x):
        h = np.tanh(carry["h"] @ w + x)
        return {"h": h, "s": carry["s"] + 2 * h.sum()}, (h**2, [h.sum()])

    start = {"h": h, "s": 0}
    carry, (rows, [sums]) = lt.scan(step, start, xs, reverse=reverse, checkpoint_every=every)
    weights = np.arange(1, len(xs) + 1)
    return (rows * weights[:, None]).sum() + carry["s"] + (sums * weights).sum()


def plain_network(w, h, xs, *, reverse=False):
    """The same as a Python loop."""
    total = 0.0 * (w.sum() + h.sum())
    order = range(len(xs) - 1, -1, -1) if reverse else range(len(xs))
    for i in order:
        h = np.tanh(h @ w + xs[i])
        total = total + 2 * h.sum() + (i + 1) * ((h**2).sum() + h.sum())
    return total


@pytest.mark.parametrize("n, reverse", [*itertools.product((0, 1, 7), (False, True))])
@pytest.mark.parametrize("every", [None, 1, 3, 10])
def test_value_and_gradient_are_those_of_the_python_loop(n, reverse, every):
    args = W, np.full(3, 0.2), RNG.normal(size=(n, 3))

    def loop(*args):
        return network(*args, reverse=reverse, every=every)

    def plain(*args):
        return plain_network(*args, reverse=reverse)

    value, gradient = lt.value_and_grad(loop, (0, 1, 2))(*args)
    expected, by_loop = lt.value_and_grad(plain, (0, 1, 2))(*args)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    for ct, other in zip(gradient, by_loop, strict=True):
        assert (ct.dtype, ct.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(ct, other, rtol=1e-12, atol=1e-14)
