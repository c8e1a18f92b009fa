"""Numerical notebooks: dicts and lists of numbers, recursion, branches on values, seeded draws."""

import itertools
import math
from collections import defaultdict, deque, namedtuple
from enum import IntEnum
from functools import partial
from typing import NamedTuple

import numpy as np

from tests.programs.table import program

STATES = ("healthy", "cold", "fever")
TRANSITIONS = {
    "healthy": {"healthy": 0.5, "cold": 0.3, "fever": 0.2},
    "cold": {"healthy": 0.1, "cold": 0.8, "fever": 0.1},
    "fever": {"healthy": 0.3, "cold": 0.3, "fever": 0.4},
}


@program(
    lambda rng: (rng.normal(size=(4, 3)), rng.uniform(0.5, 1, size=3)), smooth=0, branches=True
)
def viterbi_of_dicts(scores, start):
    """The best path through a hidden Markov model, by dicts of states."""
    V, path = [{}], {}
    for i, s in enumerate(STATES):
        V[0][s] = start[i] * np.exp(scores[0, i])
        path[s] = [s]
    for t in range(1, len(scores)):
        V.append({})
        new = {}
        for j, s in enumerate(STATES):
            best, last = max(
                (V[t - 1][q] * TRANSITIONS[q][s] * np.exp(scores[t, j]), q) for q in STATES
            )
            V[t][s] = best
            new[s] = [*path[last], s]
        path = new
    return max((V[-1][s], i) for i, s in enumerate(STATES))[0]


@program(lambda rng: (rng.normal(size=6), rng.normal(size=5)), smooth=0, branches=True)
def time_warping(s, t):
    """Dynamic time warping with its path."""
    n, m = len(s), len(t)
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0
    for i, j in itertools.product(range(1, n + 1), range(1, m + 1)):
        D[i, j] = abs(s[i - 1] - t[j - 1]) + np.min([D[i - 1, j], D[i, j - 1], D[i - 1, j - 1]])
    i, j, path = n, m, []
    while i > 0 and j > 0:
        path.append((i - 1, j - 1))
        k = np.argmin((D[i - 1, j - 1], D[i - 1, j], D[i, j - 1]))
        if k == 0:
            i, j = i - 1, j - 1
        elif k == 1:
            i -= 1
        else:
            j -= 1
    return D[n, m], len(path)


@program(lambda rng: (rng.normal(size=(5, 5)),), smooth=0, branches=True)
def pivoted_lu(A):
    """Gaussian elimination with swapped rows, a list of pivots and the sign."""
    A, n, sign = A.astype(float).copy(), len(A), 1
    pivots = list(range(n))
    for k in range(n - 1):
        m = k + np.argmax(np.abs(A[k:, k]))
        if m != k:
            A[[k, m]] = A[[m, k]]
            pivots[k], pivots[m] = pivots[m], pivots[k]
            sign = -sign
        if A[k, k] == 0:
            raise ValueError("singular")
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
            A[i, k + 1 :] -= A[i, k] * A[k, k + 1 :]
    return np.tril(A, -1) + np.identity(n), np.triu(A), sign * np.prod(np.diag(A))


@program(
    lambda rng: (rng.normal(size=(4, 4)) + 6 * np.eye(4), rng.normal(size=4)),
    smooth=1,
    branches=True,
)
def gauss_seidel(A, b, tol=1e-6):
    """Sweeps until the largest change is small; the number of sweeps."""
    x, sweeps = np.zeros(len(b)), 0
    while True:
        old = x.copy()
        for i in range(len(b)):
            s = 0
            for j in range(len(b)):
                if j != i:
                    s += A[i][j] * x[j]
            x[i] = (b[i] - s) / A[i][i]
        sweeps += 1
        if np.linalg.norm(x - old, np.inf) < tol or sweeps > 50:
            break
    return x, sweeps


@program(lambda rng: (np.sort(rng.uniform(0, 5, 6)) + np.arange(6), rng.normal(size=6)), smooth=1)
def natural_spline(x, y):
    """The coefficients of a natural cubic spline, by dicts and lists of rows."""
    n = len(x) - 1
    a, h = dict(enumerate(y)), {k: x[k + 1] - x[k] for k in range(n)}
    rows, right = [[1] + [0] * n], [0]
    for i in range(1, n):
        row = [0] * (n + 1)
        row[i - 1 : i + 2] = [h[i - 1], 2 * (h[i - 1] + h[i]), h[i]]
        rows.append(row)
        right.append(3 * (a[i + 1] - a[i]) / h[i] - 3 * (a[i] - a[i - 1]) / h[i - 1])
    rows.append([0] * n + [1])
    right.append(0)
    c = dict(zip(range(n + 1), np.linalg.solve(rows, right)))
    pieces = []
    for k in range(n):
        b = (a[k + 1] - a[k]) / h[k] - h[k] * (c[k + 1] + 2 * c[k]) / 3
        pieces.append((x[k], a[k], b, c[k], (c[k + 1] - c[k]) / (3 * h[k])))
    return np.array(pieces)


