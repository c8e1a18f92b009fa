"""Errors for users' functions and rules with a wrong signature, and for options that name missing
arguments.
"""

import dis
import inspect
import re
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.source import source_line
from letir.ast.types import ShapeDtype
from letir.errors import (
    BoundsError,
    DTypeError,
    LetirError,
    NoAttributeError,
    TraceError,
    mark_unrecorded_code,
)
from letir.eval.array_modules import is_array, type_of
from letir.tracing.checks.misuse import (
    FUNCTION_REMEDY,
    PROGRAM_REMEDY,
    describe_value,
    parameters_text,
)
from letir.tracing.source_locations import at_user, is_user_file, place_of


def call_rule(caller: str, rule: Callable, *args: Any) -> Any:
    """The result of a rule that the user wrote; DTypeError if it does not take these arguments.

    ``caller`` names the rule, as in "custom_vjp f: backward".
    """
    try:
        return rule(*args)
    except (TypeError, AttributeError) as error:
        refuse_call(error, rule, args, {}, f"{caller}: ")
        refuse_static(error, rule, args, {}, caller)
        raise


def refuse_call(error: BaseException, f: Any, args: tuple, kwargs: dict, caller: str = "") -> None:
    """Raise DTypeError if ``error`` says that ``f`` cannot be called with these arguments."""
    link = error.__traceback__
    # a ufunc has no frames: the frames below belong to its stand-in
    is_inside = link is not None and link.tb_next is not None and not isinstance(f, np.ufunc)
    if type(error) is not TypeError or is_inside:
        _refuse_method(error)
        return
    if not callable(f):
        raise DTypeError(
            f"{caller}a function is expected, found {describe_value(f)}{at_user()}\n"
            f"  {FUNCTION_REMEDY}"
        )
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # functions in C have no signature
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as reason:
        remedy = (
            "pass one argument for each of its parameters, or bind others with functools.partial"
        )
        if caller:  # letir made the call
            has_self = next(iter(signature.parameters), "") == "self"
            remedy = (
                "give it a parameter for each of these arguments"
                if not has_self
                else "write @staticmethod above it, and leave self out"
            )
        values = [_type_text(x) for x in args] + [f"{k}={_type_text(x)}" for k, x in kwargs.items()]
        raise DTypeError(
            f"{caller}the function {getattr(f, '__name__', type(f).__name__)}"
            f"{parameters_text(signature)} is called with ({', '.join(values)}): {reason}"
            f"{at_user()}\n  {remedy}"
        ) from None


def _users_line(error: BaseException) -> str:
    """The text of the user's line in which an error was raised, "" outside of user's code."""
    link, result = error.__traceback__, None
    while link is not None:
        result = link if is_user_file(link.tb_frame.f_code.co_filename) else result
        link = link.tb_next
    if result is None:
        return ""
    return source_line(place_of(result.tb_frame.f_code, result.tb_lasti, result.tb_lineno))


_DESCRIPTOR = r"descriptor '(\w+)' .*(?:apply to|received) a '(?:Tracer|Buffer)'"


_METHOD = r"(?:ArrayValue|ArrayMethods|PythonProtocols|Tracer|Buffer|(Indexed)Update)\.(\w+\(\) .*)"


def _refuse_method(error: BaseException) -> None:
    """Raise TraceError if a method of ``numpy.ndarray`` was called as a function.

    A TypeError of Python for wrong arguments of a method gets the name that the user wrote.
    """
    wrong = re.match(_METHOD, str(error)) if type(error) is TypeError else None
    if wrong is not None:
        error.args = (f"{'x.at[...]' if wrong[1] else 'ndarray'}.{wrong[2]}",)
        error.add_note(f"letir: {_users_line(error).lstrip()}")
        return
    match = re.match(_DESCRIPTOR, str(error))
    if match is None:
        return
    raise TraceError(
        f"numpy.ndarray.{match[1]} of a traced value is not recorded{_users_line(error)}\n"
        f"  call the method of the value: x.{match[1]}(...)"
    ) from None


