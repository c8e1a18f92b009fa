"""Course work: texts, caught errors, cross-validation, decimal numbers, rotations of a window."""

import functools
import itertools
import math
import re
from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction

import numpy as np

from tests.programs.table import program


@program(lambda rng: (rng.normal(size=3), "2 x + 3 y - z"), smooth=0)
def equation_from_a_text(x, text):
    """The value of a linear form that is written as a text."""
    terms = re.findall(r"([+-]?)\s*(\d*)\s*([xyz])", text)
    factors = [float((sign + (digits or "1")).strip()) for sign, digits, _ in terms]
    return sum(f * x["xyz".index(name)] for f, (_, _, name) in zip(factors, terms, strict=True))


@program(lambda rng: (rng.uniform(1, 2, size=3), "1.10"), smooth=0)
def prices_with_tax(prices, rate):
    """Prices with a tax that is a decimal number, and with shares that are fractions."""
    shares = [Fraction(1, n + 2) for n in range(3)]
    tax = Decimal(rate) * 2 - Decimal("0.15")
    return prices * float(tax), sum(float(s) * p for s, p in zip(shares, prices, strict=True))


def retried(times):
    """A decorator that calls a function again if it raises ValueError."""

    def decorate(f):
        @functools.wraps(f)
        def call(x):
            for attempt in range(times):
                try:
                    return f(x, attempt)
                except (ValueError, ZeroDivisionError):
                    continue
            return 0 * x

        return call

    return decorate


@program(lambda rng: (rng.normal(size=3),), smooth=0)
@retried(4)
def third_attempt(x, attempt=0):
    """A function that fails twice."""
    if attempt < 2:
        raise ValueError(attempt)
    return x * attempt


@program(lambda rng: (rng.normal(size=(9, 2)), rng.normal(size=9)), smooth=1)
def cross_validation(x, y):
    """Errors of ridge regression on three folds that a seeded generator makes."""
    order, errors = np.arange(9), []
    np.random.RandomState(0).shuffle(order)
    for fold in np.array_split(order, 3):
        rest = np.setdiff1d(order, fold)
        w = np.linalg.solve(x[rest].T @ x[rest] + 0.1 * np.eye(2), x[rest].T @ y[rest])
        errors.append(((x[fold] @ w - y[fold]) ** 2).mean())
    return np.mean(errors), np.std(errors)


@program(lambda rng: ("GCATGC", rng.uniform(1.1, 1.9)), smooth=1, branches=True)
def alignment_score(sequence, gap):
    """Needleman and Wunsch's score against a known sequence."""
    known = "GATTACA"
    score = np.zeros((len(sequence) + 1, len(known) + 1))
    score[:, 0], score[0] = -gap * np.arange(len(sequence) + 1), -gap * np.arange(len(known) + 1)
    for (i, a), (j, b) in itertools.product(enumerate(sequence, 1), enumerate(known, 1)):
        match = score[i - 1, j - 1] + (1 if a == b else -1)
        score[i, j] = max(match, score[i - 1, j] - gap, score[i, j - 1] - gap)
    return score[-1, -1]


@program(lambda rng: (rng.normal(size=8), np.array([0, 2, 1, 0, 1, 2, 0, 1])), smooth=0)
def grouped_means(x, keys):
    """Means by key, sorted by key."""
    groups = defaultdict(list)
    for key, value in zip(keys, x, strict=True):
        groups[int(key)].append(value)
    return {key: np.mean(values) for key, values in sorted(groups.items())}, Counter(keys.tolist())[
        0
    ]


@program(lambda rng: (rng.normal(size=4),), smooth=0)
def errors_as_control_flow(x):
    """Values that exceptions carry, and a chain of causes."""

    class Found(Exception):
        """Carries a result."""

    def search(value, depth):
        if depth == 0:
            raise Found("found", value)
        search(value * 1.5, depth - 1)

    try:
        search(x, 3)
    except Found as found:
        result = found.args[1]
    try:
        try:
            {}["key"]
        except KeyError as error:
            raise ValueError(result.sum()) from error
    except ValueError as error:
        return result, error.args[0], type(error.__cause__).__name__


@program(lambda rng: (rng.normal(size=5),), smooth=0)
def matched_shapes(x):
    """A match statement on nested values."""

    def size(value):
        match value:
            case (a, b, *_):
                return a * b
            case {"scale": scale}:
                return scale
            case np.ndarray(shape=(n,)):
                return value.sum() * n
            case float() | int():
                return value
        return 0.0

    return size((x[0], x[1], 3)), size({"scale": x[2]}), size(x), size(float(x[3])), size(None)


@program(lambda rng: (rng.normal(size=32),), smooth=0)
def spectrum_by_recursion(x):
    """The absolute values of a discrete Fourier transform by halves."""

    def transform(a):
        if len(a) == 1:
            return a
        even, odd = transform(a[::2]), transform(a[1::2])
        turned = np.exp(-2j * np.pi * np.arange(len(a) // 2) / len(a)) * odd
        return np.concatenate([even + turned, even - turned])

    return np.abs(transform(x.astype(complex)))


@program(
    lambda rng: (rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)),
    smooth=1,
    branches=True,
)
def ray_and_triangle(triangle, origin, direction):
    """Where a ray meets a triangle."""
    direction = direction / np.linalg.norm(direction)
    e1, e2 = triangle[1] - triangle[0], triangle[2] - triangle[0]
    h = np.cross(direction, e2)
    a = e1 @ h
    if abs(a) < 1e-9:
        return math.inf
    s = origin - triangle[0]
    u, q = s @ h / a, np.cross(s, e1)
    v, t = direction @ q / a, e2 @ q / a
    return t if 0 <= u <= 1 and v >= 0 and u + v <= 1 else 0 * t
