"""Arrays that operators and C code make of ordinary arrays, as arrays that the function makes.

``v = TABLE * 2; part = v[::2]; part[:] = s`` with an array ``TABLE`` that the traced function has
not made: no stand-in sees the operator, so the write is refused. The function is then recorded a
second time, in which NumPy's operators, methods and functions give buffers to the user's code. This
costs time at each operator, which functions without such writes do not pay.

The operators of ``ndarray`` are slots in C. A class written in Python has slots that look up the
method in the dict of the class of the operand, whatever class that is; a copy of the number slots
of ``ndarray`` with these functions is put in place for the recording.
"""

import ctypes
import dis
import functools
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.process_state import new_lock
from letir.errors import LetirError, TraceError
from letir.tracing.callers import OWNING, is_user_module
from letir.tracing.container_sites import entry_code_of
from letir.tracing.mutation.buffers import unwrap_buffers
from letir.tracing.mutation.views import is_in_same_memory
from letir.tracing.numpy_protocols.array_methods import (
    METHODS,
    STAY_IN_PLACE,
    CopyingMethod,
    forget_lookups,
)
from letir.tracing.refusals import RecordAgain, called_text, mark_outside_state
from letir.tracing.source_locations import instruction_at
from letir.tracing.stand_ins import unwrap_functions, wrap_functions
from letir.tracing.trace_state import ACTIVE, Trace

_lock = new_lock(threading.RLock)
_under_way: set[int] = set()  # id of the list ``started`` of each recording with these operators
_KEY = "owns_results"  # in the dict of a trace


# ---- which recordings ----


def note_refused_write(refusal: str) -> None:
    """Note for the active recording, and those around it, that a write has been refused."""
    trace = ACTIVE.get()
    traces = [trace, *trace.enclosing()] if type(trace) is Trace and trace.intercepts else []
    if not any(_KEY in vars(each) for each in traces):
        for each in traces:
            vars(each).setdefault("takes_lists", None)
            vars(each).setdefault("refused_write", refusal)


def record_again_owning(trace: Trace, f: Callable) -> None:
    """Raise ``RecordAgain`` if recording ``f`` as one that owns results may accept its writes."""
    if entry_code_of(f) is not None and _has_known_layout():
        raise RecordAgain(trace.mode, vars(trace)["refused_write"], owns_results=True) from None


def recorded_again(
    request: RecordAgain, f: Callable, record_again: Callable[[], Any], is_free: bool
) -> Any:
    """The recording that ``again()`` makes of ``f``, after ``request``.

    ``is_free``: the caller undoes what ``f`` changes outside of it, as ``jit`` does.
    """
    if request.owns_results:
        record_again = _owning_results(f, record_again, str(request.refusal))
    if is_free or request.refusal is None:
        return record_again()
    return LATE_BOUND["require_same_state"](f, record_again, request.refusal)


def _owning_results(f: Callable, record_again: Callable[[], Any], refusal: str) -> Callable:
    """``record_again``, which records ``f``, in a form that records it with these operators.

    An error of letir's, or of C code that got a buffer, is replaced by the first ``refusal``.
    """
    code: Any = entry_code_of(f)

    def record() -> Any:
        OWNING[id(code)] = code
        try:
            return record_again()
        except Exception as error:
            OWNING.pop(id(code), None)
            is_other = isinstance(error, LetirError | TypeError) and refusal not in str(error)
            if is_other:
                raise mark_outside_state(TraceError(refusal)) from None
            raise

    return record


def start_owning(f: Callable, trace: Trace, started: list) -> None:
    """Put the operators in place if recordings of ``f`` need them.

    ``started``: identifies the recording for ``end_owning``.
    """
    code = entry_code_of(f)
    if code is None or OWNING.get(id(code)) is not code or not trace.intercepts:
        return
    vars(trace)[_KEY] = True
    with _lock:
        _under_way.add(id(started))
        METHODS.update(_stand_ins())
        forget_lookups()
        for slot, _, new in array_slots():
            slot.value = new
        wrap_functions(_functions(), _owning_function)


def end_owning(started: list) -> None:
    """Restore NumPy's operators, unless another recording needs the others."""
    with _lock:
        if id(started) not in _under_way:
            return
        if len(_under_way) == 1:
            for slot, old, _ in array_slots():
                slot.value = old
            if not STAY_IN_PLACE:
                METHODS.update(_originals())
                forget_lookups()
            unwrap_functions()
        _under_way.discard(id(started))


def _owner() -> Trace | None:
    """The active trace if it owns the results of operators, itself or as a part of another one."""
    trace = ACTIVE.get()
    if type(trace) is not Trace or not trace.intercepts:
        return None
    return trace if any(_KEY in vars(each) for each in (trace, *trace.enclosing())) else None


# ---- results ----


def _as_buffers(result: Any, operands: tuple) -> Any:
    """A result as a buffer, if it is a new array; a tuple or list of results likewise."""
    if type(result) in (tuple, list):
        return type(result)([_as_buffers(each, operands) for each in result])
    trace = _owner() if type(result) is np.ndarray else None
    operands = unwrap_buffers(operands)
    if trace is None or any(_shares_memory(result, operand) for operand in operands):
        return result
    return LATE_BOUND["as_buffer"](trace, result)


