"""Type variables of public signatures: a transform of a function keeps its parameters."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")  # the parameters of a user's function
Q = ParamSpec("Q")  # the parameters of a method without its object
R = TypeVar("R")  # the result of a user's function
C = TypeVar("C")  # the carried value of a loop
A = TypeVar("A")  # the auxiliary result of a function, with has_aux
F = TypeVar("F", bound=Callable[..., Any])  # a function that is returned as it is
