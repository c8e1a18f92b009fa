"""Programs: their types, terms and texts, and what is known of every operation.

``LATE_BOUND`` and ``entry_point`` are here because ``import letir`` needs nothing else: the rest,
attrs among it, loads when a name of letir is first used.
"""

import functools
from collections.abc import Callable
from typing import Any, cast

from letir.ast.signatures import F, plain_parameters


class LoadingTable(dict):
    """A dict that calls ``load(name)`` on a missing name, which enters it, and looks again."""

    def __init__(self, load: Callable[[str], None]) -> None:
        super().__init__()
        self._load = load

    def __missing__(self, name: str) -> Any:
        self._load(name)
        if name not in self:
            raise KeyError(name)
        return self[name]


def _load_late_bound(name: str) -> None:
    if name != "load":  # entered by letir/__init__.py, which knows where the others are defined
        LATE_BOUND["load"](name)


# Functions of packages that ``ast`` must not import.
LATE_BOUND: dict[str, Callable] = LoadingTable(_load_late_bound)


def refuse_other_kinds(function: Callable, plain: dict, arguments: tuple) -> None:
    """Raise DTypeError for one of the (name, argument) pairs that is not of its annotated kind.

    ``plain``: the ``plain_parameters`` of the function.
    """
    for name, value in arguments:
        if name in plain and type(value) not in plain[name]:
            LATE_BOUND["refuse_misfit"](function, dict(arguments), name)


def entry_point(function: F) -> F:
    """``function`` for users to call: errors get the user's line and a traceback without letir.

    Arguments annotated as flags, numbers or strings are of that kind, or DTypeError says so.
    Functions that run often have the same ``except`` clause in their own body, which costs nothing.
    """
    names: tuple[str, ...] = ()
    plain: dict | None = None  # found at the first call

    @functools.wraps(function)
    def call(*args, **kwargs):
        nonlocal names, plain
        try:
            if plain is None:
                names, plain = plain_parameters(function)
            if plain:
                named = zip(names, args, strict=False)  # the function tells a wrong number
                refuse_other_kinds(function, plain, (*named, *kwargs.items()))
            return function(*args, **kwargs)
        except BaseException as error:
            found = LATE_BOUND["fold"](error, function, args, kwargs)
            del args, kwargs  # a stored exception would keep arrays alive
            if found is error:
                del found
                raise
        try:
            raise found
        finally:
            del found  # no cycle of the error and this frame

    return cast(F, call)
