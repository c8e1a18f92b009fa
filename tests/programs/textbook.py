"""Numerical algorithms as textbooks write them, in loops over indices."""

import cmath
import math

import numpy as np

from tests.programs.table import program


@program(lambda rng: (rng.normal(size=5),), smooth=0)
def tridiagonal(d):
    """A tridiagonal system by elimination and substitution."""
    n = len(d)
    lower, diagonal, upper = np.full(n - 1, -1.0), np.full(n, 4.0), np.full(n - 1, -1.0)
    x = d.copy()
    for i in range(1, n):
        factor = lower[i - 1] / diagonal[i - 1]
        diagonal[i] -= factor * upper[i - 1]
        x[i] -= factor * x[i - 1]
    x[-1] /= diagonal[-1]
    for i in range(n - 2, -1, -1):
        x[i] = (x[i] - upper[i] * x[i + 1]) / diagonal[i]
    return x


@program(lambda rng: (rng.normal(size=(4, 4)),), smooth=0)
def determinant(a):
    """A determinant by its first row, from lists."""

    def det(m):
        if len(m) == 1:
            return m[0][0]
        minors = ([row[:c] + row[c + 1 :] for row in m[1:]] for c in range(len(m)))
        return sum((-1) ** c * m[0][c] * det(minor) for c, minor in enumerate(minors))

    return det(a.tolist())


@program(lambda rng: (rng.normal(size=(4, 4)),), smooth=0)
def cholesky_lists(a):
    """A Cholesky factor in lists of lists."""
    s, n = a @ a.T + np.eye(4), 4
    factor = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rest = s[i][j] - sum(factor[i][k] * factor[j][k] for k in range(j))
            factor[i][j] = math.sqrt(rest) if i == j else rest / factor[j][j]
    return np.array(factor)


@program(lambda rng: (rng.normal(size=16),), smooth=0)
def fourier_in_place(x):
    """A Fourier transform by reversed bits and butterflies."""
    n, a, j = 16, x.astype(complex), 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j ^= bit
        if i < j:
            a[i], a[j] = a[j], a[i]
    length = 2
    while length <= n:
        root, half = cmath.exp(-2j * cmath.pi / length), length // 2
        for i in range(0, n, length):
            w = 1
            for k in range(i, i + half):
                a[k], a[k + half] = a[k] + a[k + half] * w, a[k] - a[k + half] * w
                w *= root
        length <<= 1
    return a.real, np.abs(a)


@program(lambda rng: (rng.normal(size=16),), smooth=0)
def haar_wavelet(x):
    """Haar's wavelet transform, level by level."""
    out, n = x.copy(), 16
    while n > 1:
        level, half = np.empty(n), n // 2
        level[:half] = (out[:n:2] + out[1:n:2]) / np.sqrt(2)
        level[half:] = (out[:n:2] - out[1:n:2]) / np.sqrt(2)
        out[:n] = level
        n = half
    return out


@program(lambda rng: (rng.normal(size=2),), smooth=0)
def romberg(c):
    """Romberg's extrapolation of trapezoids."""

    def f(t):
        return np.exp(c[0] * t) * c[1]

    table, h = np.zeros((4, 4)), 1.0
    table[0, 0] = 0.5 * h * (f(0.0) + f(1.0))
    for i in range(1, 4):
        h /= 2
        middle = 0.0
        for k in range(1, 2**i, 2):
            middle += f(k * h)
        table[i, 0] = 0.5 * table[i - 1, 0] + middle * h
        for j in range(1, i + 1):
            table[i, j] = table[i, j - 1] + (table[i, j - 1] - table[i - 1, j - 1]) / (4**j - 1)
    return table


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def interpolation(y):
    """Lagrange's polynomial, Newton's differences, and a B-spline."""
    xs, total = np.arange(6.0), 0.0
    for j in range(6):
        basis = 1.0
        for m in range(6):
            if m != j:
                basis *= (2.5 - xs[m]) / (xs[j] - xs[m])
        total += y[j] * basis
    newton = y.copy()
    for j in range(1, 6):
        newton[j:] = (newton[j:] - newton[j - 1 : -1]) / (xs[j:] - xs[:-j])
    knots = np.r_[[0] * 3, np.linspace(0, 1, 4), [1] * 3]

    def spline(i, k, t):
        if k == 0:
            return 1.0 if knots[i] <= t < knots[i + 1] else 0.0
        found = 0.0
        if knots[i + k] != knots[i]:
            found += (t - knots[i]) / (knots[i + k] - knots[i]) * spline(i, k - 1, t)
        if knots[i + k + 1] != knots[i + 1]:
            rest = (knots[i + k + 1] - t) / (knots[i + k + 1] - knots[i + 1])
            found += rest * spline(i + 1, k - 1, t)
        return found

    return total, newton, [sum(c * spline(i, 3, t) for i, c in enumerate(y)) for t in (0.1, 0.6)]


@program(lambda rng: (rng.uniform(0.1, 0.9, size=(3, 3)),), smooth=0)
def page_rank(links):
    """The ranks of pages by a power iteration."""
    chances, ranks = links / links.sum(axis=0, keepdims=True), np.ones(3) / 3
    for _ in range(10):
        ranks = 0.85 * chances.dot(ranks) + 0.15 / 3
    return ranks