def _shares_memory(result: np.ndarray, operand: Any) -> bool:
    """Whether a result is an operand, a view of one, or of an array in a list of them."""
    if isinstance(operand, tuple | list):
        return any(_shares_memory(result, item) for item in operand)
    if result is operand or (
        isinstance(operand, np.ndarray) and is_in_same_memory(result, operand)
    ):
        return True
    return result.base is not None and not isinstance(result.base, np.ndarray)  # of a buffer


def _owning_function(original: Callable) -> Callable:
    """A function of NumPy's, or its stand-in, with new arrays as buffers."""

    @functools.wraps(original, updated=())
    def function(*args, **kwargs):
        return _as_buffers(original(*args, **kwargs), (*args, *kwargs.values()))

    return function


@functools.cache
def _functions() -> frozenset[str]:
    """The names of NumPy's ufuncs and array functions."""
    kinds = (np.ufunc, type(np.concatenate))
    return frozenset([name for name, value in vars(np).items() if isinstance(value, kinds)])


# ---- operators ----

_BINARY = "add sub mul mod pow lshift rshift and xor or floordiv truediv matmul"
_UNARY = ("__neg__", "__pos__", "__invert__", "__abs__")
_COMPARISONS = ("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__")
_INSTRUCTIONS = ("BINARY_", "UNARY_", "COMPARE_")
_NAMES = frozenset(["abs", "sum"])  # functions in C that apply operators
_METHODS = """argpartition argsort byteswap choose clip compress conj conjugate cumprod cumsum dot
max mean min prod ravel reshape round searchsorted std sum trace var nonzero all any"""


def _operator(name: str) -> Callable:
    """The method of an operator: NumPy's, with new arrays as buffers for the user's code."""
    original = METHODS[name]

    def operator(array, *others):
        result = original(array, *others)
        is_users = type(result) is np.ndarray and _is_operator_of_user(sys._getframe(1))
        return _as_buffers(result, (array, *others)) if is_users else result

    return functools.wraps(original, updated=())(operator)


def _is_operator_of_user(frame: FrameType) -> bool:
    """Whether a user's code itself applies an operator, or calls ``abs`` or ``sum``.

    Other C code that it calls needs ordinary arrays.
    """
    if not is_user_module(frame.f_globals):
        return False
    code, at = frame.f_code, instruction_at(frame)
    if dis.opname[code.co_code[at]].startswith(_INSTRUCTIONS):
        return True
    return not _NAMES.isdisjoint(code.co_names) and called_text(code, at) in _NAMES


@functools.cache
def _operator_names() -> tuple[str, ...]:
    both = [f"__{side}{name}__" for name in _BINARY.split() for side in ("", "r")]
    return (*both, *_UNARY, *_COMPARISONS, "__getitem__")


@functools.cache
def _originals() -> dict[str, Any]:
    """The methods of NumPy's arrays that have stand-ins."""
    return {name: METHODS[name] for name in (*_operator_names(), *_METHODS.split())}


@functools.cache
def _stand_ins() -> dict[str, Any]:
    """The stand-ins for these methods."""
    methods = {name: CopyingMethod(name, _originals()[name]) for name in _METHODS.split()}
    return methods | {name: _operator(name) for name in _operator_names()}


# ---- slots ----

_Word = ctypes.c_void_p
_WORD = ctypes.sizeof(_Word)
# the positions of words in CPython's PyTypeObject, and the lengths of what they point to
_SIZE, _AS_NUMBER, _AS_MAPPING, _FLAGS, _COMPARE = 4, 12, 14, 21, 25
_NUMBER_SLOTS, _MAPPING_SLOTS = 36, 3


@functools.cache
def _has_known_layout() -> bool:
    """Whether classes lie in memory as in CPython with the global lock, so that slots are found.

    Elsewhere the recording refuses the write, as the first one did.
    """
    if sys.implementation.name != "cpython":
        return False
    words = (_word(id(np.ndarray), place).value for place in (_SIZE, _FLAGS))
    return tuple(words) == (np.ndarray.__basicsize__, np.ndarray.__flags__)


@functools.cache
def array_slots() -> list[tuple[ctypes.c_void_p, int, int]]:
    """(slot, NumPy's content, content that calls the methods in the dict) of ``ndarray``."""
    sample: Any = type("Sample", (), dict.fromkeys(_operator_names(), lambda *_: None))
    result = []
    for place, count in ((_AS_NUMBER, _NUMBER_SLOTS), (_AS_MAPPING, _MAPPING_SLOTS)):
        slot = _word(id(np.ndarray), place)
        table: Any = (_Word * count).from_address(slot.value or 0)
        calling = (_Word * count).from_address(_word(id(sample), place).value or 0)
        both = zip(table, calling, strict=True)
        _kept.append((_Word * count)(*[new if old and new else old for old, new in both]))
        result.append((slot, slot.value or 0, ctypes.addressof(_kept[-1])))
    slot = _word(id(np.ndarray), _COMPARE)
    result.append((slot, slot.value or 0, _word(id(sample), _COMPARE).value or 0))
    return result


_kept: list = []  # tables that NumPy's class may point to


def _word(address: int, place: int) -> ctypes.c_void_p:
    """The pointer at this position of a structure."""
    return _Word.from_address(address + place * _WORD)


LATE_BOUND.update(
    note_refused_write=note_refused_write,
    record_again_owning=record_again_owning,
    recorded_again=recorded_again,
    start_owning=start_owning,
    end_owning=end_owning,
)
