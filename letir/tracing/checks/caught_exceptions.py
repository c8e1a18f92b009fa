"""Guards for exceptions that the recorded function may catch, and on which its path depends.

An operation that raised while recording becomes a ``guard_raised``. One that may raise for other
values, inside a ``try`` or ``with`` of the user's, gets a ``guard_computed``. Loaded when the first
operation that may raise is recorded; ``letir.ops.effects.raised_errors`` says what the guards do.
"""

import dis
import sys
from types import CodeType
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import LetBuilder
from letir.ast.liveness import may_raise
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Bind, Lambda, Local
from letir.errors import InternalError, LetirError, MissingRule, TraceError
from letir.ops.effects.raised_errors import error_name, first_line
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import is_user_file
from letir.tracing.trace_state import LAZY, Trace

_HANDLER = dis.opmap["PUSH_EXC_INFO"]  # the first instruction of an exception handler
_MAX_CODES = 1 << 12
# id of code -> (the code, which stays alive for its id, instructions inside try or with)
# and whether a handler keeps the exception
_protected: dict[int, tuple[CodeType, list[range], bool]] = BoundedCache(_MAX_CODES)
_READ_ERRORS = frozenset(["exc_info", "exception", "format_exc", "print_exc"])


def note_attempt(trace: Trace, bind: Bind) -> None:
    """Keep ``bind``, the last of the trace, in replays if the user's code may catch its exception.

    A lazy trace computes it now, so that an exception occurs where NumPy would raise it.
    """
    if not bind.binders or not _is_in_try(trace.root):
        return
    if trace.mode is LAZY:
        try:
            trace.demand(bind.binders[0])
        except Exception as error:
            # else an earlier bind failed, at which NumPy would have raised
            if trace.failed is bind:
                trace.failed = None
                note_failure(trace, trace.binds.pop(), error)
            raise
    trace.source = bind.source
    trace.emit(PRIMITIVES["guard_computed"], (bind.binders[0],), Attrs(caught=True))


def note_failure(trace: Trace, bind: Bind, error: BaseException) -> None:
    """Record that computing ``bind``, which is not in the program any more, raised ``error``."""
    is_refusal = isinstance(error, TraceError | MissingRule | InternalError)
    if is_refusal or hasattr(error, "letir_is_refusal"):
        note_refusal(error)  # NumPy and Python would not have raised it
    elif isinstance(error, Exception):
        trace.source = bind.source
        operands = tuple(dict.fromkeys(bind.locals()))
        name = error_name(error)
        if _is_in_try(trace.root, keeping=True):  # the text of ``except ValueError as error``
            name += f": {first_line(error)}"
        attrs = Attrs(body=_program_of(bind, operands), error=name)
        trace.emit(PRIMITIVES["guard_raised"], operands, attrs)


def note_error(trace: Trace, error: Exception) -> None:
    """Note an ``error`` that ends the recorded function.

    A lazy trace, which computes values on demand, may already be past the operation that raises:
    then it is ``failed``. The function around an inner trace must not catch an error that depends
    on values. If the recorded function writes into its arguments before it raises, ``jit`` has to
    call it as Python.
    """
    if isinstance(error, LetirError):
        return
    if trace.changed:
        error.letir_runs_python = True  # type: ignore[attr-defined]
    if trace.mode is LAZY and trace.failed is None:
        trace.failed = next(filter(may_raise, trace.binds), None)
    values_decide = any(bind.op.role in ("guard", "guard_raised") for bind in trace.binds)
    if trace.parent is not None and trace.parent.refusal is None and values_decide:
        trace.parent.refusal = f"{type(error).__name__}: {error}"


def _program_of(bind: Bind, operands: tuple[Local, ...]) -> Lambda:
    """A program of one bind, whose parameters stand for the locals ``operands``."""
    builder = LetBuilder()
    builder.source = bind.source
    places: dict[Any, Local] = {arg: builder.param(arg.type, arg.name).arg for arg in operands}
    args = tuple([places.get(arg, arg) if type(arg) is Local else arg for arg in bind.args])
    avals = tuple([binder.type for binder in bind.binders])
    return builder.build(builder.emit(bind.op, args, bind.attrs, avals))


def _is_in_try(root: CodeType | None, keeping: bool = False) -> bool:
    """Whether a frame between this one and the traced function is inside ``try`` or ``with``.

    ``root``: the code of the outermost frame to look at; None for all frames. ``keeping``: only
    code counts that names a caught exception.
    """
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_exceptiontable:
            entry = _protected.get(id(code)) or _look_up_ranges(code)
            if any(frame.f_lasti in part for part in entry[1]) and (entry[2] or not keeping):
                return True
        if code is root:
            return False
        frame = frame.f_back
    return False


def _look_up_ranges(code: CodeType) -> tuple[CodeType, list[range], bool]:
    """The code, the ranges of instructions whose exceptions a handler of the user catches, and
    whether a handler keeps the exception.
    """
    ranges: list[range] = []
    if is_user_file(code.co_filename):
        parse: Any = dis._parse_exception_table  # type: ignore[attr-defined]  # has no public name
        entries = parse(code)
        passing = _errstate_handlers(code, entries) if "errstate" in code.co_names else set()
        ranges = [range(e.start, e.end) for e in entries if _is_caught(code, entries, e, passing)]
    _protected[id(code)] = code, ranges, bool(ranges) and _keeps_errors(code)
    return _protected[id(code)]


def _keeps_errors(code: CodeType) -> bool:
    """Whether code has ``except ... as name``, or asks for the exception that is handled."""
    if not _READ_ERRORS.isdisjoint(code.co_names):
        return True
    names = [i.opname for i in dis.get_instructions(code) if i.opname not in ("CACHE", "NOT_TAKEN")]
    return any(
        first == "CHECK_EXC_MATCH" and third.startswith("STORE_")
        for first, third in zip(names, names[2:], strict=False)
    )


def _is_caught(code: CodeType, entries: list, entry: Any, passing: set[int]) -> bool:
    """Whether an exception in the range of ``entry`` gets to a handler other than ``passing``."""
    targets = set()
    while entry is not None and entry.target not in targets:
        target = entry.target
        # the other handlers clean up after comprehensions, generators and handlers, and raise it
        # again
        if code.co_code[target] == _HANDLER and target not in passing:
            return True
        targets.add(target)
        entry = next((outer for outer in entries if outer.start <= target < outer.end), None)
    return False


def _errstate_handlers(code: CodeType, entries: list) -> set[int]:
    """The places of the handlers of ``with np.errstate(...)``, which catch nothing."""
    instructions = list(dis.get_instructions(code))
    index = {instruction.offset: i for i, instruction in enumerate(instructions)}
    named = {_expression_start(i) for i in instructions if i.argval == "errstate"}
    result = set()
    for entry in entries:
        place = index.get(entry.start, 0) - 1
        if place >= 0 and instructions[place].opname == "BEFORE_WITH":
            place -= 1  # to the call of the expression after ``with``
        elif place >= 0 and instructions[place].opname != "CALL":
            continue  # on Python 3.13 the end of the block has the position of its expression
        if place >= 0 and _expression_start(instructions[place]) in named:
            result.add(entry.target)
    return result


def _expression_start(instruction: dis.Instruction) -> tuple[int | None, int | None] | None:
    """The line and the column where the expression of an instruction begins, if known."""
    position = instruction.positions
    return None if position is None else (position.lineno, position.col_offset)


LATE_BOUND.update(note_attempt=note_attempt, note_error=note_error, note_failure=note_failure)
