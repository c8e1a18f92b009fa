"""Errors for calls with wrong arguments: a wrong number of them, or objects of the wrong kind.

These checks run only after a call has failed, so that calls that work pay nothing. They compare the
arguments with the signature and the annotations of the function that the user called.
"""

import inspect
import re
import typing
from collections.abc import Callable, Sequence, Sized
from difflib import get_close_matches
from types import UnionType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.terms import Lambda
from letir.errors import BoundsError, DTypeError, LetirError, ShapeError
from letir.eval.array_modules import is_array, type_of
from letir.tracing.source_locations import at_user, is_user_file

FUNCTION_REMEDY = "pass the function itself, not its result"
PROGRAM_REMEDY = "letir.trace(f, *args) records the program of a function"
_KINDS: dict[Any, tuple[str, str]] = {
    Lambda: ("a program", PROGRAM_REMEDY),
    str: ("a string", "pass a string"),
    int: ("an int", "pass a whole number"),
    float: ("a number", "pass a float"),
    bool: ("True or False", "pass True or False"),
}


_PLURALS = {int: "ints", str: "strings", bool: "flags", float: "numbers", Callable: "functions"}
_LIKENESS = 0.8  # of a wrong keyword to the one that was probably meant
_MAX_ITEMS = 40  # of a container that a message shows
_CONTAINERS = (tuple, list, dict, set)
_OF_ARGUMENTS = (TypeError, AttributeError, ValueError, KeyError, IndexError)
_OF_VALUES = (np.linalg.LinAlgError, LetirError)  # the arguments may be right


def argument_error(
    error: BaseException, function: Any, args: tuple, kwargs: dict, is_inner: bool = False
) -> LetirError | None:
    """The error that says what is wrong with the arguments of a call that ended in ``error``.

    None if nothing is wrong with them as far as is known, or ``error`` comes from a callback.
    ``is_inner``: letir made the call; then the values may be wrong, for which NumPy's error stays.
    """
    if not isinstance(error, _OF_ARGUMENTS) or isinstance(error, _OF_VALUES):
        return None
    if isinstance(function, Primitive):
        return _misfit_of_operation(error, function, args, kwargs, is_inner)
    try:
        signature, name = _signature_and_name(function)
    except ValueError:  # a function in C
        name = getattr(function, "__name__", type(function).__name__)
        return _class_for(error)(f"{name}: {error}\n  see its documentation")
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as reason:
        return DTypeError(f"{name}: {reason}\n  {_signature_remedy(reason, signature)}")
    for parameter, value in bound.arguments.items():
        kind = signature.parameters[parameter]
        if kind.kind in (kind.VAR_POSITIONAL, kind.VAR_KEYWORD) or _fits_annotation(
            value, kind.annotation
        ):
            continue
        return _misfit_error(name, parameter, value, kind.annotation)
    result = _misfit_of_callback(error, name, bound.arguments)
    if result is not None or is_inner or _passes_user(error):
        return result
    values = [f"{key}: {describe_value(value)}" for key, value in bound.arguments.items()]
    values = values[1:] if "self" in bound.arguments else values
    remedy = f"it takes {parameters_text(signature)}"
    if isinstance(error, IndexError):
        remedy = "valid indices are below the size; negative ones count from the end"
    return _class_for(error)(f"{name}: {error}, found {', '.join(values)}\n  {remedy}")


