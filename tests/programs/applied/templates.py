"""Programs that begin with a copy of a table of their module, and write into it anywhere."""

import copy
from collections import namedtuple

import numpy as np
from scipy import linalg

from tests.programs.table import program

START = np.array([[0.0, 0.0, 1.0, 2.0], [0.5, 1.0, 0.0, 0.0], [0.0, 2.0, 0.0, 1.5]])
HOURLY_LOAD = np.array([3.0, 2.5, 2.0, 2.5, 4.0, 6.0, 7.0, 6.5])
INITIAL = {"w": np.array([[0.1, -0.2], [0.3, 0.05]]), "b": np.array([0.0, 0.1])}
MAZE = np.array([[0, 0, 1, 0], [1, 0, 1, 0], [1, 0, 0, 0]])
Network = namedtuple("Network", ["weights", "trace"])


class Reservoir:
    """A tank whose levels start from a profile of the module."""

    levels = HOURLY_LOAD.copy()

    def __init__(self, inflow):
        self.state = self.levels.astype(float)
        self.inflow = inflow

    def release(self, hour, amount):
        """Take water out, and let the rest flow on."""
        taken = min(amount, self.state[hour])
        self.state[hour] -= taken
        self.state[(hour + 1) % len(self.state)] += 0.5 * taken
        return taken


@program(lambda rng: (float(1.0 + rng.random()),), smooth=0, branches=True)
def reservoir_operation(amount):
    tank = Reservoir(amount / 10)
    released = []
    for hour in range(6):
        tank.state[hour] += tank.inflow
        released.append(tank.release(hour, amount))
    return np.array(released), tank.state


@program(lambda rng: (0.2 + 0.1 * rng.random(), rng.random(4)), smooth=1)
def heat_plate(alpha, border):
    plate = START.copy()
    top, inside = plate[0], plate[1:-1, 1:-1]
    top[:] = border
    history = [plate.copy()]
    for _ in range(3):
        before = plate.copy()
        inside += alpha * (before[2:, 1:-1] + before[:-2, 1:-1] - 2 * before[1:-1, 1:-1])
        plate.T[0] = top[0]
        history.append(plate.copy())
    return np.stack(history)


@program(lambda rng: (rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), 0.1), smooth=0)
def descent_from_defaults(x, y, rate):
    params = copy.deepcopy(INITIAL)
    velocity = {name: np.zeros_like(value) for name, value in params.items()}
    for _ in range(3):
        error = x @ params["w"] + params["b"] - y
        grads = {"w": x.T @ error / len(x), "b": error.mean(axis=0)}
        for name in params:
            velocity[name] *= 0.9
            velocity[name] -= rate * grads[name]
            params[name] += velocity[name]
    return params


@program(lambda rng: (rng.random(4) + 0.5,), smooth=0)
def scaled_rows(factors):
    m = START.copy()
    for row, factor in zip(m, factors, strict=False):
        row *= factor  # noqa: PLW2901
        row -= row.mean()  # noqa: PLW2901
    total = np.zeros(4)
    for column in m.T:
        total[: len(column)] += column
    return m, total


@program(lambda rng: (float(rng.random()), 0.9), smooth=0)
def eligibility(reward, decay):
    net = Network(INITIAL["w"].copy(), np.zeros((2, 2)))
    for step in range(4):
        net.trace[...] *= decay
        net.trace[step % 2, 1] += 1.0
        net.weights[...] += 0.1 * reward * net.trace
    return net


@program(lambda rng: (rng.random(8) * 8,), branches=True)
def peak_shaving(demand):
    load, cut = HOURLY_LOAD.copy(), []

    def shave(limit):
        over = load > limit
        cut.append(np.sum(load[over] - limit))
        load[over] = limit

    load += demand
    shave(load.mean() + 2)
    load[load < demand] = 0.0
    shave(10.0)
    return load, np.array(cut)


@program(lambda rng: (rng.integers(1, 4),), branches=True)
def flooded_maze(depth):
    maze, seen = MAZE.copy(), []
    frontier = [(0, 0)]
    for level in range(int(depth)):
        reached = []
        for r, c in frontier:
            if 0 <= r < maze.shape[0] and 0 <= c < maze.shape[1] and maze[r, c] == 0:
                maze[r, c] = level + 2
                reached += [(r + 1, c), (r, c + 1), (r - 1, c), (r, c - 1)]
        seen.append(len(reached))
        frontier = reached
    return maze, seen


@program(lambda rng: (rng.random((4, 3)), 2), smooth=0)
def factorisation_with_drawn_start(v, rank):
    rs = np.random.RandomState(0)
    w, h = rs.rand(v.shape[0], rank), rs.rand(rank, v.shape[1])
    errors = []
    for _ in range(3):
        h *= (w.T @ v) / (w.T @ w @ h + 1e-9)
        w *= (v @ h.T) / (w @ h @ h.T + 1e-9)
        errors.append(np.linalg.norm(v - w @ h))
    return w, h, np.asarray(errors)


@program(lambda rng: (np.where(rng.random(4) > 0.5, np.nan, 1.0) + rng.random((4, 4)),))
def factors_or_defaults(m):
    for attempt in range(2):
        try:
            factors, pivots = linalg.lu_factor(m)
        except ValueError:
            m = np.nan_to_num(m, nan=float(attempt + 2)) + np.eye(4)
        else:
            return factors, pivots, attempt
    return m, np.arange(4), -1


@program(lambda rng: (rng.normal(size=6),), branches=True)
def labelled_alarms(values):
    level = "high" if values.max() > 1.0 else "low"
    names = np.where(values > 0.5, "alarm", "ok")
    counts = {name: int(np.sum(names == name)) for name in ("alarm", "ok")}
    return level, counts, values * (names == "alarm")
