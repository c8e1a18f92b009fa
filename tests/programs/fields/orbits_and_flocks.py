"""Orbits, waves in the ground, crystals, arms of robots, flocks, ratings and outbreaks."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from tests.programs.table import program


@program(
    lambda rng: (
        7000.0 + 500 * rng.random(),
        float(rng.uniform(0.05, 0.6)),
        float(rng.uniform(0, 6)),
    ),
    smooth=0,
    branches=True,
)
def kepler_orbit(axis, eccentricity, anomaly):
    """A place on an orbit by Kepler's equation, and the elements from place and velocity."""
    mu = 398600.4418
    e_anomaly = anomaly if eccentricity < 0.8 else math.pi
    for count in range(25):
        step = (e_anomaly - eccentricity * math.sin(e_anomaly) - anomaly) / (
            1 - eccentricity * math.cos(e_anomaly)
        )
        e_anomaly -= step
        if abs(step) < 1e-12:
            break
    half = math.sqrt(1 - eccentricity**2)
    place = axis * np.array([math.cos(e_anomaly) - eccentricity, half * math.sin(e_anomaly), 0.0])
    speed = math.sqrt(mu * axis) / np.linalg.norm(place)
    velocity = speed * np.array([-math.sin(e_anomaly), half * math.cos(e_anomaly), 0.0])
    momentum = np.cross(place, velocity)
    pointing = np.cross(velocity, momentum) / mu - place / np.linalg.norm(place)
    energy = velocity @ velocity / 2 - mu / np.linalg.norm(place)
    return -mu / (2 * energy), np.linalg.norm(pointing), place, velocity, count


@program(
    lambda rng: (np.array([8.0, 9.0, 10.0]) + rng.random(3), np.cumsum(rng.random(3) + 0.5), 3.0),
    smooth=0,
    branches=True,
)
def refracted_waves(speeds, depths, offset):
    """First arrivals of waves in a layered ground, direct and along each layer."""
    thickness = np.diff(depths, prepend=0.0)
    arrivals = {"direct": offset / speeds[0]}
    for k in range(1, len(speeds)):
        sines = speeds[:k] / speeds[k]
        if np.any(sines >= 1):
            continue
        cosines = np.sqrt(1 - sines**2)
        critical = 2 * np.sum(thickness[:k] * sines / cosines)
        if offset < critical:
            arrivals[f"head {k}"] = math.inf
            continue
        arrivals[f"head {k}"] = offset / speeds[k] + 2 * np.sum(
            thickness[:k] * cosines / speeds[:k]
        )
    first = min(arrivals, key=arrivals.get)
    return first, arrivals[first], len(arrivals)


@program(lambda rng: (rng.uniform(-1, 1, (6, 6)),), smooth=0)
def tomography(picture):
    """Sums along turned lines by interpolation, and steps of Kaczmarz back to the picture."""
    n = len(picture)
    middle = (n - 1) / 2
    axis = np.arange(n) - middle
    rows, sums = [], []
    for angle in np.linspace(0, np.pi, 5, endpoint=False):
        c, s = np.cos(angle), np.sin(angle)
        for shift in axis:
            y, x = middle + shift * c + axis * s, middle - shift * s + axis * c
            y0, x0 = np.floor(y).astype(int), np.floor(x).astype(int)
            row = np.zeros((n, n))
            for dy, dx in itertools.product((0, 1), repeat=2):
                weight = (1 - np.abs(y - y0 - dy)) * (1 - np.abs(x - x0 - dx))
                inside = (0 <= y0 + dy) & (y0 + dy < n) & (0 <= x0 + dx) & (x0 + dx < n)
                np.add.at(row, (y0[inside] + dy, x0[inside] + dx), weight[inside])
            rows.append(row.ravel())
            sums.append((row * picture).sum())
    guess = np.zeros(n * n)
    for row, value in zip(rows, sums):
        norm = row @ row
        if norm > 1e-9:
            guess += (value - row @ guess) / norm * row
    return guess.reshape(n, n), np.array(sums)


