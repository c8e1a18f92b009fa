"""Iterators, mixins, views, texts, exceptions and dates, as NumPy's users combine them."""

import contextlib
import math
from functools import wraps

import numpy as np
from numpy.polynomial import Polynomial, chebyshev, legendre
from numpy.random import PCG64, Generator, SeedSequence

from tests.programs.table import program


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def dates(x):
    """Days and shares of a year as weights."""
    d = np.datetime64("2024-01-29") + np.arange(x.size)
    m = d.astype("datetime64[M]")
    days = (d - m).astype(int) + 1
    w = m == np.datetime64("2024-01")
    yr = (d - d[0]) / np.timedelta64(365, "D")
    return (
        x * days,
        np.where(w, x, 0).sum(),
        (x * np.exp(-0.05 * yr)).sum(),
        str(d[0]),
        np.busday_count("2024-01-01", "2024-02-01") * x[0],
    )


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def polynomials(c):
    """The three kinds of polynomials of NumPy, and a fit."""
    p = np.poly1d(c[:3])
    q = np.poly1d([1.0, c[3]])
    P = Polynomial(c)
    return (
        (p * q).coeffs,
        p(0.5),
        np.polyval(p.deriv(), c),
        P(0.3),
        P.deriv().coef,
        chebyshev.chebval(0.2, c),
        legendre.leggauss(3)[1] @ c[:3],
        np.polyfit(np.arange(6.0), c, 2),
    )


class RingBuffer:
    def __init__(self, n, dtype=float):
        self.b = np.zeros(n, dtype)
        self.i = 0
        self.full = False

    def append(self, v):
        self.b[self.i % len(self.b)] = v
        self.i += 1
        self.full |= self.i >= len(self.b)
        return self

    def __len__(self):
        return min(self.i, len(self.b))

    def __iter__(self):
        return iter(np.roll(self.b, -(self.i % len(self.b))) if self.full else self.b[: self.i])

    def __getitem__(self, k):
        return list(self)[k]

    def __contains__(self, v):
        return any(v == w for w in self)


@program(lambda rng: (rng.normal(size=5),), smooth=0)
def ring(x):
    """A ring buffer with the protocols of a sequence."""
    r = RingBuffer(3)
    [r.append(v) for v in x]
    return (np.array(list(r)), r[-1], len(r), sum(r) / len(r))


class Vec:
    __array_priority__ = 10

    def __init__(self, x, y):
        self.x, self.y = (x, y)

    def __add__(self, o):
        return Vec(self.x + o.x, self.y + o.y)

    def __mul__(self, s):
        return Vec(self.x * s, self.y * s)

    __rmul__ = __mul__

    def __neg__(self):
        return -1 * self

    def __matmul__(self, o):
        return self.x * o.x + self.y * o.y

    def __abs__(self):
        return math.hypot(self.x, self.y)

    def __eq__(self, o):
        return (self.x, self.y) == (o.x, o.y)

    def __hash__(self):
        return hash((self.x, self.y))

    def __iter__(self):
        yield self.x
        yield self.y

    def __bool__(self):
        return bool(abs(self))

    def __format__(self, spec):
        return f"({self.x:{spec}}, {self.y:{spec}})"

    def __array__(self, dtype=None, copy=None):
        return np.array([self.x, self.y], dtype)


@program(lambda rng: (float(rng.normal()), float(rng.normal())), smooth=0)
def vectors(a, b):
    """A class of vectors that NumPy takes for an array."""
    u, v = (Vec(a, b), Vec(b, 1.0))
    w = u * 2 + -v
    return (
        abs(w),
        u @ v,
        [*w],
        np.array(list(u)),
        u == u,
        np.asarray(w),
        np.add(w, 1.0) if False else 0,
        np.linalg.norm(np.array([*w])),
    )


class Quat(np.lib.mixins.NDArrayOperatorsMixin):
    def __init__(self, a):
        self.a = np.asarray(a)

    def __array_ufunc__(self, uf, method, *ins, **kw):
        ins = [i.a if isinstance(i, Quat) else i for i in ins]
        r = getattr(uf, method)(*ins, **kw)
        return Quat(r) if isinstance(r, np.ndarray) else r

    def conj(self):
        return Quat(self.a * np.array([1, -1, -1, -1]))

    def mul(p, q):
        a, b, c, d = p.a
        e, f, g, h = q.a
        return Quat(
            [
                a * e - b * f - c * g - d * h,
                a * f + b * e + c * h - d * g,
                a * g - b * h + c * e + d * f,
                a * h + b * g - c * f + d * e,
            ]
        )

    def rot(self, v):
        return self.mul(Quat(np.r_[0, v])).mul(self.conj()).a[1:]


@program(lambda rng: (rng.normal(size=4), rng.normal(size=3)), smooth=0)
def quaternions(q, v):
    """Quaternions by NumPy's mixin of operators."""
    q = Quat(q / np.linalg.norm(q))
    r = q * 2 + 1
    return (q.rot(v), r.a, np.exp(q).a)


@program(lambda rng: (rng.normal(size=(2, 3)),), smooth=0)
def nditer_program(a):
    """Iterators that read and write elements."""
    out = np.zeros_like(a)
    with np.nditer([a, out], op_flags=[["readonly"], ["writeonly"]]) as it:
        for x, y in it:
            y[...] = 2 * x
    it = np.nditer(a, flags=["multi_index"])
    t = 0.0
    while not it.finished:
        t = t + it[0] * (it.multi_index[1] - it.multi_index[0])
        it.iternext()
    for idx, v in np.ndenumerate(a):
        out[idx] += v**2
    return (out, t)


