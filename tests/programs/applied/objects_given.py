"""Functions of objects: models, poses, particles and settings of users' classes as arguments."""

import copy
import enum
import math
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import InitVar, dataclass, field, replace

import numpy as np

from tests.programs.table import program


class Quaternion:
    """A rotation."""

    def __init__(self, *parts):
        self.q = np.array(parts, dtype=float)

    def __mul__(self, other):
        (a, b, c, d), (e, f, g, h) = self.q, other.q
        return Quaternion(
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        )

    @property
    def conjugate(self):
        """The inverse, for a unit quaternion."""
        return Quaternion(self.q[0], *-self.q[1:])

    def rotate(self, v):
        """A rotated vector."""
        return (self * Quaternion(0, *v) * self.conjugate).q[1:]


@program(lambda rng: (Quaternion(*rng.normal(size=4)), rng.normal(size=3)), smooth=1)
def rotated(pose, v):
    """A vector rotated by an object."""
    return (pose * pose).rotate(v)


class Ridge:
    """Linear regression as in scikit-learn."""

    def __init__(self, alpha=1.0, *, solver="normal"):
        self.alpha, self.solver = alpha, solver

    def fit(self, x, y):
        """Set the coefficients."""
        self.coef_ = np.linalg.solve(x.T @ x + self.alpha * np.eye(x.shape[1]), x.T @ y)
        return self

    def predict(self, x):
        """The values of the fitted plane."""
        return x @ self.coef_

    def get_params(self):
        """The settings."""
        return {name: value for name, value in vars(self).items() if not name.endswith("_")}


def fitted(rng):
    return Ridge(0.5).fit(rng.normal(size=(8, 2)), rng.normal(size=8))


@program(lambda rng: (fitted(rng), rng.normal(size=(3, 2))), smooth=1)
def predictions_of_a_model(model, x):
    """Predictions and settings of a model that was fitted before."""
    return model.predict(x), model.get_params()


@program(lambda rng: (Ridge(0.1), rng.normal(size=(8, 2)), rng.normal(size=8)), smooth=2)
def a_copy_is_fitted(model, x, y):
    """A model that is copied before it is fitted, as clone() does."""
    clone = copy.deepcopy(model).fit(x, y)
    residual = y - clone.predict(x)
    return clone.coef_, 1 - (residual @ residual) / ((y - y.mean()) ** 2).sum()


class Node:
    """A tree."""

    def __init__(self, value, children=()):
        self.value, self.children = value, list(children)

    def walk(self, depth=0):
        """All nodes with their depths."""
        yield self, depth
        for child in self.children:
            yield from child.walk(depth + 1)


def random_tree(rng):
    leaf, inner = Node(float(rng.normal())), Node(float(rng.normal()), [Node(float(rng.normal()))])
    return Node(float(rng.normal()), [leaf, inner])


@program(lambda rng: (random_tree(rng), 2.0), smooth=1, branches=True)
def discounted_tree(root, rate):
    """A sum over a tree of objects, and its largest value."""
    total = sum(node.value * rate**depth for node, depth in root.walk())
    return total, max(node.value for node, _ in root.walk())


class Particle:
    """A mass with a place and a velocity."""

    __slots__ = ("x", "v")

    def __init__(self, x, v):
        self.x, self.v = x, v

    def stepped(self, dt):
        """The particle after a step."""
        v = self.v - self.x * dt
        return Particle(self.x + v * dt, v)

    @property
    def energy(self):
        """Kinetic and potential energy."""
        return 0.5 * (self.v @ self.v + self.x @ self.x)


def particles(rng):
    return [Particle(rng.normal(size=2), rng.normal(size=2)) for _ in range(3)]


@program(lambda rng: (particles(rng), 0.1), smooth=1, as_python=True)
def energies_of_particles(swarm, dt):
    """The energies of a list of objects after two steps."""
    later = [p.stepped(dt).stepped(dt) for p in swarm]
    return sum(p.energy for p in later), np.stack([p.x for p in later])


@program(lambda rng: (particles(rng)[0], 0.1), as_python=True)
def particle_moved_in_place(p, dt):
    """Arrays of an object that are written into."""
    p.x[:] = p.x + dt * p.v
    p.v[0] *= 0.5
    return p.energy


class Stepper(ABC):
    """A method for differential equations."""

    def __init__(self, dt):
        self.dt, self.name = dt, type(self).__name__

    @abstractmethod
    def step(self, f, y):
        """The state after a step."""

    def run(self, f, y, n):
        """The states after each of n steps."""
        for _ in range(n):
            y = self.step(f, y)
            yield y


