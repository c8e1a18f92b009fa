"""The source location of a recorded operation, and the variable to which its result is assigned.

Frames of letir, NumPy and the standard library are skipped. Locations are cached by (code,
instruction), so that a loop pays once.
"""

import bisect
import dis
import os
import sys
from types import CodeType

import numpy as np

from letir.ast.error_locations import error_at, source_line
from letir.ast.terms import Source
from letir.errors import LetirError

_LETIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# <frozen: modules compiled into the interpreter, such as importlib
_NUMPY = os.path.dirname(np.__file__) + os.sep
_SCIPY = os.path.join(os.path.dirname(os.path.dirname(_NUMPY)), "scipy", "")
_LIBRARIES = (_LETIR + os.sep, _NUMPY, _SCIPY, "<frozen ")
_DEMO = os.path.join(_LETIR, "demo", "")  # counts as user code
_PYTHON = os.path.dirname(os.__file__) + os.sep  # except site-packages, which counts as user code
_MOST = 1 << 16
# (id of code, instruction) -> (source, name), None for internal code; may be emptied at any time
_places: dict = {}
_codes: dict[int, CodeType] = {}  # keeps the codes of _places alive, so that their ids stay valid
# id of code -> instructions, assigned names, spans
_assigned: dict[int, tuple[list[int], list, list]] = {}
_NOWHERE = (None, None)
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")


def user_place(depth: int) -> tuple[Source | None, str | None]:
    """(source, assigned variable) of the innermost user frame, at least ``depth`` frames up."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        # by id: hash and equality of code objects compare all their constants and names
        key = (id(code), frame.f_lasti)
        found = _places.get(key, _NOWHERE)
        if found is _NOWHERE:
            found = _places[key] = _look_up_place(code, frame.f_lasti, frame.f_lineno)
        if found is not None:
            return found
        frame = frame.f_back
    return _NOWHERE


def at_user() -> str:
    """The line of an error message with the location of the user's code."""
    return source_line(user_place(1)[0])


def error_at_user_line(error: LetirError) -> LetirError:
    """``error`` with the user's line below the first line of its message, unless it has one."""
    return error_at(error, user_place(1)[0])


def is_users(file: str) -> bool:
    """Whether a file contains user code."""
    if file.startswith(_LIBRARIES):
        return file.startswith(_DEMO)
    # site-packages; dist-packages on Debian
    return not file.startswith(_PYTHON) or "-packages" in file


def _look_up_place(code: CodeType, instruction: int, line: int):
    if len(_places) >= _MOST:
        # no BoundedCache: all three go together, as ids in one stand for codes in another
        _places.clear()
        _codes.clear()
        _assigned.clear()
    _codes[id(code)] = code
    if not is_users(code.co_filename):
        return None
    if id(code) not in _assigned:
        _assigned[id(code)] = _assigned_names(code)
    offsets, names, spans = _assigned[id(code)]
    # at or before: in a call f_lasti may point into the inline cache behind the instruction
    at = bisect.bisect_right(offsets, instruction) - 1
    if at < 0:
        return Source(code.co_filename, line or 0), None
    # f_lineno is None for code that a compiler made without lines
    return Source(code.co_filename, line or 0, spans[at]), names[at]


def _assigned_names(code: CodeType) -> tuple[list[int], list, list]:
    """(instructions, variable stored by the next instruction or None, span of the expression)."""
    instructions = list(dis.get_instructions(code))
    names: list = []
    for following in [*instructions[1:], None]:
        stored = following.argval if following and following.opname.startswith(_STORES) else None
        # a tuple: since CPython 3.13 one instruction may store and do something else
        names.append(stored[0] if isinstance(stored, tuple) else stored)
    return (
        [i.offset for i in instructions],
        names,
        [_expression_span(i.positions) for i in instructions],
    )


def _expression_span(at: dis.Positions | None) -> tuple[int, int, int] | None:
    """(last line, first column, last column); None if Python does not store columns."""
    if at is None or None in at:
        return None
    return at.end_lineno, at.col_offset, at.end_col_offset
