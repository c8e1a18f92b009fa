"""Functions that test whether two objects are one, which they cannot see in a recording.

While a function is recorded, the dataclasses and named tuples among its arguments are new objects:
in a tree, ``node is root`` would be false for the root itself.
"""

import dis
from types import CodeType, FunctionType
from typing import Any

from letir.ast import LATE_BOUND
from letir.executor.argument_spec import names_in_code
from letir.tracing.refusals import MustRunAsPython

_MAX_FUNCTIONS = 100  # that are searched, of those that a function calls


def refuse_tests_of_identity(executor: Any) -> None:
    """Make ``executor`` call its function as Python from now on, if the function, or one that it
    calls, tests the identity of a value of its own.
    """
    todo, visited = [executor.f], set[int]()
    for value in todo:  # each function appends those that it names
        part = value.f if type(value) is type(executor) else value
        if type(part) is not FunctionType or id(part) in visited or len(visited) > _MAX_FUNCTIONS:
            continue
        visited.add(id(part))
        if _tests_identity(part.__code__):
            executor.runs_python = True
            raise MustRunAsPython
        space = part.__globals__
        todo += [space[name] for name in names_in_code(part.__code__) if name in space]
        todo += [cell.cell_contents for cell in part.__closure__ or () if _has_content(cell)]


def _has_content(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _tests_identity(code: CodeType) -> bool:
    """Whether code has a test ``a is b`` in which ``b`` is a local variable or a part of one.

    Constants and globals such as ``None`` and ``Mode.FAST`` are the same in a recording.
    """
    inner = [part for part in code.co_consts if type(part) is CodeType]
    if any(map(_tests_identity, inner)):
        return True
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