def _link(theta, d, a, alpha):
    ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array(
        [
            [ct, -st * ca, st * sa, a * ct],
            [st, ct * ca, -ct * sa, a * st],
            [0.0, sa, ca, d],
            [0, 0, 0, 1],
        ]
    )


@program(
    lambda rng: (rng.uniform(-1, 1, 3), np.array([0.7, 0.3, 0.5]) + 0.1 * rng.random(3)),
    branches=True,
)
def robot_arm(angles, target):
    """An arm of three joints reaches for a point by damped least squares."""
    links = [(0.3, 0.0, np.pi / 2), (0.0, 0.6, 0.0), (0.0, 0.5, 0.0)]

    def poses(q):
        frames = [np.eye(4)]
        for angle, link in zip(q, links):
            frames.append(frames[-1] @ _link(angle, *link))
        return frames

    q = angles.copy()
    for count in range(8):
        frames = poses(q)
        tip = frames[-1][:3, 3]
        error = target - tip
        if np.linalg.norm(error) < 1e-4:
            break
        jacobian = np.column_stack([np.cross(f[:3, 2], tip - f[:3, 3]) for f in frames[:-1]])
        q += jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 0.01 * np.eye(3), error)
        q = np.mod(q + np.pi, 2 * np.pi) - np.pi
    return q, tip, count


@program(lambda rng: (rng.normal(size=10).cumsum(), 0.1, 1.0), smooth=0)
def smoothed_track(seen, process, noise):
    """A Kalman filter for place and speed, and Rauch's smoother backwards."""
    f, h = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    w = process * np.array([[1 / 3, 1 / 2], [1 / 2, 1.0]])
    mean, cov = np.zeros(2), 10.0 * np.eye(2)
    before, after, loglik = [], [], 0.0
    for z in seen:
        mean, cov = f @ mean, f @ cov @ f.T + w
        before.append((mean, cov))
        s = h @ cov @ h.T + noise
        k = cov @ h.T / s
        gap = z - h @ mean
        loglik -= 0.5 * (gap**2 / s[0] + np.log(2 * np.pi * s[0]))[0]
        mean, cov = mean + k @ gap, (np.eye(2) - k @ h) @ cov
        after.append((mean, cov))
    smooth = [after[-1]]
    for (m, c), (m_next, c_next) in zip(after[-2::-1], before[:0:-1]):
        g = np.linalg.solve(c_next, f @ c).T
        smooth.append((m + g @ (smooth[-1][0] - m_next), c + g @ (smooth[-1][1] - c_next) @ g.T))
    return np.array([m for m, _ in smooth[::-1]]), smooth[-1][1], loglik


@dataclass
class Boid:
    place: np.ndarray
    speed: np.ndarray

    def seen_from(self, other, radius):
        gap = np.linalg.norm(self.place - other.place)
        return self is not other and gap < radius


@program(lambda rng: (rng.uniform(0, 5, (6, 2)), rng.normal(size=(6, 2))), smooth=1, branches=True)
def flock(places, speeds):
    """Birds as objects which keep their distance and turn to their neighbours."""
    birds = [Boid(p.copy(), s.copy()) for p, s in zip(places, speeds)]
    for _ in range(3):
        moved = []
        for bird in birds:
            near = [b for b in birds if b.seen_from(bird, 2.5)]
            push = np.zeros(2)
            if near:
                centre = np.mean([b.place for b in near], axis=0)
                course = sum(b.speed for b in near) / len(near)
                push = 0.05 * (centre - bird.place) + 0.1 * (course - bird.speed)
            speed = bird.speed + push
            size = np.hypot(*speed)
            if size > 1.5:
                speed *= 1.5 / size
            moved.append(replace(bird, place=(bird.place + 0.2 * speed) % 5.0, speed=speed))
        birds = moved
    return np.array([b.place for b in birds]), [float(np.hypot(*b.speed)) for b in birds]


