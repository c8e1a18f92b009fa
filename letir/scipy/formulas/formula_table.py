"""The table of formulas. A formula is a NumPy function with the arguments of a SciPy function.

Its result is a tuple of the arrays in SciPy's result, in order; None for one that has no derivative
here. A formula with a parameter ``results`` gets the results that SciPy has found, as constants: it
may be any expression of them whose derivative with respect to the other arguments is right.
"""

import inspect
from collections.abc import Callable
from typing import NoReturn

from letir.errors import MissingRule

FORMULAS: dict[str, Callable] = {}
"""{SciPy's function, such as "linalg.lu": its formula}."""


def formula(*names: str) -> Callable:
    """A decorator: the function is the formula of these functions of SciPy."""

    def decorate(function: Callable) -> Callable:
        FORMULAS.update(dict.fromkeys(names, function))
        return function

    return decorate


def no_derivative(reason: str) -> NoReturn:
    """Raise MissingRule: the formula does not support these arguments."""
    raise MissingRule(reason)


def takes_results(function: Callable) -> bool:
    """Whether a formula gets the results that SciPy has found."""
    return "results" in inspect.signature(function).parameters
