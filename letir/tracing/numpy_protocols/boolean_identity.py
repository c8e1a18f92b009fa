"""Comparisons of Python numbers in code that tests them by identity: ``(x > 0) is True``.

``match`` statements do so too. A traced boolean is not the object True, so in modules with such
code a comparison of Python numbers gives Python's own boolean, with a guard.
"""

import dis
import itertools
import os
import sys
from types import CodeType
from typing import Any

from letir.ast import LATE_BOUND, operators
from letir.ast.bounded_cache import BoundedCache
from letir.tracing.callers import codes_in, is_user_module
from letir.tracing.source_locations import is_letir_file
from letir.tracing.trace_state import ABSENT, Trace

# id of a dict of globals -> (the dict, its length, whether its code tests booleans by identity)
_modules: dict[int, tuple[dict, int, bool]] = BoundedCache(1 << 10)
# id of code -> (code, whether it tests booleans by identity), as hashing code is slow
_codes: dict[int, tuple[CodeType, bool]] = BoundedCache(1 << 12)
_OF_VALUES = (operators.__file__, os.path.dirname(__file__))  # code of traced values' operators
_LOADS = ("LOAD_CONST", "LOAD_CONST_IMMORTAL")
_IS_OP = dis.opmap["IS_OP"]


def known_boolean(x: Any) -> Any:
    """The value of a traced comparison of Python numbers if an identity test may follow, else x."""
    if type(x.emitter) is not Trace or x.concrete_value() is ABSENT:
        return x
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_OF_VALUES):
        frame = frame.f_back
    if is_letir_file(frame.f_code.co_filename):  # as in the stand-in for math.remainder
        return x
    root = x.emitter.root
    while frame is not None and frame.f_code is not root:
        space = frame.f_globals
        if is_user_module(space) and _tests_identity(space, frame.f_code):
            return bool(x)
        frame = frame.f_back
    return x


def _tests_identity(space: dict, code: CodeType) -> bool:
    """Whether code with these globals compares values with True or False by ``is``."""
    module_entry = _modules.get(id(space))
    if module_entry is None or module_entry[1] != len(space):
        is_any = any(map(_compares_identity, codes_in([*space.values()], space)))
        module_entry = _modules[id(space)] = space, len(space), is_any
    code_entry = _codes.get(id(code))
    if code_entry is None:
        code_entry = _codes[id(code)] = code, _compares_identity(code)
    return module_entry[2] or code_entry[1]


def _compares_identity(code: CodeType) -> bool:
    """Whether a function, or one defined in it, contains ``x is True`` or ``x is False``."""
    todo = [code]
    for each in todo:  # nested functions are appended
        todo += [constant for constant in each.co_consts if type(constant) is CodeType]
        has_boolean = any(type(constant) is bool for constant in each.co_consts)
        if has_boolean and _IS_OP in each.co_code[::2]:  # the reading below takes far longer
            for load, test in itertools.pairwise(dis.get_instructions(each)):
                is_boolean = load.opname in _LOADS and type(load.argval) is bool
                if is_boolean and test.opname == "IS_OP":
                    return True
    return False


LATE_BOUND["known_boolean"] = known_boolean
