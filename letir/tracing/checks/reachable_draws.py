"""``reaches_draws``: whether a function may draw random numbers with traced parameters.

Where draws are allowed, as in eager ``grad``, only such draws need stand-ins for the generators'
methods, and most functions have none. Reading the code of a function tells: names of NumPy's
functions, of arrays' methods, and of numbers and arrays do not draw.
"""

import builtins
import functools
import itertools
import math
import operator
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache

_MAX_FUNCTIONS = 32  # functions that are read
_MAX_CODES = 1 << 10
# by id of the code
_named_by: dict[int, tuple[CodeType, frozenset[str]]] = BoundedCache(_MAX_CODES)
_WITHOUT_DRAWS = frozenset(
    [
        *(int, float, complex, bool, str, bytes, type(None), np.ndarray, ModuleType, type),
        *(np.ufunc, type(np.sum), type(len), *np.sctypeDict.values()),
    ]
)


@functools.cache
def _harmless_names() -> frozenset[str]:
    """The names of functions of NumPy and Python, and of the attributes of arrays."""
    spaces: tuple = (np, np.linalg, np.fft, np.ndarray, np.generic, math, builtins, list, dict, str)
    spaces += (functools, itertools, operator)
    return frozenset([name for space in spaces for name in dir(space)]) - {"gamma", "random"}


def transformed_function(f: Any) -> Callable | None:
    """The function whose gradient, Jacobian or batched form ``f`` is; None for other functions."""
    if type(f) is not FunctionType:
        return None
    module = str(f.__globals__.get("__name__"))
    is_transform = module == "letir.ast" or module.startswith("letir.transforms.")
    return getattr(f, "__wrapped__", None) if is_transform else None


def reaches_draws(f: Callable) -> bool:
    """Whether ``f``, or a function that it names, may draw with parameters from NumPy's generators.

    True if it is not known, such as for methods of the user's objects.
    """
    todo: list[Any] = [f]
    visited: set[int] = set()
    while todo:
        function = todo.pop()
        kind = type(function)
        if kind is ModuleType and function.__name__ in ("numpy.random", "random"):
            return True  # as in npr.power(x), which names no unusual function
        if kind in _WITHOUT_DRAWS or id(function) in visited:
            continue
        visited.add(id(function))
        transformed = transformed_function(function)
        if transformed is not None:
            todo.append(transformed)
            continue
        if kind is functools.partial:
            todo += [function.func, *function.args, *function.keywords.values()]
            continue
        if kind is MethodType:
            function = function.__func__
        if type(function) is not FunctionType or len(visited) > _MAX_FUNCTIONS:
            return True
        space = function.__globals__
        for name in _unusual_names(function.__code__):
            if name not in space:  # an attribute that arrays do not have
                return True
            todo.append(space[name])
        for cell in function.__closure__ or ():
            try:
                todo.append(cell.cell_contents)
            except ValueError:  # not assigned yet
                return True
    return False


def _unusual_names(code: CodeType) -> frozenset[str]:
    """The globals and attributes that code names, except harmless ones."""
    entry = _named_by.get(id(code))
    if entry is None:
        names: set[str] = set()
        todo = [code]
        while todo:
            inner = todo.pop()
            names.update(inner.co_names)
            todo += [constant for constant in inner.co_consts if type(constant) is CodeType]
        entry = _named_by[id(code)] = code, frozenset(names) - _harmless_names()
    return entry[1]


LATE_BOUND["reaches_draws"] = reaches_draws