@program(lambda rng: (rng.uniform(1, 5, (5, 5)),), smooth=0, branches=True)
def all_shortest_paths(d):
    """Floyd and Warshall's shortest paths."""
    d = d.copy()
    np.fill_diagonal(d, 0)
    for k in range(5):
        for i in range(5):
            for j in range(5):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


@program(lambda rng: (rng.normal(size=8),), smooth=0, branches=True)
def sorts(x):
    """Insertion, bubbles, and the quicksort of lists."""

    def quick(a):
        if len(a) <= 1:
            return list(a)
        pivot = a[len(a) // 2]
        less, more = [v for v in a if v < pivot], [v for v in a if v > pivot]
        return quick(less) + [v for v in a if v == pivot] + quick(more)

    bubbles, inserted = list(x), x.copy()
    for i in range(len(bubbles)):
        for j in range(len(bubbles) - 1 - i):
            if bubbles[j] > bubbles[j + 1]:
                bubbles[j], bubbles[j + 1] = bubbles[j + 1], bubbles[j]
    for i in range(1, len(inserted)):
        key, j = inserted[i], i - 1
        while j >= 0 and inserted[j] > key:
            inserted[j + 1] = inserted[j]
            j -= 1
        inserted[j + 1] = key
    return np.array(quick(x)), bubbles, inserted


@program(lambda rng: (rng.normal(size=(4, 3)), rng.normal(size=(4, 3))), smooth=0)
def superposition(a, b):
    """The root mean square distance of two molecules after Kabsch's rotation."""
    a, b = a - a.mean(0), b - b.mean(0)
    u, _, vt = np.linalg.svd(a.T @ b)
    sign = np.sign(np.linalg.det(vt.T @ u.T))
    rotation = vt.T @ np.diag([1, 1, sign]) @ u.T
    return np.sqrt(((a @ rotation.T - b) ** 2).sum() / 4)


@program(lambda rng: (rng.normal(size=4),), smooth=0)
def collected_functions(x):
    """Functions of the collection of Moré, Garbow and Hillstrom."""
    powell = (x[0] + 10 * x[1]) ** 2 + 5 * (x[2] - x[3]) ** 2
    powell += (x[1] - 2 * x[2]) ** 4 + 10 * (x[0] - x[3]) ** 4
    brown = sum([(v + sum(x) - 5) ** 2 for v in x[:-1]]) + (np.prod(x) - 1) ** 2
    c = np.cos(x)
    trigonometric = sum(
        (4 - c.sum() + (i + 1) * (1 - c[i]) - math.sin(x[i])) ** 2 for i in range(4)
    )
    s = sum((i + 1) * (x[i] - 1) for i in range(4))
    return powell, brown, trigonometric, ((x - 1) ** 2).sum() + s**2 + s**4


@program(lambda rng: (rng.normal(size=(7, 7)),), smooth=0)
def edges(image):
    """Smoothed gradients with their directions, and a cosine transform."""
    kernel, smooth = np.outer([1, 2, 1], [1, 2, 1]) / 16.0, np.zeros_like(image)
    padded = np.pad(image, 1, "reflect")
    for i in range(3):
        for j in range(3):
            smooth += kernel[i, j] * padded[i : i + 7, j : j + 7]
    gy, gx = np.gradient(smooth)
    k = np.arange(7)
    cosines = np.sqrt(2 / 7) * np.cos(np.pi * (2 * k[None] + 1) * k[:, None] / 14)
    cosines[0] /= np.sqrt(2)
    return np.hypot(gx, gy), np.arctan2(gy, gx), cosines @ image @ cosines.T


@program(lambda rng: (rng.normal(size=2),), smooth=0)
def unscented_transform(mean):
    """Mean and covariance of a curved function by sigma points."""
    n, weights = 2, np.full(5, 0.5 / 3)
    weights[0] = 1 / 3
    root = np.linalg.cholesky(3 * 0.5 * np.eye(n)).T
    points = np.zeros((5, n))
    points[0] = mean
    for i in range(n):
        points[i + 1], points[n + i + 1] = mean + root[i], mean - root[i]
    images = np.array([[math.sin(p[0]) * p[1], p[0] ** 2] for p in points])
    center = weights @ images
    away = images - center[np.newaxis, :]
    return center, away.T @ np.diag(weights) @ away


@program(lambda rng: (100.0, rng.uniform(90, 110), 0.05, rng.uniform(0.1, 0.3)), smooth=1)
def option_tree(spot, strike, rate, volatility):
    """A binomial tree of a call, compared with the formula of Black and Scholes."""
    n = 5
    up = math.exp(volatility * math.sqrt(1 / n))
    chance = (math.exp(rate / n) - 1 / up) / (up - 1 / up)
    values = [max(0, spot * up**j * up ** (j - n) - strike) for j in range(n + 1)]
    for i in range(n - 1, -1, -1):
        values = [
            math.exp(-rate / n) * (chance * values[j + 1] + (1 - chance) * values[j])
            for j in range(i + 1)
        ]

    def normal(x):
        return 0.5 * (1 + math.erf(x / math.sqrt(2)))

    d = (math.log(spot / strike) + (rate + volatility**2 / 2)) / volatility
    return values[0], spot * normal(d) - strike * math.exp(-rate) * normal(d - volatility)
