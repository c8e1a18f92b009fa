"""Steps of scans of every kind, compared with the Python loop, and with JAX if it is
installed.
"""

import importlib

import numpy as np
import pytest

import letir as lt
from tests.each_sample import in_one_test

RNG = np.random.default_rng(0)
XS, W, START = RNG.normal(size=(5, 3)), RNG.normal(size=(3, 3)) * 0.5, np.full(3, 0.3)


def updated(c, x, w):
    """A step that writes in place."""
    d = c * 1.0
    d[0] = x[1] * d[1]
    d[1:] += x[:2]
    return np.tanh(d @ w)


def shrunk(s):
    """A loop whose number of iterations depends on values."""
    return lt.while_loop(lambda s: (s**2).sum() > 1.0, lambda s: s * 0.7, s)


STEPS = {
    "cond": lambda w, c, x: lt.cond(x.sum() > 0, lambda c: np.sin(c @ w) + x, lambda c: c / 2, c),
    "switch": lambda w, c, x: lt.switch(1, [lambda c: c, lambda c: np.tanh(c @ w) + x], c),
    "while_loop": lambda w, c, x: shrunk(c @ w + x),
    "fori_loop": lambda w, c, x: lt.fori_loop(0, 3, lambda i, s: np.tanh(s @ w) + x * i, c),
    "scan": lambda w, c, x: lt.scan(lambda a, b: (np.sin(a @ w) * b, None), c, x)[0],
    "checkpoint": lambda w, c, x: lt.checkpoint(lambda c: np.tanh(c @ w) + x)(c),
    "map": lambda w, c, x: lt.map(lambda row: np.tanh(row @ c), w) + x,
    "reduce": lambda w, c, x: np.tanh(c @ w) + lt.reduce(lambda a, b: a + b + a * b, 0.0, x * c),
    "updates": lambda w, c, x: updated(c, x, w),
    "linalg": lambda w, c, x: np.linalg.solve(w @ w.T + np.eye(3) * 2, c) + x,
    "stop_gradient": lambda w, c, x: lt.stop_gradient(c) @ w + x * c,
    "sort": lambda w, c, x: np.sort(c @ w) + x,
    "complex": lambda w, c, x: ((c @ w + 1j * x) ** 2).real * 0.3 + abs(c + 1j),
    "places": lambda w, c, x: np.take(c @ w, np.argsort(x)) + x * c.argmax(),
    "where": lambda w, c, x: np.where(c > 0, np.sqrt(abs(c) + 1e-3), c @ w) + x,
}


def looped(step, w, c, xs):
    """The Python loop."""
    total = 0.0
    for x in xs:
        total = total + c.sum()
        c = step(w, c, x)
    return (c**2).sum() + total


def scanned(step, w, c, xs, every=None):
    """The same as one bind."""
    c, sums = lt.scan(lambda c, x: (step(w, c, x), c.sum()), c, xs, checkpoint_every=every)
    return (c**2).sum() + sums.sum()


def assert_alike(found, expected):
    """Two tuples of arrays, to rounding."""
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@in_one_test
@pytest.mark.parametrize("name", STEPS)
def test_derivatives_and_batches_of_any_step_agree_with_the_loop(name):
    args, every = (W, START, XS), (0, 1, 2)

    def loop(*args):
        return looped(STEPS[name], *args)

    def scan(*args):
        return scanned(STEPS[name], *args)

    value, gradient = lt.value_and_grad(loop, every)(*args)
    found = lt.value_and_grad(scan, every)(*args)
    np.testing.assert_allclose(found[0], value, rtol=1e-12)
    assert_alike(found[1], gradient)
    assert_alike(lt.jvp(scan, args, args), lt.jvp(loop, args, args))
    assert_alike(lt.jit(lt.grad(scan, every))(*args), gradient)
    segments = lt.grad(lambda *args: scanned(STEPS[name], *args, every=2), every)
    assert_alike(segments(*args), gradient)
    batch = lt.vmap(lt.grad(scan, every), (None, None, 0))(W, START, np.stack([XS, XS / 2]))
    assert_alike([ct[0] for ct in batch], gradient)
    assert_alike([ct[1] for ct in batch], lt.grad(loop, every)(W, START, XS / 2))


# ---- compared with JAX ----


def lstm(np, scan, p, xs):
    """A cell with four gates."""

    def step(carry, x):
        h, s = carry
        z = x @ p["w"] + h @ p["u"] + p["b"]
        gates = [1 / (1 + np.exp(-z[3 * k : 3 * k + 3])) for k in range(3)]
        s = gates[1] * s + gates[0] * np.tanh(z[9:])
        return (gates[2] * np.tanh(s), s), h

    (h, s), hs = scan(step, (np.zeros(3), np.zeros(3)), xs)
    return (hs**2).sum() + (h * s).sum()


def kalman(np, scan, p, xs):
    """A filter: solves, transposes, and a pytree of results."""

    def step(carry, x):
        m, cov = carry
        gain = np.linalg.solve(cov + np.eye(2) / 2, cov).T
        m = m + gain @ (x[:2] - m)
        return (m, (np.eye(2) - gain) @ cov + 0.1 * np.eye(2)), {"m": m, "t": np.trace(cov)}

    (_, cov), ys = scan(step, (np.zeros(2), np.eye(2)), xs, reverse=True)
    return (ys["m"] ** 2).sum() + ys["t"].sum() + cov.sum()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [lstm, kalman])
def test_scans_agree_with_jax(model):
    jax = pytest.importorskip("jax")
    jnp = importlib.import_module("jax.numpy")
    sizes = {"b": (12,), "u": (3, 12), "w": (3, 12)}  # JAX sorts them
    args = {k: RNG.normal(size=n) * 0.4 for k, n in sizes.items()}, XS
    jax.config.update("jax_enable_x64", True)

    def theirs(p, xs):
        return model(jnp, jax.lax.scan, p, xs)

    expected = jax.grad(theirs, (0, 1))(*args)
    hessian = jax.hessian(theirs, 1)(*args)
    gradient = lt.grad(lambda p, xs: model(np, lt.scan, p, xs), (0, 1))(*args)
    assert_alike([*gradient[0].values(), gradient[1]], [*expected[0].values(), expected[1]])
    assert_alike([lt.hessian(lambda xs: model(np, lt.scan, args[0], xs))(XS)], [hessian])