class Heun(Stepper):
    """The mean of the slopes at both ends."""

    def step(self, f, y):
        """The state after a step."""
        slope = f(y)
        return y + 0.5 * self.dt * (slope + f(y + self.dt * slope))


@program(lambda rng: (Heun(float(rng.uniform(0.01, 0.1))), rng.normal(size=2)), smooth=1)
def pendulum_by_a_stepper(stepper, y):
    """A pendulum by a method that is an object of an abstract class."""
    states = list(stepper.run(lambda u: np.array([u[1], -math.sin(u[0])]), y, 3))
    return np.array(states), stepper.name


class Unit:
    """A number with a unit."""

    def __init__(self, value, unit):
        self.value, self.unit = value, unit

    def __add__(self, other):
        return (
            Unit(self.value + other.value, self.unit) if self.unit == other.unit else NotImplemented
        )

    def __rmul__(self, factor):
        return Unit(factor * self.value, self.unit)

    def __float__(self):
        return float(self.value)


def length(rng):
    return Unit(float(rng.normal()), "m")


@program(lambda rng: (length(rng), length(rng), 2.0), smooth=2, as_python=True)
def numbers_with_units(a, b, k):
    """Sums of quantities; another unit is a TypeError that the function catches."""
    try:
        total = a + Unit(1.0, "s")
    except TypeError:
        total = a + k * b
    return float(total), total.unit


class Settings(dict):
    """A dict whose items are attributes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def settings_of_neuron(rng):
    return Settings(w=rng.normal(size=3), b=0.5, act="tanh")


@program(lambda rng: (settings_of_neuron(rng), rng.normal(size=3)), smooth=1, as_python=True)
def attribute_dict(settings, x):
    """A neuron whose parameters are in a dict with attributes."""
    return getattr(np, settings.act)(settings.w @ x + settings["b"]), sorted(settings)


class Side(enum.Enum):
    """Which way an order goes."""

    BUY = 1
    SELL = -1


@dataclass
class Order:
    """An order, which computes its total when it is made."""

    price: float
    side: Side = Side.BUY
    fee: InitVar[float] = 0.01
    total: float = field(init=False, default=0.0)

    def __post_init__(self, fee):
        self.total = self.side.value * self.price * (1 + fee)


@program(lambda rng: (rng.uniform(1, 2, size=3),), smooth=0)
def order_book(prices):
    """Dataclasses with __post_init__ and replace."""
    orders = [
        Order(p, side) for p, side in zip(prices, [Side.BUY, Side.SELL, Side.BUY], strict=True)
    ]
    moved = replace(orders[0], price=orders[0].price * 2, fee=0.0)
    return sum(o.total for o in orders), moved.total, [o.side.name for o in orders]


class Memory:
    """A store of the last samples."""

    def __init__(self, size):
        self.samples = deque(maxlen=size)

    def push(self, sample):
        """Keep a sample; the mean of those that are kept."""
        self.samples.append(sample)
        return sum(self.samples) / len(self.samples)


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def moving_mean_by_an_object(x):
    """A moving mean by an object with a bounded deque."""
    memory = Memory(3)
    return np.array([memory.push(v) for v in x]), len(memory.samples)


class Series:
    """A column with labels, as in pandas."""

    def __init__(self, values, index):
        self.values, self.index = np.asarray(values), list(index)

    def __getitem__(self, key):
        if isinstance(key, str):
            return self.values[self.index.index(key)]
        return Series(
            self.values[key], [i for i, keep in zip(self.index, key, strict=True) if keep]
        )

    def __gt__(self, other):
        return self.values > other

    def __mul__(self, other):
        return Series(self.values * getattr(other, "values", other), self.index)


@program(lambda rng: (Series(rng.normal(size=3), "abc"), 2.0), smooth=1, branches=True)
def labelled_columns(s, k):
    """Elements by label and by mask, and products."""
    return s["b"] * k, (s * s * k).values, s[s > 0].index


class Point:
    """A point that NumPy converts to an array."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __array__(self, dtype=None, copy=None):
        return np.array([self.x, self.y], dtype=dtype)


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def triangle_of_points(x):
    """The area and the centre of a triangle whose corners convert themselves to arrays."""
    corners = [Point(*x[i : i + 2]) for i in (0, 2, 4)]
    a, b, c = map(np.asarray, corners)
    area = 0.5 * abs((b - a)[0] * (c - a)[1] - (b - a)[1] * (c - a)[0])
    frame = np.zeros((3, 2))
    frame[0] = corners[0]
    frame[1:] = corners[1:]
    return area, np.mean(corners, axis=0), np.stack(corners) - frame, np.ones(2) * corners[2]
