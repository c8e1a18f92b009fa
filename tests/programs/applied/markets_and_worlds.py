"""Portfolios, volatilities, bodies, automata and adaptive steps."""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.programs.table import program


@dataclass
class KalmanState:
    x: np.ndarray
    P: np.ndarray
    history: list = field(default_factory=list)

    def predict(self, F, Q):
        self.x = F @ self.x
        self.P = F @ self.P @ F.T + Q
        return self

    def update(self, z, Hm, R):
        y = z - Hm @ self.x
        S = Hm @ self.P @ Hm.T + R
        K = self.P @ Hm.T @ np.linalg.inv(S)
        self.x = self.x + K @ y
        self.P = (np.eye(len(self.x)) - K @ Hm) @ self.P
        self.history.append((self.x.copy(), float(np.trace(self.P))))
        return self


@program(lambda rng: (rng.normal(size=5), float(rng.uniform(0.1, 1))), smooth=0)
def kalman_gps(zs, r_):
    """A filter as a dataclass, without outliers."""
    F, Hm = np.array([[1, 1.0], [0, 1]]), np.array([[1.0, 0]])
    s = KalmanState(np.zeros(2), np.eye(2) * 10)
    for z in zs:
        if abs(z) > 3:
            s.predict(F, 0.01 * np.eye(2))
            continue
        s.predict(F, 0.01 * np.eye(2)).update(np.array([z]), Hm, np.array([[r_]]))
    return [h[0] for h in s.history], s.history[-1][1]


@program(lambda rng: (90 + 20 * rng.random(), 0.2 + 0.1 * rng.random()), smooth=0, branches=True)
def implied_vol(S, true_sigma):
    """An implied volatility by Newton's method."""
    K, r, T = 100.0, 0.02, 0.5

    def N(x):
        return 0.5 * (1 + math.erf(x / math.sqrt(2)))

    def price(s):
        d1 = (math.log(S / K) + (r + s * s / 2) * T) / (s * math.sqrt(T))
        return S * N(d1) - K * math.exp(-r * T) * N(d1 - s * math.sqrt(T)), S * math.sqrt(
            T
        ) * math.exp(-(d1**2) / 2) / math.sqrt(2 * math.pi)

    market = price(true_sigma)[0]
    s = 0.3
    for i in range(20):
        p, vega = price(s)
        diff = p - market
        if abs(diff) < 1e-8:
            break
        s -= diff / vega
    return s, i


@program(lambda rng: (rng.normal(size=8) * 0.02 + 0.001, 5), smooth=0, branches=True)
def rolling_indicators(rets, n):
    """Moving averages and signals of a price."""
    price = 100 * np.cumprod(1 + rets)
    sma = np.convolve(price, np.ones(3) / 3, mode="valid")
    ema = [price[0]]
    for p in price[1:]:
        ema.append(0.3 * p + 0.7 * ema[-1])
    d = np.diff(price)
    up, down = np.where(d > 0, d, 0), np.where(d < 0, -d, 0)
    rs = up.mean() / down.mean() if down.any() else np.inf
    rsi = 100 - 100 / (1 + rs)
    roll = sliding_window_view(rets, 3).std(axis=1, ddof=1)
    peak = np.maximum.accumulate(price)
    signal = np.sign(sma - np.array(ema)[2:]).astype(int)
    trades = np.flatnonzero(np.diff(signal))
    return sma, np.array(ema), rsi, roll, ((price - peak) / peak).min(), trades


class Body:
    def __init__(self, m, pos, vel):
        self.m, self.pos, self.vel = m, np.array(pos, float), np.array(vel, float)


@program(lambda rng: (rng.normal(size=(3, 2)), rng.normal(size=(3, 2)) * 0.1), smooth=0)
def nbody_objects(pos, vel):
    """Bodies as objects."""
    bodies = [Body(m, p, v) for m, p, v in zip([1.0, 0.5, 0.2], pos, vel)]

    def acc():
        out = [np.zeros(2) for _ in bodies]
        for i, j in itertools.combinations(range(3), 2):
            d = bodies[j].pos - bodies[i].pos
            f = d / (np.dot(d, d) + 0.01) ** 1.5
            out[i] += bodies[j].m * f
            out[j] -= bodies[i].m * f
        return out

    a = acc()
    for step in range(4):
        for b, ai in zip(bodies, a):
            b.vel += 0.005 * ai
            b.pos += 0.01 * b.vel
        a = acc()
        for b, ai in zip(bodies, a):
            b.vel += 0.005 * ai
    E = sum(0.5 * b.m * b.vel @ b.vel for b in bodies)
    return np.array([b.pos for b in bodies]), E


@program(lambda rng: (rng.normal(size=(4,)) * 0.1, 0.05), smooth=0)
def dormand_prince(y, tol):
    """Adaptive steps of order five."""

    def f(t, y):
        return np.array([y[2], y[3], -y[0] - 2 * y[0] * y[1], -y[1] - y[0] ** 2 + y[1] ** 2])

    A = [
        [],
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
    b = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0])
    bs = np.array([5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40])
    t, h, n = 0.0, 0.5, 0
    while t < 1.0 and n < 20:
        h = min(h, 1.0 - t)
        k = []
        for row in A:
            k.append(f(t, y + h * sum((a * ki for a, ki in zip(row, k)), np.zeros(4))))
        k = np.array(k)
        err = np.linalg.norm(h * (b - bs) @ k)
        if err < tol:
            t, y = t + h, y + h * b @ k
        h *= min(2, max(0.2, 0.9 * (tol / max(err, 1e-12)) ** 0.2))
        n += 1
    return y, n


@program(lambda rng: (float(rng.uniform(0.2, 1)), rng.integers(0, 2, size=9)))
def elementary_automaton(p, start):
    """Rule 110."""
    rule = np.array([int(c) for c in f"{110:08b}"[::-1]], dtype=np.uint8)
    row = start.astype(np.uint8)
    rows = [row]
    for _ in range(4):
        idx = (np.roll(row, 1) << 2) | (row << 1) | np.roll(row, -1)
        row = rule[idx]
        rows.append(row)
    return np.array(rows), np.count_nonzero(rows) * p


@program(lambda rng: (rng.random((6, 6)), 0.6), branches=True)
def forest_fire(u, density):
    """A fire that spreads until it is out."""
    forest = np.where(u < density, 1, 0)
    forest[0][forest[0] == 1] = 2
    t = 0
    while (forest == 2).any():
        burning = forest == 2
        nb = np.zeros_like(burning)
        nb[1:] |= burning[:-1]
        nb[:-1] |= burning[1:]
        nb[:, 1:] |= burning[:, :-1]
        nb[:, :-1] |= burning[:, 1:]
        forest[burning] = 3
        forest[nb & (forest == 1)] = 2
        t += 1
    return forest, t


@program(
    lambda rng: (int(rng.integers(1, 5)), complex(rng.uniform(-0.8, 0.3), rng.uniform(-0.2, 0.6))),
    branches=True,
)
def julia(power, c):
    """A Julia set with a shrinking mask."""
    y, x = np.ogrid[-1.2:1.2:5j, -1.5:1.5:6j]
    z = x + 1j * y
    count = np.zeros(z.shape, dtype=np.int32)
    mask = np.ones(z.shape, bool)
    for _ in range(10):
        z[mask] = z[mask] ** (power + 1) + c
        mask[np.abs(z) > 2] = False
        count += mask
    return count, mask.mean()
