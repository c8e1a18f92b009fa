"""Functions that test whether two objects are one, which they cannot see in a recording.

While a function is recorded, the dataclasses and named tuples among its arguments are new objects:
in a tree, ``node is root`` would be false for the root itself.
"""

import dis
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from letir.ast import LATE_BOUND
from letir.executor.argument_spec import (
    Place,
    named_places,
    names_in_code,
    nested_codes,
    search_places,
)
from letir.tracing.refusals import MustRunAsPython

_MAX_FUNCTIONS = 100  # that are searched, of those that a function calls


def refuse_tests_of_identity(executor: Any) -> None:
    """Make ``executor`` call its function as Python from now on, if the function, or one that it
    calls, tests the identity of a value of its own.
    """
    if not search_places(executor.f, _places_unless_tested, _MAX_FUNCTIONS):
        executor.runs_python = True
        raise MustRunAsPython


def _places_unless_tested(place: Place) -> Sequence[Place] | None:
    """The places that a function names; None if it tests the identity of a value of its own."""
    value = place[-1]
    if hasattr(type(value), "__letir_transformed__"):  # a jitted function
        return [({}, None, value.__letir_executor__.f)]
    if type(value) is not FunctionType:
        return ()
    if any(map(_tests_identity, nested_codes(value.__code__))):
        return None
    return named_places(value, names_in_code(value.__code__))


def _tests_identity(code: CodeType) -> bool:
    """Whether code has a test ``a is b`` in which ``b`` is a local variable or a part of one.

    Constants and globals such as ``None`` and ``Mode.FAST`` are the same in a recording. Functions
    that are defined in the code are not searched.
    """
    before: list[str] = []
    for step in dis.get_instructions(code):
        if step.opname == "IS_OP":
            while before and before[-1].startswith("LOAD_ATTR"):
                before.pop()
            if before and before[-1].startswith(("LOAD_FAST", "LOAD_DEREF", "BINARY_")):
                return True
        before.append(step.opname)
    return False


LATE_BOUND["refuse_tests_of_identity"] = refuse_tests_of_identity
