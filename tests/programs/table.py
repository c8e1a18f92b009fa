"""``program``: enters a function of this folder into the table that the tests go through."""

from collections.abc import Callable
from typing import Any

from attrs import frozen

PROGRAMS: list["Program"] = []


@frozen
class Program:
    """A NumPy program with its arguments.

    ``arguments``: from a generator of random numbers to arguments whose shapes are always the same.
    ``smooth``: the number of the argument with respect to which the derivative is compared, or
    None. ``branches``: whether other arguments may take another path, masks that select another
    number of elements included. ``refused``: the reason why ``trace`` refuses the program, empty
    for all others. ``as_python``: whether ``jit`` calls the Python function, with a warning.
    """

    function: Callable
    arguments: Callable[[Any], tuple]
    smooth: int | None
    branches: bool
    refused: str
    as_python: bool = False

    @property
    def name(self) -> str:
        """The module and the name of the function."""
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"


def program(
    arguments: Callable[[Any], tuple],
    *,
    smooth: int | None = None,
    branches: bool = False,
    refused: str = "",
    as_python: bool = False,
) -> Callable[[Callable], Callable]:
    """A decorator that enters a function into ``PROGRAMS`` and leaves it as it is."""

    def enter(function: Callable) -> Callable:
        PROGRAMS.append(Program(function, arguments, smooth, branches, refused, as_python))
        return function

    return enter
