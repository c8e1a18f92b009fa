"""Programs as people write them, generated from a seed: buffers, lists, Python numbers, exceptions
that are caught, objects, helpers in another module, integer indices, random numbers, matrices in
several memory orders.
"""

import functools
import math
import random
import re
import sys
import types
from collections.abc import Callable

import numpy as np

HELPERS = """
import dataclasses
import math
from collections import namedtuple
import numpy as np
from numpy import array, zeros

Pair = namedtuple("Pair", "a b")

@dataclasses.dataclass
class Record:
    u: object
    v: object = 1.5
    def total(self):
        return np.sum(self.u) * self.v

class Settings(dict):
    def __init__(self, **items):
        super().__init__(**items)
        self.__dict__ = self

class Ring:
    def __init__(self, n):
        self.rows, self.i = np.zeros((n, 3)), 0
    def push(self, v):
        self.rows[self.i % len(self.rows)] = v
        self.i += 1
        return self
    @property
    def last(self):
        return self.rows[self.i - 1]
    def __getitem__(self, j):
        return self.rows[j]
    def __len__(self):
        return self.i

class Converted:
    def __init__(self, values):
        self.values = np.asarray(values, dtype=float)
    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=copy)

def halves(v, n=3):
    for j in range(n):
        v = v * 0.5 + j
        yield v

def turned(v, depth):
    return v if depth == 0 else turned(v[::-1] * 0.9 + depth, depth - 1)

def weighted(a, *rest, scale=1.0, **options):
    return sum(rest, a) * scale + options.get("b", 0)

def lower(m):
    out = m.copy()
    for a in range(3):
        for b in range(a):
            out[a, b] *= 0.5
    return out

def fill(v, n):
    out = zeros(n)
    for i in range(n):
        out[i] = v * i + 1
    return out

def norm(v):
    return math.sqrt(sum(float(a) ** 2 for a in v) + 1.0)

def scale(vec, by=1.0):
    buf = [v * by for v in vec]
    return array(buf)

class Mean:
    def __init__(self, n):
        self.total, self.count = np.zeros(n), 0
    def add(self, v):
        self.total += v
        self.count += 1
        return self
    def mean(self):
        return self.total / max(self.count, 1)

class Momentum:
    def __init__(self):
        self.w, self.hist = np.zeros(3), []
    def step(self, v):
        self.w = self.w * 0.9 + v
        self.hist.append(self.w.copy())
        self.w[0] = 0
        return self
"""

