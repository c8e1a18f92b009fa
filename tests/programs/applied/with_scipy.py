"""Analyses that call SciPy: solvers, tests, filters, interpolators, trees and sparse systems."""

import math

import numpy as np
import scipy.sparse.linalg
from scipy import integrate, interpolate, linalg, ndimage, optimize, signal, sparse, stats
from scipy.spatial import ConvexHull, cKDTree

from tests.programs.table import program


@program(lambda rng: (100.0, float(rng.uniform(90, 110)), float(rng.uniform(6, 14))), smooth=2)
def implied_volatility(spot, strike, price):
    """The volatility at which the formula of Black and Scholes gives a price."""

    def call(sigma):
        d1 = (np.log(spot / strike) + sigma**2 / 2) / sigma
        return spot * stats.norm.cdf(d1) - strike * stats.norm.cdf(d1 - sigma)

    try:
        return optimize.brentq(lambda s: call(s) - price, 1e-6, 5, xtol=1e-14)
    except ValueError:
        return float("nan")


@program(lambda rng: (rng.normal(size=40) * 0.1,), branches=True)
def garch_fit(returns):
    """A model of changing variance, fitted by a simplex search."""

    def cost(p):
        omega, alpha, beta = np.exp(p)
        variance = np.empty_like(returns)
        variance[0] = returns.var()
        for t in range(1, len(returns)):
            variance[t] = omega + alpha * returns[t - 1] ** 2 + beta * variance[t - 1]
        return 0.5 * np.sum(np.log(variance) + returns**2 / variance)

    start = np.log([0.001, 0.1, 0.5])
    options = {"maxiter": 30}
    found = optimize.minimize(cost, start, method="Nelder-Mead", options=options)
    return np.exp(found.x), found.fun


@program(lambda rng: (rng.uniform(0.5, 2, size=3),), branches=True)
def spectrum_peaks(frequencies):
    t = np.arange(128) / 16.0
    x = sum(np.sin(2 * np.pi * f * t) for f in frequencies)
    grid, power = signal.periodogram(x, fs=16.0)
    peaks, found = signal.find_peaks(power, height=power.max() * 0.1)
    return {"f": grid[peaks], "height": found["peak_heights"], "count": len(peaks)}


@program(lambda rng: (rng.uniform(0.5, 2), rng.uniform(0.1, 0.5)), smooth=0)
def damped_oscillator(omega, gamma):
    def rhs(y, t):
        return [y[1], -omega * omega * y[0] - 2 * gamma * y[1]]

    t = np.linspace(0, 3, 7)
    return integrate.odeint(rhs, [1.0, 0.0], t, rtol=1e-11, atol=1e-11)[:, 0]


@program(lambda rng: (float(rng.uniform(0.5, 2)),), branches=True)
def stiff_steps(rate):
    """The times that the solver chooses are part of the result."""
    found = integrate.solve_ivp(
        lambda t, y: [-rate * y[0], rate * y[0] - y[1]], (0, 2), [1.0, 0.0], method="BDF"
    )
    return found.y[:, -1], found.t[-2], found.success


@program(lambda rng: (rng.normal(size=(9, 2)), rng.normal(size=2)))
def nearest_neighbours(points, query):
    distance, place = cKDTree(points).query(query, k=3)
    return distance, place, points[place].mean(axis=0)


@program(lambda rng: (rng.normal(size=(8, 2)),), branches=True)
def hull_area(points):
    hull = ConvexHull(points)
    corners = points[hull.vertices]
    x, y = corners.T
    shoelace = abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2
    return hull.volume, shoelace, len(hull.vertices)


@program(lambda rng: (rng.normal(size=8), rng.uniform(1, 2, size=8)))
def tridiagonal_sparse(right, diagonal):
    n = len(right)
    off = -np.ones(n - 1)
    matrix = sparse.diags([off, diagonal + 2, off], [-1, 0, 1], format="csc")
    x = scipy.sparse.linalg.spsolve(matrix, right)
    return x, matrix @ x - right


