"""Ordinary arrays that become buffers when a traced value is written into them.

``A = W.copy(); A[0] = s`` with an array ``W`` that the traced function has not made: NumPy creates
``A`` in C, where no stand-in sees it. If only local variables of the recorded function refer to
``A``, it cannot be distinguished from an array that the function makes, so a buffer with its
contents takes its place in these variables. The reference count of ``A`` shows whether anything
else refers to it. All other writes stay refused.
"""

import ast
import ctypes
import dis
import functools
import linecache
import sys
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.tracing.mutation.buffers import NUMBERS, has_traced, new_buffer, unwrap_buffers
from letir.tracing.source_locations import instruction_at, is_item_write, is_letirs
from letir.tracing.trace_state import ACTIVE, Trace

_BINARY_OP = dis.opmap["BINARY_OP"]
_STORES = frozenset(["STORE_SUBSCR", "STORE_SLICE"])  # the latter since Python 3.12
_AUGMENTED = frozenset([n for n, (name, _) in enumerate(dis._nb_ops) if "INPLACE" in name])  # type: ignore[attr-defined]
_WRITES_THROUGH = sys.version_info >= (3, 13)  # frame.f_locals, PEP 667
_PER_PLACE = 1 if _WRITES_THROUGH else 2  # the variable, and the dict that frame.f_locals fills
_PURE = (
    *(ast.Subscript, ast.Name, ast.Constant, ast.Slice, ast.Tuple, ast.List, ast.Attribute),
    *(ast.UnaryOp, ast.BinOp, ast.Compare, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop),
)
_PURE_CALLS = ("len", "int", "range", "slice", "abs", "min", "max")


# ---- writes into ordinary arrays ----


def adopt_item_write(value: Any, frame: FrameType) -> np.ndarray | None:
    """Record ``a[key] = value``, which ``frame`` executes, if ``a`` can become a buffer.

    Returns the value that NumPy then writes into the old array, to which nothing refers any more;
    None if the write has to be refused.
    """
    trace, target = ACTIVE.get(), _item_target(frame)
    if type(trace) is not Trace or target is None or not trace.intercepts:
        return None
    name, key_of = target
    array = frame.f_locals.get(name)
    if not _may_become_buffer(array):
        return None
    key = key_of(frame)
    if value.dtype.kind in "iub" and _lists_traced(key):
        # NumPy makes an array of the list, whose items are converted like written values
        return np.array(value.guarded(np.copy, "an index") if value.shape else value.item())
    known = _known_key(key)
    if known is _UNKNOWN:
        return None
    made = new_buffer(trace, array.copy("K"))
    if array[known].shape != value.shape and not _is_value_written_alone(frame):
        return None  # the user may write a list that holds ``value``
    sample = _SLICES if _instruction_name(frame) == "STORE_SLICE" else _ITEMS
    base = _measure_references(sample, array.copy, known)
    places = _only_places(array, frame, trace, base)
    if not places:
        return None
    made[key] = value
    for owner, variable in places:
        _set_local(owner, variable, made)
    return np.zeros(value.shape, array.dtype)


def adopt_result_array(inputs: tuple, out: Any) -> tuple | None:
    """The operands and the result array of ``a += value`` or ``a[key] += value``, as buffers.

    None if the write has to be refused. In ``a[key] += value``, Python has read ``a[key]`` and will
    assign the result; the part becomes a buffer that is a copy.
    """
    trace, frame = ACTIVE.get(), _user_frame()
    if type(trace) is not Trace or frame is None or not trace.intercepts:
        return None
    following = _after_augmented(frame)
    if following is None or type(out) is not np.ndarray or out.dtype.char not in NUMBERS:
        return None
    if not out.flags.writeable:
        return None
    places: list = []
    if following in _STORES:
        if out.base is None or _only_places(out, frame, trace, _base_of_parts()) != []:
            return None
    elif _may_become_buffer(out):
        places = _only_places(out, frame, trace, _base_of_results()) or []
    if not places and following not in _STORES:
        return None
    made = new_buffer(trace, out.copy("K"))
    for owner, variable in places:
        _set_local(owner, variable, made)
    return tuple([made if x is out else x for x in inputs]), made


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
        if not is_letirs(code.co_filename):
            found = [name for name, value in frame.f_locals.items() if value is array]
            if found and (frame.f_locals is frame.f_globals or not _are_fast(found, code)):
                return None
            places += [(frame, name) for name in found]
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
    return _measure_references(_RESULTS, lambda: np.zeros(2), None)


@functools.cache
def _base_of_parts() -> int:
    return _measure_references(_PARTS, lambda: np.zeros(2), slice(1))


# ---- the user's statement ----


