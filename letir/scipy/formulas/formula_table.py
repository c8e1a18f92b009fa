"""The table of formulas. A formula is a NumPy function with the arguments of a SciPy function.

Its result is a tuple of the arrays in SciPy's result, in order; None for one that has no derivative
here. A formula with a parameter ``results`` gets the results that SciPy has found, and one with a
parameter ``fixed`` its arguments a second time, as (positional, keywords), both as constants.
It may be any expression of them whose derivative with respect to the other arguments is right; in
derivatives of the derivative they are not constant.
"""

import inspect
from collections.abc import Callable
from typing import NoReturn

from attrs import frozen

from letir.errors import MissingRule

FORMULAS: dict[str, tuple[Callable, ...]] = {}
"""{SciPy's function, such as "linalg.lu": its formulas; the first that can be recorded is used}."""


def formula(*names: str) -> Callable:
    """A decorator: the function is the formula of these functions of SciPy.

    With further functions, they are tried in order if the first one cannot be recorded.
    """

    def decorate(function: Callable, *others: Callable) -> Callable:
        FORMULAS.update(dict.fromkeys(names, (function, *others)))
        return function

    return decorate


def no_derivative(reason: str) -> NoReturn:
    """Raise MissingRule: the formula does not support these arguments."""
    raise MissingRule(reason)


def extra_parameters(function: Callable) -> frozenset[str]:
    """Which of ``results`` and ``fixed`` a formula takes."""
    return frozenset(inspect.signature(function).parameters) & {"results", "fixed"}


@frozen
class MadeObject:
    """An object of SciPy, by the call that makes it."""

    name: str
    args: tuple
    kwargs: dict
