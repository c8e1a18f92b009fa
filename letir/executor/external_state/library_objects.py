"""Objects of the standard library that hold values, such as namespaces and context variables, and
those whose use is an effect: locks, clocks.
"""

import datetime
import dis
import gc
from contextvars import ContextVar
from types import CodeType, FunctionType
from typing import Any

from letir.ast import LATE_BOUND
from letir.executor.argument_spec import nested_codes
from letir.executor.plan_making import Slots

_LOCKS = frozenset(["BoundedSemaphore", "Condition", "Lock", "RLock", "Semaphore", "lock"])
_USES_OF_LOCKS = frozenset(["acquire", "locked", "notify", "notify_all", "release", "wait_for"])
_NOW = ("now", "today", "utcnow")
# id of what has clocks: their names
_CLOCKS = {id(x): _NOW for x in (datetime, datetime.date, datetime.datetime)}


class _ContextValue:
    """The value of a context variable, as an attribute."""

    def __init__(self, variable: ContextVar) -> None:
        self.variable = variable

    @property
    def current(self) -> Any:
        """The value in this context; no attribute if there is none."""
        try:
            return self.variable.get()
        except LookupError:
            raise AttributeError("current") from None

    @current.setter
    def current(self, value: Any) -> None:
        self.variable.set(value)

    @current.deleter
    def current(self) -> None:
        """A context variable keeps its value: only the token of its ``set`` takes it back."""


def values_of_library_object(value: Any, holders: list, iterators: list) -> list:
    """The values that an object of a class of the standard library holds.

    ``holders``: the list of objects with state, to which the variables among them are added;
    ``iterators``: the list of iterators, to which locks and context variables are added.
    """
    if type(value) is ContextVar:
        context = _ContextValue(value)
        holders.append(Slots(context, ("current",)))
        iterators.append(value)
        return [getattr(context, "current", None)]
    if type(value).__name__ in _LOCKS:
        iterators.append(value)
        return []
    if type(value).__module__ == "_csv":  # a writer refers to the file
        return gc.get_referents(value)
    try:
        return [vars(value)]
    except TypeError:  # without attributes
        return []


def iterators_in_use(iterators: list, found: list, roots: list) -> list:
    """The iterators, and of locks and context variables those that functions may use, if any.

    ``found``: all objects that the recorded function reaches, from ``roots`` on. Also None, as an
    iterator of unknown position, if a function reads a clock that is written in C.
    """
    codes, names = _codes_in_use(found, {getattr(root, "__name__", "") for root in roots})
    uses_locks = not names.isdisjoint(_USES_OF_LOCKS) or any(map(_enters_stored_context, codes))
    sets_variables = not names.isdisjoint(("set", "reset"))
    result = []
    for iterator in iterators:
        is_lock, is_variable = type(iterator).__name__ in _LOCKS, type(iterator) is ContextVar
        if uses_locks if is_lock else sets_variables if is_variable else True:
            result.append(iterator)
    clocks = {id(found_object) for found_object in found} & _CLOCKS.keys()
    has_clock = any(not names.isdisjoint(_CLOCKS[clock]) for clock in clocks)
    return [*result, None] if has_clock else result


def _codes_in_use(found: list, names: set[str]) -> tuple[list[CodeType], set[str]]:
    """(the codes of the functions among the objects ``found`` that may be called, the names in
    them). Methods are called by their ``names``, of which some are known; Python calls special
    methods itself.
    """
    codes: list[CodeType] = []
    unused = [value for value in found if type(value) is FunctionType]
    while True:
        used = [f for f in unused if f.__name__ in names or not _is_called_by_name(f)]
        if not used:
            return codes, names
        unused = [f for f in unused if f not in used]
        more = [code for f in used for code in nested_codes(f.__code__)]
        codes += more
        names = names.union(*[code.co_names for code in more])


def _is_called_by_name(function: FunctionType) -> bool:
    """Whether a function is a method of a class, but no special one such as ``__call__``."""
    outer = function.__qualname__.rpartition(".")[0]
    is_of_class = bool(outer) and not outer.endswith("<locals>")
    return is_of_class and not function.__name__.startswith("__")


def _enters_stored_context(code: CodeType) -> bool:
    """Whether code has a statement such as ``with lock``, whose object it does not make itself."""
    before = ""
    for step in dis.get_instructions(code):
        is_with = step.opname in ("BEFORE_WITH", "LOAD_SPECIAL")
        if is_with and not before.startswith(("CALL", "LOAD_SPECIAL")):
            return True
        if step.opname not in ("COPY", "PRECALL", "SWAP"):
            before = step.opname
    return False


LATE_BOUND.update(
    iterators_in_use=iterators_in_use, values_of_library_object=values_of_library_object
)
