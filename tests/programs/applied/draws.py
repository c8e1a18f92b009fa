"""Random numbers from generators in objects, dicts and lists, and Markov chains."""

import itertools
import random
from functools import singledispatch

import numpy as np

from tests.programs.table import program


class Dice:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def roll(self, n):
        return self.rng.integers(1, 7, size=n)


@program(lambda rng: (int(rng.integers(99)), rng.normal(size=3)), smooth=1, branches=True)
def generators_in_objects(seed, x):
    """Dice that keep a generator."""
    d = Dice(seed)
    return d.roll(3) * x + d.roll(3).sum()


@program(
    lambda rng: (
        {"a": np.random.default_rng(int(rng.integers(99))), "b": [np.random.RandomState(3), 2]},
        rng.normal(size=3),
    ),
    smooth=1,
)
def generators_in_containers(rngs, x):
    """Generators in a dict and in a list."""
    a = rngs["a"].normal(size=3)
    b = rngs["b"][0].uniform(size=3)
    return a * x + b, rngs["a"].permutation(3)


@program(lambda rng: (int(rng.integers(99)), float(rng.normal())), smooth=1, branches=True)
def spawned_generators(seed, s):
    """Generators of spawned seeds."""
    ss = np.random.SeedSequence(seed)
    gens = [np.random.default_rng(c) for c in ss.spawn(3)]
    return np.array([g.normal() * s for g in gens])


@program(lambda rng: (int(rng.integers(99)), float(rng.normal())), smooth=1, branches=True)
def python_random(seed, s):
    """Numbers of Python's own generator."""
    rnd = random.Random(seed)
    xs = [rnd.gauss(s, 1) for _ in range(4)]
    rnd.shuffle(xs)
    return xs, rnd.randint(0, 9), rnd.choice("abc"), rnd.sample(range(10), 3)


@program(
    lambda rng: (np.random.default_rng(int(rng.integers(99))), rng.normal(size=(6, 2))), smooth=1
)
def minibatches(rng, X):
    """Descent on shuffled batches; the data are shuffled too."""
    w = np.zeros(2)
    for epoch in range(2):
        order = rng.permutation(len(X))
        for batch in np.array_split(order, 3):
            xb = X[batch]
            w -= 0.1 * xb.T @ (xb @ w - 1) / len(batch)
    rng.shuffle(X)
    return w, X.copy()


class MCMC:
    def __init__(self, logp, step=0.5, rng=None):
        self.logp, self.step, self.rng = (
            logp,
            step,
            rng if rng is not None else np.random.default_rng(0),
        )
        self.accepted = 0

    def __iter__(self):
        return self

    def start(self, x):
        self.x, self.lp = np.asarray(x, dtype=float), self.logp(x)
        return self

    def __next__(self):
        prop = self.x + self.step * self.rng.standard_normal(self.x.shape)
        lp = self.logp(prop)
        if np.log(self.rng.random()) < lp - self.lp:
            self.x, self.lp = prop, lp
            self.accepted += 1
        return self.x


@program(
    lambda rng: (
        rng.normal(size=2),
        float(rng.uniform(0.5, 2)),
        np.random.default_rng(int(rng.integers(9))),
    ),
    branches=True,
)
def metropolis_iterator(x0, scale, rng):
    """A Markov chain as an iterator."""
    chain = MCMC(lambda v: -0.5 * np.sum((v / scale) ** 2), rng=rng).start(x0)
    samples = np.array(list(itertools.islice(chain, 8)))
    return samples.mean(axis=0), chain.accepted


@program(lambda rng: (rng.normal(size=3), int(rng.integers(99))), smooth=0, branches=True)
def hamiltonian_mc(q0, seed):
    """Hamiltonian Monte Carlo."""
    rng = np.random.default_rng(seed)
    U, dU = (lambda q: 0.5 * q @ q), (lambda q: q)
    q, out = q0, []
    for _ in range(3):
        p = rng.normal(size=3)
        cur = U(q) + 0.5 * p @ p
        qn, pn = q.copy(), p - 0.05 * dU(q)
        for i in range(4):
            qn = qn + 0.1 * pn
            if i < 3:
                pn = pn - 0.1 * dU(qn)
        pn = -(pn - 0.05 * dU(qn))
        if rng.uniform() < np.exp(cur - U(qn) - 0.5 * pn @ pn):
            q = qn
        out.append(q)
    return np.stack(out)


@program(lambda rng: (rng.normal(size=8), int(rng.integers(20))), smooth=0, branches=True)
def gibbs_slice(y, seed):
    """Gibbs sampling with a legacy generator."""
    rng = np.random.RandomState(seed)
    mu, tau, keep = 0.0, 1.0, []
    for it in range(4):
        mu = rng.normal(y.mean(), 1 / np.sqrt(tau * len(y)))
        tau = rng.gamma(2 + len(y) / 2, 1 / (1 + 0.5 * ((y - mu) ** 2).sum()))
        keep.append((mu, tau))
    return np.array(keep)


@program(lambda rng: (rng.normal(size=10), int(rng.integers(20))), smooth=0, branches=True)
def bootstrap(y, seed):
    """An interval by the bootstrap, with its text."""
    rng = np.random.default_rng(seed)
    stats = [np.median(rng.choice(y, size=len(y), replace=True)) for _ in range(5)]
    lo, hi = np.percentile(stats, [2.5, 97.5])
    return lo, hi, f"[{lo:.3f}, {hi:.3f}]"


@singledispatch
def size_of(v):
    return 0


@size_of.register(np.ndarray)
def _(v):
    return v.size


@size_of.register(list)
def _(v):
    return sum(size_of(u) for u in v)


@size_of.register
def _(v: float):
    return 1
