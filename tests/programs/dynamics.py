"""Differential equations and maps."""

import math

import numpy as np

from tests.programs.table import program


def runge_kutta(f, y0, times, *args):
    """States at ``times`` by the classical method of order four."""
    y = np.zeros((len(times), len(y0)))
    y[0] = y0
    for i in range(len(times) - 1):
        h = times[i + 1] - times[i]
        k1 = np.asarray(f(y[i], times[i], *args))
        k2 = np.asarray(f(y[i] + k1 * h / 2, times[i] + h / 2, *args))
        k3 = np.asarray(f(y[i] + k2 * h / 2, times[i] + h / 2, *args))
        k4 = np.asarray(f(y[i] + k3 * h, times[i] + h, *args))
        y[i + 1] = y[i] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


@program(lambda rng: (rng.normal(size=3), 10.0, 28.0, 8 / 3), smooth=2)
def lorenz(start, sigma, rho, beta):
    """The Lorenz system, whose right side is a list."""

    def rhs(state, t):
        x, y, z = state
        return [sigma * (y - x), x * (rho - z) - y, x * y - beta * z]

    return runge_kutta(rhs, start, np.linspace(0, 0.05, 6))


@program(
    lambda rng: (
        rng.uniform(0.5, 1, size=2),
        {"a": 1.0, "b": 0.4, "c": 0.3, "d": rng.uniform(0.5, 1)},
    ),
    smooth=0,
)
def predator_prey(start, params):
    """Lotka and Volterra's equations with named parameters."""

    def rhs(state, t, p):
        prey, predator = state
        return np.array(
            [p["a"] * prey - p["b"] * prey * predator, p["c"] * prey * predator - p["d"] * predator]
        )

    return runge_kutta(rhs, start, np.arange(0, 1, 0.2), params)


@program(lambda rng: (rng.uniform(0.1, 1), rng.uniform(0.1, 1), 0.1), smooth=0)
def double_pendulum(theta1, theta2, dt):
    """A double pendulum in a vector of four states."""
    state = np.array([theta1, theta2, 0.0, 0.0])

    def derivatives(s):
        d = s[0] - s[1]
        out = np.zeros_like(s)
        out[0], out[1] = s[2], s[3]
        den = 2 - math.cos(d) ** 2
        out[2] = (-(s[2] ** 2) * sin_cos(d) - 2 * 9.8 * math.sin(s[0])) / den
        out[3] = (2 * s[3] ** 2 * sin_cos(d) + 9.8 * math.sin(s[1])) / den
        return out

    def sin_cos(d):
        return math.sin(d) * math.cos(d)

    for _ in range(4):
        state = state + dt * derivatives(state + dt / 2 * derivatives(state))
    return state


@program(lambda rng: (rng.uniform(0.5, 2), 1e-4), branches=True)
def adaptive_euler(y0, tolerance):
    """Steps that shrink and grow with the error, until t = 1."""
    t, y, h = 0.0, y0, 0.1
    steps = 0
    while t < 1.0:
        h = min(h, 1.0 - t)
        k1 = -2 * y * t
        full = y + h * k1
        half = y + h / 2 * k1
        half = half + h / 2 * (-2 * half * (t + h / 2))
        error = abs(half - full)
        if error < tolerance * 10:
            t += h
            y = half
            steps += 1
        h *= 0.9 * min(2.0, max(0.3, math.sqrt(tolerance * 10 / (error + 1e-16))))
    return y, steps


@program(lambda rng: (rng.uniform(2.5, 4), rng.uniform(0.2, 0.8)), smooth=0)
def logistic_map(r, x):
    """An orbit and its Lyapunov exponent."""
    orbit = []
    exponent = 0.0
    for _ in range(6):
        x = r * x * (1 - x)
        orbit.append(x)
        exponent += math.log(abs(r * (1 - 2 * x)) + 1e-3)
    return np.array(orbit), exponent / 6


@program(lambda rng: (rng.normal(size=6), 1.5), smooth=1)
def kuramoto(phases, coupling):
    """Coupled oscillators and their order parameter."""
    theta = phases.copy()
    omega = np.linspace(-1, 1, len(theta))
    order = np.empty(5)
    for step in range(5):
        differences = theta[np.newaxis, :] - theta[:, np.newaxis]
        theta += 0.1 * (omega + coupling * np.sin(differences).mean(axis=1))
        order[step] = np.abs(np.mean(np.exp(1j * theta)))
    return order


class PID:
    """A controller with an integral and a last error."""

    def __init__(self, kp, ki, kd, limits=(-10.0, 10.0)):
        self.gains = kp, ki, kd
        self.limits = limits
        self.integral = 0.0
        self.last = None

    def __call__(self, error, dt):
        kp, ki, kd = self.gains
        self.integral += error * dt
        slope = 0.0 if self.last is None else (error - self.last) / dt
        self.last = error
        low, high = self.limits
        return min(max(kp * error + ki * self.integral + kd * slope, low), high)


@program(lambda rng: (rng.uniform(0.5, 1.0), 0.4, 0.05), smooth=0, branches=True)
def controlled_tank(kp, ki, kd):
    """The level of a tank under a controller."""
    controller = PID(kp, ki, kd)
    level, levels = 0.0, []
    for _ in range(12):
        level += 0.2 * (controller(1.0 - level, 0.2) - 0.3 * level)
        levels.append(level)
    return np.array(levels)


@program(lambda rng: (rng.uniform(-1, 1, size=(5, 2)), rng.uniform(-1, 1, size=(5, 2))), smooth=0)
def boids(position, velocity):
    """Separation, alignment and cohesion of a flock, in place."""
    position, velocity = position.copy(), velocity.copy()
    for _ in range(2):
        dx = np.subtract.outer(position[:, 0], position[:, 0])
        dy = np.subtract.outer(position[:, 1], position[:, 1])
        distance = np.hypot(dx, dy) + 0.1 + np.eye(5)
        weight = np.exp(-distance) * (1 - np.identity(5))
        target = np.dstack((dx * weight, dy * weight)).sum(axis=1) / weight.sum(axis=1)[:, None]
        alignment = weight @ velocity / weight.sum(axis=1, keepdims=True)
        velocity += 0.1 * target + 0.2 * (alignment - velocity)
        np.add(position, 0.1 * velocity, out=position)
    return position, velocity


@program(lambda rng: (rng.normal(size=8), 0.05), smooth=0)
def burgers(u0, viscosity):
    """Burgers' equation with upwind differences chosen by ``np.where``."""
    u = u0.astype(float)
    n = len(u)
    for _ in range(4):
        un = u.copy()
        for i in range(n):
            left, right = un[i - 1], un[(i + 1) % n]
            slope = np.where(un[i] > 0, un[i] - left, right - un[i])
            u[i] = un[i] - 0.1 * un[i] * slope + viscosity * (right - 2 * un[i] + left)
    return u
