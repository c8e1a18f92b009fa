"""Iterators, vectorised functions, records, polynomials, assertions and caches of NumPy."""

import logging
from functools import lru_cache, partial

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.polynomial import Chebyshev, Legendre, Polynomial
from numpy.testing import (
    assert_allclose,
    assert_almost_equal,
    assert_array_almost_equal,
    assert_array_equal,
    assert_array_less,
    assert_equal,
    assert_raises,
)

from tests.programs.table import program

logger = logging.getLogger(__name__)


@program(lambda rng: (rng.normal(size=(3, 4)),), smooth=0, branches=True)
def nditer_clip(x):
    """Two arrays in one iterator."""
    out = np.empty_like(x)
    with np.nditer([x, out], op_flags=[["readonly"], ["writeonly"]]) as it:
        for a, b in it:
            b[...] = a * a if a > 0 else 0.1 * a
    return out


@program(lambda rng: (rng.normal(size=(3, 4)),), smooth=0, branches=True)
def nditer_multi_index(x):
    """An iterator with its place."""
    it = np.nditer(x, flags=["multi_index"])
    total, best, where = 0.0, -np.inf, None
    while not it.finished:
        v = it[0]
        total += v * (it.multi_index[0] + 1)
        if v > best:
            best, where = v.copy(), it.multi_index
        it.iternext()
    return total, best, where


@program(lambda rng: (rng.normal(size=(2, 3)),), smooth=0)
def nditer_readwrite(x):
    """Elements changed in place."""
    x = x.copy()
    for v in np.nditer(x, op_flags=["readwrite"]):
        v[...] = 2 * v
    acc = 0
    for (i, j), v in np.ndenumerate(x):
        acc += v * i - j
    return x, acc


@program(lambda rng: (rng.normal(size=5), 2.0), smooth=0, branches=True)
def vectorize_variants(x, c):
    """Vectorised functions with signatures and settings."""
    relu = np.vectorize(lambda v, k: v * k if v > 0 else 0.0, otypes=[float])

    @np.vectorize
    def step(v):
        """heaviside"""
        if v < -0.5:
            return -1
        elif v > 0.5:
            return 1
        return 0

    norm = np.vectorize(np.linalg.norm, signature="(n)->()")
    conv = np.vectorize(np.convolve, signature="(n),(m)->(k)")
    poly = np.vectorize(lambda p, v: sum(a * v**i for i, a in enumerate(p)), excluded=[0])
    return relu(x, c), step(x), norm(x.reshape(1, 5)), conv(np.eye(3), x[:2]), poly([1.0, 2.0], x)


@program(lambda rng: (rng.normal(size=5), rng.integers(0, 9, 5)), branches=True)
def structured_records(height, age):
    """Records with a nested field."""
    people = np.zeros(5, dtype=[("age", "i4"), ("height", "f8"), ("vec", "f8", (2,))])
    people["age"], people["height"] = age, height
    people["vec"][:, 0] = height * 2
    order = np.argsort(people["height"])
    tall = people["height"] > 0
    return (
        people["age"][order],
        people["vec"].sum(axis=0),
        people["age"][tall].sum(),
        people["height"].mean(),
    )


@program(lambda rng: (rng.normal(size=6),))
def structured_sort(v):
    """Records made of tuples, sorted by a field."""
    data = np.array([(i, x) for i, x in enumerate(v)], dtype=[("id", int), ("score", float)])
    data = np.sort(data, order="score")[::-1]
    return data["id"], data["score"]


@program(lambda rng: (rng.normal(size=4), rng.uniform(-1, 1)), smooth=0)
def polynomial_classes(c, x):
    """Polynomial, Chebyshev and Legendre series."""
    p = Polynomial(c)
    q = Polynomial([1.0, 2.0])
    d = (p * q - p.deriv()).trim()
    ch = Chebyshev.fit(np.linspace(-1, 1, 4), c, 2)
    L = Legendre(c)
    return (
        p(x),
        d.coef,
        p.integ()(1.0),
        ch.convert().coef,
        L(x),
        divmod(p, q)[1].coef,
        Polynomial.fromroots(c)(x),
    )


@program(lambda rng: (rng.normal(size=3),), branches=True)
def polynomial_roots(c):
    """The older class of polynomials."""
    p = np.poly1d(c)
    return p(2.0), p.deriv().c, np.sort_complex(p.r), (p * p).coeffs, p.order


@program(lambda rng: (rng.normal(size=(3, 3)),), smooth=0)
def testing_inside(A):
    """Decompositions checked by numpy.testing."""
    S = A @ A.T + np.eye(3)
    L = np.linalg.cholesky(S)
    assert_allclose(L @ L.T, S, atol=1e-8)
    w, V = np.linalg.eigh(S)
    assert_almost_equal(V @ np.diag(w) @ V.T, S)
    assert_array_almost_equal(V.T @ V, np.eye(3))
    assert_array_less(0, w)
    assert_array_equal(np.sort(w), w)
    assert_equal(S.shape, (3, 3))
    with assert_raises(np.linalg.LinAlgError):
        np.linalg.cholesky(-np.eye(3))
    assert np.allclose(np.linalg.inv(S) @ S, np.eye(3))
    return L, w.prod()


@program(lambda rng: (rng.normal(size=(4, 5)),), smooth=0)
def strided_blocks(x):
    """Windows made by strides."""
    w = as_strided(x, shape=(3, 4, 2, 2), strides=x.strides * 2)
    return w.max(axis=(2, 3)), np.einsum("ijkl,kl->ij", w, np.array([[1.0, -1], [2, 0.5]]))


@program(lambda rng: (rng.normal(size=5),), smooth=0, branches=True)
def cached_by_bytes(x):
    """A cache with the bytes of arrays as keys."""
    cache = {}

    def f(v):
        key = v.tobytes()
        if key not in cache:
            cache[key] = (v**2).sum()
        return cache[key]

    return f(x) + f(x.copy()) + f(x * 2), len(cache)


@program(lambda rng: (int(rng.integers(4, 9)), float(rng.uniform(0.5, 2))), smooth=1, branches=True)
def cached_recursion(n, x):
    """Hermite polynomials with lru_cache."""

    @lru_cache(maxsize=None)
    def hermite(k):
        if k == 0:
            return 1.0
        if k == 1:
            return 2 * x
        return 2 * x * hermite(k - 1) - 2 * (k - 1) * hermite(k - 2)

    val = hermite(n)
    return val, hermite.cache_info().misses


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def welford_generator(x):
    """A running variance in a coroutine."""

    def running():
        n, mean, m2 = 0, 0.0, 0.0
        while True:
            v = yield (mean, m2 / n if n else 0.0)
            n += 1
            d = v - mean
            mean += d / n
            m2 += d * (v - mean)

    g = running()
    next(g)
    out = [g.send(v) for v in x]
    g.close()
    return np.array(out)


class Pipeline:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, x):
        for name, f in self.steps:
            x = f(x)
            logger.info("%s: mean %.3f max %s", name, np.mean(x), x.max())
        return x

    def __or__(self, other):
        return Pipeline(*self.steps, other)


@program(lambda rng: (rng.normal(size=(3, 4)),), smooth=0)
def pipeline(x):
    """Named steps joined by an operator."""
    p = (
        Pipeline(("center", lambda v: v - v.mean(axis=0)))
        | ("scale", lambda v: v / v.std(axis=0, ddof=1))
        | ("act", partial(np.clip, a_min=-1, a_max=None))
    )
    return p(x)
