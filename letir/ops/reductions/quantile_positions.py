"""The elements between which a quantile lies, by each of NumPy's methods.

The methods are the nine types of Hyndman and Fan (Sample quantiles in statistical packages, The
American Statistician 50(4), 1996) and four of NumPy's own.
"""

from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.errors import ShapeError
from letir.ops.elementwise.casting import cast
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import ceil, floor, rint
from letir.ops.elementwise.ufuncs import maximum, minimum

# alpha and beta of the continuous methods, by which Hyndman and Fan define them
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "linear": (1, 1),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


def _round_up_unless(place: Value, stays) -> Value:
    """``floor(place) + 1``, or ``floor(place)`` where ``stays(rest, below)``."""
    below = floor(place)
    return where(stays(place - below, below), below, below + 1)


_DISCRETE = {
    "inverted_cdf": lambda q, n: _round_up_unless(n * q - 1, lambda rest, below: rest == 0),
    "closest_observation": lambda q, n: _round_up_unless(
        n * q - 1.5, lambda rest, below: (rest == 0) & (below % 2 == 1)
    ),
    "lower": lambda q, n: floor((n - 1) * q),
    "higher": lambda q, n: ceil((n - 1) * q),
    "nearest": lambda q, n: rint((n - 1) * q),
}
_OTHERS = ("averaged_inverted_cdf", "midpoint")
METHODS = frozenset([*_CONTINUOUS, *_DISCRETE, *_OTHERS])


def known_method(name: str, method: str) -> str:
    """``method``. Raises ShapeError if NumPy has no such method."""
    if method not in METHODS:
        raise ShapeError(
            f"{name}: {method!r} is not a valid method. Use one of: {', '.join(sorted(METHODS))}\n"
            "  leave method out for 'linear'"
        )
    return method


def _clip_to_index(place: Value, n) -> Value:
    """``place`` clipped to the indices of ``n`` elements; 0 if there are none."""
    return cast(maximum(minimum(place, n - 1), 0), np.int64)


def quantile_positions(method: str, q: Any, n: Any) -> tuple[Value, Value | None, Value | None]:
    """(index of the element before, index of the element after, weight of the latter).

    The last two are None for methods that return a single element.
    """
    if method in _DISCRETE:
        return _clip_to_index(_DISCRETE[method](q, n), n), None, None
    if method == "averaged_inverted_cdf":
        virtual = n * q - 1
    elif method == "midpoint":
        virtual = 0.5 * (floor((n - 1) * q) + ceil((n - 1) * q))
    elif method == "linear":  # the general formula below has more rounding errors
        virtual = (n - 1) * q
    else:
        alpha, beta = _CONTINUOUS[method]
        virtual = n * q + (alpha + q * (1 - alpha - beta)) - 1
    before = floor(virtual)
    share = virtual - before
    if method == "averaged_inverted_cdf":
        share = where(share == 0, 0.5, 1.0)
    elif method == "midpoint":
        share = where(share == 0, 0.0, 0.5)
    return _clip_to_index(before, n), _clip_to_index(before + 1, n), share
