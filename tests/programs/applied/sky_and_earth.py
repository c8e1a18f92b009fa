"""Orbits, distances on an ellipsoid, calendars, structures."""

import math

import numpy as np

from tests.programs.table import program


def kepler_E(M, e, tol=1e-12):
    E = M if e < 0.8 else math.pi
    for i in range(50):
        dE = (E - e * math.sin(E) - M) / (1 - e * math.cos(E))
        E -= dE
        if abs(dE) < tol:
            return E, i
    raise RuntimeError("Kepler did not converge")


@program(
    lambda rng: (float(rng.uniform(0, 6)), float(rng.uniform(0.0, 0.9))), smooth=0, branches=True
)
def kepler(M, e):
    """Kepler's equation, with an error if it does not converge."""
    E, n = kepler_E(M, e)
    nu = 2 * math.atan2(math.sqrt(1 + e) * math.sin(E / 2), math.sqrt(1 - e) * math.cos(E / 2))
    return E, nu, n


@program(lambda rng: (rng.uniform(0.1, 1, size=6),), smooth=0, branches=True)
def kepler_vectorised(M):
    """Kepler's equation for many anomalies at once, checked by an assertion."""
    e = 0.3
    E = M.copy()
    while True:
        delta = (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
        E -= delta
        if np.max(np.abs(delta)) < 1e-10:
            break
    r_ = 1 - e * np.cos(E)
    xy = np.column_stack([np.cos(E) - e, np.sqrt(1 - e**2) * np.sin(E)])
    np.testing.assert_allclose(np.hypot(*xy.T), r_, rtol=1e-9)
    return xy


@program(
    lambda rng: (
        float(rng.uniform(-60, 60)),
        float(rng.uniform(-170, 170)),
        float(rng.uniform(0, 60)),
        float(rng.uniform(-170, 170)),
    ),
    smooth=0,
    branches=True,
)
def vincenty(lat1, lon1, lat2, lon2):
    """Vincenty's distance on the ellipsoid."""
    a, f = 6378137.0, 1 / 298.257223563
    b = (1 - f) * a
    phi1, L1, phi2, L2 = map(math.radians, (lat1, lon1, lat2, lon2))
    u1, u2 = math.atan((1 - f) * math.tan(phi1)), math.atan((1 - f) * math.tan(phi2))
    L = L2 - L1
    lam = L
    for _ in range(20):
        ss = math.sqrt(
            (math.cos(u2) * math.sin(lam)) ** 2
            + (math.cos(u1) * math.sin(u2) - math.sin(u1) * math.cos(u2) * math.cos(lam)) ** 2
        )
        if ss == 0:
            return 0.0
        cs = math.sin(u1) * math.sin(u2) + math.cos(u1) * math.cos(u2) * math.cos(lam)
        sigma = math.atan2(ss, cs)
        sa = math.cos(u1) * math.cos(u2) * math.sin(lam) / ss
        c2a = 1 - sa**2
        try:
            c2sm = cs - 2 * math.sin(u1) * math.sin(u2) / c2a
        except ZeroDivisionError:
            c2sm = 0.0
        C = f / 16 * c2a * (4 + f * (4 - 3 * c2a))
        prev = lam
        lam = L + (1 - C) * f * sa * (sigma + C * ss * (c2sm + C * cs * (-1 + 2 * c2sm**2)))
        if abs(lam - prev) < 1e-12:
            break
    usq = c2a * (a**2 - b**2) / b**2
    A = 1 + usq / 16384 * (4096 + usq * (-768 + usq * (320 - 175 * usq)))
    return b * A * sigma / 1000


@program(
    lambda rng: (int(rng.integers(1900, 2100)), int(rng.integers(1, 13)), int(rng.integers(1, 28))),
    branches=True,
)
def julian_day(y, m, d):
    """The Julian day of a date."""
    if m <= 2:
        y -= 1
        m += 12
    A = y // 100
    B = 2 - A + A // 4
    jd = int(365.25 * (y + 4716)) + int(30.6001 * (m + 1)) + d + B - 1524.5
    return jd, (jd - 2451545.0) / 36525


@program(lambda rng: (rng.uniform(0.5, 1.5, size=5), 1), smooth=0)
def finite_elements(k, dummy):
    """Springs in a row by the finite element method."""
    n = len(k) + 1
    K, F = np.zeros((n, n)), np.zeros(n)
    ke = np.array([[1, -1], [-1, 1]])
    for e in range(n - 1):
        dofs = np.array([e, e + 1])
        K[np.ix_(dofs, dofs)] += k[e] * ke
        F[dofs] += 0.5 / len(k)
    free = np.setdiff1d(np.arange(n), [0])
    u = np.zeros(n)
    u[free] = np.linalg.solve(K[np.ix_(free, free)], F[free])
    return u, K @ u - F


@program(lambda rng: (rng.uniform(1, 2, size=4), rng.uniform(0, 3, size=3)), smooth=0)
def truss_network(cond, inj):
    """Potentials and flows of a network, by its Laplacian."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 0)]
    Bm = np.zeros((4, 4), dtype=int)
    for e, (i, j) in enumerate(edges):
        Bm[e, i], Bm[e, j] = 1, -1
    L = Bm.T @ np.diag(cond) @ Bm
    b = np.r_[inj, -inj.sum()]
    v = np.linalg.pinv(L) @ b
    flows = {f"{i}-{j}": c * (v[i] - v[j]) for c, (i, j) in zip(cond, edges)}
    return v, flows, np.linalg.matrix_rank(L)
