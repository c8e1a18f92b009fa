"""The values that parameters of distributions may have, checked where they are known.

Traced parameters are not checked: a program draws with whatever values come.
"""

from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.errors import ShapeError

# operation -> (place of the parameter, its name, whether values are right, what they must be)
_RANGES: dict[str, tuple] = {
    "random_bernoulli": (1, "p", lambda p: (p >= 0) & (p <= 1), "probabilities, from 0 to 1"),
    "random_normal": (3, "scale", lambda s: s >= 0, "at least 0"),
    "random_exponential": (2, "scale", lambda s: s >= 0, "at least 0"),
    "random_gamma": (1, "a", lambda a: a >= 0, "at least 0"),
    "random_choice": (4, "p", lambda p: p >= 0, "probabilities, at least 0"),
    "random_places": (4, "p", lambda p: p >= 0, "probabilities, at least 0"),
}


def refuse_values(name: str, args: tuple) -> None:
    """Raise ShapeError for the value of a known parameter that no distribution has."""
    if name in _RANGES and len(args) > _RANGES[name][0]:
        place, parameter, is_right, allowed = _RANGES[name]
        values = _known(args[place])
        if values is not None and not is_right(values).all():
            found = values if values.ndim == 0 else values[~is_right(values)].flat[0]
            asked = "choice" if name == "random_places" else name.removeprefix("random_")
            raise ShapeError(
                f"{asked}: {parameter} must be {allowed}, found {found}\n"
                "  compute the parameter with np.clip, np.abs or np.exp"
            )
    if name == "random_truncated_normal":
        lower, upper = _known(args[1]), _known(args[2])
        if lower is not None and upper is not None and np.any(lower > upper):
            raise ShapeError(
                "truncated_normal: lower must not be greater than upper, found "
                f"{lower} and {upper}\n"
                "  pass the bounds in this order: truncated_normal(key, -1.0, 1.0)"
            )


def _known(parameter: Any) -> np.ndarray | None:
    """A parameter as an array of numbers, None if it is traced or not a number."""
    if parameter is None or isinstance(parameter, Value):
        return None
    array = np.asarray(parameter)
    return array if array.dtype.kind in "biuf" else None
