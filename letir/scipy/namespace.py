"""Shared parts of the namespaces: call SciPy's function unless an argument is traced."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND, entry_point
from letir.ast.builder import Value
from letir.errors import LetirError, MissingRule, mark_unrecorded_code
from letir.eval.array_modules import scipy_function
from letir.ops.special.scipy_functions import FUNCTIONS
from letir.tracing.mutation.memory_order import copy_to_order
from letir.tracing.operands import first_traced
from letir.tracing.source_locations import at_user


def is_traced(*args: Any, **kwargs: Any) -> bool:
    """Whether any of the arguments is, or holds, a traced value."""
    return first_traced((*args, *kwargs.values())) is not None


def find_in_scipy(part: str, name: str) -> Any:
    """The object ``scipy.part.name``. Raises SciPy's AttributeError if there is none."""
    return scipy_function(np, part, name)


def drop_in(part: str) -> Callable:
    """A decorator: the function is called instead of SciPy's if an argument is traced.

    SciPy's function has the same name, in the namespace ``part``. It is recorded as a call of SciPy
    if the function refuses the arguments.
    """

    def decorate(function: Callable) -> Callable:
        recorded = entry_point(function)

        @entry_point
        @functools.wraps(function)
        def called(*args, **kwargs):
            if not is_traced(*args, **kwargs):
                return _function_of_scipy(part, function.__name__)(*args, **kwargs)
            try:
                return copy_in_order_of_scipy(part, function.__name__, recorded(*args, **kwargs))
            except MissingRule as error:
                is_called = function.__name__ in FUNCTIONS.get(part, ())
                if not is_called or not hasattr(error, "letir_unrecorded"):
                    raise
                refused = error
            original = _function_of_scipy(part, function.__name__)
            try:
                return LATE_BOUND["scipy_call"](part, original, args, kwargs, refused)
            except LetirError:
                raise refused from None

        return called

    return decorate


# parts of SciPy whose results are new arrays in C order, with the exceptions: functions whose
# results are in Fortran order, and those whose results are ordered as their operands or as views
_IN_C_ORDER = frozenset(["fft", "fftpack", "linalg", "ndimage", "signal", "spatial.distance"])
_IN_FORTRAN_ORDER = frozenset(["cholesky", "cho_factor", "solve_banded", "solveh_banded", "svd"])
_IN_ORDER_OF_OPERANDS = frozenset(
    [
        *("cho_solve", "cosm", "detrend", "eigh", "fftshift", "filtfilt", "ifftshift", "lu_solve"),
        *("resample", "sinm", "solve_triangular", "sosfiltfilt"),
    ]
)


def copy_in_order_of_scipy(part: str, name: str, result: Any) -> Any:
    """The result of a recorded function with the arrays in the memory order of SciPy's function."""
    if part not in _IN_C_ORDER or name in _IN_ORDER_OF_OPERANDS:
        return result
    if type(result) is tuple:
        return tuple([copy_in_order_of_scipy(part, name, item) for item in result])
    if not isinstance(result, Value):
        return result
    return copy_to_order(result, "F" if name in _IN_FORTRAN_ORDER else "C")


@functools.cache
def _function_of_scipy(part: str, name: str) -> Callable:
    """SciPy's function, whose errors about arguments also show what was found."""
    return entry_point(find_in_scipy(part, name))


def as_scalar(result: Any) -> Any:
    """A 0-d result as the scalar that SciPy returns; other results unchanged."""
    return result if result.ndim else result[()]


def refusal_error(name: str, reason: str) -> MissingRule:
    """The error for a function that cannot be recorded with the given arguments."""
    return mark_unrecorded_code(
        MissingRule(f"{name} of traced values is not recorded: {reason}{at_user()}")
    )


def fallback_getattr(part: str) -> Callable:
    """The ``__getattr__`` of a namespace, which finds SciPy's names."""

    def find(name: str):
        if name.startswith("__"):  # doctest and copy ask modules for such names
            raise AttributeError(f"module 'letir.scipy.{part}' has no attribute {name!r}")
        return find_in_scipy(part, name)

    return find