_OF_A_CLASS = r"\b(?:Tracer|Buffer|RecordedObject)\b"
_OF_A_CLASS += r"|^No matching signature found$|^can't unbox array from PyObject"  # Cython, Numba
_OF_ARRAY_METHOD = "object __array__ method not producing an array"  # but a traced value
_OF_DATES = "Could not convert object to NumPy"
_OF_SEEDS = "SeedSequence expects int"  # in a library's code
_OF_AN_OPERATOR = ("unsupported operand", "'<", "'>", "bad operand")
_HINTS = {  # a part of Python's error about an array -> the remedy
    "object is not callable": "an array is not a function: its elements are x[i]",
    " format: ": "format an element, x[i], or the array by %s",
}


def refuse_c_function(error: BaseException) -> None:
    """Raise TraceError if a function written in C has refused the class of a traced value."""
    text = str(error)
    is_about_class = type(error) is TypeError and re.search(_OF_A_CLASS, text)
    if text == _OF_ARRAY_METHOD and type(error) is ValueError:
        text = "the method __array__ of an object gave it one"
    elif text.startswith(_OF_DATES) and type(error) is ValueError:
        text = f"{text}, a date or a time"
    elif text.startswith(_OF_SEEDS) and _has_traced_locals(error):
        text = f"{text}, a traced seed: pass it by static_argnames"
    elif not is_about_class or text.startswith(_OF_AN_OPERATOR):
        return
    if (hint := next((_HINTS[part] for part in _HINTS if part in text), None)) is not None:
        error.args = (text.replace("Tracer", "numpy.ndarray").replace("Buffer", "numpy.ndarray"),)
        error.add_note(f"letir: {_users_line(error).lstrip()}\n  {hint}")
        return
    raise mark_unrecorded_code(
        TraceError(
            f"a function written in C does not accept traced values: {text}{_users_line(error)}\n"
            "  write it with NumPy's functions, or call it without a derivative: "
            "letir.opaque(function, aval)(x)"
        )
    ) from None


def _has_traced_locals(error: BaseException) -> bool:
    """Whether a traced value is in a variable of the Python function that raised an error."""
    link, values = error.__traceback__, list[Any]()
    while link is not None:
        if link.tb_frame.f_code.co_filename.endswith(".py"):  # not Cython's
            values = list(link.tb_frame.f_locals.values())
        link = link.tb_next
    inner = [x for value in values if isinstance(value, dict) for x in value.values()]
    return any(issubclass(type(value), Value) for value in [*values, *inner])


def call_plainly(f: Callable, args: tuple, kwargs: dict) -> Any:
    """The result of ``f``, called without being recorded; errors as in a recording."""
    try:
        return f(*args, **kwargs)
    except (TypeError, AttributeError) as error:
        refuse_call(error, f, args, kwargs)
        refuse_static(error, f, args, kwargs)
        raise


def refuse_static(
    error: BaseException, f: Any, args: tuple, kwargs: dict, caller: str = ""
) -> None:
    """Raise DTypeError for a TypeError of Python in ``f`` about an argument that is not an array.

    Such an argument is passed unchanged, and fails like ``f("a")`` without letir. ``caller`` names
    a rule, as in "custom_vjp f: backward".
    """
    link = error.__traceback__
    while link is not None and link.tb_next is not None:
        link = link.tb_next
    # only errors of Python: an error that the user or a library raised stays
    of_python = type(error) in (TypeError, AttributeError) or "ufunc" in str(error)
    if isinstance(error, LetirError) or not of_python or link is None:
        return
    frame = link.tb_frame.f_code
    if not is_user_file(frame.co_filename) or _is_at_raise(link):
        return
    lines = [
        _static_argument_sentence(name, value) for name, value in _named_arguments(f, args, kwargs)
    ]
    lines = [line for line in lines if line]
    if lines:
        place = place_of(frame, link.tb_lasti, link.tb_lineno)
        name = caller or getattr(f, "__name__", type(f).__name__)
        kind = NoAttributeError if type(error) is AttributeError else DTypeError
        raise kind(
            f"{name}: {error}, where {', '.join(lines)}{source_line(place)}\n"
            "  letir records arrays and numbers, and passes other values unchanged: pass an array"
        ) from error


