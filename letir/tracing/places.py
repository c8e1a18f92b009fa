"""Where in the user's code an operation is recorded, and which variable it is assigned to.

Frames of letir and NumPy are passed over. What was found is kept by (code, instruction), so that a loop pays once.
"""

import bisect
import dis
import os
import sys
from types import CodeType

import numpy as np

from letir.ast.terms import Source

_OWN = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, os.path.dirname(np.__file__) + os.sep)
_MOST = 1 << 16
_places: dict = {}  # (id of code, instruction) -> (source, name), None for internal code; may be emptied
_codes: dict[int, CodeType] = {}  # keeps the codes of _places alive, so that ids stay theirs
_assigned: dict[int, tuple[list[int], list]] = {}  # id of code -> instruction offsets, assigned names
NOWHERE = (None, None)


def user_place(depth: int) -> tuple[Source | None, str | None]:
    """(place, assigned variable) of the innermost frame of the user's, ``depth`` frames up or further."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        key = (id(code), frame.f_lasti)
        found = _places.get(key, NOWHERE)
        if found is NOWHERE:
            found = _places[key] = _look(code, frame.f_lasti, frame.f_lineno)
        if found is not None:
            return found
        frame = frame.f_back
    return NOWHERE


def _look(code: CodeType, instruction: int, line: int):
    if len(_places) >= _MOST:
        _places.clear()
        _codes.clear()
        _assigned.clear()
    _codes[id(code)] = code
    if code.co_filename.startswith(_OWN):
        return None
    if id(code) not in _assigned:
        _assigned[id(code)] = _assignments(code)
    offsets, names = _assigned[id(code)]
    at = bisect.bisect_right(offsets, instruction) - 1
    return Source(code.co_filename, line or 0), names[at] if at >= 0 else None


def _assignments(code: CodeType) -> tuple[list[int], list]:
    """For each instruction the variable that the next one stores its result in, None if it does not."""
    instructions = list(dis.get_instructions(code))
    names: list = []
    for following in [*instructions[1:], None]:
        stores = following is not None and following.opname.startswith(("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"))
        stored = following.argval if stores else None
        names.append(stored[0] if isinstance(stored, tuple) else stored)
    return [i.offset for i in instructions], names
