"""Hazards: traced values used as Python objects: copies, keys, formats, types [B2, B11]."""

import copy
import dataclasses
import decimal
import fractions
import functools
import io
import json
import math
import operator
import pickle
import random
import warnings
import weakref
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.testing import assert_same
from tests.each_sample import in_one_test

X, Y = np.array([1.0, 2.0, 3.0]), np.array([4.0, -1.0, 2.0])
LONG = np.arange(5.0)
M = np.array([[1.0, 2.0], [3.0, 4.0]])
S = np.float64(2.0)
GUARD, SHAPE, REFUSED = "GuardError", "ShapeError", "TraceError"
Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Holder:
    value: object
    scale: float = 2.0


@functools.lru_cache
def cached(x):
    return x * 2


@functools.cache
def scaled_by(n):
    return n * 10.0


@functools.singledispatch
def kind(x):
    return x * 1


@kind.register
def _(x: np.ndarray):
    return x * 2


LOG = io.StringIO()


def printed(x, file):
    print(x, x.sum(), file=file)
    return x * 2


def default_argument(x, *, rates=(0.5, 2.0)):
    return x * rates[0] + rates[1]


def mutable_default(x, history=[]):  # noqa: B006
    history.append(1)
    return x * 2


def swapped(x, y):
    x, y = y, x
    return x - 2 * y


def unpacked(x):
    first, *rest = x
    return first + sum(rest)


def by_type(x):
    if isinstance(x, np.ndarray):
        return x * 2
    return x * 3


def by_dtype(x):
    return x // 2 if x.dtype == np.int64 else x / 2


def by_kind(x):
    return x * 1j if np.iscomplexobj(x) else x * 2


