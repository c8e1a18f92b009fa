"""The signatures of public functions and classes: type variables, which arguments are of a plain
kind, and the attributes that completion lists.

``plain_parameters``: flags, numbers and strings, which are checked at each call. Without the check
``has_aux="no"`` is true, and ``sgd("0.1")`` fails at its first step. An argument of a class in the
table fits; ``letir.tracing.checks.misuse`` judges the others.
"""

from collections.abc import Callable
from types import FunctionType, NoneType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")  # the parameters of a user's function
Q = ParamSpec("Q")  # the parameters of a method without its object
R = TypeVar("R")  # the result of a user's function
C = TypeVar("C")  # the carried value of a loop
A = TypeVar("A")  # the auxiliary result of a function, with has_aux
F = TypeVar("F", bound=Callable[..., Any])  # a function that is returned unchanged


def dir_of(*names: str) -> Callable[[Any], list[str]]:
    """The method ``__dir__`` of a class whose attributes for users are ``names``.

    Editors then complete these; the attributes that letir's modules read are left out.
    """

    def __dir__(self) -> list[str]:
        return [*names, *[name for name in object.__dir__(self) if name.startswith("__")]]

    return __dir__


_ORDINARY: dict[object, tuple[type, ...]] = {  # annotation -> the classes that arguments often have
    bool: (bool,),
    int: (int, bool),
    float: (float, int, bool),
    str: (str,),
    None: (NoneType,),
    NoneType: (NoneType,),
    Callable: (FunctionType,),
}


def plain_parameters(function: Callable) -> tuple[tuple[str, ...], dict[str, frozenset[type]]]:
    """(positional parameters, {parameter: classes of arguments that fit}).

    The second item has the parameters that are annotated with plain kinds, but not parameters that
    must be functions: calling another object raises a clear error anyway.
    """
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    result = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        if type(annotation) is type or annotation is Any:  # the common case first
            if annotation in _ORDINARY and name != "return":
                result[name] = frozenset(_ORDINARY[annotation])
            continue
        if name == "return" or annotation is Callable or _origin(annotation) is not None:
            continue
        classes = [_classes_of(part) for part in getattr(annotation, "__args__", (annotation,))]
        # str | Callable: the string is one of several words, and its reader refuses all others
        if None not in classes and not {(FunctionType,), (str,)} <= {*classes}:
            result[name] = frozenset([kind for part in classes for kind in part or ()])
    return (code.co_varnames[: code.co_argcount] if code else ()), result


def _origin(annotation: object) -> str | None:
    """The name of the generic class of an annotation: "Sequence" for Sequence[int]."""
    return getattr(getattr(annotation, "__origin__", None), "__name__", None)


def _classes_of(annotation: object) -> tuple[type, ...] | None:
    """The classes of arguments that often fit an annotation, None if it is not a plain kind."""
    generic = _origin(annotation)
    if generic == "Callable":
        return _ORDINARY[Callable]
    if generic is not None:  # the items have to be tested each time
        return () if generic == "Sequence" else None
    return _ORDINARY.get(annotation) if annotation.__hash__ else None
