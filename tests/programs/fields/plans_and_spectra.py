"""Control of robots, orbits, transport of masses, speech, clusters and chains of incomes."""

import math

import numpy as np
from scipy.fftpack import dct, fft
from scipy.spatial.distance import cdist

from tests.programs.table import program


class Box:
    """The edges of a periodic box, which NumPy converts to their matrix."""

    def __init__(self, edges):
        self.edges = np.asarray(edges, dtype=float)

    def __array__(self, dtype=None, copy=False):
        return np.array(self.edges, dtype=dtype, copy=copy)

    def __setitem__(self, place, edges):
        self.edges[place] = edges


class Options(dict):
    """Settings that are read as items and as attributes."""

    def __init__(self, **options):
        super().__init__(**options)
        self.__dict__ = self


@program(lambda rng: (rng.uniform(-2.0, 2.0, size=(4, 3)), 1.5), smooth=0)
def nearest_images(places, size):
    """The distances between particles in a box, over its borders if that is shorter."""
    box, empty = Box(np.zeros((3, 3))), Box(np.eye(3))
    box[:] = empty
    box[:] = np.asarray(box) * size
    steps = (places[:, None] - places[None]) @ np.linalg.inv(np.asarray(box))
    steps = steps - np.round(steps)
    return np.sqrt(((steps @ np.asarray(box)) ** 2).sum(axis=2) + 1e-3)


@program(
    lambda rng: (Options(values=rng.normal(size=3), rate=0.3, keys=2), rng.normal(size=3)),
    as_python=True,
)
def settings_that_are_attributes(options, slope):
    """Steps downhill, which store the new values and the last slope in the settings."""
    for _ in range(options["keys"]):
        options.values = options["values"] - options.rate * slope * options.values
        options.rate *= 0.9
    options["norm"] = float(np.linalg.norm(options.values))
    return options.values, options.norm


@program(lambda rng: (rng.normal(size=64),), smooth=0)
def cepstrum(wave):
    """The cepstral coefficients of a signal by a bank of triangular filters."""
    power = np.abs(fft(wave * np.hamming(len(wave)), 64)[:33]) ** 2 / 64
    edges = np.floor(np.linspace(0, 32, 8)).astype(int)
    bank = np.zeros((6, 33))
    for m in range(1, 7):
        low, centre, high = edges[m - 1], edges[m], edges[m + 1]
        for k in range(low, centre):
            bank[m - 1, k] = (k - low) / (centre - low)
        for k in range(centre, high):
            bank[m - 1, k] = (high - k) / (high - centre)
    return dct(np.log(bank @ power + 1e-6), type=2, norm="ortho")[1:5]


@program(lambda rng: (rng.normal(size=(9, 2)), rng.uniform(0.1, 1.0, size=(3, 9))), smooth=0)
def soft_clusters(points, shares):
    """Two steps of fuzzy clustering; the distances are a transpose."""
    for _ in range(2):
        weights = (shares / shares.sum(axis=0, keepdims=True)) ** 2.0
        centres = weights.dot(points) / np.atleast_2d(weights.sum(axis=1)).T
        distances = np.fmax(cdist(points, centres).T, np.finfo(np.float64).eps)
        closeness = (distances / np.max(distances, axis=0, keepdims=True)) ** -2.0
        shares = closeness / closeness.sum(axis=0, keepdims=True)
    return centres, shares, (weights * distances**2).sum()


@program(lambda rng: (rng.normal(size=(5, 4)), 1.0), smooth=0, branches=True)
def columns_on_a_simplex(v, z):
    """Each column projected onto the numbers that are positive and add up to z."""

    def rows(u):
        falling = np.sort(u, axis=1)[:, ::-1]
        sums = np.cumsum(falling, axis=1) - z * np.ones(len(u))[:, np.newaxis]
        count = np.count_nonzero(falling - sums / (np.arange(u.shape[1]) + 1) > 0, axis=1)
        theta = sums[np.arange(len(u)), count - 1] / count
        return np.maximum(u - theta[:, np.newaxis], 0)

    return rows(v.T).T, np.exp(v[:, 0] - v[:, 0].max())