def in_a_warning(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.log(x)


def with_errstate(x):
    with np.errstate(all="ignore"):
        return x / (x - x[0])


def accumulated(x):
    total = {}
    for name, v in zip("aba", x, strict=False):
        total[name] = total.get(name, 0.0) + v
    return total["a"] - total["b"]


def escaped_generator(x):
    rows = (v * 2 for v in x)
    return next(rows) + next(rows)


def reduced(x):
    return functools.reduce(lambda a, b: a * 2 + b, x)


def composed(x):
    return functools.partial(np.multiply, 2.0)(x) + operator.itemgetter(0)(x)


def in_containers(x):
    box = deque([x, x * 2], maxlen=2)
    box.append(x * 3)
    named = OrderedDict(a=Pair(box[0], box[1]))
    return Holder(named["a"].second).value * Holder(x).scale


def default_dict(x):
    groups = defaultdict(list)
    for i, v in enumerate(x):
        groups[i % 2].append(v)
    return np.stack([np.stack(v).sum() for v in groups.values()])


def deep(x):
    y = copy.deepcopy({"a": [x]})["a"][0]
    return copy.copy(y) * 2


def filled_list(x):
    out = [0.0] * 3
    for i in range(3):
        out[i] = x[i] * 2
    return lnp.array(out)


def ordinary_list(x):
    return np.array([v * 2 for v in x])


HAZARDS = {
    "lru_cache": (lambda x: cached(x), [X], "TypeError"),  # noqa: PLW0108
    "a cache of an integer": (lambda n: X * scaled_by(n), [3], [([4], GUARD)]),
    "a key": (lambda s: {s: 1.0}[s], [S], [([S], "right"), ([S + 1], GUARD)]),
    "a set": (lambda x: len({*x}) * x, [X], [([Y], GUARD)]),
    "Counter": (lambda x: Counter(x).most_common(1)[0][0] * x, [X], [([Y], GUARD)]),
    "hash": (lambda s: hash(s) * 1.0, [S], [([S + 1], GUARD)]),
    "id": (lambda x, y: x if id(x) == id(y) else y, [X, Y], [([Y, X], "right")]),
    "deepcopy": (deep, [X], [([Y], "right"), ([LONG], SHAPE)]),
    "pickle": (lambda x: pickle.loads(pickle.dumps(x)), [X], REFUSED),
    "json": (lambda x: json.dumps(x.tolist()), [X], [([X + 1], GUARD)]),
    "str": (lambda x: len(str(x)) * 0.0 * x, [X], [([Y], GUARD)]),
    "a format": (lambda x: float(f"{x.sum():.3f}") * x, [X], [([Y], GUARD)]),
    "percent": (lambda s: float("%.2f" % s) * X, [S], [([S + 1], GUARD)]),  # noqa: UP031
    "print": (lambda x: printed(x, LOG), [X], [([Y], "right")]),
    "print into a buffer": (lambda x: printed(x, io.StringIO()), [X], [([Y], GUARD)]),
    "printoptions": (lambda x: float(np.array2string(x[0])) * x, [X], [([Y], GUARD)]),
    "isinstance": (by_type, [X], [([Y], "right")]),
    "singledispatch": (kind, [X], [([Y], "right")]),
    "a dtype": (by_dtype, [X], [([Y], "right"), ([np.arange(3)], "DTypeError")]),
    "iscomplexobj": (by_kind, [X], [([Y], "right"), ([X * 1j], "DTypeError")]),
    "issubdtype": (
        lambda x: x * 2 if np.issubdtype(x.dtype, np.floating) else x,
        [X],
        [([Y], "right"), ([np.arange(3)], "DTypeError")],
    ),
    "np.isscalar": (lambda s: X if np.isscalar(s) else -X, [S], [([S + 1], "right")]),
    "ndim": (lambda x: x if x.ndim == 1 else x.T, [X], [([Y], "right"), ([M], SHAPE)]),
    "math": (lambda x: math.sin(x[0]) * x, [X], [([Y], "right")]),
    "math.isclose": (
        lambda s: X if math.isclose(s, 2.0) else -X,
        [S],
        [([S], "right"), ([S + 1], GUARD)],
    ),
    "math.fsum": (lambda x: math.fsum(x) * X, [X], [([Y], "right")]),
    "math.prod": (lambda x: math.prod(x) * X, [X], [([Y], "right")]),
    "math of an integer": (lambda n: math.factorial(n) * X, [3], [([3], "right"), ([4], GUARD)]),
    "Decimal": (lambda s: float(decimal.Decimal(s)) * X, [S], "TraceError"),
    "Fraction": (lambda s: float(fractions.Fraction(s)) * X, [S], "TraceError"),
    "float": (lambda s: float(s) * X, [S], [([S + 1], "right")]),
    "complex": (lambda s: complex(s) * X, [S], [([S + 1], "right")]),
    "item": (lambda x: x[0].item() * X, [X], [([Y], "right")]),
    "tolist": (lambda x: x.tolist()[0] * X, [X], [([Y], "right")]),
    "asarray": (lambda x: np.asarray(x) * 2, [X], [([Y], "right")]),
    "asarray of letir": (lambda x: lnp.asarray(x) * 2, [X], [([Y], "right")]),
    "float64": (lambda x: np.float64(x.sum()) * X, [X], [([Y], "right")]),
    "a list as an array": (ordinary_list, [X], [([Y], "right"), ([LONG], SHAPE)]),
    "a list as an array of letir": (filled_list, [X], [([Y], "right"), ([LONG], SHAPE)]),
    "vectorize": (lambda x: np.vectorize(abs)(x) * 2, [X], [([Y], "right")]),
    "frompyfunc": (lambda x: np.frompyfunc(abs, 1, 1)(x) * 2, [X], "MissingRule"),
    "fromiter": (lambda x: np.fromiter((v * 2 for v in x), float), [X], [([Y], "right")]),
    "apply_along_axis": (
        lambda x: np.apply_along_axis(lambda r: r.sum(), 0, x),
        [M],
        [([M.T], "right")],
    ),
    "interchange by buffer": (lambda x: np.frombuffer(x, float), [X], "TraceError"),
    "memoryview": (lambda x: memoryview(x)[0] * X, [X], "TraceError"),
    "ctypes": (lambda x: x.ctypes.data * X, [X], "AttributeError"),
    "a default argument": (default_argument, [X], [([Y], "right")]),
    "a mutable default": (mutable_default, [X], [([Y], "right")]),
    "swapped names": (swapped, [X, Y], [([Y, X], "right")]),
    "unpacking": (unpacked, [X], [([Y], "right"), ([LONG], SHAPE)]),
    "warnings": (in_a_warning, [X], [([X + 1], "right")]),
    "errstate": (with_errstate, [Y], [([X], "right")]),
    "a dict of sums": (accumulated, [X], [([Y], "right"), ([LONG], SHAPE)]),
    "a generator": (escaped_generator, [X], [([Y], "right")]),
    "reduce": (reduced, [X], [([Y], "right"), ([LONG], SHAPE)]),
    "partial and operator": (composed, [X], [([Y], "right")]),
    "containers": (in_containers, [X], [([Y], "right")]),
    "defaultdict": (default_dict, [X], [([Y], "right"), ([LONG], SHAPE)]),
    "a string argument": (
        lambda x, name: getattr(x, name)(),
        [X, "sum"],
        [([Y, "sum"], "right"), ([X, "mean"], "DTypeError")],
    ),
    "a boolean argument": (
        lambda x, is_on: x if is_on else -x,
        [X, True],
        [([Y, True], "right"), ([X, False], "DTypeError")],
    ),
    "an argument of None": (
        lambda x, w: x if w is None else w,
        [X, None],
        [([Y, None], "right"), ([X, Y], "DTypeError")],
    ),
    "np.bool as an argument": (
        lambda x, b: x if b else -x,
        [X, np.True_],
        [([Y, np.True_], "right"), ([X, np.False_], GUARD)],
    ),
    "a list of arguments": (
        lambda xs: sum(xs) * 2,
        [[X, Y]],
        [([[Y, X]], "right"), ([[X]], "DTypeError")],
    ),
    "the order of a dict": (
        lambda d: next(iter(d.values())) * 2,
        [{"b": X, "a": Y}],
        [([{"b": Y, "a": X}], "right")],
    ),
    "sorting a dict": (
        lambda d: sum(i * d[k] for i, k in enumerate(sorted(d))),
        [{"b": X, "a": Y}],
        [([{"a": X, "b": Y}], "right")],
    ),
    "random.random": (lambda x: x * random.Random(3).random(), [X], [([Y], "right")]),
    "testing": (lambda x: np.testing.assert_allclose(x, X) or x, [X], [([X + 1], GUARD)]),
    "assert_array_equal": (
        lambda x: np.testing.assert_array_equal(x, x) or x,
        [X],
        [([X + 1], "right")],
    ),
    "concrete": (lambda x: math.sin(lt.concrete(x[0])) * x, [X], [([X], "right"), ([Y], GUARD)]),
}
FOREIGN = {
    "a masked array": np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]),
    "a matrix": M.view(np.matrix),
    "objects": np.array([1.0, None]),
    "strings": np.array(["a", "b"]),
    "records": np.zeros(2, [("a", float), ("b", int)]),
    "dates": np.array(["2020-01-01"], "datetime64[D]"),
    "a set": {1.0, 2.0},
}


