"""The source location of a recorded operation, and the variable to which its result is assigned.

Frames of letir, NumPy and the standard library are skipped. Locations are cached by (code,
instruction), so that a loop pays once.
"""

import bisect
import dis
import os
import sys
from itertools import chain, repeat
from types import CodeType, FrameType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.source import error_at, source_line
from letir.ast.terms import Source
from letir.errors import LetirError

_LETIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# <frozen: modules compiled into the interpreter, such as importlib
_NUMPY = os.path.dirname(np.__file__) + os.sep
_SCIPY = os.path.join(os.path.dirname(os.path.dirname(_NUMPY)), "scipy", "")
_OWN = (_LETIR + os.sep, "<letir ", "<attrs generated ")
_LIBRARIES = (*_OWN, _NUMPY, _SCIPY, "<frozen ", "<__array_function__")
_TESTS = f"{os.sep}tests{os.sep}"  # of a library, which use it as users do
_DEMO = os.path.join(_LETIR, "demo", "")  # the demo counts as user code
_PYTHON = os.path.dirname(os.__file__) + os.sep  # except site-packages, which counts as user code
_MAX_PLACES = 1 << 16
_NO_POSITION = (None,) * 4
# (id of code, instruction) -> (source, name), None for internal code; may be emptied at any time
_places: dict = {}
_codes: dict[int, CodeType] = {}  # keeps the codes of _places alive, so that their ids stay valid
# id of code -> instructions, assigned names, positions
_assigned: dict[int, tuple[list[int], list, list]] = {}
_NOWHERE = (None, None)
# constants in calls that turn warnings into errors, or keep them: catch_warnings(record=True)
_RISKY = frozenset(["error", ("record",)])
_ITEM_WRITES = frozenset([dis.opmap["STORE_SUBSCR"], dis.opmap.get("STORE_SLICE")])
_CACHE = dis.opmap.get("CACHE", 0)


def _stored_variable(code: Any, argument: int) -> str:
    return code._varname_from_oparg(argument)


def _first_stored_variable(code: Any, argument: int) -> str:
    return code._varname_from_oparg(argument >> 4)


def _stored_name(code: Any, argument: int) -> str:
    return code.co_names[argument]


_STORES = {  # instruction -> a function that gives the variable which it stores
    dis.opmap[name]: variable
    for name, variable in {
        "STORE_FAST": _stored_variable,
        "STORE_DEREF": _stored_variable,
        # since CPython 3.13 one instruction may store and do something else
        "STORE_FAST_STORE_FAST": _first_stored_variable,
        "STORE_FAST_LOAD_FAST": _first_stored_variable,
        "STORE_NAME": _stored_name,
        "STORE_GLOBAL": _stored_name,
    }.items()
    if name in dis.opmap
}


def user_place(depth: int) -> tuple[Source | None, str | None]:
    """(source, assigned variable) of the innermost user frame, at least ``depth`` frames up."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        # by id: hash and equality of code objects compare all their constants and names
        key = (id(code), frame.f_lasti)
        result = _places.get(key, _NOWHERE)
        if result is _NOWHERE:
            result = _look_up_place(code, frame.f_lasti, frame.f_lineno)
            if "catch_warnings" in code.co_names and not _RISKY.isdisjoint(
                [constant for constant in code.co_consts if type(constant) in (str, tuple)]
            ):
                LATE_BOUND["refuse_warnings_as_errors"](code, frame.f_lineno)
            else:  # other code is looked up each time
                _places[key] = result
        if result is not None:
            return result
        frame = frame.f_back
    return _NOWHERE


def place_of(code: CodeType, instruction: int, line: int | None) -> Source | None:
    """The source location of an instruction, None in code that is not the user's.

    Instructions that Python inserts, at which an interrupt may arrive, have no line; they get the
    first line of the code.
    """
    result = _look_up_place(code, instruction, line or code.co_firstlineno)
    return None if result is None else result[0]


def instruction_at(frame: FrameType) -> int:
    """The position of the instruction that a frame executes, before its inline caches."""
    code, at = frame.f_code.co_code, frame.f_lasti
    while code[at] == 0:
        at -= 2
    return at


def is_item_write(frame: FrameType) -> bool:
    """Whether a frame is at ``a[i] = x`` or ``a[i:j] = x``, which newer Pythons tell apart."""
    return frame.f_code.co_code[instruction_at(frame)] in _ITEM_WRITES


def at_user() -> str:
    """The line of an error message with the location of the user's code."""
    return source_line(user_place(1)[0])


def error_at_user_line(error: LetirError) -> LetirError:
    """``error`` with the user's line below the first line of its message, unless it has one."""
    return error_at(error, user_place(1)[0])


def is_letir_file(file: str) -> bool:
    """Whether a file is part of letir, or its text was generated by letir or for its classes."""
    return file.startswith(_OWN) and not file.startswith(_DEMO)


def is_user_file(file: str) -> bool:
    """Whether a file contains user code."""
    if file.startswith(_LIBRARIES):
        return file.startswith(_DEMO) or _TESTS in file
    # site-packages; dist-packages on Debian
    # the frames of Cython, such as those of numpy.random, have relative names
    return (not file.startswith(_PYTHON) or "-packages" in file) and not file.endswith(".pyx")


def _look_up_place(code: CodeType, instruction: int, line: int):
    """The place of an instruction for error messages; None in code that isn't a user's."""
    if len(_places) >= _MAX_PLACES:
        # no BoundedCache: the three caches are emptied together, because they share ids of codes
        _places.clear()
        _codes.clear()
        _assigned.clear()
    _codes[id(code)] = code
    if not is_user_file(code.co_filename):
        return None
    if id(code) not in _assigned:
        _assigned[id(code)] = _assigned_names(code)
    offsets, names, positions = _assigned[id(code)]
    # at or before: in a call f_lasti may point into the inline cache behind the instruction
    at = bisect.bisect_right(offsets, instruction) - 1
    if at < 0:
        return Source(code.co_filename, line or 0), None
    # f_lineno is None for code that a compiler made without lines
    return Source(code.co_filename, line or 0, _expression_span(positions[at])), names[at]


def _assigned_names(code: CodeType) -> tuple[list[int], list, list]:
    """(instructions, variable stored by the next instruction or None, position of each).

    As ``dis.get_instructions`` gives them, which takes several times as long.
    """
    text, extended = code.co_code, 0
    offsets: list[int] = []
    names: list = []
    positions: list = []
    # code that a compiler made may have fewer positions
    given = chain(code.co_positions(), repeat(_NO_POSITION))
    for offset, position in zip(range(0, len(text), 2), given, strict=False):
        instruction, argument = text[offset], extended | text[offset + 1]
        if instruction == _CACHE:
            continue
        extended = argument << 8 if instruction == dis.EXTENDED_ARG else 0
        stored = _STORES.get(instruction)
        if stored is not None and names:
            names[-1] = stored(code, argument)
        offsets.append(offset)
        names.append(None)
        positions.append(position)
    return offsets, names, positions


def _expression_span(at: tuple) -> tuple[int, int, int] | None:
    """(last line, first column, last column); None if Python does not store columns."""
    return None if None in at else at[1:]