# {n}: the new name; {v}, {m}, {s}, {i}: a vector of three, a matrix of three rows and columns, a
# number, an index, each drawn separately
VECTORS = """
{n} = np.zeros(3); {n}[{i}] = {s}
{n} = np.empty(3); for j in range(3): {n}[j] = {v}[j] * {s}
{n} = np.array([{s}, {s}, {s}])
{n} = {v} * {v} - {s}
{n} = np.tanh({v}) + np.abs({v})
{n} = {v}.copy(); {n}[{i}] += {s}; {n}[{n} > {s}] = {s}
items = []; for v in {v}: items.append(v * {s}); {n} = np.array(items)
{n} = helpers.fill({s}, 3) + {v}
{n} = helpers.Mean(3).add({v}).add({v}).mean()
{n} = helpers.scale(vec={v}, by={s})
{n} = TABLE[np.argsort({v})] * {v}
{n} = TABLE[[k % 3, 0, 1]] * {v}[::-1]
{n} = np.where({v} > {s}, {v}, {s})
m = np.zeros((3, 3)); m[{i}] = {v}; m[:, {i}] += {s}; {n} = m @ {v}
m = np.arange(9.0).reshape(3, 3); row = m[1]; row += {v}; m[:, 0] = 7; {n} = m.sum(axis=0) + row
{n} = np.add.accumulate({v}); np.add.at({n}, [0, 0, k % 3], {v})
{n} = {v} * 1.0; {n}[1:] = {n}[:-1]
{n} = np.concatenate([{v}[1:], [{s}]])
d = {"w": {v} + 0.0, "b": np.ones(3)}; d["b"][{i}] -= {s}; {n} = d["w"] * d["b"]
{n} = np.random.default_rng(3).normal(size=3) + {v}
{n} = np.random.RandomState(3).rand(3); {n}[{i}] = {s}
rows = [{v}, {v} * 2]; rows.append({v}); rows.reverse(); {n} = np.stack(rows).T[:, 1] + rows[0]
{n} = np.array(sorted({v}, reverse=True)) * {s}
{n} = np.array(list({v}[j] * j for j in range(3)))
{n} = np.einsum("i,j->ij", {v}, {v})[k % 3]
o = helpers.Momentum().step({v}).step({v}); {n} = o.w + o.hist[-1]
{n} = np.r_[{s}, {v}[:2]] + np.clip({v}, -1, 0.5)
{n} = np.full(3, {s} * 1.0); {n}[{v} > 0] = 0; {n} -= {n}.mean()
z = np.zeros(3, complex); z[0] = {s} + 1j * {s}; z[1:] = {v}[:2]; {n} = np.abs(z) + z.real
j = np.zeros(3, int); j[1] = k % 3; j[2] = j[1] // 2; {n} = {v}[j] + j
{n} = np.vectorize(lambda v: v * 2 if v > 0 else -v)({v})
a, b = {v}, {v}; a, b = b + 1, a * 2; {n} = np.hstack([a[:1], b[1:]])
{n} = functools.reduce(lambda u, w: u * 0.5 + w, [{v}, {v}, np.ones(3)])
{n} = np.zeros(3); np.maximum({v}, {s}, out={n}); np.copyto({n}, 1.0, where={n} > 2)
m = np.diag([{s}, {s}, 1.0]); m[0, 1] = 1; {n} = attempt(lambda: np.linalg.solve(m, {v}), {v})
{n} = {m} @ {v}
{n} = {m}[:, {i}]
{n} = {m}.T[{i}] * {s}
{n} = {m}.sum(axis=k % 2) + np.diag({m})
{n} = helpers.turned({v}, 2)
{n} = sum(helpers.halves({v}), np.zeros(3))
{n} = helpers.weighted({v}, {v}, {s}, scale=0.5, b={s})
{n} = helpers.Ring(3).push({v}).last
ring = helpers.Ring(2).push({v}); ring.rows[0, 1] = {s}; {n} = ring[0] * len(ring)
r = helpers.Record({v}); r.v = {s}; {n} = r.u * r.total()
d = helpers.Settings(w={v}, lr={s}); d.w = d.w - d.lr; d["z"] = d.w * 2; {n} = d.z + d["w"]
{n} = np.zeros(3); {n}[:] = helpers.Converted(TABLE); {n} += helpers.Converted({v})
p = helpers.Pair({v}, {s}); p = p._replace(a={v} * p.b); {n} = p.a + p.b
{n} = {v}.astype(np.float32).astype(float)
{n} = np.cross({v}, {v}[::-1]) + np.convolve({v}, [0.5, {s}], "same")
{n} = np.add.reduceat(np.tile({v}, 2), [0, 2, 4])
it = iter({v}); first = next(it); {n} = np.array([first] + [w for w in it])
"""
MATRICES = """
{n} = np.outer({v}, {v}).T
{n} = {m}.T - {v}[:, None]
{n} = np.maximum({m}.T - {v}[:, None], 0).T
{n} = {m} @ {m}.T
{n} = np.array([[{s}, 1.0, 2.0], [0.0, {s}, 1.0], [1, 2, 3.0]])
{n} = {m}.copy(); {n}[{i}] = {v}; {n}[:, {i}] -= {s}
{n} = np.linalg.inv({m} @ {m}.T + np.eye(3)).T
{n} = np.stack([{v}, {v} * 2, {v} - 1], axis=k % 2)
{n} = {m}.ravel(order="F").reshape(3, 3) * {m}
{n} = np.cumsum({m}, axis=k % 2)
{n} = np.asfortranarray({m}) * {s}
{n} = np.einsum("ij,kj->ik", {m}, {m})
{n} = helpers.lower({m})
{n} = np.zeros_like({m}); {n}[np.diag_indices(3)] = {v}
{n} = np.empty((3, 3), order="F"); {n}[:] = {m}
{n} = np.swapaxes({m}, 0, 1) * {v}
{n} = {m}[::-1, ::-1]
{n} = np.exp(-abs({m})) / (1 + abs({s}))
{n} = np.block([[{m}[:2, :2], {m}[:2, 2:]], [{m}[2:, :2], {m}[2:, 2:]]])
"""
NUMBERS = """
{n} = float({v}[{i}]) * {s}
{n} = math.sin({s}) + math.atan({s}) * math.hypot({s}, 1.0)
{n} = helpers.norm({v})
{n} = attempt(lambda: {v}[k + 1], {s})
{n} = attempt(lambda: {s} / float(k), 0.0)
{n} = attempt(lambda: math.sqrt({s}), -1.0)
{n} = max({s}, {s}) if {s} < {s} else abs({s})
{n} = np.sum([{s}, {s}]) + np.mean([{s}, 2.0])
{n} = {s} ** 2 + {s} % 1.5
w = np.array([0.5, 1.0, 2.0]); w /= w.sum(); {n} = sum(a * b for a, b in zip(w, {v}))
{n} = len([v for v in {v} if v > {s}]) + k // 2
{n} = sum(v * j for j, v in enumerate({v}) if j != k)
b = np.zeros(k + 2); b[k] = {s}; {n} = b.sum() / len(b)
{n} = abs({s}); for _ in range(9): {n} = {n} / 2 if {n} > 0.5 else {n}
d = {"a": {s}, "b": [{s}, {s}]}; d["a"] += d["b"][1]; d["b"].append(k); {n} = sum(d["b"]) * d["a"]
{n} = math.floor({s}) + k % 2 + int(np.argmax({v}))
{n} = k / 2 + k // 2 + (-k) % 3 + 2**k
{n} = float(np.dot({v}, {v})) + np.linalg.norm({v})
{n} = (lambda q: q * q + {s})({s})
{n} = {m}[{i}, {i}] + {m}.trace()
{n} = max({v}, key=abs) + sorted({v})[1]
{n} = (q := {s} + 1) * q
{n} = {v}.item(0) + {v}.tolist()[1]
{n} = next((q for q in {v} if q > 0), {s})
{n} = dict(zip("abc", {v}))["b"] * np.float64({s})
"""


