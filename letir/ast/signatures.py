"""Type variables of public signatures: a transform of a function keeps its parameters."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")  # the parameters of a user's function
Q = ParamSpec("Q")  # those of a method without its object
R = TypeVar("R")  # its result
C = TypeVar("C")  # what a loop carries
A = TypeVar("A")  # what it returns beside, with has_aux
F = TypeVar("F", bound=Callable[..., Any])  # a function that is handed back as it is
