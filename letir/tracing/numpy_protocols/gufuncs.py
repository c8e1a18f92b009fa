"""``axes``, ``axis`` and ``keepdims`` of NumPy's generalised ufuncs, as transposes around a call on
the last axes.

https://numpy.org/doc/stable/reference/ufuncs.html#optional-keyword-arguments
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.primitive import PRIMITIVES
from letir.errors import ShapeError


def _core_axes(ufunc: np.ufunc, axes, axis) -> list[tuple]:
    """The core axes of each operand and result, as tuples; () for a result without core axes."""
    cores = [part.split(",") if part else [] for part in re.findall(r"\((.*?)\)", ufunc.signature)]
    if axes is None:
        return [(axis,) * len(core) for core in cores]
    entries = [tuple(entry) if isinstance(entry, tuple | list) else (entry,) for entry in axes]
    if len(entries) < ufunc.nin or len(entries) > len(cores):
        raise ShapeError(
            f"numpy.{ufunc.__name__}: axes must have an entry for each operand, and "
            "for each result that "
            f"has axes, found {axes}\n"
            "  write axes=[(-2, -1), ...], one tuple of axes each"
        )
    return entries + [()] * (len(cores) - len(entries))


def move_core_axes(
    ufunc: np.ufunc,
    inputs: tuple,
    *,
    axes: Any = None,
    axis: int | None = None,
    keepdims: bool = False,
) -> tuple[tuple, Callable]:
    """(operands with their core axes last, function that moves the core axes of a result)."""
    if axes is None and axis is None and not keepdims:
        return inputs, lambda result: result
    places = _core_axes(ufunc, axes, -1 if axis is None else axis)
    inputs = tuple([_axes_at_end(x, place) for x, place in zip(inputs, places, strict=False)])

    def placed(result: Any) -> Any:
        place = places[-1]
        if keepdims:
            # NumPy keeps them last if ``axes`` has no entry for the result
            positions = places[0] if axes is None else tuple(range(-len(places[0]), 0))
            return PRIMITIVES["expand_dims"](result, place or positions)
        return np.moveaxis(result, tuple(range(-len(place), 0)), place) if place else result

    return inputs, placed


def _axes_at_end(x, place: tuple):
    """An operand with these axes moved to the end."""
    return np.moveaxis(x, place, tuple(range(-len(place), 0))) if place else x


LATE_BOUND["move_core_axes"] = move_core_axes
