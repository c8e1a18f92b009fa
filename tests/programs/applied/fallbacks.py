"""Exceptions that are caught, error states, warnings and texts."""

import abc
import cmath
import collections
import contextlib
import enum
import itertools
import json
import math
import operator
import re
from dataclasses import asdict, astuple, dataclass, field, replace
from functools import cached_property, singledispatch

import numpy as np

from tests.programs.table import program


@program(
    lambda rng: (rng.normal(size=(3, 3)), float(rng.choice([0.0, 3.0]))), smooth=0, branches=True
)
def jittered_cholesky(A, boost):
    """A Cholesky factor with growing jitter."""
    K = (A + A.T) / 2 + boost * np.eye(3)
    for jitter in (0, 1e-6, 1e-3, 1.0, 10.0):
        try:
            L = np.linalg.cholesky(K + jitter * np.eye(3))
        except np.linalg.LinAlgError:
            continue
        else:
            break
    else:
        raise ValueError("not positive definite")
    return L, jitter


@program(lambda rng: (rng.normal(size=3), int(rng.integers(0, 6))), branches=True)
def index_fallback(x, i):
    """The last item if the index is out of bounds, and the message."""
    try:
        return x[i], "inside"
    except IndexError as err:
        msg = str(err)
    return x[-1], msg


@program(lambda rng: (rng.choice([0.0, 1.0, 2.0], size=4), rng.choice([0.0, 1.0], size=4)))
def errstate_divide(a, b):
    """Quotients under three error states."""
    with np.errstate(divide="ignore", invalid="ignore"):
        q = a / b
    q[~np.isfinite(q)] = 0
    old = np.seterr(all="raise")
    try:
        s = a / (b + 1)
        t = np.log(b)
    except FloatingPointError as e:
        t = str(e)
    finally:
        np.seterr(**old)
    return q, s, t


class Bracket(Exception):
    def __init__(self, lo, hi):
        super().__init__(f"no sign change in [{lo}, {hi}]")
        self.lo, self.hi = lo, hi


@program(lambda rng: (float(rng.uniform(-2, 2)), float(rng.uniform(0.5, 3))), branches=True)
def brent_like(c, hi):
    """Bisection, with an exception that carries the interval."""

    def f(x):
        return x**3 - c

    def bisect_(lo, hi):
        if f(lo) * f(hi) > 0:
            raise Bracket(lo, hi)
        while hi - lo > 1e-3:
            mid = 0.5 * (lo + hi)
            if f(lo) * f(mid) <= 0:
                hi = mid
            else:
                lo = mid
        return (lo + hi) / 2

    try:
        return bisect_(0.0, hi), True
    except Bracket as b:
        return b.hi, False


@contextlib.contextmanager
def suppress_and_count(counter, *excs):
    try:
        yield
    except excs as e:
        counter[type(e).__name__] += 1


@program(lambda rng: (rng.choice([-1.0, 0.0, 2.0], size=5).tolist(),), branches=True)
def context_managers(xs):
    """Exceptions that context managers count."""
    counter, out = collections.Counter(), []
    for x in xs:
        with suppress_and_count(counter, ValueError, ZeroDivisionError):
            out.append(math.sqrt(x) / x)
        with contextlib.suppress(OverflowError):
            out.append(math.exp(1000 * x))
    return out, dict(counter)


@program(lambda rng: (float(rng.uniform(-3, 3)), float(rng.uniform(0.1, 2))), smooth=0)
def complex_python(x, y):
    """Python's complex numbers."""
    z = complex(x, y)
    w = cmath.exp(z) / (1 + z * z.conjugate())
    r, phi = cmath.polar(w)
    return abs(z), w.real, r * math.cos(phi), z**2


@program(lambda rng: (rng.normal(size=3), rng.normal(size=2)), smooth=0)
def closure_counter(x, y):
    """Differences with a counter of calls."""
    calls = 0

    def f(v):
        nonlocal calls
        calls += 1
        return v @ v

    h = 1e-4
    g = np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(3)])
    return g, calls, y.sum()


