"""Hazards: decisions of Python that depend on the value of an argument [B2]."""

import itertools
import math
import statistics

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from tests.each_sample import in_one_test

X, Y = np.array([1.0, 2.0, 3.0]), np.array([4.0, -1.0, 2.0])
LONG, SHORT = np.arange(5.0), np.array([1.0])
M = np.array([[1.0, 2.0], [3.0, 4.0]])
N = np.array([2, 0, 1])
S = np.float64(2.0)
GUARD, SHAPE, REFUSED = "GuardError", "ShapeError", "TraceError"


def converging(x):
    y = x
    while abs(y * y - x) > 1e-9:
        y = (y + x / y) / 2
    return y


def first_above(x, limit):
    for i, v in enumerate(x):
        if v > limit:
            return i * x
    return -x


def recursive(x, depth):
    return x if depth == 0 else np.sin(recursive(x, depth - 1)) + depth


def bisect(x):
    low, high = 0.0, 4.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * middle < x else (low, middle)
    return low


def matched(x):
    match len(x):
        case 3:
            return x * 3
        case n:
            return x + n


def swallowing(x):
    try:
        return x * float(x.sum())
    except Exception:
        return x * 0.0


def swallowing_types(x):
    try:
        return x * float(x.sum())
    except (TypeError, ValueError):
        return x * 0.0


def finally_used(x):
    try:
        if x[0] > 0:
            return x * 2
        raise KeyError(1)
    except KeyError:
        return -x
    finally:
        x = None


def asserting(x):
    assert x.sum() > 0, "positive"
    return np.log(x)


def sorted_list(x):
    return np.stack(sorted(x))


def bubble(x):
    rows = list(x)
    for i, j in itertools.combinations(range(len(rows)), 2):
        if rows[i] > rows[j]:
            rows[i], rows[j] = rows[j], rows[i]
    return np.stack(rows)


def walrus(x):
    return total * x if (total := x.sum()) > 3 else x


