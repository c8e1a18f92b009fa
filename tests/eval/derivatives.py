"""The derivative of a program at its arguments, on the host or on a device."""

from collections.abc import Callable

import numpy as np

import letir as lt
from letir.errors import LetirError


def derivative(f: lt.Lambda, args: list, move: Callable = lambda value: value) -> tuple | None:
    """The cotangents of the arguments for cotangents that depend on nothing but shapes, computed
    where ``move`` takes arrays; None if the program has no derivative.
    """
    try:
        gradient = lt.differentiate(f)
    except LetirError:
        return None
    places = [i for i in gradient.df_input_vjps if i < gradient.f_real_outputs]
    if not places or not gradient.df_output_vjps:
        return None
    results, residuals = gradient.forward(*map(move, args))
    results = results if gradient.f_real_outputs != 1 else [results]
    cts = [cotangent_of(results[i]) for i in places]
    return gradient.backward(residuals, *map(move, cts))


def cotangent_of(result) -> np.ndarray | np.generic:
    """Numbers of the result's shape and dtype."""
    shape = getattr(result, "shape", ())
    numbers = np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape)
    return numbers.astype(getattr(result, "dtype", float))[()]
