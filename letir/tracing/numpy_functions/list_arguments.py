"""NumPy's functions called with a list of traced values.

NumPy makes an array of a list of numbers, but not of a list of traced values; the stand-ins for
NumPy's functions do. Code that builds a list itself gets stand-ins when it is first seen, see
``math_stand_ins``. If the list is among the arguments of the recorded function, the code gets them
before the function is called. If a ufunc gets a list in another way, from an attribute or from
another function, it gets its stand-in then, and the function is recorded again. A function that
calls ``float`` in an installed module without stand-ins is recorded again too.
"""

import builtins
import re
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import Value
from letir.tracing.callers import (
    codes_in,
    is_beside_extensions,
    is_user_module,
    name_of_globals,
)
from letir.tracing.math_stand_ins import functions_of_arrays
from letir.tracing.refusals import RecordAgain, called_text
from letir.tracing.source_locations import is_letir_file, is_user_file
from letir.tracing.stand_ins import (
    GIVEN_NUMBERS,
    add_list_stand_in,
    add_number_stand_ins,
    stand_in_of,
    watch_functions,
)
from letir.tracing.trace_state import ACTIVE, Trace

_MAX_CODES = 1 << 12
_seen: dict[int, CodeType] = BoundedCache(_MAX_CODES)  # by id, as hashing code is slow


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


_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def note_function_of_lists(
    called: str, frame: FrameType | None, are_integers: bool = False
) -> None:
    """Note that a function of NumPy was given a list, so that it gets a stand-in.

    ``called`` is the name of the function in ``frame``, or without a frame its name with the module
    of NumPy that defines it. ``are_integers``: the function needs an integer, which may also be a
    size or an axis unless the function is a ufunc. Nothing is noted if the function has a stand-in
    already: then its operand is another object with traced values.
    """
    trace = ACTIVE.get()
    if type(trace) is not Trace or not trace.intercepts or not _DOTTED.fullmatch(called):
        return
    if frame is None:
        called_object = _defined_in_numpy(*called.rpartition(".")[::2])
    else:
        called_object = _object_named(called.split("."), frame)
    owner = getattr(called_object, "__self__", None)
    function = owner if isinstance(owner, np.ufunc) else called_object
    is_numpys = isinstance(function, np.ufunc if are_integers else _KINDS) and any(
        getattr(module, function.__name__, None) is function for module in _MODULES
    )
    if is_numpys and stand_in_of(function) is None:
        vars(trace)["takes_lists"] = function


def note_function_of_object(error: ValueError) -> None:
    """Note that a function of NumPy was given an object whose ``__array__`` returns a traced value,
    if this is why NumPy raised ``error``.
    """
    if str(error) != "object __array__ method not producing an array":
        return
    called, frame, is_inside, link = "", None, False, error.__traceback__
    while link is not None:
        code = link.tb_frame.f_code
        if is_user_file(code.co_filename):
            called, frame, is_inside = called_text(code, link.tb_lasti), link.tb_frame, False
        elif not is_inside and not is_letir_file(code.co_filename):
            called, frame, is_inside = (
                f"{_module_of_frame(link.tb_frame)}.{code.co_name}",
                None,
                True,
            )
        link = link.tb_next
    note_function_of_lists(called, frame)


def _module_of_frame(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


_KINDS = (np.ufunc, type(np.sum))
_MODULES = (np, np.linalg, np.fft)


def _defined_in_numpy(module: str, name: str) -> Any:
    """The public function whose code stands in a module of NumPy's; None if there is none."""
    for space in _MODULES if module.startswith("numpy.") else ():
        result = getattr(space, name, None)
        code = getattr(result, "__wrapped__", None)
        if type(code) is FunctionType and code.__globals__.get("__name__") == module:
            return result
    return None


def note_module_of_numbers(called: str, frame: FrameType) -> None:
    """Note the module of ``frame`` if it has no stand-in for ``float`` or ``complex`` yet."""
    space = frame.f_globals
    if called not in space and (is_user_module(space) or is_beside_extensions(space)):
        _note_module(space)
    LATE_BOUND["note_held_function"]()


def note_module_beside_extensions(frame: FrameType) -> None:
    """Note the module of ``frame`` if the names that it has imported have no stand-ins yet."""
    if is_beside_extensions(frame.f_globals):
        _note_module(frame.f_globals)


def _note_module(space: dict) -> None:
    """Note that the module with these globals needs stand-ins, unless it has them."""
    trace = ACTIVE.get()
    is_given = name_of_globals(space) in GIVEN_NUMBERS
    if type(trace) is Trace and trace.intercepts and not is_given:
        vars(trace)["takes_lists"] = space


def _object_named(names: list[str], frame: FrameType) -> Any:
    """The object with this dotted name in a frame; None if a name is missing."""
    missing = object()
    result: Any = missing
    for space in (frame.f_locals, frame.f_globals, vars(builtins)):
        if result is missing:
            result = space.get(names[0], missing)
    for name in names[1:]:
        if isinstance(result, np.ufunc):
            result = getattr(result, name, missing)
        else:  # not by getattr, which may run the user's code
            result = getattr(result, "__dict__", {}).get(name, missing)
    return None if result is missing else result


def learn_function_of_lists(trace: Trace, f: Callable) -> None:
    """Make the stand-ins for the ufunc or module that ``trace`` has noted, or for the functions in
    containers that ``f`` reaches.

    Raises ``RecordAgain`` if the next recording of ``f`` has stand-ins that this one lacked.
    """
    functions = vars(trace).pop("takes_lists", None)
    if functions is not None:
        (add_number_stand_ins if type(functions) is dict else add_list_stand_in)(functions)
    if functions is not None or LATE_BOUND["learn_held_functions"](f):
        raise RecordAgain(trace.mode, trace.refusal) from None
    if "refused_write" in vars(trace):
        LATE_BOUND["record_again_owning"](trace, f)


LATE_BOUND.update(
    watch_list_arguments=watch_list_arguments,
    note_function_of_lists=note_function_of_lists,
    note_function_of_object=note_function_of_object,
    learn_function_of_lists=learn_function_of_lists,
    note_module_beside_extensions=note_module_beside_extensions,
    note_module_of_numbers=note_module_of_numbers,
)
