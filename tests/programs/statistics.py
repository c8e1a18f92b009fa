"""Estimators, tests and samplers, as textbooks of statistics write them."""

import math
from collections import defaultdict

import numpy as np

from tests.programs.table import program


@program(lambda rng: (rng.normal(size=20),), smooth=0)
def running_moments(samples):
    """Mean, variance and skewness by Welford's updates."""
    n, mean, m2, m3 = 0, 0.0, 0.0, 0.0
    for x in samples:
        n += 1
        delta = x - mean
        step = delta / n
        term = delta * step * (n - 1)
        mean += step
        m3 += term * step * (n - 2) - 3 * step * m2
        m2 += term
    return {"mean": mean, "variance": m2 / (n - 1), "skewness": math.sqrt(n) * m3 / m2**1.5}


@program(lambda rng: (rng.normal(size=(12, 3)), rng.normal(size=12)), smooth=1)
def regression_table(X, y):
    """Coefficients, standard errors and t values of least squares."""
    n = len(y)
    design = np.column_stack([np.ones(n), X])
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ y
    residuals = y - design @ beta
    sigma2 = residuals @ residuals / (n - design.shape[1])
    table = np.zeros((design.shape[1], 3))
    for j in range(design.shape[1]):
        error = np.sqrt(sigma2 * inverse[j, j])
        table[j] = beta[j], error, beta[j] / error
    return table


@program(lambda rng: (rng.normal(size=(15, 2)), np.array([[-1.0, 0.0], [1.0, 0.5]])), smooth=0)
def gaussian_mixture(points, centres):
    """Five rounds of expectation and maximisation for a mixture of Gaussians."""
    n, d = points.shape
    k = centres.shape[0]
    means = centres.copy()
    covariances = np.array([np.eye(d) for _ in range(k)])
    weights = np.full(k, 1.0 / k)
    responsibilities = np.zeros((n, k))
    history = []
    for _ in range(5):
        for j in range(k):
            diff = points - means[j]
            solved = np.linalg.solve(covariances[j], diff.T).T
            norm = np.sqrt((2 * np.pi) ** d * np.linalg.det(covariances[j]))
            density = np.exp(-0.5 * np.sum(diff * solved, axis=1)) / norm
            responsibilities[:, j] = weights[j] * density
        totals = responsibilities.sum(axis=1, keepdims=True)
        history.append(float(np.log(totals).sum()))
        responsibilities /= totals
        mass = responsibilities.sum(axis=0)
        weights = mass / n
        for j in range(k):
            means[j] = responsibilities[:, j] @ points / mass[j]
            diff = points - means[j]
            covariances[j] = (responsibilities[:, j, None] * diff).T @ diff / mass[j]
            covariances[j] += 1e-3 * np.eye(d)
    return means, weights, np.array(history)


@program(lambda rng: (rng.uniform(0.5, 2, size=30),), smooth=0, branches=True)
def gamma_fit(samples):
    """Shape and scale of a gamma distribution by Newton's method with a digamma series."""

    def digamma(x):
        result = 0.0
        while x < 6:
            result -= 1 / x
            x += 1
        inverse = 1 / (x * x)
        return result + math.log(x) - 0.5 / x - inverse * (1 / 12 - inverse * (1 / 120))

    def trigamma(x, h=1e-4):
        return (digamma(x + h) - digamma(x - h)) / (2 * h)

    s = math.log(np.mean(samples)) - np.mean(np.log(samples))
    shape = (3 - s + math.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s)
    for _ in range(3):
        error = math.log(shape) - digamma(shape) - s
        shape -= error / (1 / shape - trigamma(shape))
    return shape, np.mean(samples) / shape


@program(lambda rng: (rng.normal(size=25), np.linspace(-2, 2, 9), 0.4), smooth=0)
def kernel_density(samples, grid, bandwidth):
    """A density estimate with a Gaussian kernel, point by point."""
    density = np.empty_like(grid)
    norm = 1.0 / (len(samples) * bandwidth * math.sqrt(2 * math.pi))
    for i, g in enumerate(grid):
        density[i] = norm * sum(math.exp(-0.5 * ((g - s) / bandwidth) ** 2) for s in samples)
    return density


@program(lambda rng: (rng.normal(size=10), np.random.default_rng(rng.integers(99))))
def bootstrap_interval(samples, generator):
    """A percentile interval of the median by resampling."""
    n = samples.size
    medians = np.empty(40)
    for b in range(40):
        medians[b] = np.median(samples[generator.integers(0, n, size=n)])
    low, high = np.percentile(medians, [2.5, 97.5])
    return low, high, medians.std(ddof=1)


@program(lambda rng: (rng.integers(1, 9, size=(3, 4)),))
def chi_squared(observed):
    """The statistic and the degrees of freedom of a table of counts."""
    total = observed.sum()
    rows, columns = observed.sum(axis=1), observed.sum(axis=0)
    statistic = 0.0
    for i in range(observed.shape[0]):
        for j in range(observed.shape[1]):
            expected = rows[i] * columns[j] / total
            statistic += (observed[i, j] - expected) ** 2 / expected
    return statistic, (observed.shape[0] - 1) * (observed.shape[1] - 1)


@program(lambda rng: (rng.normal(size=12), rng.normal(size=12)), smooth=0)
def correlations(x, y):
    """Pearson's and a rank correlation, with Fisher's interval."""

    def ranks(v):
        order = np.argsort(v)
        out = np.zeros(len(v))
        out[order] = np.arange(len(v))
        return out

    r = np.corrcoef(x, y)[0, 1]
    z = math.atanh(r)
    half = 1.96 / math.sqrt(len(x) - 3)
    rank = np.corrcoef(ranks(x), ranks(y))[0, 1]
    return np.array([r, math.tanh(z - half), math.tanh(z + half), rank])


@program(lambda rng: (rng.normal(size=2), np.random.default_rng(int(rng.integers(99)))))
def metropolis(start, generator):
    """Twenty steps of a random walk on a banana-shaped density, with masks for acceptance."""

    def log_density(p):
        return -0.5 * (p[0] ** 2 / 4 + (p[1] - p[0] ** 2) ** 2)

    chain = np.zeros((20, 2))
    position = start
    accepted = 0
    for i in range(20):
        proposal = position + 0.5 * generator.normal(size=2)
        ratio = log_density(proposal) - log_density(position)
        take = np.log(generator.uniform()) < ratio
        position = np.where(take, proposal, position)
        accepted += take
        chain[i] = position
    return chain, accepted / 20


@program(lambda rng: (["a", "b", "a", "c", "b", "a"], rng.normal(size=6)), smooth=1)
def group_means(labels, values):
    """The mean and the spread of each group, as a dictionary."""
    groups = defaultdict(list)
    for label, value in zip(labels, values):
        groups[label].append(value)
    result = {}
    for label in sorted(groups):
        members = np.array(groups[label])
        result[label] = (members.mean(), np.sqrt(np.mean((members - members.mean()) ** 2) + 0.1))
    return result
