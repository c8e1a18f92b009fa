"""``jit`` of partials, whose bound arrays are arguments of the program; which objects are called as
their class says.
"""

import functools
from collections.abc import Callable
from types import FunctionType

from letir.ast.pytrees import flatten
from letir.eval.array_modules import is_array


def is_callable_object(f: object) -> bool:
    """Whether ``f`` is a user's object whose class defines ``__call__``."""
    if type(f).__module__.partition(".")[0] == "letir":
        return False
    found = next((vars(c)["__call__"] for c in type(f).__mro__ if "__call__" in vars(c)), None)
    return type(found) is FunctionType


def bound_arrays(partial: functools.partial) -> list:
    """The arrays among the bound arguments of a partial."""
    return [leaf for leaf in flatten((partial.args, partial.keywords))[0] if is_array(leaf)]


def with_bound(partial: functools.partial) -> Callable:
    """A partial as a function of the list of its bound arrays and its further arguments."""
    leaves, tree = flatten((partial.args, partial.keywords))
    # None in place of the arrays: the executor must not keep them alive
    others = [None if is_array(leaf) else leaf for leaf in leaves]
    where = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
    del leaves

    @functools.wraps(partial.func)
    def function(arrays, /, *args, **kwargs):
        filled = list(others)
        for i, array in zip(where, arrays, strict=True):
            filled[i] = array
        first, named = tree.unflatten(filled)
        return partial.func(*first, *args, **{**named, **kwargs})

    del function.__wrapped__  # its own parameters are others
    return function
