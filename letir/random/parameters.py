"""Checks of the parameters of distributions, where their values are known.

Traced parameters are not checked: a program draws with the values that it gets.
"""

import math
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.errors import DTypeError, ShapeError


def refuse_values(
    caller: str, parameter: str, value: Any, allowed: str = "at least 0", most: float = math.inf
) -> None:
    """Raise ShapeError for a known parameter of the function ``caller`` with values below 0, or
    above ``most``.
    """
    values = _known_values(value)
    if values is None:
        return
    is_right = (values >= 0) & (values <= most)
    if not is_right.all():
        refused = values if values.ndim == 0 else values[~is_right].flat[0]
        raise ShapeError(
            f"{caller}: {parameter} must be {allowed}, found {refused}\n"
            "  compute the parameter with np.clip, np.abs or np.exp"
        )


def refuse_dtypes(caller: str, arguments: tuple) -> None:
    """Raise DTypeError if an argument other than the dtype is a dtype."""
    for value in arguments:
        if isinstance(value, type | np.dtype):
            name = getattr(value, "__name__", str(value))
            raise DTypeError(
                f"{caller}: a parameter must be a number or an array, found the dtype {name}\n"
                f"  pass the dtype by its name: dtype='{name}'"
            )


def refuse_bounds(caller: str, lower: Any, upper: Any) -> None:
    """Raise ShapeError if both bounds are known, and ``lower`` is greater than ``upper``."""
    low, high = _known_values(lower), _known_values(upper)
    if low is not None and high is not None and np.any(low > high):
        raise ShapeError(
            f"{caller}: lower must not be greater than upper, found {low} and {high}\n"
            f"  pass the bounds in this order: {caller}(key, -1.0, 1.0)"
        )


def _known_values(parameter: Any) -> np.ndarray | None:
    """A parameter as an array of numbers, None if it is traced or not a number."""
    if parameter is None or isinstance(parameter, Value):
        return None
    array = np.asarray(parameter)
    return array if array.dtype.kind in "biuf" else None
