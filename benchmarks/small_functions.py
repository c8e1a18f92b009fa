"""Derivatives of small functions without ``jit``: calls cost more than NumPy's work.

autograd records a function again in every call; letir stops when another recording cannot differ.
"""

import itertools
import time
from collections.abc import Callable
from functools import partial
from statistics import geometric_mean, median
from types import ModuleType

import numpy as np

from benchmarks.harness import DemoSettings
from benchmarks.peers import installed
from letir import grad, hvp, jvp, vjp

SECONDS, ROUNDS = 4e-3, 15  # of a round of one function
_numbers = np.random.default_rng(0).normal
ROWS, TABLE, LABELS = _numbers(size=(20, 4)), _numbers(size=(20, 3)), np.eye(3)[np.arange(20) % 3]
A, B, C = _numbers(size=(3, 4, 4))
LAYERS = (_numbers(size=(4, 8)), np.zeros(8), _numbers(size=(8, 3)), np.zeros(3))


def tanh_sum(np: ModuleType, x):
    return np.tanh(x).sum()


def number(np: ModuleType, x):
    return np.sin(x) * x + x**2


def polynomial(np: ModuleType, x):
    value = 0.0
    for k in range(10):
        value = value * x + float(k)
    return value


def items(np: ModuleType, x):
    return x[0] * x[1] + x[2] ** 2 + np.sum(x[3:])


def rosenbrock(np: ModuleType, x):
    value = 0.0
    for a, b in itertools.pairwise([x[i] for i in range(len(x))]):
        value = value + 100.0 * (b - a**2) ** 2 + (1 - a) ** 2
    return value


def rosenbrock_of_slices(np: ModuleType, x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def products(np: ModuleType, x):
    return np.dot(x, np.dot(A, x)) + np.dot(x, x)


def matrix_chain(np: ModuleType, x):
    return np.trace(np.dot(np.dot(np.dot(A, x), B), np.dot(x, C)))


def logistic_loss(np: ModuleType, w):
    p = 1 / (1 + np.exp(-np.dot(ROWS, w)))
    return -np.mean(LABELS[:, 0] * np.log(p) + (1 - LABELS[:, 0]) * np.log(1 - p))


def squared_error(np: ModuleType, layers):
    w, b, v, c = layers
    return np.mean((np.dot(np.tanh(np.dot(ROWS, w) + b), v) + c - TABLE) ** 2)


def cross_entropy(np: ModuleType, layers):
    w, b, v, c = layers
    z = np.dot(np.maximum(np.dot(ROWS, w) + b, 0.0), v) + c
    z = z - np.max(z, axis=1, keepdims=True)
    return -np.sum((z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))) * LABELS) / 20


def mixture(np: ModuleType, means):
    away = ROWS[:, None, :] - means[None, :, :]
    z = -0.5 * np.sum(away * away, axis=2)
    top = np.max(z, axis=1, keepdims=True)
    return -np.sum(np.log(np.sum(np.exp(z - top), axis=1)) + top[:, 0])


FUNCTIONS: dict[Callable, object] = {
    tanh_sum: np.ones(3),
    number: 1.3,
    polynomial: 1.1,
    items: np.linspace(0.1, 1, 6),
    rosenbrock: np.linspace(0.1, 1, 8),
    rosenbrock_of_slices: np.linspace(0.1, 1, 8),
    products: np.linspace(0.1, 1, 4),
    matrix_chain: A,
    logistic_loss: np.linspace(0.1, 1, 4),
    squared_error: LAYERS,
    cross_entropy: LAYERS,
    mixture: A[:3],
}


def small_gradients(effort: DemoSettings) -> str:
    """The times of a call of ``grad(f)``, the shortest and the longest."""
    return _range([cost for (cost,) in costs([(np, grad)])])


def compared_with_autograd(effort: DemoSettings) -> str:
    """autograd's times, and letir's relative to them."""
    peer = installed("autograd.numpy"), installed("autograd").grad
    return _compared(costs([(np, grad), peer]))


def small_products(effort: DemoSettings) -> str:
    """The times of a cotangent by ``vjp``, a tangent by ``jvp`` and a product by ``hvp``."""
    found = [costs([(np, partial(partial, product))]) for product in (_pulled, _pushed, _bent)]
    return ", ".join([_range([cost for (cost,) in rows]) for rows in found])


def products_compared_with_autograd(effort: DemoSettings) -> str:
    """autograd's times of the three products, and letir's relative to them."""
    module = installed("autograd.numpy")
    make_vjp = installed("autograd.core").make_vjp
    make_jvp = installed("autograd.differential_operators").make_jvp
    gradient = installed("autograd").grad

    def pulled(f: Callable, x: object) -> object:
        return make_vjp(f, x)[0](1.0)

    def pushed(f: Callable, x: object) -> object:
        return make_jvp(f)(x)(x)

    def bent(f: Callable, x: object) -> object:
        return make_vjp(gradient(f), x)[0](x)

    return "; ".join(
        [
            _compared(costs([(np, partial(partial, ours)), (module, partial(partial, theirs))]))
            for ours, theirs in ((_pulled, pulled), (_pushed, pushed), (_bent, bent))
        ]
    )


def _pulled(f: Callable, x: object) -> object:
    """The cotangent of the argument."""
    return vjp(f, x)[1](1.0)


def _pushed(f: Callable, x: object) -> object:
    """The tangent of the result for a direction of the argument."""
    return jvp(f, (x,), (x,))


def _bent(f: Callable, x: object) -> object:
    """The product of the Hessian with a direction."""
    return hvp(f, (x,), (x,))


def _compared(found: list[list[float]]) -> str:
    """The times of the second package, and those of the first relative to them."""
    ratios = [ours / theirs for ours, theirs in found]
    return (
        f"{_range([theirs for _, theirs in found])}, letir / autograd = {min(ratios):.2f} to "
        f"{max(ratios):.2f}, {geometric_mean(ratios):.2f} in the geometric mean"
    )


def _range(seconds: list[float]) -> str:
    return f"{min(seconds) * 1e6:.0f} to {max(seconds) * 1e6:.0f} µs"


def costs(packages: list[tuple[ModuleType, Callable]]) -> list[list[float]]:
    """The seconds of a derivative of each function, by each (module like NumPy, transform)."""
    return [
        alternating([partial(transform(partial(f, module)), x) for module, transform in packages])
        for f, x in FUNCTIONS.items()
    ]


def alternating(calls: list[Callable]) -> list[float]:
    """The seconds that each call takes: medians of alternating rounds."""
    for call in calls:
        _seconds(call, 20)  # without the time in which the first calls load and compile
    repeats = [max(1, int(SECONDS / _seconds(call, 20))) for call in calls]
    found = [
        [_seconds(call, n) for call, n in zip(calls, repeats, strict=True)] for _ in range(ROUNDS)
    ]
    return [median(column) for column in zip(*found, strict=True)]


def _seconds(call: Callable, repeats: int) -> float:
    """The CPU time of a call, the mean over ``repeats`` calls."""
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats
