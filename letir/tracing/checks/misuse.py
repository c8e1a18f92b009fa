"""Errors for calls that cannot work: a wrong number of arguments, or objects of the wrong kind.

Looked at only after something failed, so that a call that works pays nothing. The signatures and
annotations of the functions that users call say what each argument must be.
"""

import inspect
import typing
from collections.abc import Callable, Sequence
from types import UnionType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.ast.terms import Lambda
from letir.errors import DTypeError, LetirError, ShapeError
from letir.eval.array_modules import is_array, type_of
from letir.tracing.source_locations import at_user, is_users

_FUNCTION_REMEDY = "pass the function itself: letir.grad(f)(x), not letir.grad(f(x))"
_PROGRAM_REMEDY = "letir.trace(f, *args) records the program of a function"
_KINDS: dict[Any, tuple[str, str]] = {
    Lambda: ("a program", _PROGRAM_REMEDY),
    str: ("a string", "put it in quotes"),
    int: ("an int", "pass a whole number"),
    float: ("a number", "pass a float"),
    bool: ("True or False", "pass it as a keyword"),
}


def misuse(error: BaseException, function: Any, args: tuple, kwargs: dict) -> LetirError | None:
    """The error that says what is wrong with the arguments of a call that ended in ``error``.

    None if nothing is wrong with them as far as is known, or ``error`` comes from a callback.
    """
    if type(error) not in (TypeError, AttributeError, ValueError, KeyError):
        return None
    if isinstance(function, Primitive):
        return _misfit_of_operation(function, args, kwargs)
    signature = inspect.signature(function)
    name = function.__name__
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as reason:
        return DTypeError(f"{name}: {reason}\n  it takes {_parameters_text(signature)}")
    for parameter, value in bound.arguments.items():
        kind = signature.parameters[parameter]
        if kind.kind in (kind.VAR_POSITIONAL, kind.VAR_KEYWORD) or fits(value, kind.annotation):
            continue
        expected, remedy = _expected(kind.annotation)
        told = f"{name}: {parameter} must be {expected}, found {described(value)}"
        return DTypeError(f"{told}\n  {remedy}")
    found = _misfit_of_callback(error, name, bound.arguments)
    if found is not None or _passes_user(error):
        return found
    given = ", ".join([f"{key}: {described(value)}" for key, value in bound.arguments.items()])
    better = ShapeError if type(error) is ValueError else DTypeError
    return better(f"{name}: {error}\n  it takes {_parameters_text(signature)}, found {given}")


def _passes_user(error: BaseException) -> bool:
    """Whether an error passed through code of the user, which letir called."""
    link = error.__traceback__
    while link is not None:
        if is_users(link.tb_frame.f_code.co_filename):
            return True
        link = link.tb_next
    return False


def _misfit_of_callback(error: BaseException, name: str, arguments: dict) -> DTypeError | None:
    """The error for a function among the arguments that does not take what it is called with."""
    for parameter, value in arguments.items():
        for f in value if isinstance(value, list | tuple) else (value,):
            called = f"{getattr(f, '__qualname__', '')}() "
            if callable(f) and type(error) is TypeError and str(error).startswith(called):
                remedy = (
                    f"it takes {_parameters_text(inspect.signature(f))}: see help(letir.{name})"
                )
                return DTypeError(f"{name}: {parameter}: {error}\n  {remedy}")
    return None


