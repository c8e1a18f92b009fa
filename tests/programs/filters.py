"""Estimation of states: filters as classes and as functions."""

from copy import deepcopy

import numpy as np
from numpy import dot, eye, zeros

from tests.programs.table import program


class KalmanFilter:
    """A linear filter with its matrices as attributes."""

    def __init__(self, dim_x, dim_z):
        self.x = zeros((dim_x, 1))
        self.P = eye(dim_x)
        self.Q = eye(dim_x)
        self.F = eye(dim_x)
        self.H = zeros((dim_z, dim_x))
        self.R = eye(dim_z)
        self._I = eye(dim_x)
        self._log_likelihood = 0.0

    def predict(self):
        """The state one step ahead."""
        self.x = dot(self.F, self.x)
        self.P = dot(dot(self.F, self.P), self.F.T) + self.Q
        self.x_prior = self.x.copy()

    def update(self, z):
        """The state after a measurement; None leaves it as it is."""
        if z is None:
            self.y = np.array([[None] * self.R.shape[0]]).T
            return
        z = np.atleast_2d(z).T
        self.y = z - dot(self.H, self.x)
        PHT = dot(self.P, self.H.T)
        self.S = dot(self.H, PHT) + self.R
        self.K = dot(PHT, np.linalg.inv(self.S))
        self.x = self.x + dot(self.K, self.y)
        I_KH = self._I - dot(self.K, self.H)
        self.P = dot(dot(I_KH, self.P), I_KH.T) + dot(dot(self.K, self.R), self.K.T)
        self._log_likelihood -= 0.5 * float(np.log(np.linalg.det(self.S)))

    @property
    def log_likelihood(self):
        """Half the log determinants, summed."""
        return self._log_likelihood


@program(lambda rng: (rng.normal(size=6), rng.uniform(0.5, 1)), smooth=0)
def track(measurements, noise):
    """Positions and covariances of a constant-velocity filter, one measurement missing."""
    f = KalmanFilter(dim_x=2, dim_z=1)
    f.F = np.array([[1.0, 0.1], [0.0, 1.0]])
    f.H[0, 0] = 1.0
    f.P *= 10.0
    f.R *= noise
    f.Q = np.array([[0.1, 0.05], [0.05, 0.1]])
    xs, covs = [], []
    for i, z in enumerate(measurements):
        f.predict()
        f.update(z if i != 3 else None)
        xs.append(f.x[:, 0])
        covs.append(f.P)
    return np.array(xs), np.array(covs), f.log_likelihood


@program(lambda rng: (rng.normal(size=5), 0.3, 0.2), smooth=0)
def alpha_beta(data, g, h):
    """The g-h filter with a list of estimates."""
    x_est, dx = 0.0, 1.0
    results = []
    for z in data:
        x_pred = x_est + dx
        residual = z - x_pred
        dx = dx + h * residual
        x_est = x_pred + g * residual
        results.append(x_est)
    return np.array(results)


@program(lambda rng: (rng.normal(size=2), rng.uniform(0.5, 1, size=2)), smooth=0)
def unscented_transform(mean, deviations):
    """The mean and the covariance of points through polar coordinates."""
    n, kappa = 2, 1.0
    P = np.diag(deviations**2) + 0.1
    sigmas = np.zeros((2 * n + 1, n))
    U = np.linalg.cholesky((n + kappa) * P).T
    sigmas[0] = mean
    for k in range(n):
        sigmas[k + 1] = np.subtract(mean, -U[k])
        sigmas[n + k + 1] = np.subtract(mean, U[k])
    Wc = np.full(2 * n + 1, 0.5 / (n + kappa))
    Wc[0] = kappa / (n + kappa)
    points = np.array([[np.exp(0.3 * a), a * b] for a, b in sigmas])
    x = np.dot(Wc, points)
    cov = np.zeros((n, n))
    for w, p in zip(Wc, points):
        y = p - x
        cov += w * np.outer(y, y)
    return x, cov


@program(lambda rng: (rng.normal(size=4), np.random.default_rng(int(rng.integers(99)))))
def particle_filter(measurements, generator):
    """Particles with systematic resampling."""
    N = 20
    particles = generator.normal(0, 1, N)
    means = []
    for z in measurements:
        particles = particles + generator.normal(0, 0.1, N)
        weights = np.exp(-0.5 * (z - particles) ** 2) + 1e-300
        weights /= sum(weights)
        means.append(np.average(particles, weights=weights))
        positions = (generator.random() + np.arange(N)) / N
        indexes = np.searchsorted(np.cumsum(weights), positions)
        particles[:] = particles[np.minimum(indexes, N - 1)]
    return np.array(means)


@program(lambda rng: (rng.normal(size=5),), smooth=0)
def smoother(measurements):
    """Rauch, Tung and Striebel's smoother over saved states."""
    f = KalmanFilter(2, 1)
    f.F[0, 1] = 0.5
    f.H = np.array([[1.0, 0]])
    saved = []
    for z in measurements:
        f.predict()
        f.update(z)
        saved.append(deepcopy(f))
    x, P = saved[-1].x, saved[-1].P
    out = [x]
    for state in reversed(saved[:-1]):
        Pp = f.F @ state.P @ f.F.T + f.Q
        K = state.P @ f.F.T @ np.linalg.inv(Pp)
        x = state.x + K @ (x - f.F @ state.x)
        P = state.P + K @ (P - Pp) @ K.T
        out.insert(0, x)
    return np.hstack(out)


@program(lambda rng: (np.cumsum(rng.normal(size=10)), 0.5, 0.1), smooth=1)
def holt(series, alpha, beta):
    """Double exponential smoothing with a forecast by a generator."""

    def levels():
        level, trend = series[0], series[1] - series[0]
        for value in series[1:]:
            last = level
            level = alpha * value + (1 - alpha) * (level + trend)
            trend = beta * (level - last) + (1 - beta) * trend
            yield level, trend

    pairs = list(levels())
    level, trend = pairs[-1]
    return np.array([level + k * trend for k in range(1, 4)]), np.array([a for a, _ in pairs])
