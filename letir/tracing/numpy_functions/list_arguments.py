"""NumPy's functions called with an argument of the recorded function that is a list.

NumPy makes an array of a list of numbers, but cannot of a list of traced values. Stand-ins for
NumPy's functions do; code that builds a list itself gets them when it is first seen, see
``math_stand_ins``.
"""

from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.tracing.math_stand_ins import codes_in, functions_of_arrays
from letir.tracing.stand_ins import watch_functions

_MOST = 1 << 12
_seen: dict[int, CodeType] = {}  # by id, as hashing code is slow


def watch_list_arguments(f: Callable, args: tuple) -> None:
    """Let the functions of NumPy that ``f`` and its module name take lists of traced numbers.

    Only if there is such a list among the arguments.
    """
    if not any(map(_holds_listed_numbers, args)):
        return
    while type(f) is MethodType:
        f = f.__func__
    if type(f) is not FunctionType or _seen.get(id(f.__code__)) is f.__code__:
        return
    if len(_seen) >= _MOST:
        _seen.clear()
    _seen[id(f.__code__)] = f.__code__
    space = f.__globals__
    names: set[str] = set()
    todo = [f.__code__, *codes_in(list(space.values()), space)]
    while todo:
        code = todo.pop()
        names |= functions_of_arrays(code.co_names)
        todo += [constant for constant in code.co_consts if type(constant) is CodeType]
    watch_functions(names, LATE_BOUND["function_stand_in"])


def _holds_listed_numbers(x: Any) -> bool:
    """Whether an argument holds a list or tuple of traced numbers, not only of arrays."""
    if type(x) is dict:
        return any(map(_holds_listed_numbers, x.values()))
    if type(x) not in (list, tuple):
        return False
    return any(
        item.shape == () if isinstance(item, Value) else _holds_listed_numbers(item) for item in x
    )


LATE_BOUND["watch_list_arguments"] = watch_list_arguments