@program(lambda rng: (rng.normal(size=(3, 3)) * 0.4, rng.normal(size=(3, 1))), branches=True)
def braking_by_riccati(a, b):
    """The gain of a linear controller, from a Riccati equation solved by repetition."""
    cost, effort = np.eye(3), np.eye(1)
    p = cost
    for _ in range(100):
        inner = np.linalg.inv(effort + b.T @ p @ b)
        new = a.T @ p @ a - a.T @ p @ b @ inner @ b.T @ p @ a + cost
        if abs(new - p).max() < 1e-2:
            break
        p = new
    return np.linalg.inv(b.T @ new @ b + effort) @ (b.T @ new @ a), new


def _stumpff(z):
    if z > 0:
        root = math.sqrt(z)
        return (1 - math.cos(root)) / z, (root - math.sin(root)) / root**3
    if z < 0:
        root = math.sqrt(-z)
        return (math.cosh(root) - 1) / -z, (math.sinh(root) - root) / root**3
    return 1 / 2, 1 / 6


@program(
    lambda rng: (
        np.array([1.0, 0.1, 0.0]) + 0.05 * rng.normal(size=3),
        np.array([0.0, 1.0, 0.2]) + 0.05 * rng.normal(size=3),
        0.7,
    ),
    smooth=0,
    branches=True,
)
def orbit_by_universal_variables(place, speed, time):
    """Where a body is after some time, for ellipses and hyperbolas alike."""
    distance, radial = np.linalg.norm(place), place @ speed / np.linalg.norm(place)
    alpha = 2.0 / distance - speed @ speed
    chi = abs(alpha) * time
    for _ in range(8):
        c, s = _stumpff(alpha * chi**2)
        miss = distance * radial * chi**2 * c + (1 - alpha * distance) * chi**3 * s
        miss += distance * chi - time
        slope = distance * radial * chi * (1 - alpha * chi**2 * s)
        slope += (1 - alpha * distance) * chi**2 * c + distance
        chi -= miss / slope
    c, s = _stumpff(alpha * chi**2)
    new = (1 - chi**2 / distance * c) * place + (time - chi**3 * s) * speed
    return new, float(np.hypot(new[0], new[1]))


@program(
    lambda rng: (
        *(rng.dirichlet(np.ones(n)) for n in (4, 5)),
        rng.uniform(size=(4, 5)),
    ),
    smooth=2,
)
def balanced_transport(source, target, cost):
    """Masses moved at little cost, smoothed by entropy, with potentials against overflow."""
    f, g = np.zeros_like(source), np.zeros_like(target)
    for _ in range(12):
        kernel = np.exp((f[:, None] + g[None] - cost) / 0.3)
        f += 0.3 * (np.log(source) - np.log(kernel.sum(axis=1)))
        kernel = np.exp((f[:, None] + g[None] - cost) / 0.3)
        g += 0.3 * (np.log(target) - np.log(kernel.sum(axis=0)))
    plan = np.exp((f[:, None] + g[None] - cost) / 0.3)
    return plan, np.sum(plan * cost)