def slopes_by_differences(f, x, step=1e-4):
    out = np.empty_like(x)
    with np.nditer([x, out], flags=["multi_index"], op_flags=["readwrite"]) as places:
        for here, slope in places:
            start = here.copy()
            here[...] = start + step
            above = f(x)
            here[...] = start - step
            slope[...] = (above - f(x)) / (2 * step)
            here[...] = start
    return out


@program(lambda rng: (rng.normal(size=(2, 2)),), smooth=0)
def differences(x):
    """Slopes of a function, for which elements are moved in place."""
    return slopes_by_differences(lambda w: np.sum(w**2), x.copy())


@program(
    lambda rng: (np.random.default_rng(int(rng.integers(99))), rng.normal(size=4)), smooth=None
)
def generator_methods(rng, x):
    """A generator's ways to reorder."""
    a = rng.permutation(x)
    b = rng.permuted(np.stack([x, x]), axis=1)
    c = rng.choice(x, 2, replace=False)
    d = rng.integers(0, 5, size=3)
    y = x.copy()
    rng.shuffle(y)
    return (
        a,
        b,
        c,
        d,
        y,
        rng.dirichlet([1, 2.0]),
        rng.multinomial(5, [0.2, 0.8]),
    )


@program(lambda rng: (int(rng.integers(0, 99)), rng.normal(size=3)), branches=True)
def seeds(seed, x):
    """Generators from seeds, spawned and imported by name."""

    ss = SeedSequence(seed)
    kids = ss.spawn(2)
    r = [np.random.default_rng(k) for k in kids]
    g = Generator(PCG64(seed))
    rs = np.random.RandomState(seed)
    return (
        x + r[0].normal(size=3),
        r[1].random(),
        g.normal(),
        rs.rand(2),
        np.random.default_rng([seed, 1]).integers(5),
    )


def timed(f):

    @wraps(f)
    def g(*a, **k):
        g.calls += 1
        return f(*a, **k)

    g.calls = 0
    return g


class cached:
    def __init__(self, f):
        self.f = f
        self.memo = {}

    def __call__(self, *a):
        if a not in self.memo:
            self.memo[a] = self.f(*a)
        return self.memo[a]


@program(lambda rng: (rng.normal(size=3), int(rng.integers(2, 5))), smooth=0, branches=True)
def decorated(x, n):
    """Decorators that count and keep results."""

    @timed
    def legendre(k, t):
        if k == 0:
            return np.ones_like(t)
        if k == 1:
            return t
        return ((2 * k - 1) * t * legendre(k - 1, t) - (k - 1) * legendre(k - 2, t)) / k

    fib = cached(lambda k: k if k < 2 else fib(k - 1) + fib(k - 2))
    return (legendre(n, x) * fib(n), legendre.calls)


@program(lambda rng: (rng.normal(size=4),), smooth=0)
def context_state(x):
    """A context manager that scales an array for a while."""
    log = []

    @contextlib.contextmanager
    def scale(a, f):
        old = a.copy()
        a *= f
        try:
            yield a
        finally:
            log.append(a.sum())
            a[...] = old

    b = x * 1.0
    with scale(b, 3.0) as c:
        r = np.exp(-(c**2))
    with contextlib.suppress(ZeroDivisionError):
        r = r / 2
        1 / 0
    return (r, b, np.array(log))


@program(lambda rng: (rng.normal(size=3),), smooth=0)
def views_written(x):
    """Writes through a diagonal, a transpose, a flat iterator and rows."""
    m = np.zeros((3, 3))
    d = m.reshape(-1)[::4]
    d[:] = x
    m.T[0, 1:] = x[1:]
    np.fill_diagonal(m[1:, :2], 7.0)
    f = m.flat
    f[1] = x[0]
    r = m.ravel()
    r += 1
    row, *rest = m
    row *= 2
    a, b = rest
    a[:], b[:] = (b.copy(), a.copy())
    return m


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def exceptions(x):
    """The classes and messages of errors that are caught."""
    errs = []
    for f in (
        lambda: x[7],
        lambda: x.reshape(4, 2),
        lambda: x @ np.ones(3),
        lambda: np.linalg.inv(np.zeros((2, 2))),
        lambda: x.foo,
        lambda: np.concatenate([x, x[None]]),
        lambda: int("a"),
        lambda: x.sum(axis=2),
        lambda: np.zeros(3) + x,
    ):
        try:
            f()
        except Exception as e:
            errs.append((type(e).__name__, str(e)))
    return (x * len(errs), errs)


@program(lambda rng: (rng.normal(size=(3, 3)),))
def inplace_views(A):
    """Writes into an argument through views."""
    d = np.einsum("ii->i", A)
    d += 1
    A[:, 0], A[:, 1] = (A[:, 1].copy(), A[:, 0].copy())
    r = A[1]
    r /= 2
    A.T[2] = 5
    np.fill_diagonal(A, 0, wrap=False)
    v = A.ravel()
    v[0] = 3
    A.flat[4] = 8
    A[np.triu_indices(3, 1)] *= 2
    return (A.trace(), r)
