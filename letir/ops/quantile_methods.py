"""Where a quantile lies among ``n`` sorted elements, by each of NumPy's methods.

Hyndman and Fan, Sample quantiles in statistical packages, The American Statistician 50(4), 1996;
their nine types, and four simple ones of NumPy's own.
"""

import numpy as np

from letir.ast.builder import Value
from letir.errors import ShapeError
from letir.ops.casting import cast
from letir.ops.elementwise import ceil, floor, maximum, minimum, rint, where

# alpha and beta of the continuous methods, by which Hyndman and Fan define them
CONTINUOUS = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "linear": (1, 1),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


def rounded_up(place: Value, stays) -> Value:
    """The integer above ``place`` unless it ``stays`` at the one below."""
    below = floor(place)
    return where(stays(place - below, below), below, below + 1)


DISCRETE = {
    "inverted_cdf": lambda q, n: rounded_up(n * q - 1, lambda rest, below: rest == 0),
    "closest_observation": lambda q, n: rounded_up(
        n * q - 1.5, lambda rest, below: (rest == 0) & (below % 2 == 1)
    ),
    "lower": lambda q, n: floor((n - 1) * q),
    "higher": lambda q, n: ceil((n - 1) * q),
    "nearest": lambda q, n: rint((n - 1) * q),
}
OTHERS = ("averaged_inverted_cdf", "midpoint")
METHODS = frozenset([*CONTINUOUS, *DISCRETE, *OTHERS])


def known_method(name: str, method: str) -> str:
    """The method. Raises ShapeError for one that is not NumPy's."""
    if method not in METHODS:
        raise ShapeError(
            f"{name}: {method!r} is not a valid method. Use one of: {', '.join(sorted(METHODS))}"
        )
    return method


def within(place: Value, n) -> Value:
    """The place as an index of ``n`` elements; 0 where there are none."""
    return cast(maximum(minimum(place, n - 1), 0), np.int64)


def positions(method: str, q, n) -> tuple[Value, Value | None, Value | None]:
    """(the element before, the one behind, the share of that); None for a single element."""
    if method in DISCRETE:
        return within(DISCRETE[method](q, n), n), None, None
    if method == "averaged_inverted_cdf":
        virtual = n * q - 1
    elif method == "midpoint":
        virtual = 0.5 * (floor((n - 1) * q) + ceil((n - 1) * q))
    elif method == "linear":  # the formula below rounds more
        virtual = (n - 1) * q
    else:
        alpha, beta = CONTINUOUS[method]
        virtual = n * q + (alpha + q * (1 - alpha - beta)) - 1
    before = floor(virtual)
    share = virtual - before
    if method == "averaged_inverted_cdf":
        share = where(share == 0, 0.5, 1.0)
    elif method == "midpoint":
        share = where(share == 0, 0.0, 0.5)
    return within(before, n), within(before + 1, n), share