@program(
    lambda rng: (rng.integers(0, 5, size=12), rng.integers(0, 5, size=12), rng.normal(size=12))
)
def graph_laplacian(rows, columns, weights):
    adjacency = sparse.coo_matrix((np.abs(weights), (rows, columns)), shape=(5, 5)).tocsr()
    dense = (adjacency + adjacency.T).toarray()
    laplacian = np.diag(dense.sum(axis=1)) - dense
    return np.linalg.eigvalsh(laplacian)


@program(lambda rng: (rng.normal(size=(4, 5)), rng.uniform(0, 3, size=(6, 2))))
def on_a_grid(values, points):
    grid = interpolate.RegularGridInterpolator((np.arange(4.0), np.arange(5.0)), values)
    return grid(points).mean(), grid(points[:1])


@program(lambda rng: (rng.normal(size=40),), branches=True)
def hypotheses(x):
    a, b = x[:20], x[20:]
    t = stats.ttest_ind(a, b, equal_var=False)
    u = stats.mannwhitneyu(a, b)
    verdict = "reject" if min(t.pvalue, u.pvalue) < 0.05 else "keep"
    return verdict, t.statistic, u.statistic, stats.ks_2samp(a, b).pvalue


@program(lambda rng: (rng.uniform(0.5, 2, size=2),), smooth=0)
def chemical_equilibrium(constants):
    def balance(c):
        a, b, e = c
        return [a + b - 1, b * b / a - constants[0], e - constants[1] * b]

    return optimize.fsolve(balance, [0.5, 0.5, 0.5], xtol=1e-13)


@program(lambda rng: (rng.uniform(1, 2, size=3),), branches=True)
def on_a_simplex(target):
    found = optimize.minimize(
        lambda x: ((x - target) ** 2).sum(),
        np.zeros(3),
        method="SLSQP",
        bounds=[(0, None)] * 3,
        constraints=[{"type": "eq", "fun": lambda x: x.sum() - 1}],
    )
    return found.x if found.success else None


@program(lambda rng: (rng.normal(size=64),))
def spectral_gate(x):
    _, _, z = signal.stft(x, nperseg=16)
    z = np.where(np.abs(z) < np.median(np.abs(z)), 0, z)
    return signal.istft(z, nperseg=16)[1]


@program(lambda rng: (rng.normal(size=24),), branches=True)
def filtered_trend(x):
    b, a = signal.butter(2, 0.4)
    smooth = signal.filtfilt(b, a, x)
    r, p = stats.pearsonr(x, smooth)
    line = stats.linregress(np.arange(24), smooth)
    return smooth, r if p < 0.05 else 0.0, line.slope, math.sqrt(line.stderr)


@program(lambda rng: (rng.random((6, 6)),), branches=True)
def blobs(image):
    labels, count = ndimage.label(ndimage.gaussian_filter(image, 1.0) > 0.5)
    centres = ndimage.center_of_mass(image, labels, range(1, count + 1)) if count else []
    return count, [tuple(c) for c in centres]


@program(lambda rng: (rng.normal(size=(6, 3)), rng.normal(size=6)))
def by_factors(a, b):
    """Least squares in three ways."""
    q, r = linalg.qr(a, mode="economic")
    lu = linalg.lu_factor(a.T @ a)
    return linalg.solve_triangular(r, q.T @ b), linalg.lu_solve(lu, a.T @ b), linalg.lstsq(a, b)[0]


@program(lambda rng: (rng.uniform(1, 3),))
def fitted_decay(rate):
    t = np.linspace(0, 2, 15)
    data = 2.5 * np.exp(-rate * t)
    best, covariance = optimize.curve_fit(lambda t, a, k: a * np.exp(-k * t), t, data, p0=(1, 1))
    return np.round(best, 6), np.all(np.sqrt(np.diag(covariance)) < 1e-3)


@program(lambda rng: (rng.normal(size=(5, 5)),))
def assignment(cost):
    rows, columns = optimize.linear_sum_assignment(cost)
    total = cost[rows, columns].sum()
    return {"pairs": list(zip(rows.tolist(), columns.tolist(), strict=True)), "total": total}
