"""Warm calls of ``jit`` compared with NumPy, on functions that set or meet NumPy's error state."""

from collections.abc import Callable
from statistics import median

import numpy as np

from benchmarks import numpy_programs
from benchmarks.harness import DemoSettings
from tests.programs.table import Program


def odds(p):
    """Logarithms of odds, which are infinite at 0 and 1."""
    with np.errstate(divide="ignore"):
        return np.log(p) - np.log(1 - p)


def masked_ratio(x, y):
    """A quotient with zeros where the divisor is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = x / y
    return np.where(np.isfinite(ratio), ratio, 0.0)


def entropy(p):
    """The entropy of each row; numbers beyond the range of floats would be errors."""
    with np.errstate(over="raise", invalid="raise"):
        return -(p * np.log(p + 1e-300)).sum(1)


def exponential_or_bound(x):
    """The exponential function, or a bounded one where it overflows."""
    with np.errstate(over="raise"):
        try:
            return np.exp(x)
        except FloatingPointError:
            return np.exp(np.clip(x, -700, 700))


def quotient_or_infinity(a, b):
    """A quotient of numbers, infinite where Python raises."""
    try:
        return a / b
    except ZeroDivisionError:
        return np.inf


FUNCTIONS: tuple[tuple[Callable, Callable], ...] = (
    (odds, lambda rng: (rng.integers(0, 3, 1_000) / 2,)),
    (masked_ratio, lambda rng: (rng.normal(size=1_000), rng.integers(0, 3, 1_000) * 1.0)),
    (entropy, lambda rng: (rng.dirichlet(np.ones(8), 100),)),
    (exponential_or_bound, lambda rng: (rng.normal(size=1_000),)),
    (exponential_or_bound, lambda rng: (rng.normal(size=1_000) * 1e3,)),
    (quotient_or_infinity, lambda rng: (1.5, 0.0)),
)


def compared_with_numpy(effort: DemoSettings) -> str:
    """The ratio of each function, in the order of ``FUNCTIONS``."""
    rounds = effort.sizes[0][1]
    programs = [Program(f, arguments, None, False, "") for f, arguments in FUNCTIONS]
    found = [numpy_programs.measured(p, rounds) for p in programs]
    return f"{median([r.ratio for r in found]):.2f} x NumPy; " + ", ".join(
        f"{r.ratio:.2f} {r.name.partition('.')[2]}" for r in found
    )