@program(lambda rng: (rng.dirichlet(np.ones(4), size=6).T,), smooth=0)
def alignment_loss(shares, labels=(1, 2, 2), blank=0):
    """The probability of a sequence of labels under shares per time step, in its logarithm."""
    length, steps = 2 * len(labels) + 1, shares.shape[1]
    alphas = np.zeros((length, steps))
    alphas[0, 0], alphas[1, 0] = shares[blank, 0], shares[labels[0], 0]
    loss = np.log(alphas[:, 0].sum())
    alphas[:, 0] /= alphas[:, 0].sum()
    for t in range(1, steps):
        start, end = max(0, length - 2 * (steps - t)), min(2 * t + 2, length)
        for s in range(start, length):
            k = (s - 1) // 2
            own = shares[blank if s % 2 == 0 else labels[k], t]
            before = alphas[s, t - 1] + (alphas[s - 1, t - 1] if s else 0.0)
            if s % 2 and s > 1 and labels[k] != labels[k - 1]:
                before = before + alphas[s - 2, t - 1]
            alphas[s, t] = before * own
        total = np.sum(alphas[start:end, t])
        alphas[start:end, t] /= total
        loss += np.log(total)
    return -loss


@program(lambda rng: (float(rng.uniform(0.3, 0.9)), float(rng.uniform(0.1, 0.3))), smooth=0)
def chain_of_incomes(persistence, spread, n=4):
    """A Markov chain like an autoregressive process, its matrix built by recursion."""

    def matrix_of(size):
        p = (1 + persistence) / 2
        if size == 2:
            return np.array([[p, 1 - p], [1 - p, p]])
        corners = np.zeros((4, size, size))
        inner = matrix_of(size - 1)
        corners[0, :-1, :-1], corners[1, :-1, 1:] = p * inner, (1 - p) * inner
        corners[2, 1:, :-1], corners[3, 1:, 1:] = (1 - p) * inner, p * inner
        total = corners.sum(axis=0)
        total[1:-1, :] /= 2
        return total

    width = np.sqrt(spread**2 / (1 - persistence**2)) * np.sqrt(n - 1)
    chain, levels = matrix_of(n), np.linspace(-width, width, n)
    lasting = np.linalg.matrix_power(chain, 16)[0]
    return chain, levels, lasting @ np.exp(levels)


@program(
    lambda rng: (
        [0.3 * rng.normal(size=(3, 3)) for _ in range(3)],
        rng.uniform(0.2, 0.8),
    ),
)
def mean_of_covariances(factors, step):
    """The mean of matrices on the curved space of covariances, and a point on a geodesic."""
    matrices = np.array([f @ f.T + np.eye(3) for f in factors])

    def of_eigenvalues(matrix, function):
        values, vectors = np.linalg.eigh(matrix)
        return (vectors * function(values)) @ vectors.T

    mean = matrices.mean(axis=0)
    for _ in range(4):
        root, inverse = (of_eigenvalues(mean, lambda v, p=p: v**p) for p in (0.5, -0.5))
        tangent = sum(of_eigenvalues(inverse @ m @ inverse, np.log) for m in matrices) / 3
        mean = root @ of_eigenvalues(tangent, np.exp) @ root
    root, inverse = (of_eigenvalues(mean, lambda v, p=p: v**p) for p in (0.5, -0.5))
    between = root @ of_eigenvalues(inverse @ matrices[0] @ inverse, lambda v: v**step) @ root
    return mean, between


@program(lambda rng: (0.1 * rng.normal(size=(5, 3)), rng.integers(0, 2, size=(6, 5)) * 1.0))
def restricted_boltzmann(weights, data):
    """Contrastive divergence with a bias unit in front of each layer, and drawn hidden states."""
    rng = np.random.RandomState(2)
    w = np.insert(np.insert(weights, 0, 0, axis=0), 0, 0, axis=1)
    seen = np.insert(data, 0, 1, axis=1)
    errors = []
    for _ in range(3):
        hidden = 1.0 / (1 + np.exp(-seen @ w))
        hidden[:, 0] = 1
        states = hidden > rng.rand(*hidden.shape)
        dreamt = 1.0 / (1 + np.exp(-(states @ w.T)))
        dreamt[:, 0] = 1
        again = 1.0 / (1 + np.exp(-dreamt @ w))
        w += 0.1 * (seen.T @ hidden - dreamt.T @ again) / len(data)
        errors.append(np.sum((seen - dreamt) ** 2))
    return w, errors