def wrong_call_error(name: str, function: Any, args: tuple, kwargs: dict) -> DTypeError | None:
    """The error for a call of a function of NumPy that NumPy refuses too, None if it accepts it."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function in C
        return None
    try:
        signature.bind(*args, **kwargs)
    except TypeError as reason:
        remedy = _signature_remedy(reason, signature)
        return DTypeError(f"{name}: {reason}{at_user()}\n  {remedy}")
    return None


def not_callable_error(
    error: BaseException, function: Any, args: tuple, kwargs: dict
) -> DTypeError | None:
    """The error for an argument that must be a function and is not; None if there is none.

    For calls that ended in an ``error`` of letir, which may be about a consequence.
    """
    if re.match(r".*: a function or a program is expected|a hook must be", str(error)):
        return None  # it says more
    try:
        signature, name = _signature_and_name(function)
        arguments = signature.bind(*args, **kwargs).arguments
    except (TypeError, ValueError, AttributeError):
        return None
    for parameter, value in arguments.items():
        annotation = signature.parameters[parameter].annotation
        is_function = annotation is Callable or typing.get_origin(annotation) is Callable
        if is_function and not callable(value):
            name = name if function.__name__ != "__init__" else type(arguments["self"]).__name__
            return _misfit_error(name, parameter, value, annotation)
    return None


def refuse_misfit(function: Callable, arguments: dict[str, Any], parameter: str) -> None:
    """Raise DTypeError unless the argument for ``parameter`` fits its annotation."""
    value, annotation = arguments[parameter], function.__annotations__[parameter]
    own_names = getattr(getattr(arguments.get("f"), "__code__", None), "co_varnames", ())
    # if ``f`` has a parameter of this name, ``trace`` says so
    if not _fits_annotation(value, annotation) and parameter not in own_names:
        _, name = _signature_and_name(function)
        name = name if function.__name__ != "__init__" else type(arguments["self"]).__name__
        raise _misfit_error(name, parameter, value, annotation)


def refuse_flag(op: str, name: str, value: Any) -> None:
    """Raise DTypeError unless the attribute ``name`` of an operation is true or false."""
    if not _fits_annotation(value, bool):
        raise _misfit_error(op, name, value, bool)


def _misfit_error(name: str, parameter: str, value: Any, annotation: Any) -> DTypeError:
    """The error for an argument that does not fit its annotation."""
    expected, remedy = _expectation_and_remedy(annotation)
    if parameter.endswith("argnums"):
        remedy = (
            f"count positional arguments from 0; the arguments themselves go to the function that "
            f"{name} returns"
        )
    return DTypeError(
        f"{name}: {parameter} must be {expected}, found {describe_value(value)}\n  {remedy}"
    )


def _class_for(error: BaseException) -> type[LetirError]:
    """The class of letir's errors that replaces an error of Python or NumPy.

    If possible, a subclass of the original class, so that users' ``except`` clauses still work.
    """
    if isinstance(error, IndexError):
        return BoundsError
    return ShapeError if isinstance(error, ValueError) else DTypeError


def _signature_and_name(function: Callable) -> tuple[inspect.Signature, str]:
    """The signature of a function and its name for messages; of a class's method without self."""
    signature = inspect.signature(function)
    owner, _, name = function.__qualname__.rpartition(".")
    if name in ("__init__", "__call__", "__new__"):
        name = owner.rpartition(".")[2]
    if function.__module__ == "letir.tree":  # NumPy and Python have functions of these names
        name = f"tree.{name}"
    return signature, name


def _passes_user(error: BaseException) -> bool:
    """Whether an error passed through code of the user, which letir called."""
    link = error.__traceback__
    while link is not None:
        if is_user_file(link.tb_frame.f_code.co_filename):
            return True
        link = link.tb_next
    return False


def _misfit_of_callback(error: BaseException, name: str, arguments: dict) -> DTypeError | None:
    """The error for a callback, an argument of the call, whose signature does not fit its call."""
    for parameter, value in arguments.items():
        for f in value if isinstance(value, list | tuple) else (value,):
            called = f"{getattr(f, '__qualname__', '')}() "
            if callable(f) and type(error) is TypeError and str(error).startswith(called):
                try:
                    takes = parameters_text(inspect.signature(f))
                except ValueError:  # a class in C such as int, whose own error says what is wrong
                    return None
                remedy = f"it takes {takes}; the docstring of {name} says which arguments it gets"
                return DTypeError(f"{name}: {parameter}: {error}\n  {remedy}")
    return None


