"""The schedules of ``optim``: learning rates as functions of the step number, which begins at 0."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import entry_point
from letir.errors import ShapeError


@entry_point
def rate_at_step(learning_rate: float | Callable, step: Any) -> Any:
    """The learning rate at this step: a number, or the value of a schedule."""
    return learning_rate(step) if callable(learning_rate) else learning_rate


def _make_schedule(name: str, steps: Any, rate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The schedule ``rate``, which changes over ``steps`` steps. ``steps`` must be positive."""
    if type(steps) in (int, float) and not steps > 0:
        raise ShapeError(
            f"{name}: the number of steps must be positive, found {steps}\n"
            "  pass the number of steps over which the rate changes"
        )

    def rate_at(step: float) -> Any:
        return rate(step)

    rate_at.__name__ = rate_at.__qualname__ = name
    return entry_point(rate_at)


@entry_point
def exponential_decay(learning_rate: float, steps: int, factor: float) -> Callable:
    """A schedule that smoothly multiplies the learning rate by ``factor`` every ``steps`` steps.

    >>> rate = exponential_decay(0.1, steps=10, factor=0.5)
    >>> [round(float(rate(step)), 3) for step in (0, 10, 20)]
    [0.1, 0.05, 0.025]
    """
    return _make_schedule(
        "exponential_decay", steps, lambda step: learning_rate * factor ** (step / steps)
    )


@entry_point
def cosine_decay(learning_rate: float, steps: int, last: float = 0.0) -> Callable:
    """A schedule that falls to ``last`` times the learning rate in ``steps`` steps, by a cosine.

    Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts, ICLR 2017.

    >>> rate = cosine_decay(0.1, steps=10, last=0.1)
    >>> [round(float(rate(step)), 3) for step in (0, 5, 10, 20)]
    [0.1, 0.055, 0.01, 0.01]
    """

    def rate(step):
        share = np.minimum(step, steps) / steps
        return learning_rate * (last + (1 - last) * 0.5 * (1 + np.cos(math.pi * share)))

    return _make_schedule("cosine_decay", steps, rate)


@entry_point
def warmup(learning_rate: float | Callable, steps: int) -> Callable:
    """A schedule that rises linearly to ``learning_rate`` (or schedule) over ``steps`` steps.

    >>> rate = warmup(cosine_decay(0.1, steps=10), steps=4)
    >>> [round(float(rate(step)), 3) for step in (0, 1, 4, 10)]
    [0.025, 0.049, 0.065, 0.0]
    """

    def rate(step):
        return rate_at_step(learning_rate, step) * np.minimum((step + 1) / steps, 1.0)

    return _make_schedule("warmup", steps, rate)
