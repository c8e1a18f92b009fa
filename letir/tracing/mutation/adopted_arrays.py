"""Ordinary arrays that become buffers when a traced value is written into them.

``A = W.copy(); A[0] = s`` with an array ``W`` that the traced function has not made: NumPy creates
``A`` in C, where no stand-in sees it. If only local variables of the recorded function refer to
``A``, it cannot be distinguished from an array that the function makes, so a buffer with its
contents takes its place in these variables. The reference count of ``A`` shows whether anything
else refers to it. All other writes stay refused.
"""

import ctypes
import functools
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, cast

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.tracing.mutation.buffers import NUMBERS, has_traced, new_buffer, unwrap_buffers
from letir.tracing.mutation.user_statements import (
    instruction_after_augmented,
    instruction_name,
    is_value_written_alone,
    item_target,
    user_frame,
)
from letir.tracing.source_locations import is_letir_file
from letir.tracing.trace_state import ACTIVE, Trace

_STORES = frozenset(["STORE_SUBSCR", "STORE_SLICE"])  # the latter since Python 3.12
_WRITES_THROUGH = sys.version_info >= (3, 13)  # frame.f_locals, PEP 667
_PER_PLACE = 1 if _WRITES_THROUGH else 2  # the variable, and the dict that frame.f_locals fills


# ---- writes into ordinary arrays ----


def adopt_item_write(value: Any, frame: FrameType) -> np.ndarray | None:
    """Record ``a[key] = value``, which ``frame`` executes, if ``a`` can become a buffer.

    Returns the value that NumPy then writes into the old array, to which nothing refers any more;
    None if the write has to be refused.
    """
    trace, target = ACTIVE.get(), item_target(frame)
    if type(trace) is not Trace or target is None or not trace.intercepts:
        return None
    name, key_of = target
    array = frame.f_locals.get(name)
    if not _may_become_buffer(array):
        return None
    key = key_of(frame)
    if value.dtype.kind in "iub" and (_lists_traced(key) or _is_part_of(value, key)):
        # NumPy converts masks and indices like written values
        return np.array(value.guarded(np.copy, "an index") if value.shape else value.item())
    concrete_key = _known_key(key)
    if concrete_key is _UNKNOWN:
        return None
    buffer = new_buffer(trace, array.copy("K"))
    if array[concrete_key].shape != value.shape and not is_value_written_alone(frame):
        return None  # the user may write a list that holds ``value``
    sample = _SLICES if instruction_name(frame) == "STORE_SLICE" else _ITEMS
    base = _measure_references(sample, array.copy, concrete_key)
    places = _only_places(array, frame, trace, base)
    if not places:
        return None
    buffer[key] = value
    for owner, variable in places:
        _set_local(owner, variable, buffer)
    return np.zeros(value.shape, array.dtype)


def adopt_result_array(inputs: tuple, out: Any) -> tuple | None:
    """The operands and the result array of ``a += value`` or ``a[key] += value``, as buffers.

    None if the write has to be refused. In ``a[key] += value``, Python has read ``a[key]`` and will
    assign the result; the part becomes a buffer that is a copy.
    """
    trace, frame = ACTIVE.get(), user_frame()
    if type(trace) is not Trace or frame is None or not trace.intercepts:
        return None
    following = instruction_after_augmented(frame)
    if following is None or type(out) is not np.ndarray or out.dtype.char not in NUMBERS:
        return None
    if not out.flags.writeable:
        return None
    places: list = []
    if following in _STORES:
        if _only_places(out, frame, trace, _base_of_parts()) != []:
            return None
    elif _may_become_buffer(out):
        places = _only_places(out, frame, trace, _base_of_results()) or []
    if not places and following not in _STORES:
        return None
    result = new_buffer(trace, out.copy("K"))
    for owner, variable in places:
        _set_local(owner, variable, result)
    return tuple([result if x is out else x for x in inputs]), result


def _may_become_buffer(array: Any) -> bool:
    """Whether an array owns its memory and has a dtype of programs."""
    return (
        type(array) is np.ndarray
        and array.base is None
        and array.flags.owndata
        and array.dtype.char in NUMBERS
    )


_UNKNOWN = object()


def _known_key(key: Any) -> Any:
    """A key with the arrays of its traced integers, ``_UNKNOWN`` if they have no values."""
    if type(key) in (tuple, list):
        parts = [_known_key(part) for part in key]
        return _UNKNOWN if any(part is _UNKNOWN for part in parts) else type(key)(parts)
    if isinstance(key, Value):
        value = key.concrete_value()
        return value if isinstance(value, np.ndarray | np.generic | int) else _UNKNOWN
    return _UNKNOWN if has_traced(key) else unwrap_buffers(key)


