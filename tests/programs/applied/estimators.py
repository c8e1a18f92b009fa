"""Estimators, layers and optimisers as classes with state."""

import itertools
from collections import Counter, namedtuple

import numpy as np

from tests.programs.table import program


class StandardScaler:
    def __init__(self, *, with_mean=True):
        self.with_mean = with_mean

    def fit(self, X):
        self.mean_ = X.mean(axis=0)
        self.scale_ = np.sqrt(X.var(axis=0))
        self.scale_[self.scale_ == 0.0] = 1.0
        return self

    def transform(self, X):
        return (X - self.mean_) / self.scale_

    def fit_transform(self, X):
        return self.fit(X).transform(X)

    def __repr__(self):
        return f"StandardScaler(with_mean={self.with_mean})"


@program(lambda rng: (rng.normal(size=(8, 3)),), smooth=0)
def scaler(X):
    """Features of mean 0 and variance 1."""
    s = StandardScaler()
    Z = s.fit_transform(X)
    return (Z, s.mean_, repr(s))


class Components:
    def __init__(self, count):
        self.count = count

    def fit(self, X):
        self.centre = X.mean(0)
        _, self.widths, rows = np.linalg.svd(X - self.centre, full_matrices=False)
        heaviest = np.abs(rows).argmax(axis=1)
        rows *= np.sign(rows[range(len(rows)), heaviest])[:, np.newaxis]
        self.rows = rows[: self.count]
        return self

    def __call__(self, X):
        return (X - self.centre) @ self.rows.T


@program(lambda rng: (rng.normal(size=(8, 3)),), smooth=0)
def principal_components(X):
    """Principal components, with the signs of their largest elements."""
    found = Components(2).fit(X)
    return found(X), found.widths**2 / np.sum(found.widths**2)


class KNN:
    def __init__(self, k=3):
        self.k = k

    def fit(self, X, y):
        self.X, self.y = (X, y)
        return self

    def predict(self, Q):
        out = []
        for q in Q:
            d = np.sqrt(((self.X - q) ** 2).sum(1))
            nn = np.argsort(d)[: self.k]
            votes = Counter(self.y[nn].tolist())
            out.append(votes.most_common(1)[0][0])
        return np.array(out)


@program(
    lambda rng: (rng.normal(size=(9, 2)), rng.integers(0, 3, size=9), rng.normal(size=(3, 2))),
    branches=True,
)
def knn(X, y, Q):
    """A vote of the nearest neighbours."""
    return KNN().fit(X, y).predict(Q)


class NormalClasses:
    def fit(self, X, y):
        self.labels = np.unique(y)
        self.means = np.array([X[y == c].mean(axis=0) for c in self.labels])
        self.widths = np.array([X[y == c].std(axis=0) + 1e-3 for c in self.labels])
        self.shares = np.array([np.mean(y == c) for c in self.labels])
        return self

    def scores(self, X):
        z = (X[:, None] - self.means) / self.widths
        return np.log(self.shares) - (z**2 / 2 + np.log(self.widths)).sum(-1)

    def predict(self, X):
        return self.labels[self.scores(X).argmax(axis=1)]


@program(
    lambda rng: (
        rng.normal(size=(9, 2)),
        np.array([0, 1, 2, 0, 1, 2, 0, 1, 2]),
        rng.normal(size=(4, 2)),
    ),
    smooth=0,
)
def naive_bayes(X, y, Q):
    """Normal densities for each class."""
    model = NormalClasses().fit(X, y)
    return model.predict(Q), model.scores(Q)


class Node:
    __slots__ = ("value", "left", "right", "feature", "threshold")

    def __init__(self, **kw):
        for s in self.__slots__:
            setattr(self, s, kw.get(s))