@program(lambda rng: (rng.uniform(0.5, 2),), smooth=0, branches=True)
def adaptive_simpson(b):
    """Simpson's rule that halves intervals recursively."""

    def f(x):
        return math.exp(-x * x)

    def rule(a, fa, b, fb):
        m = (a + b) / 2
        fm = f(m)
        return m, fm, abs(b - a) / 6 * (fa + 4 * fm + fb)

    def refine(a, fa, b, fb, eps, whole, m, fm):
        lm, flm, left = rule(a, fa, m, fm)
        rm, frm, right = rule(m, fm, b, fb)
        delta = left + right - whole
        if abs(delta) <= 15 * eps:
            return left + right + delta / 15
        first = refine(a, fa, m, fm, eps / 2, left, lm, flm)
        return first + refine(m, fm, b, fb, eps / 2, right, rm, frm)

    fa, fb = f(0.0), f(b)
    m, fm, whole = rule(0.0, fa, b, fb)
    return refine(0.0, fa, b, fb, 1e-4, whole, m, fm)


class Vec:
    """A vector of three numbers."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z

    def __sub__(self, o):
        return Vec(self.x - o.x, self.y - o.y, self.z - o.z)

    def __mul__(self, k):
        return Vec(self.x * k, self.y * k, self.z * k)

    def dot(self, o):
        """The scalar product."""
        return self.x * o.x + self.y * o.y + self.z * o.z

    def __abs__(self):
        return math.sqrt(self.dot(self))

    def unit(self):
        """The vector of length one."""
        return self * (1.0 / abs(self))


@program(lambda rng: (rng.normal(size=3) * 0.3, rng.uniform(0.8, 1.2)), smooth=0, branches=True)
def one_sphere(centre, radius):
    """A ray tracer of vector objects, pixel by pixel."""
    image = np.zeros((5, 6))
    sphere, light = Vec(*centre + np.array([0, 0, 3])), Vec(2, 2, -1).unit()
    for i, y in enumerate(np.linspace(-1, 1, 5)):
        for j, x in enumerate(np.linspace(-1, 1, 6)):
            d, oc = Vec(x, y, 2).unit(), sphere * -1
            b, c = 2 * d.dot(oc), oc.dot(oc) - radius * radius
            disc = b * b - 4 * c
            if disc > 0:
                t = min((-b - math.sqrt(disc)) / 2, (-b + math.sqrt(disc)) / 2)
                if t > 0:
                    image[i, j] = max((d * t - sphere).unit().dot(light), 0)
    return image


@program(lambda rng: (rng.normal(size=4),), smooth=0)
def quaternion_angles(q):
    """A rotation matrix of a quaternion, and its angles in degrees."""
    w, x, y, z = q / np.linalg.norm(q)
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    assert np.isclose(np.linalg.det(R), 1.0), f"no rotation: {R}"
    yaw, roll = math.atan2(R[1, 0], R[0, 0]), math.atan2(R[2, 1], R[2, 2])
    return R, np.degrees([roll, -math.asin(R[2, 0]), yaw])


@program(lambda rng: (rng.normal(size=(4, 4)) + 4 * np.eye(4), rng.normal(size=4)), smooth=1)
def gmres(A, b):
    """Arnoldi's iteration, and least squares in the Krylov space."""
    n = len(b)
    Q, H = np.zeros((n, n + 1)), np.zeros((n + 1, n))
    Q[:, 0] = b / np.linalg.norm(b)
    for k in range(n):
        y = A @ Q[:, k]
        for j in range(k + 1):
            H[j, k] = Q[:, j] @ y
            y = y - H[j, k] * Q[:, j]
        H[k + 1, k] = np.linalg.norm(y)
        if H[k + 1, k] > 1e-10 and k + 1 < n:
            Q[:, k + 1] = y / H[k + 1, k]
    e = np.zeros(n + 1)
    e[0] = np.linalg.norm(b)
    return Q[:, :n] @ np.linalg.lstsq(H, e, rcond=None)[0]


class Phase(IntEnum):
    """The parts of a training."""

    WARM = 0
    MAIN = 1


class Settings(NamedTuple):
    """The settings of an optimiser."""

    rate: float = 0.1
    steps: int = 3
    phase: Phase = Phase.WARM