def attempt(action: Callable, otherwise):
    """The result of ``action``, or ``otherwise`` if it raises."""
    try:
        return action()
    except (ArithmeticError, IndexError, ValueError):  # LinAlgError is a ValueError
        return otherwise


def source_of(seed: int) -> str:
    """The text of a function ``f(x, y, s, k)``: two vectors, a float, an int from 0 to 3."""
    draw = random.Random(seed)
    vectors, numbers, matrices, lines = ["x", "y"], ["s"], ["a"], ["a = np.outer(x, y) + TABLE"]
    statements = [(vectors, t) for t in VECTORS.strip().splitlines()]
    statements += [(numbers, t) for t in NUMBERS.strip().splitlines()] * 2
    statements += [(matrices, t) for t in MATRICES.strip().splitlines()] * 2

    def filled(match: re.Match) -> str:
        if match[0] == "{v}":
            return draw.choice(vectors)
        if match[0] == "{m}":
            return draw.choice(matrices)
        if match[0] == "{i}":
            return draw.choice(["0", "1", "2", "-1", "k % 3"])
        constant = str(round(draw.uniform(-2, 2), 2))
        return draw.choice([*numbers, f"{draw.choice(vectors)}[{draw.randrange(3)}]", constant])

    for number in range(draw.randrange(3, 9)):
        names, template = draw.choice(statements)
        name = f"{'v' if names is vectors else 'm' if names is matrices else 's'}{number}"
        text = re.sub(r"\{[vsmi]\}", filled, template.replace("{n}", name))
        lines += re.sub(r"; (?!for )", "\n", text).replace("; for ", "\nfor ").splitlines()
        names.append(name)
    if draw.random() < 0.3:
        lines.insert(draw.randrange(len(lines) + 1), "if x[0] > y[1]: return x, s, y, 1.0, x")
    body = "\n    ".join(lines)
    results = f"{vectors[-1]}, {numbers[-1]}, x, s, {matrices[-1]}"
    return f"def f(x, y, s, k):\n    {body}\n    return {results}\n"


def program(seed: int) -> Callable:
    """The function that ``source_of(seed)`` defines."""
    names = {"np": np, "math": math, "functools": functools, "attempt": attempt}
    names |= {"helpers": helpers(), "TABLE": np.array([3.0, 1.0, 2.0])}
    exec(compile(source_of(seed), f"<program {seed}>", "exec"), names)
    return names["f"]


@functools.cache
def helpers() -> types.ModuleType:
    """The other module."""
    made = types.ModuleType("letir_generated_helpers")
    exec(HELPERS, vars(made))
    return sys.modules.setdefault("letir_generated_helpers", made)


def arguments(seed: int) -> tuple:
    """Arguments of a program."""
    draw = np.random.default_rng(seed)
    return draw.normal(size=3), draw.normal(size=3), float(draw.normal()), int(draw.integers(4))
