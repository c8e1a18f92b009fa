"""Values that objects of the standard library hold: namespaces, context variables."""

import gc
from contextvars import ContextVar
from threading import Condition
from typing import Any

from letir.ast import LATE_BOUND
from letir.executor.plan_making import Slots


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


def values_of_library_object(value: Any, holders: list) -> list:
    """The values that an object of a class of the standard library holds.

    ``holders``: the list of objects with state, to which the variables among them are added.
    """
    if type(value) is ContextVar:
        context = _ContextValue(value)
        holders.append(Slots(context, ("current",)))
        return [getattr(context, "current", None)]
    if type(value) is Condition:  # of events and semaphores: other threads begin and end to wait
        return []
    if type(value).__module__ == "_csv":  # a writer refers to the file
        return gc.get_referents(value)
    try:
        return [vars(value)]
    except TypeError:  # without attributes, such as a lock
        return []


LATE_BOUND["values_of_library_object"] = values_of_library_object