HAZARDS = {
    "if": (lambda x: x if x.sum() > 0 else -x, [X], [([Y], "right"), ([-X], GUARD)]),
    "if, not": (lambda x: -x if not x[0] else x, [X], [([Y], "right"), ([X - 1], GUARD)]),
    "and": (lambda x: (x[0] > 0 and x[1] > 0) * x, [X], [([Y], "right"), ([-X], GUARD)]),
    "or": (lambda x, y: (x[0] or y) * X, [X, 2.0], [([Y, 7.0], "right"), ([X - 1, 2.0], GUARD)]),
    "a chain": (lambda s: 1.0 if 0 < s < 3 else s, [S], [([S / 2], "right"), ([S + 2], GUARD)]),
    "a conditional of an array": (lambda x: x if x > 0 else -x, [X], "ShapeError"),
    "all": (lambda x: x if all(x > 0) else -x, [X], [([X + 1], "right"), ([Y], GUARD)]),
    "any": (
        lambda x: x if any(v > 2 for v in x) else -x,
        [X],
        [([2 * X], GUARD), ([X + 0.5], GUARD)],
    ),
    "while": (converging, [2.0], [([2.1], "right"), ([1e6], GUARD)]),
    "for until": (first_above, [X, 1.5], [([X + 0.2, 1.5], "right"), ([X, 2.5], GUARD)]),
    "recursion": (recursive, [X, 3], [([Y, 3], "right"), ([Y, 2], GUARD), ([LONG, 3], SHAPE)]),
    "bisection": (bisect, [2.0], [([2.0 + 1e-12], "right"), ([3.0], GUARD)]),
    "max": (lambda x: max(x), [X], [([X + 1], "right"), ([Y], GUARD)]),  # noqa: PLW0108
    "min with a key": (
        lambda x: min(x, key=lambda v: abs(v - 2)),
        [X],
        [([X + 0.1], "right"), ([Y], GUARD)],
    ),
    "max of two": (
        lambda a, b: max(a, b) * X,
        [1.0, 2.0],
        [([0.0, 5.0], "right"), ([3.0, 2.0], GUARD)],
    ),
    "sorted": (sorted_list, [X], [([X + 1], "right"), ([Y], GUARD)]),
    "sorting by hand": (bubble, [Y], [([Y * 2], "right"), ([X], GUARD)]),
    "in": (lambda s: X if s in [1.0, 2.0] else -X, [S], [([S + 1], GUARD)]),
    "in an array": (lambda x: x if 2.0 in x else -x, [X], [([X[::-1]], "right"), ([Y * 3], GUARD)]),
    "index of a list": (lambda s: X * [1.0, 2.0, 3.0].index(s), [S], [([S + 1], GUARD)]),
    "count of a list": (lambda s: X * [1.0, 2.0, 2.0].count(s), [S], [([S - 1], GUARD)]),
    "is None": (lambda x: x if x is None else x * 2, [X], [([Y], "right"), ([LONG], SHAPE)]),
    "== None": (lambda s: X if s == None else s * X, [S], [([S + 1], "right")]),  # noqa: E711
    "equality of arrays": (
        lambda x, y: x if (x == y).all() else y,
        [X, X],
        [([Y, Y], "right"), ([X, Y], GUARD)],
    ),
    "array_equal": (
        lambda x, y: x if np.array_equal(x, y) else y,
        [X, X],
        [([Y, Y], "right"), ([X, Y], GUARD)],
    ),
    "allclose": (
        lambda x, y: x if np.allclose(x, y) else y,
        [X, X],
        [([Y, Y], "right"), ([X, Y], GUARD)],
    ),
    "an assertion": (asserting, [X], [([X + 1], "right"), ([-X], GUARD)]),
    "isnan": (
        lambda x: np.zeros_like(x) if np.isnan(x).any() else x,
        [X],
        [([Y], "right"), ([X * np.nan], GUARD)],
    ),
    "int": (lambda x: X * int(x.sum()), [X], [([X + 0.1], "right"), ([X + 1], GUARD)]),
    "round": (lambda x: X * round(x.sum()), [X], [([X + 0.1], "right"), ([X + 1], GUARD)]),
    "math.floor": (
        lambda s: X * math.floor(s),
        [S],
        [([S + 0.1], "right"), ([S + 1], GUARD)],
    ),
    "divmod": (lambda s: divmod(s, 0.7), [2.0], [([3.0], "right"), ([-3.0], "right")]),
    "an index": (lambda n, x: x[n], [1, X], [([1, Y], "right"), ([2, X], "right")]),
    "an index of a list": (lambda n: [X, Y][n] * 2, [1], [([0], GUARD)]),
    "a key of a dict": (lambda n: {1: X, 2: Y}[n], [1], [([2], GUARD)]),
    "a key of a match": (matched, [X], [([Y], "right"), ([LONG], SHAPE)]),
    "range": (lambda n, x: sum(x for _ in range(n)), [3, X], [([3, Y], "right"), ([4, X], GUARD)]),
    "a slice": (lambda n, x: x[:n], [2, X], [([2, Y], "right"), ([1, X], GUARD)]),
    "a repeated list": (lambda n, x: np.stack([x] * n), [2, X], [([3, X], GUARD)]),
    "a shape": (lambda n: np.zeros(n) + 1.0, [2], [([3], GUARD)]),
    "a shape of letir": (
        lambda n, s: lnp.full(n, s) * 1.0,
        [2, S],
        [([2, S + 1], "right"), ([3, S], GUARD)],
    ),
    "tile": (lambda n, x: np.tile(x, n), [2, X], [([2, Y], "right"), ([3, X], GUARD)]),
    "an axis": (lambda n, x: x.sum(axis=n), [0, M], [([0, 2 * M], "right"), ([1, M], GUARD)]),
    "argmax as an index": (lambda x: x[x.argmax()] * x, [X], [([Y], "right"), ([-X], "right")]),
    "argmax as an integer": (
        lambda x: x[int(x.argmax())] * x,
        [X],
        [([2 * X], "right"), ([Y], GUARD)],
    ),
    "an integer array": (lambda n, x: x[n], [N, X], [([N[::-1].copy(), Y], "right")]),
    "a mask": (lambda x: x[x > 1.5], [X], [([X + 0.1], "right"), ([Y + 5], GUARD)]),
    "a mask, summed": (lambda x: x[x > 1.5].sum() / len(x[x > 1.5]), [X], [([X + 9], GUARD)]),
    "nonzero": (lambda x: x[np.nonzero(x)], [X], [([Y], "right"), ([X - 1], GUARD)]),
    "where": (lambda x: np.where(x > 1.5)[0], [X], [([Y], "right"), ([X - 9], GUARD)]),
    "unique": (lambda x: np.unique(x) * 2, [X], [([Y], "right"), ([X * 0], GUARD)]),
    "a set of numbers": (lambda x: len(set(x)) * x, [X], [([Y], GUARD)]),
    "cond": (lambda x: np.where(x > 0, x, -x), [Y], [([X], "right"), ([-Y], "right")]),
    "sign by hand": (lambda s: X * ((s > 0) - (s < 0)), [2.0], [([-2.0], "right")]),
    "arithmetic of comparisons": (
        lambda s: X * (s > 0) + X * (s <= 0) * 3,
        [2.0],
        [([-2.0], "right")],
    ),
    "walrus": (walrus, [X], [([Y], "right"), ([-X], GUARD)]),
    "a finally": (finally_used, [X], [([Y], "right"), ([-X], GUARD)]),
    "except Exception": (swallowing, [X], [([Y], "right")]),
    "except TypeError": (swallowing_types, [X], [([Y], "right")]),
    "statistics.mean": (lambda x: x - statistics.mean(x), [X], [([Y], "right")]),
    "statistics.median": (
        lambda x: x - statistics.median(x),
        [X],
        [([X + 1], "right"), ([Y], GUARD)],
    ),
    "sum of a generator": (
        lambda x: sum(v * v for v in x if v > 1.5),
        [X],
        [([X + 0.2], "right"), ([Y - 5], GUARD)],
    ),
    "itertools": (
        lambda x: np.stack(list(itertools.accumulate(x, max))),
        [X],
        [([2 * X], "right"), ([Y], GUARD)],
    ),
    "groupby": (
        lambda x: len(list(itertools.groupby(x))) * x,
        [X],
        [([Y], "right"), ([X * 0], GUARD)],
    ),
    "filter": (
        lambda x: sum(filter(lambda v: v > 1.5, x)),
        [X],
        [([X + 0.2], "right"), ([Y - 5], GUARD)],
    ),
    "enumerate and zip": (
        lambda x, y: sum(i * a * b for i, (a, b) in enumerate(zip(x, y, strict=True))),
        [X, Y],
        [([Y, X], "right"), ([LONG, LONG], SHAPE)],
    ),
    "concrete": (
        lambda s, x: x * float(lt.concrete(s)),
        [S, X],
        [([S, Y], "right"), ([S + 1, X], GUARD)],
    ),
}


@in_one_test
@pytest.mark.parametrize("name", HAZARDS)
def test_the_result_is_right_or_a_named_error(name, replays):
    replays(*HAZARDS[name])