def _is_part_of(value: Value, key: Any) -> bool:
    """Whether ``value`` may be in ``key``, which was evaluated again and then has an equal part."""
    parts = key if type(key) is tuple else (key,)
    return any(
        part is value
        or (isinstance(part, Value) and part.type == value.type and _are_equal(part, value))
        for part in parts
    )


def _are_equal(x: Value, y: Value) -> bool:
    """Whether two traced values have the same elements, as far as these are known."""
    return np.array_equal(cast(Any, x.concrete_value()), cast(Any, y.concrete_value()))


def _lists_traced(key: Any) -> bool:
    """Whether a key has a list with traced values in it."""
    parts = key if type(key) is tuple else (key,)
    return any(isinstance(item, Value) for part in parts if type(part) is list for item in part)


# ---- references to an array ----


def _only_places(array: np.ndarray, frame: FrameType, trace: Any, base: int) -> list | None:
    """(frame, variable) of all references to an array; None if not all are local variables.

    ``base``: the number of references that the interpreter and NumPy hold at this point.
    """
    places = _local_places(array, frame, trace)
    if places is None or sys.getrefcount(array) != base + _PER_PLACE * len(places):
        return None
    return places


def _local_places(array: np.ndarray, frame: FrameType | None, trace: Any) -> list | None:
    """(frame, variable) of the local variables of the recorded function, and of those it calls."""
    places: list = []
    while frame is not None and frame.f_code is not trace.root:
        code = frame.f_code
        if not is_letir_file(code.co_filename):
            names = [name for name, value in frame.f_locals.items() if value is array]
            if names and (frame.f_locals is frame.f_globals or not _are_fast(names, code)):
                return None
            places += [(frame, name) for name in names]
        frame = frame.f_back
    return places


def _are_fast(names: list, code: CodeType) -> bool:
    """Whether variables belong to their function alone: no closure refers to them."""
    return not {*code.co_cellvars, *code.co_freevars}.intersection(names)


def _set_local(frame: FrameType, name: str, value: Any) -> None:
    """Assign a local variable of a frame."""
    frame.f_locals[name] = value
    if not _WRITES_THROUGH:
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


class _Probe:
    """A value that, when written into an array ``a``, counts the references to ``a``."""

    count, root = 0, None

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        self.note_item(sys._getframe(1))
        return np.zeros(())

    def __complex__(self) -> complex:
        self.note_item(sys._getframe(1))
        return 0j

    def __float__(self) -> float:
        self.note_item(sys._getframe(1))
        return 0.0

    def __int__(self) -> int:
        self.note_item(sys._getframe(1))
        return 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return self.call(inputs, kwargs)

    # the same variables refer to the array as when a traced value is written

    def call(self, inputs: tuple, kwargs: dict) -> Any:
        """Count like ``call_ufunc``."""
        outs = kwargs.pop("out", ())
        self.note_result(inputs, outs[0])
        return outs[0]

    def note_item(self, frame: FrameType) -> None:
        """Count like ``adopt_item_write``."""
        array = frame.f_locals["a"]
        self.note(array, frame)

    def note_result(self, inputs: tuple, out: Any) -> None:
        """Count like ``adopt_result_array``."""
        self.note(out, sys._getframe(3))

    def note(self, array: np.ndarray, frame: FrameType) -> None:
        """Count the references beyond those of local variables."""
        places = _local_places(array, frame, self)
        assert places is not None
        self.count = sys.getrefcount(array) - _PER_PLACE * len(places)


def _sample_function(text: str) -> Callable[..., None]:
    """A function that executes ``text`` on a new array ``a``."""
    space: dict[str, Any] = {"__name__": "sample"}
    exec(compile(f"def sample(make, key, probe):\n    a = make()\n    {text}", "", "exec"), space)
    return space["sample"]


_ITEMS, _SLICES, _RESULTS, _PARTS = map(
    _sample_function,
    ["a[key] = probe", "a[key.start : key.stop] = probe", "a += probe", "a[key] += probe"],
)


def _measure_references(sample: Callable, make: Callable[[], np.ndarray], key: Any) -> int:
    """The reference count of an array that one variable holds, during the write in ``sample``."""
    probe = _Probe()
    sample(make, key, probe)
    return probe.count


@functools.cache
def _base_of_results() -> int:
    """The references to an array in ``a += probe``, of which one variable holds one."""
    return _measure_references(_RESULTS, lambda: np.zeros(2), None)


@functools.cache
def _base_of_parts() -> int:
    """The same for ``a[key] += probe``."""
    return _measure_references(_PARTS, lambda: np.zeros(2), slice(1))


LATE_BOUND.update(adopt_item_write=adopt_item_write, adopt_result_array=adopt_result_array)
