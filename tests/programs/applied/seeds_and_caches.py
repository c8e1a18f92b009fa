"""Programs with seeds of their own, caches in the module, queues, and options in a namespace."""

import random
from argparse import Namespace
from collections import deque

import numpy as np

from tests.programs.table import program

RULES: dict = {}


@program(lambda rng: (rng.normal(size=(9, 2)), rng.normal(size=9), 3), smooth=0, branches=True)
def shuffled_descent(X, y, seed):
    """Stochastic gradient descent over batches in a random order, with the global generator."""
    np.random.seed(seed)
    w = 0.1 * np.random.randn(X.shape[1])
    for _ in range(2):
        order = np.random.permutation(len(X))
        for start in range(0, len(X), 4):
            rows = order[start : start + 4]
            residual = X[rows] @ w - y[rows]
            w -= 0.05 * X[rows].T @ residual / len(rows)
    return w


@program(lambda rng: (rng.uniform(0.2, 0.8, size=3),), branches=True)
def upper_confidence(odds):
    """A bandit that pulls the arm with the highest upper confidence bound."""
    np.random.seed(0)
    pulls, wins, history = np.ones(3), (np.random.rand(3) < odds).astype(float), []
    for t in range(3, 12):
        arm = int(np.argmax(wins / pulls + np.sqrt(2 * np.log(t) / pulls)))
        wins[arm] += float(np.random.rand() < odds[arm])
        pulls[arm] += 1
        history.append(arm)
    return pulls, wins, history


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def shuffled_teams(scores):
    """Two teams that Python's generator draws, with a seed."""
    random.seed("teams")
    players = list(range(len(scores)))
    random.shuffle(players)
    bonus = random.uniform(0, 1)
    return scores[players[:3]].sum() + bonus, scores[players[3:]].sum(), players


def legendre_rule(n):
    """The points and weights of Gauss's quadrature, computed once."""
    if n not in RULES:
        RULES[n] = np.polynomial.legendre.leggauss(n)
    return RULES[n]


@program(lambda rng: (rng.uniform(0.5, 1.5), 2 + rng.uniform(), 5), smooth=1)
def gauss_quadrature(a, b, n):
    """The integral of a bump from a to b, with rules in a global table."""
    points, weights = legendre_rule(n)
    t = 0.5 * (b - a) * points + 0.5 * (a + b)
    return 0.5 * (b - a) * np.sum(weights * np.exp(-t * t) * np.sin(3 * t))


@program(lambda rng: (rng.integers(0, 3, size=12), rng.normal(size=12)), branches=True)
def statistics_of_runs(labels, values):
    """The sum, maximum and length of each run of equal labels."""
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    lengths = np.diff(np.append(starts, len(labels)))
    pairs = np.add.reduceat(values, np.arange(0, len(values), 2))
    sums, tops = np.add.reduceat(values, starts), np.maximum.reduceat(values, starts)
    return sums, tops, lengths, labels[starts], pairs


class Monitor:
    """Keeps the latest values of a signal."""

    def __init__(self, size):
        self.recent, self.alarms = deque(maxlen=size), []

    def add(self, value):
        """Take a value; note whether it lies far outside of the latest ones."""
        if len(self.recent) > 2:
            low, high = np.percentile(self.recent, [10, 90])
            self.alarms.append(np.abs(value - np.median(self.recent)) > 2 * (high - low))
        self.recent.append(value)


@program(lambda rng: (rng.normal(size=10),))
def signal_monitor(signal):
    """A monitor with a queue, of which NumPy's functions make arrays."""
    monitor = Monitor(4)
    for value in signal:
        monitor.add(value)
    spread = np.std(monitor.recent), np.ptp(monitor.recent), np.dot(monitor.recent, [1, 2, 3, 4])
    return np.array(monitor.alarms), spread, np.trapezoid(monitor.recent)


@program(lambda rng: (rng.normal(size=4),), branches=True)
def table_of_signs(x):
    """Comparisons in a text."""
    signs = (x > 0).tolist()
    return f"{signs} {signs.count(True)}", {"first": signs[0], "any": any(signs)}


@program(
    lambda rng: (
        rng.normal(size=(6, 2)),
        rng.normal(size=6),
        Namespace(rate=0.05 + 0.01 * rng.uniform(), epochs=3, penalty="l2", verbose=False),
    ),
    smooth=0,
)
def training_with_options(X, y, options):
    """Regression whose options stand in a namespace, as a command line gives them."""
    w, losses = np.zeros(X.shape[1]), []
    for epoch in range(options.epochs):
        residual = X @ w - y
        gradient = 2 * X.T @ residual / len(y)
        gradient += 0.1 * (w if options.penalty == "l2" else np.sign(w))
        losses.append(np.mean(residual**2))
        w = w - options.rate * gradient
        if options.verbose:
            print(epoch, losses[-1])
    return w, losses


def running_mean():
    """Yields the mean of what was sent to it."""
    total, count, mean = 0.0, 0, None
    while True:
        total += yield mean
        count += 1
        mean = total / count


@program(lambda rng: (rng.normal(size=5),), smooth=0)
def means_by_coroutine(x):
    """Running means, by a generator to which the values are sent."""
    means = running_mean()
    next(means)
    found = [means.send(value) for value in x]
    means.close()
    return found


@program(lambda rng: (rng.choice([0.0, 1.0]) * rng.uniform(0.5, 1, size=3),), branches=True)
def shares_or_equal_parts(x):
    """Shares of a sum; equal parts if the sum is zero, which NumPy reports as an exception."""
    with np.errstate(divide="raise", invalid="raise"):
        try:
            return x / x.sum(), True
        except FloatingPointError:
            return np.full_like(x, 1 / len(x)), False