def _is_at_raise(link: TracebackType) -> bool:
    """Whether the innermost frame of a traceback raised the error by a ``raise`` statement."""
    return link.tb_frame.f_code.co_code[link.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def _named_arguments(f: Any, args: tuple, kwargs: dict) -> list[tuple[str, Any]]:
    """(parameter, argument) of a call that fits the signature of ``f``; each argument of ``*args``
    and ``**kwargs`` by itself.
    """
    try:
        result = []
        bound = inspect.signature(f).bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            kind = bound.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                result += [(f"{name}[{i}]", item) for i, item in enumerate(value)]
            else:
                result += (
                    value.items() if kind is inspect.Parameter.VAR_KEYWORD else [(name, value)]
                )
        return result
    except (TypeError, ValueError):  # functions in C have no signature
        return [(f"argument {i}", value) for i, value in enumerate(args)] + list(kwargs.items())


def _static_argument_sentence(name: str, value: Any) -> str:
    """A sentence that an argument is not an array; empty if it is one."""
    if isinstance(value, Value) or type(value) in (int, float, complex):
        return ""
    if is_array(value):
        try:
            type_of(value)
        except DTypeError as error:  # an array of strings or of objects
            return f"{name}: {str(error).splitlines()[0]}"
        return ""
    return f"{name} is {describe_value(value)}"


def _type_text(value: Any) -> str:
    """The type of an argument as programs show it."""
    try:
        is_typed = isinstance(value, Value | ShapeDtype)
        return repr(value.type if is_typed else type_of(value))
    except DTypeError:
        return type(value).__name__


def refuse_unless_function(caller: str, f: Any) -> None:
    """Raise DTypeError unless ``f`` is a function or a program."""
    if not callable(f):
        raise DTypeError(
            f"{caller}: a function or a program is expected, found {describe_value(f)}{at_user()}\n"
            f"  {FUNCTION_REMEDY}"
        )


def refuse_positions(caller: str, numbers: Sequence[int], count: int) -> None:
    """Raise BoundsError unless each of ``numbers`` is the position of one of ``count`` arguments.

    ``caller`` names the option, as in "checkpoint: static_argnums".
    """
    for n in numbers:
        if not -count <= n < count:
            raise BoundsError(
                f"{caller}: there is no positional argument {n} among {count}{at_user()}\n"
                "  count from 0, or from -1 for the last one; keyword arguments do not count"
            )


def not_a_program_error(caller: str, value: Any) -> DTypeError:
    """The error for an object that must be a program."""
    return DTypeError(
        f"{caller}: a program is expected, found {describe_value(value)}{at_user()}\n"
        f"  {PROGRAM_REMEDY}"
    )


def refuse_argnums(caller: str, argnums: Any, name: str = "argnums") -> None:
    """Raise DTypeError unless ``argnums`` is an int or a sequence of ints."""
    numbers = argnums if isinstance(argnums, list | tuple) else (argnums,)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise DTypeError(
                f"{caller}: {name} must be an int or a sequence of ints, "
                f"found {describe_value(argnums)}"
                f"{at_user()}\n  count positional arguments from 0; the arguments themselves go to "
                f"the function that {caller} returns"
            )


LATE_BOUND.update(
    call_plainly=call_plainly,
    call_rule=call_rule,
    not_a_program_error=not_a_program_error,
    refuse_argnums=refuse_argnums,
    refuse_c_function=refuse_c_function,
    refuse_call=refuse_call,
    refuse_positions=refuse_positions,
    refuse_static=refuse_static,
    refuse_unless_function=refuse_unless_function,
)