@in_one_test
@pytest.mark.parametrize("name", HAZARDS)
def test_the_result_is_right_or_a_named_error(name, replays):
    replays(*HAZARDS[name])


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_argument_is_refused_with_its_type(name):
    """[B11] As an argument, and as an operand with a traced value."""
    with pytest.raises(lt.DTypeError):
        lt.trace(lambda x: x * 2, FOREIGN[name])
    with pytest.raises((lt.DTypeError, TypeError)):
        lt.trace(lambda x: x + FOREIGN[name], X)


class Leaf:
    """A part of a tree that knows its owner by a weak reference."""

    def __init__(self, owner):
        self.w = np.full(2, 3.0)
        self.owner = weakref.proxy(owner)
        self.calls = {}


def test_weak_references_to_objects_that_are_gone_are_no_obstacle():
    pytest.importorskip("dask.array")  # whose arrays are told apart from other arguments
    leaf = Leaf({1.0})  # the set is gone

    def scaled(x):
        return x * leaf.w

    def failing(x):
        leaf.calls["x"] = 1
        raise ValueError("as the function does")

    def of_leaf(leaf, x):
        return x * leaf.w

    x = np.ones(2)
    assert_same(3 * x, lt.trace(scaled, x)(x))
    for call in (lt.jit(scaled), lambda x: lt.jit(of_leaf)(leaf, x)):
        with warnings.catch_warnings(action="ignore"):  # the object runs as Python
            assert_same(3 * x, call(x))
    with pytest.raises(ValueError, match="as the function does"):
        lt.jit(failing)(x)
    with pytest.raises(lt.DTypeError, match="is not an array of numbers"):
        lt.trace(of_leaf, leaf, x)
