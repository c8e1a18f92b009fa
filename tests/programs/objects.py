"""Objects of users: operator overloading, iterators, generators, caches, exceptions as control."""

import functools
import itertools
import math
import operator
import statistics
from collections import ChainMap, Counter, OrderedDict, deque
from dataclasses import asdict, dataclass

import numpy as np

from tests.programs.table import program

TEMPLATE = np.arange(16.0).reshape(4, 4)


class Dual:
    """A number with a derivative."""

    def __init__(self, value, slope=0.0):
        self.value, self.slope = value, slope

    def __add__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        slope = self.value * other.slope + self.slope * other.value
        return Dual(self.value * other.value, slope)

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, n):
        return Dual(self.value**n, n * self.value ** (n - 1) * self.slope)

    def sin(self):
        """The sine."""
        return Dual(math.sin(self.value), self.slope * math.cos(self.value))


@program(lambda rng: (rng.normal(size=2),), smooth=0)
def dual_numbers(x):
    """A polynomial and a sine with their derivatives."""
    v = Dual(x[0], 1.0)
    w = 3 * v * v + v.sin() * x[1] + 2.0 + v**3
    return w.value, w.slope


class Node:
    """A number of a graph that remembers how to send its gradient back."""

    def __init__(self, data, parents=()):
        self.data, self.parents, self.grad = data, parents, 0.0
        self.send = lambda: None

    def __add__(self, other):
        other = other if isinstance(other, Node) else Node(other)
        out = Node(self.data + other.data, (self, other))

        def send():
            self.grad += out.grad
            other.grad += out.grad

        out.send = send
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Node) else Node(other)
        out = Node(self.data * other.data, (self, other))

        def send():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out.send = send
        return out

    def tanh(self):
        """The hyperbolic tangent."""
        out = Node(math.tanh(self.data), (self,))

        def send():
            self.grad += (1 - out.data**2) * out.grad

        out.send = send
        return out

    def backward(self):
        """Send gradients to all numbers on which this one depends."""
        order, seen = [], set()

        def visit(node):
            if node not in seen:
                seen.add(node)
                for parent in node.parents:
                    visit(parent)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            node.send()


@program(lambda rng: (rng.normal(size=3),), smooth=0)
def scalar_engine(x):
    """A neuron by an engine of scalars, with its gradients."""
    w, b, v = map(Node, x)
    out = (w * v + b).tanh() * 2.0 + w
    out.backward()
    return out.data, [node.grad for node in (w, b, v)]


class Pairs:
    """An iterator over neighbours."""

    def __init__(self, values):
        self.values, self.at = values, 0

    def __iter__(self):
        return self

    def __next__(self):
        self.at += 1
        if self.at >= len(self.values):
            raise StopIteration
        return self.values[self.at - 1], self.values[self.at]


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def iterators(x):
    """Sums over neighbours by an iterator of the user's, itertools and zip."""
    own = sum(a * b for a, b in Pairs(x))
    pairs = [b - a for a, b in itertools.pairwise(x)]
    products = list(itertools.accumulate(x, operator.mul))
    return own, np.array(pairs), products[-1], list(itertools.starmap(math.hypot, zip(x, x[1:])))


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def running_mean(x):
    """Means of what a generator was sent, and of a window."""

    def averager():
        total, count, mean = 0.0, 0, None
        while True:
            total += yield mean
            count += 1
            mean = total / count

    mean = averager()
    next(mean)
    window, smooth = deque(maxlen=3), []
    for v in x:
        window.append(v)
        smooth.append(sum(window) / len(window))
    return [mean.send(v) for v in x], np.asarray(smooth)


@dataclass
class Settings:
    """Settings of a descent."""

    rate: float
    momentum: float = 0.9
    name: str = "sgd"


@program(lambda rng: (rng.normal(size=4), rng.uniform(0.01, 0.1)), smooth=0)
def layered_settings(w, rate):
    """A descent whose settings come from a dataclass and a chain of dicts."""
    options = ChainMap({"rate": rate}, asdict(Settings(0.5)))
    velocity, history = np.zeros_like(w), OrderedDict()
    for step in range(3):
        velocity = options["momentum"] * velocity - options["rate"] * (2 * w + np.cos(w))
        w = w + velocity
        history[f"step {step}"] = np.linalg.norm(w)
    return w, history


class Found(Exception):
    """Carries a value out of loops."""

    def __init__(self, value):
        super().__init__()
        self.value = value


@program(lambda rng: (rng.normal(size=(3, 3)),), smooth=0)
def exceptions_as_exits(a):
    """A value from within loops, an index out of range, a factor that does not exist."""
    try:
        for i, row in enumerate(a):
            if i == 2:
                raise Found(row.sum())
        total = 0.0
    except Found as found:
        total = found.value
    rows = []
    for i in range(4):
        try:
            rows.append(a[i])
        except IndexError:
            rows.append(a[i - 3] * 0.5)
    try:
        factor = np.linalg.cholesky(a - 100 * np.eye(3))
    except np.linalg.LinAlgError:
        factor = np.linalg.cholesky(a @ a.T + np.eye(3))
    return total, np.array(rows), factor


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def cached_recursion(x):
    """Bernstein polynomials from cached binomials, and a recurrence with lru_cache."""
    known = {}

    def choose(n, k):
        if (n, k) not in known:
            known[n, k] = 1 if k in (0, n) else choose(n - 1, k - 1) + choose(n - 1, k)
        return known[n, k]

    @functools.lru_cache(maxsize=None)
    def term(n):
        return x[n] if n < 2 else term(n - 1) * 0.5 + term(n - 2)

    t = np.linspace(0, 1, 5)
    curve = sum(choose(5, i) * t**i * (1 - t) ** (5 - i) * x[i] for i in range(6))
    return curve, term(9)


@program(lambda rng: (rng.normal(size=3),), smooth=0)
def commands(x):
    """A list of commands, told apart by match."""

    def run(command, value):
        match command:
            case ("scale", factor):
                return value * factor
            case {"op": "add", "with": other}:
                return value + other
            case [first, *rest]:
                return value * x[first] + len(rest)
            case str():
                return value**2

    script = [("scale", 2.0), {"op": "add", "with": x[0]}, [1, 0, 2], "square"]
    return functools.reduce(lambda value, command: run(command, value), script, x)


@program(lambda rng: (rng.normal(size=4), rng.normal()), smooth=0)
def template_matrix(v, s):
    """Copies of a constant matrix, with parts that are written."""
    a, b = TEMPLATE.copy(), TEMPLATE * 0.5
    a[0] = v
    a[:, 1] += v
    a[2, 2] = s
    b[1:, 0] = v[1:] ** 2
    b -= v
    return a @ b


@program(lambda rng: (rng.normal(size=7),), smooth=0, branches=True)
def report(x):
    """Python's statistics, and lines of a log."""
    lines = []
    mean, spread = statistics.fmean(x), statistics.stdev(x)
    for i, v in enumerate(x):
        if i % 3 == 0:
            print(f"{i}: {v:.2f} of {mean:.3f}", end="\r")
            lines.append(f"row {i}")
    return mean, spread, statistics.median(x), len(lines)


@program(lambda rng: (rng.integers(0, 4, 9), rng.normal(size=4)), smooth=1, branches=True)
def word_counts(words, weights):
    """Counts of words as a dict, and a weighted sum over them."""
    counts = Counter(words.tolist())
    return dict(counts), sum(weights[word] * n for word, n in sorted(counts.items()))