def _fits_annotation(value: Any, annotation: Any) -> bool:
    """Whether an argument may be of the annotated kind; True if that is not known."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (UnionType, typing.Union):
        return any(_fits_annotation(value, part) for part in parts)
    if annotation is Callable or origin is Callable:
        return callable(value)
    if origin is Sequence:
        if isinstance(value, str | dict | Value) or not hasattr(type(value), "__iter__"):
            return False
        items = value if isinstance(value, list | tuple | np.ndarray) else ()
        return all(_fits_annotation(i, parts[0]) for i in items)
    if annotation is bool:  # 0 and 1, too; a traced value is asked for its truth value
        return isinstance(value, bool | np.bool_ | Value) or (
            type(value) is int and value in (0, 1)
        )
    if annotation is None or annotation is type(None):
        return value is None
    if annotation is int:
        return isinstance(value, int | np.integer | Value)
    if annotation is float:
        return isinstance(value, int | float | np.number | np.ndarray | Value)
    return annotation not in _KINDS or isinstance(value, annotation)


def _expectation_and_remedy(annotation: Any) -> tuple[str, str]:
    """(what an argument must be, what to do)."""
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) in (UnionType, typing.Union):
        expectations = [_expectation_and_remedy(part) for part in parts if part is not type(None)]
        remedies = dict.fromkeys([remedy for _, remedy in expectations])
        return " or ".join([expectation for expectation, _ in expectations]), ", or ".join(remedies)
    if typing.get_origin(annotation) is Sequence:
        expectation = _expectation_and_remedy(parts[0])[0]
        plural = _PLURALS.get(
            typing.get_origin(parts[0]) or parts[0], f"which each item is {expectation}"
        )
        return f"a sequence of {plural}", "pass them in a tuple"
    if annotation in _KINDS:
        return _KINDS[annotation]
    if annotation is Callable or typing.get_origin(annotation) is Callable:
        return "a function", FUNCTION_REMEDY
    return getattr(annotation, "__name__", str(annotation)), "see its documentation"


def describe_value(value: Any) -> str:
    """A short description of an object for an error message: its value or type."""
    if isinstance(value, Value):
        return f"a value of type {value.type!r}"
    if value is None:
        return "None"
    if is_array(value) and not isinstance(value, np.generic):
        return f"an array of type {value.dtype}{list(value.shape)}"
    name = getattr(value, "__name__", None)
    if callable(value) and name:
        return f"the {'class' if isinstance(value, type) else 'function'} {name}"
    try:
        text = "" if isinstance(value, Sized) and len(value) > _MAX_ITEMS else repr(value)
    except Exception:  # of the user's class
        text = ""
    is_short = text and len(text) <= 40 and "\n" not in text and " at 0x" not in text
    kind = type(value).__name__
    if type(value) in _CONTAINERS and (not is_short or any(isinstance(x, Value) for x in value)):
        return f"a {kind} of length {len(value)}"
    text = text if is_short else "an object"
    return f"{text} of type {kind}"


def _signature_remedy(reason: TypeError, signature: inspect.Signature) -> str:
    """The parameters of a function, and the one that a wrong keyword in a call probably means."""
    wrong = re.search(r"unexpected keyword argument '(\w+)'", str(reason))
    likely = get_close_matches(wrong[1], signature.parameters, 1, _LIKENESS) if wrong else []
    meant = f"did you mean {likely[0]}? " if likely else ""
    return f"{meant}it takes {parameters_text(signature)}"


def parameters_text(signature: inspect.Signature) -> str:
    """The parameters without annotations, without self, and with short defaults only."""
    plain = []
    for parameter in signature.parameters.values():
        default = parameter.default
        if default is not parameter.empty and len(repr(default)) > 20:
            default = ...
        plain.append(parameter.replace(annotation=parameter.empty, default=default))
    if plain and plain[0].name == "self":
        del plain[0]
    return str(inspect.Signature(plain)).replace("=Ellipsis", "=...")


# ---- operations ----


def _misfit_of_operation(
    error: BaseException, op: Primitive, args: tuple, kwargs: dict, is_inner: bool
) -> LetirError | None:
    """The error for a call of an operation with operands or attributes that it does not take."""
    for rule in (op.prepare, op.decompose):
        if rule is None:
            continue
        signature = inspect.signature(rule)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as reason:
            return DTypeError(f"{op.name}: {reason}\n  it takes {parameters_text(signature)}")
        break
    for i, operand in enumerate(args[:1] if op.prepare else args):  # others may be attributes
        if not is_operand(operand):
            problem = f"{op.name}: operand {i} must be an array or a number"
            remedy = "pass arrays as operands, the rest by keyword"
            return DTypeError(f"{problem}, found {describe_value(operand)}\n  {remedy}")
    if is_inner or _passes_user(error):
        return None
    values = [describe_value(x) for x in args] + [
        f"{k}={describe_value(x)}" for k, x in kwargs.items()
    ]
    return _class_for(error)(
        f"{op.name}: {error}, found ({', '.join(values)})\n"
        f"  its attributes are ({', '.join(op.attrs) or 'none'}): pass arrays as operands, "
        "the rest by keyword"
    )


def is_operand(value: Any) -> bool:
    """Whether letir computes with a value, which may be a list of arrays."""
    if isinstance(value, list | tuple):
        return all(map(is_operand, value))
    try:
        return isinstance(value, Value) or type_of(value) is not None
    except DTypeError:
        return False


_NEVER_OPERANDS = (str, bytes, dict, set, type(None))


def other_operand(x: Value, op: Primitive, other: Any, reflected: bool = False) -> Any:
    """NotImplemented, which leaves an operator to the other operand.

    Objects with operators of their own get a NumPy scalar as a Python number. Raises DTypeError for
    objects that arrays do not combine with, except by == and !=.
    """
    if LATE_BOUND["is_foreign"](type(other)) and not (x.type.weak or reflected):
        number = PRIMITIVES["weaken"](x)
        return op.python.of_numbers(number, other) if op.python.of_numbers else NotImplemented
    if op.python.takes_all or type(other) not in _NEVER_OPERANDS:
        return NotImplemented
    if op.python.repeats_sequences and type(other) in (str, bytes):  # Python does, by __index__
        return NotImplemented
    raise DTypeError(
        f"{op.name}: {describe_value(x)} and {describe_value(other)} do not combine{at_user()}\n"
        "  both operands must be arrays or numbers"
    )


LATE_BOUND.update(
    argument_error=argument_error,
    describe_value=describe_value,
    not_callable_error=not_callable_error,
    other_operand=other_operand,
    refuse_flag=refuse_flag,
    refuse_misfit=refuse_misfit,
    wrong_call_error=wrong_call_error,
)