class Shape(abc.ABC):
    registry = {}

    def __init_subclass__(cls, **kw):
        Shape.registry[cls.__name__.lower()] = cls

    @abc.abstractmethod
    def area(self): ...
    @cached_property
    def area2(self):
        return self.area() * 2


@dataclass
class Circle(Shape):
    r: float = 1.0

    def area(self):
        return math.pi * self.r**2


@dataclass(frozen=True)
class Rect(Shape):
    w: float
    h: float = field(default=2.0)

    def area(self):
        return self.w * self.h

    def __post_init__(self):
        if self.w < 0:
            raise ValueError(f"negative width {self.w}")


@program(
    lambda rng: (float(rng.uniform(0.1, 2)), float(rng.uniform(-0.5, 2))), smooth=0, branches=True
)
def shapes(a, b):
    """Registered classes, some of which refuse their arguments."""
    total, names = 0.0, []
    for kind, args in (("circle", (a,)), ("rect", (a, a)), ("rect", (b,))):
        try:
            s = Shape.registry[kind](*args)
        except ValueError:
            continue
        total += s.area()
        names.append(type(s).__name__)
    r2 = replace(Rect(a), h=b)
    return (
        total,
        names,
        astuple(r2),
        asdict(Circle(a)),
        Circle(a).area2,
        Rect(a) == Rect(a),
        max([Circle(a), Circle(b)], key=lambda s: s.area()).r,
    )


class Op(enum.Enum):
    ADD = "+"
    MUL = "*"
    POW = "^"


@program(lambda rng: (float(rng.uniform(0.5, 2)), float(rng.uniform(0.5, 2))), smooth=0)
def expression_parser(x, y):
    """A parser of expressions with two stacks."""
    prec = {Op.ADD: 1, Op.MUL: 2, Op.POW: 3}
    fun = {Op.ADD: operator.add, Op.MUL: operator.mul, Op.POW: operator.pow}
    toks = re.findall(r"[a-z]+|\d+\.?\d*|[-+*^()]", "3*x + y^2 * (x + 1.5)")
    out, ops = [], []

    def apply():
        b, a = out.pop(), out.pop()
        out.append(fun[ops.pop()](a, b))

    for t in toks:
        if t.isalpha():
            out.append({"x": x, "y": y}[t])
        elif t[0].isdigit():
            out.append(float(t))
        elif t == "(":
            ops.append(t)
        elif t == ")":
            while ops[-1] != "(":
                apply()
            ops.pop()
        else:
            o = Op(t)
            while ops and ops[-1] != "(" and prec[ops[-1]] >= prec[o]:
                apply()
            ops.append(o)
    while ops:
        apply()
    return out[0]


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


@program(lambda rng: (rng.normal(size=3), 2.5), smooth=0)
def dispatching(x, s):
    """A single-dispatch function and a match statement."""
    match (x.ndim, s):
        case (1, float(v)) if v > 2:
            y = x * v
        case (1, _):
            y = x
        case _:
            y = -x
    return size_of([x, s, [x, 1]]), y


@program(lambda rng: (rng.normal(size=4),), smooth=0, branches=True)
def json_report(x):
    """A report as JSON."""
    rep = {"mean": float(x.mean()), "values": x.tolist(), "n": len(x)}
    s = json.dumps(rep)
    return len(s) > 0, rep["mean"], np.array(json.loads('{"a": [1, 2]}')["a"]) * x[:2]


@program(lambda rng: (rng.integers(0, 5, size=8), rng.normal(size=8)), smooth=1, branches=True)
def grouping(keys, vals):
    """Groups by dicts, by itertools and by NumPy."""
    groups = collections.defaultdict(list)
    for k, v in zip(keys, vals):
        groups[k].append(v)
    means = {int(k): np.mean(v) for k, v in sorted(groups.items())}
    order = sorted(zip(keys, vals), key=lambda p: (p[0], -p[1]))
    by = [
        (int(k), sum(v for _, v in g))
        for k, g in itertools.groupby(order, key=operator.itemgetter(0))
    ]
    u, inv, cnt = np.unique(keys, return_inverse=True, return_counts=True)
    sums = np.zeros(len(u))
    np.add.at(sums, inv, vals)
    return means, by, sums / cnt, np.bincount(keys, weights=vals)