class Tree:
    def __init__(self, max_depth=2):
        self.max_depth = max_depth

    def _best(self, X, y):
        best = (None, None, np.inf)
        for j in range(X.shape[1]):
            for t in np.unique(X[:, j]):
                l = y[X[:, j] <= t]
                r = y[X[:, j] > t]
                if len(l) == 0 or len(r) == 0:
                    continue
                s = l.var() * len(l) + r.var() * len(r)
                if s < best[2]:
                    best = (j, t, s)
        return best

    def build(self, X, y, depth=0):
        if depth == self.max_depth or len(set(y.tolist())) == 1:
            return Node(value=y.mean())
        j, t, _ = self._best(X, y)
        if j is None:
            return Node(value=y.mean())
        m = X[:, j] <= t
        return Node(
            feature=j,
            threshold=t,
            left=self.build(X[m], y[m], depth + 1),
            right=self.build(X[~m], y[~m], depth + 1),
        )

    def one(self, x, n):
        while n.value is None:
            n = n.left if x[n.feature] <= n.threshold else n.right
        return n.value


@program(lambda rng: (rng.normal(size=(6, 2)), rng.normal(size=6)), smooth=1, branches=True)
def regression_tree(X, y):
    """A tree of splits of least variance."""
    t = Tree()
    root = t.build(X, y)
    return np.array([t.one(x, root) for x in X])


State = namedtuple("State", "x P")


class KF:
    def __init__(self, F, H, Q, R):
        self.F, self.H, self.Q, self.R = (F, H, Q, R)

    def __call__(self, s, z):
        x = self.F @ s.x
        P = np.linalg.multi_dot([self.F, s.P, self.F.T]) + self.Q
        if z is not None:
            y = z - self.H @ x
            S = self.H @ P @ self.H.T + self.R
            K = np.linalg.solve(S.T, (P @ self.H.T).T).T
            x = x + K @ y
            P = (np.eye(len(x)) - K @ self.H) @ P
        return s._replace(x=x, P=P)


@program(lambda rng: (rng.normal(size=(4, 1)), float(rng.uniform(0.1, 1))), smooth=0)
def kalman(zs, q):
    """A Kalman filter over an accumulated sequence with a gap."""
    kf = KF(np.array([[1, 0.1], [0, 1]]), np.array([[1.0, 0.0]]), q * np.eye(2), np.array([[0.5]]))
    states = list(
        itertools.accumulate([zs[0], None, *zs[1:]], kf, initial=State(np.zeros(2), np.eye(2)))
    )
    return (np.stack([s.x for s in states]), states[-1].P)


@program(
    lambda rng: (rng.normal(size=(3, 2)), rng.normal(size=(2, 8)), rng.normal(size=(2, 8))),
    smooth=1,
)
def lstm(xs, Wx, Wh):
    """A recurrent network with its states in a dict."""

    def sig(z):
        return 1.0 / (1.0 + np.exp(-z))

    h = np.zeros(2)
    c = np.zeros(2)
    hs = {-1: h}
    cache = []
    for t in range(len(xs)):
        a = xs[t] @ Wx + hs[t - 1] @ Wh
        i, f, o, g = np.split(a, 4)
        c = sig(f) * c + sig(i) * np.tanh(g)
        hs[t] = sig(o) * np.tanh(c)
        cache.append((i, f, o, g))
    return (hs[len(xs) - 1], np.array([hs[k] for k in sorted(hs)]), np.concatenate(cache[-1]))


class Momentum:
    """Steps with a velocity for each array, made at the first step."""

    def __init__(self, rate=0.1, decay=0.9):
        self.rate, self.decay = rate, decay
        self.velocities = {}

    def step(self, arrays, slopes):
        for name, slope in slopes.items():
            velocity = self.velocities.setdefault(name, np.zeros_like(slope))
            velocity *= self.decay
            velocity -= self.rate * slope
            arrays[name] += velocity


@program(lambda rng: ({"W": rng.normal(size=(2, 2)), "b": rng.normal(size=2)},), smooth=0)
def momentum(arrays):
    """Three steps on copies of the arrays."""
    arrays = {name: array.copy() for name, array in arrays.items()}
    steps = Momentum()
    for _ in range(3):
        steps.step(arrays, {name: 2 * array for name, array in arrays.items()})
    return arrays, steps.velocities