@program(lambda rng: (rng.normal(size=3),), smooth=0)
def adam_with_settings(x):
    """Adam with a named tuple of settings and a dict of states."""
    settings = Settings()._replace(rate=0.05)
    m = v = 0
    state = {}
    for t in range(1, settings.steps + 1):
        g = 2 * x + np.sin(x)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        x = x - settings.rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        state.setdefault("x", []).append(x)
    return (x, state) if settings.phase == Phase.WARM else None


@program(lambda rng: (rng.normal(size=(6, 6)),), branches=True)
def thin_edges(image):
    """Canny's non-maximum suppression by the angle of the slope."""
    kernel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], float)
    size, angle, thin = np.zeros_like(image), np.zeros(image.shape), np.zeros_like(image)
    for y, x in itertools.product(range(1, 5), repeat=2):
        window = image[y - 1 : y + 2, x - 1 : x + 2]
        gx, gy = (kernel * window).sum(), (kernel.T * window).sum()
        size[y, x], angle[y, x] = np.hypot(gx, gy), np.degrees(np.arctan2(gy, gx)) % 180
    for i, j in itertools.product(range(1, 5), repeat=2):
        if angle[i, j] < 22.5 or 157.5 <= angle[i, j]:
            ends = size[i, j + 1], size[i, j - 1]
        elif angle[i, j] < 67.5:
            ends = size[i + 1, j - 1], size[i - 1, j + 1]
        elif angle[i, j] < 112.5:
            ends = size[i + 1, j], size[i - 1, j]
        else:
            ends = size[i - 1, j - 1], size[i + 1, j + 1]
        thin[i, j] = size[i, j] if size[i, j] >= max(ends) else 0
    return thin


@program(lambda rng: (rng.integers(0, 2, 8), rng.integers(0, 2, 4)), branches=True)
def error_codes(message, word):
    """A cyclic redundancy check by lists, and a corrected Hamming code."""
    bits = list(message) + [0] * 3
    for i in range(len(message)):
        if bits[i] == 1:
            for j, p in enumerate((1, 0, 1, 1)):
                bits[i + j] ^= p
    G = np.array(
        [[1, 1, 0, 1], [1, 0, 1, 1], [1, 0, 0, 0], [0, 1, 1, 1], *np.eye(4, dtype=int)[1:]]
    )
    H = np.array([[1, 0, 1, 0, 1, 0, 1], [0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1, 1]])
    code = G @ word % 2
    code[3] ^= 1
    place = int("".join(map(str, (H @ code % 2)[::-1])), 2) - 1
    if place >= 0:
        code[place] = 1 - code[place]
    return bits[-3:], code


Point = namedtuple("Point", "x y")


@program(lambda rng: (rng.normal(size=(8, 2)),), branches=True)
def area_of_hull(points):
    """The area of the convex hull of sorted named tuples."""

    def turn(o, a, b):
        return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x)

    def half(points):
        chain = []
        for q in points:
            while len(chain) >= 2 and turn(chain[-2], chain[-1], q) <= 0:
                chain.pop()
            chain.append(q)
        return chain[:-1]

    points = sorted(Point(*q) for q in points)
    hull = half(points) + half(reversed(points))
    return 0.5 * abs(sum(a.x * b.y - b.x * a.y for a, b in zip(hull, hull[1:] + hull[:1])))


@program(lambda rng: (rng.integers(0, 5, 12), rng.normal(size=12)), branches=True)
def grouped(keys, values):
    """Means by key: np.unique and np.bincount, and a dict of lists."""
    groups, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    lists = defaultdict(list)
    for k, v in zip(keys, values):
        lists[int(k)].append(v)
    means = {k: np.mean(v) for k, v in sorted(lists.items())}
    return groups, np.bincount(inverse, weights=values) / counts, means


@program(lambda rng: (rng.normal(size=(4, 4)), rng.uniform(1, 2)), smooth=0)
def curried_steps(a, s):
    """Partials, star arguments, mapped lambdas and a short memory."""
    steps = [partial(np.clip, a_min=-s, a_max=s), lambda v: v * s, np.cumsum]
    memory = deque(maxlen=2)
    for row, step in zip(a, itertools.cycle(steps)):
        memory.append((row, step(row)))
    total = sum(x @ y for x, y in reversed(memory))
    rest = [*map(lambda v: v + 1, a[0])]
    return total, rest, dict(zip("abcd", a[1])), list(itertools.accumulate(a[2]))


@program(lambda rng: (rng.normal(size=2),), smooth=0)
def drawn_vectors(mean):
    """Correlated normal vectors of a seeded generator, and their covariance."""
    rng = np.random.default_rng(7)
    x = rng.multivariate_normal(mean, [[1.0, 0.4], [0.4, 2.0]], size=6)
    weights = rng.dirichlet(np.ones(6))
    centred = x - np.average(x, axis=0, weights=weights)
    return centred.T @ (weights[:, None] * centred), x.max(0)
