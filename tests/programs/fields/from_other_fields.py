"""Genes by chance, smooth curves in columns, spectra of predictors, attitudes, sigma points.

They make generators, arrays in Fortran order and growing arrays themselves, and read one triangle
of a matrix.
"""

import functools
import math

import numpy as np
from scipy import integrate, linalg, stats

from tests.programs.table import program


@program(lambda rng: (float(rng.uniform(0.2, 0.8)), float(rng.uniform(0.0, 0.1))), branches=True)
def drift_of_an_allele(share, advantage):
    """The share of an allele among 100 parents in each generation, drawn from a seed."""
    chance = np.random.default_rng(11)
    shares, lost_at = [share], -1
    for generation in range(12):
        fitter = shares[-1] * (1 + advantage) / (1 + shares[-1] * advantage)
        shares.append(chance.binomial(100, min(fitter, 1.0)) / 100)
        if lost_at < 0 and shares[-1] in (0.0, 1.0):
            lost_at = generation
    return np.array(shares), lost_at, chance.normal(size=2)


@program(lambda rng: (rng.uniform(1.0, 4.0, 3), float(rng.uniform(0.5, 2.0))), branches=True)
def queue_of_a_day(rates, service):
    """Customers that wait at the end of each hour, and how long the first of them have waited."""
    chance = np.random.RandomState(5)
    waiting, history = 0, np.zeros(len(rates), dtype=int)
    for hour, rate in enumerate(rates):
        arriving = chance.poisson(rate * 3)
        waiting = max(0, waiting + arriving - chance.poisson(service * 3))
        history[hour] = waiting
    return history, chance.exponential(service, 3), chance.permutation(4)


@program(lambda rng: (rng.normal(size=(2, 4)), np.linspace(0.0, 1.0, 7)), smooth=0)
def curve_in_columns(nodes, places):
    """Points of a Bezier curve by Horner's scheme, one a column, in columns as BLAS has them."""
    degree = nodes.shape[1] - 1
    points = np.zeros((2, len(places)), order="F")
    powers = np.ones((1, len(places)), order="F")
    points += (1 - places) * nodes[:, [0]]
    weight = 1.0
    for k in range(1, degree):
        powers *= places
        weight = weight * (degree - k + 1) / k
        points += weight * powers * nodes[:, [k]]
        points *= 1 - places
    np.add(points, places * powers * nodes[:, [degree]], out=points)
    return points, points.ravel(order="K")[:3]


def _speed(differences, place):
    """The length of the tangent of a quadratic curve."""
    tangent = differences @ np.asfortranarray([1 - place, place])
    return np.linalg.norm(tangent, ord=2)


@program(lambda rng: (np.array([[0.0, 0.5, 1.0], [0.0, 1.0, 0.2]]) + 0.1 * rng.random((2, 3)),))
def length_of_a_curve(nodes):
    """The length of a curve, by the integral of a function whose first argument is bound."""
    speed = functools.partial(_speed, 2 * np.diff(nodes, axis=1))
    length, error = integrate.quad(speed, 0.0, 1.0)
    return length, error < 1e-9


@program(lambda rng: (np.sin(0.7 * np.arange(24.0)) + 0.3 * rng.normal(size=24), 5), smooth=0)
def predictor_that_grows(signal, order):
    """The coefficients of a linear predictor by Burg's method, in an array that grows in place."""
    forward, backward = signal[1:].copy(), signal[:-1].copy()
    power = np.mean(signal**2)
    coefficients = np.zeros(0)
    for k in range(order):
        reflection = -2 * forward @ backward / (forward @ forward + backward @ backward)
        coefficients.resize(k + 1, refcheck=False)
        coefficients[k] = reflection
        coefficients[:k] += reflection * coefficients[:k][::-1].copy()
        power = power * (1 - reflection**2)
        forward, backward = (
            (forward + reflection * backward)[1:],
            (backward + reflection * forward)[:-1],
        )
    return coefficients, power


@program(lambda rng: (np.array([0.3, -0.5, 0.8]) + 0.1 * rng.random(3),), smooth=0)
def attitude_of_least_error(turn):
    """The quaternion of a rotation: an eigenvector of a matrix of which half is written down."""
    x, y, z = turn
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    rotation = np.linalg.solve(np.eye(3) + skew, np.eye(3) - skew)
    lower = np.zeros((4, 4))
    lower[0, 0] = np.trace(rotation)
    lower[1, 0] = rotation[2, 1] - rotation[1, 2]
    lower[2, 0] = rotation[0, 2] - rotation[2, 0]
    lower[3, 0] = rotation[1, 0] - rotation[0, 1]
    for i in range(3):
        for j in range(i + 1):
            shared = rotation[i, j] + rotation[j, i]
            lower[1 + i, 1 + j] = shared - (np.trace(rotation) if i == j else 0.0)
    sizes, vectors = np.linalg.eigh(lower / 3)
    quaternion = vectors[:, np.argmax(sizes)]
    return math.copysign(1.0, quaternion[0]) * quaternion, sizes


@program(
    lambda rng: (rng.normal(size=2), np.array([[2.0, 0.3], [0.3, 1.0]]), rng.normal(size=4)),
    smooth=0,
)
def filter_of_sigma_points(state, spread, measured):
    """A filter of a place and a speed by points at the distance of the deviation."""
    steady = np.array([[1.0, 0.1], [0.0, 1.0]])
    for value in measured:
        root = linalg.cholesky(spread, lower=True) * np.sqrt(2)
        points = np.vstack([state + root.T, state - root.T]) @ steady.T
        state = points.mean(axis=0)
        spread = np.cov(points.T, bias=True) + 0.01 * np.eye(2)
        seen = np.hypot(points[:, 0], 1.0)
        across = (points - state).T @ (seen - seen.mean()) / len(seen)
        gain = across / (seen.var() + 0.5)
        state = state + gain * (value - seen.mean())
        spread = spread - np.outer(gain, gain) * (seen.var() + 0.5)
    return state, spread, stats.multivariate_normal.logpdf(np.zeros(2), state, spread)


@program(lambda rng: (rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), 0.4), smooth=1)
def flow_on_a_staggered_grid(height, speed, step):
    """A step of a shallow flow that is added to its own arrays, some in columns."""
    height, speed = np.asfortranarray(height) * 1, speed.copy()
    slope = np.roll(height, -1, axis=0) - height
    np.subtract(speed, step * slope, out=speed)
    flux = np.zeros(height.shape, order="F")
    flux += speed * (1 + np.abs(height))
    height -= step * (flux - np.roll(flux, 1, axis=0))
    np.clip(height, -2.0, 2.0, out=height)
    return height, speed, height.T.reshape(-1)[:4], flux.sum(axis=0)