def fits(value: Any, annotation: Any) -> bool:
    """Whether an argument may be of the annotated kind; True if that is not known."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (UnionType, typing.Union):
        return any(fits(value, part) for part in parts)
    if annotation is Callable or origin is Callable:
        return callable(value)
    if origin is Sequence:
        items = value if isinstance(value, list | tuple) else ()
        return not isinstance(value, str | float | int) and all(fits(i, parts[0]) for i in items)
    if annotation is None or annotation is type(None):
        return value is None
    if annotation is int:
        return isinstance(value, int | np.integer | Value)
    if annotation is float:
        return isinstance(value, int | float | np.number | np.ndarray | Value)
    return annotation not in _KINDS or isinstance(value, annotation)


def _expected(annotation: Any) -> tuple[str, str]:
    """(what an argument must be, what to do)."""
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) in (UnionType, typing.Union):
        found = [_expected(part) for part in parts if part is not type(None)]
        return " or ".join([what for what, _ in found]), found[0][1]
    if typing.get_origin(annotation) is Sequence:
        return f"a sequence, each item {_expected(parts[0])[0]}", "pass a list or a tuple"
    if annotation in _KINDS:
        return _KINDS[annotation]
    if annotation is Callable or typing.get_origin(annotation) is Callable:
        return "a function", _FUNCTION_REMEDY
    return getattr(annotation, "__name__", str(annotation)), "see its documentation"


def described(value: Any) -> str:
    """A short description of an object for an error message: its value or type."""
    if isinstance(value, Value):
        return f"a value of type {value.type!r}"
    if is_array(value) and not isinstance(value, np.generic):
        return f"an array of type {value.dtype}{list(value.shape)}"
    name = getattr(value, "__name__", None)
    if callable(value) and name:
        return f"the {'class' if isinstance(value, type) else 'function'} {name}"
    text = repr(value)
    text = text if len(text) <= 40 and "\n" not in text else "an object"
    return f"{text} of type {type(value).__name__}"


def _parameters_text(signature: inspect.Signature) -> str:
    """The parameters without annotations."""
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(plain))


# ---- operations ----


def _misfit_of_operation(op: Primitive, args: tuple, kwargs: dict) -> DTypeError | None:
    """The error for a call of an operation with operands or attributes that it does not take."""
    for rule in (op.prepare, op.decompose):
        if rule is None:
            continue
        signature = inspect.signature(rule)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as reason:
            return DTypeError(f"{op.name}: {reason}\n  it takes {_parameters_text(signature)}")
        break
    for i, operand in enumerate(args[:1] if op.prepare else args):  # others may be attributes
        if operand is None or type(operand) in (str, bytes, dict, set) or callable(operand):
            told = f"{op.name}: operand {i} must be an array or a number"
            remedy = "pass arrays as operands, the rest by keyword"
            return DTypeError(f"{told}, found {described(operand)}\n  {remedy}")
    return None


_NEVER_OPERANDS = (str, bytes, dict, set, type(None))


def other_operand(x: Value, name: str, other: Any) -> Any:
    """NotImplemented, which leaves an operator to the other operand.

    Raises DTypeError for objects that no array combines with, other than by == and !=.
    """
    if name in ("equal", "not_equal") or type(other) not in _NEVER_OPERANDS:
        return NotImplemented
    if name == "mul" and type(other) in (str, bytes):  # Python repeats it, asking for the index
        return NotImplemented
    raise DTypeError(
        f"{name}: {described(x)} and {described(other)} do not combine{at_user()}\n"
        "  both operands must be arrays or numbers"
    )


# ---- calls of the user's functions ----


def refuse_call(error: BaseException, f: Any, args: tuple, kwargs: dict) -> None:
    """Raise DTypeError if ``error`` says that ``f`` cannot be called with these arguments."""
    link = error.__traceback__
    if type(error) is not TypeError or (link is not None and link.tb_next is not None):
        return  # an error within the function
    if not callable(f):
        raise DTypeError(
            f"a function is expected, found {described(f)}{at_user()}\n  {_FUNCTION_REMEDY}"
        )
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # of functions in C
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as reason:
        given = [_type_text(x) for x in args] + [f"{k}={_type_text(x)}" for k, x in kwargs.items()]
        raise DTypeError(
            f"the function {getattr(f, '__name__', type(f).__name__)}"
            f"{_parameters_text(signature)} is called with ({', '.join(given)}): {reason}"
            f"{at_user()}\n  pass one argument for each of its parameters, or bind others with "
            "functools.partial"
        ) from None


def _type_text(value: Any) -> str:
    """The type of an argument as programs show it."""
    try:
        return repr(value.type if isinstance(value, Value) else type_of(value))
    except DTypeError:
        return type(value).__name__


def refuse_unless_function(asked: str, f: Any) -> None:
    """Raise DTypeError unless ``f`` is a function or a program."""
    if not callable(f):
        raise DTypeError(
            f"{asked}: a function or a program is expected, found {described(f)}{at_user()}\n"
            f"  {_FUNCTION_REMEDY}"
        )


def not_a_program(asked: str, found: Any) -> DTypeError:
    """The error for an object that must be a program."""
    return DTypeError(
        f"{asked}: a program is expected, found {described(found)}{at_user()}\n  {_PROGRAM_REMEDY}"
    )


def refuse_argnums(asked: str, argnums: Any, name: str = "argnums") -> None:
    """Raise DTypeError unless ``argnums`` is an int or a sequence of ints."""
    numbers = argnums if isinstance(argnums, list | tuple) else (argnums,)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise DTypeError(
                f"{asked}: {name} must be an int or a sequence of ints, found {described(argnums)}"
                f"{at_user()}\n  count positional arguments from 0; the arguments themselves go to "
                f"the function that {asked} returns"
            )


LATE_BOUND.update(
    misuse=misuse,
    not_a_program=not_a_program,
    other_operand=other_operand,
    refuse_argnums=refuse_argnums,
    refuse_call=refuse_call,
    refuse_unless_function=refuse_unless_function,
)