def _user_frame() -> FrameType | None:
    """The innermost frame that is not letir's."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_letirs(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _instruction_name(frame: FrameType) -> str:
    """The name of the instruction that a frame executes."""
    return dis.opname[frame.f_code.co_code[instruction_at(frame)]]


def _after_augmented(frame: FrameType) -> str | None:
    """The name of the instruction after the augmented operator that a frame executes."""
    code, at = frame.f_code.co_code, instruction_at(frame)
    if code[at] != _BINARY_OP or code[at + 1] not in _AUGMENTED:
        return None
    at += 2
    while dis.opname[code[at]] in ("CACHE", "SWAP", "NOP"):
        at += 2
    return dis.opname[code[at]]


def _item_target(frame: FrameType) -> tuple[str, Callable[[FrameType], Any]] | None:
    """The variable, and a function that evaluates the key, of the item that a frame assigns."""
    if not is_item_write(frame):
        return None
    code, at = frame.f_code, instruction_at(frame)
    known = _targets.get((id(code), at))
    if known is None:
        known = _targets[(id(code), at)] = code, _parsed_target(frame, at)
    return known[1]


_targets: dict[tuple[int, int], tuple[CodeType, Any]] = {}  # with the code, so that ids stay valid


def _parsed_target(frame: FrameType, at: int) -> tuple[str, Callable[[FrameType], Any]] | None:
    text = _text_at(frame, at)
    try:
        parsed = ast.parse(text, mode="eval").body if text else None
    except SyntaxError:
        return None
    if not isinstance(parsed, ast.Subscript) or not isinstance(parsed.value, ast.Name):
        return None
    if not all(_is_pure(node) for node in ast.walk(parsed.slice)):
        return None
    variable, parsed.value.id = parsed.value.id, "_keys"
    whole = ast.Expression(ast.increment_lineno(parsed, (frame.f_lineno or 1) - 1))
    compiled = compile(whole, frame.f_code.co_filename, "eval")

    def key_of(frame: FrameType) -> Any:
        return eval(compiled, frame.f_globals, {**frame.f_locals, "_keys": _Keys()})

    return variable, key_of


def _is_value_written_alone(frame: FrameType) -> bool:
    """Whether the value of an item assignment cannot be a list."""
    positions = list(frame.f_code.co_positions())
    place = instruction_at(frame) // 2
    first, last = _source_span(positions[place])
    while (
        place >= 0
        and first <= _source_span(positions[place])[0]
        and _source_span(positions[place])[1] <= last
    ):
        place -= 1  # the target is read after the value
    if place < 0 or _source_span(positions[place])[0] <= last:
        return False
    try:
        return _cannot_be_list(
            ast.parse(f"({_text_at(frame, 2 * place)})", mode="eval").body, frame
        )
    except SyntaxError:
        return False


def _source_span(position: tuple) -> tuple:
    """The span of an instruction in the source: (line, column) of its start and of its end."""
    line, last, start, end = [-1 if n is None else n for n in position]
    return (line, start), (last, end)


def _cannot_be_list(node: ast.expr, frame: FrameType) -> bool:
    """Whether an expression cannot give a list or a tuple."""
    if isinstance(node, ast.Name):
        value = frame.f_locals.get(node.id, frame.f_globals.get(node.id))
        return isinstance(value, Value | np.ndarray | np.generic | int | float | complex)
    if isinstance(node, ast.BinOp):
        parts = [_cannot_be_list(part, frame) for part in (node.left, node.right)]
        return (
            any(parts)
            if isinstance(node.op, ast.Add)
            else (all(parts) or not isinstance(node.op, ast.Mult))
        )
    if isinstance(node, ast.Subscript):  # an element or a part of an array
        owner = node.value
        named = frame.f_locals.get(owner.id) if isinstance(owner, ast.Name) else None
        return isinstance(named, Value | np.ndarray)
    if isinstance(node, ast.Call):
        return _module_of(node.func, frame) in ("numpy", "math")
    return isinstance(node, ast.Constant | ast.UnaryOp)


def _module_of(node: ast.expr, frame: FrameType) -> str:
    """The name of the module from which an expression reads a function; empty if there is none."""
    owner = node.value if isinstance(node, ast.Attribute) else None
    named = frame.f_globals.get(owner.id) if isinstance(owner, ast.Name) else None
    return named.__name__ if isinstance(named, ModuleType) else ""


class _Keys:
    """``_Keys()[key]`` is ``key``."""

    def __getitem__(self, key: Any) -> Any:
        return key


def _is_pure(node: ast.AST) -> bool:
    """Whether a part of a key may be evaluated again."""
    if isinstance(node, ast.Call):
        called = node.func
        return isinstance(called, ast.Name) and called.id in _PURE_CALLS and not node.keywords
    return isinstance(node, _PURE)


def _text_at(frame: FrameType, at: int) -> str:
    """The text of the expression to which an instruction belongs; empty if it is not known."""
    code = frame.f_code
    line, last, start, end = list(code.co_positions())[at // 2]
    if line is None or last is None or start is None or end is None:
        return ""
    texts = [linecache.getline(code.co_filename, n, frame.f_globals) for n in range(line, last + 1)]
    rows = [text.encode() for text in texts]
    rows[-1] = rows[-1][:end]
    rows[0] = rows[0][start:]
    return b"".join(rows).decode(errors="replace")


LATE_BOUND.update(adopt_item_write=adopt_item_write, adopt_result_array=adopt_result_array)