@program(
    lambda rng: (
        rng.uniform(1000, 2000, 4),
        rng.uniform(30, 200, 4),
        (rng.random((4, 3)) * 3).astype(int) / 2,
    ),
    smooth=0,
    branches=True,
)
def glicko(ratings, deviations, scores):
    """Ratings with uncertainties after games with the other players."""
    q = math.log(10) / 400
    new_ratings, new_deviations = np.empty_like(ratings), np.empty_like(deviations)
    for i in range(len(ratings)):
        others = [j for j in range(len(ratings)) if j != i]
        g = 1 / np.sqrt(1 + 3 * (q * deviations[others] / math.pi) ** 2)
        expected = 1 / (1 + 10 ** (-g * (ratings[i] - ratings[others]) / 400))
        information = q**2 * np.sum(g**2 * expected * (1 - expected))
        precision = 1 / deviations[i] ** 2 + information
        points = np.minimum(scores[i], 1.0)
        new_ratings[i] = ratings[i] + q / precision * np.sum(g * (points - expected))
        new_deviations[i] = max(30.0, math.sqrt(1 / precision))
    order = sorted(range(len(ratings)), key=lambda i: -new_ratings[i])
    return new_ratings, new_deviations, order


@program(lambda rng: (rng.uniform(4, 9, 3), rng.uniform(70, 110, 3), rng.random((3, 3))), smooth=0)
def structure_factors(lengths, degrees, atoms):
    """The cell of a crystal, its reciprocal lattice, and factors of reflections."""
    a, b, c = lengths
    alpha, beta, gamma = np.radians(degrees)
    volume = np.sqrt(
        1
        - np.cos(alpha) ** 2
        - np.cos(beta) ** 2
        - np.cos(gamma) ** 2
        + 2 * np.cos(alpha) * np.cos(beta) * np.cos(gamma)
    )
    cell = np.array(
        [
            [a, b * np.cos(gamma), c * np.cos(beta)],
            [
                0,
                b * np.sin(gamma),
                c * (np.cos(alpha) - np.cos(beta) * np.cos(gamma)) / np.sin(gamma),
            ],
            [0, 0, c * volume / np.sin(gamma)],
        ]
    )
    reciprocal = np.linalg.inv(cell)
    indices = np.array([hkl for hkl in itertools.product((-1, 0, 1), repeat=3) if any(hkl)])
    spacing = 1 / np.linalg.norm(indices @ reciprocal, axis=1)
    phases = np.exp(2j * np.pi * indices @ atoms.T)
    weights = np.exp(-2.0 / (4 * spacing[:, None] ** 2)) * np.array([8.0, 6.0, 1.0])
    factors = (phases * weights).sum(axis=1)
    order = np.lexsort((indices[:, 0], -np.round(spacing, 9)))
    return np.abs(factors)[order], spacing[order], np.linalg.det(cell)


@program(lambda rng: (np.random.default_rng(int(rng.integers(500))), 0.4), branches=True)
def outbreak(rng, chance):
    """Agents that meet, fall ill and recover; the course of an outbreak by day."""
    n, state, since = 20, np.zeros(20, dtype=np.int64), np.zeros(20, dtype=np.int64)
    state[rng.choice(n, size=2, replace=False)] = 1
    course = []
    for day in range(8):
        ill = np.flatnonzero(state == 1)
        for agent in ill:
            met = rng.choice(n, size=3)
            caught = met[(state[met] == 0) & (rng.random(3) < chance)]
            state[caught] = 1
            since[caught] = day
        recovered = (state == 1) & (day - since >= 3)
        state[recovered] = 2
        course.append(tuple(np.bincount(state, minlength=3).tolist()))
        if not (state == 1).any():
            break
    return course, int((state == 2).sum())
