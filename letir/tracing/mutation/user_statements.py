"""The statement of the user's code that a frame executes: ``a[key] = value`` or ``a += value``."""

import ast
import dis
import linecache
import sys
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.tracing.source_locations import instruction_at, is_item_write, is_letir_file

_BINARY_OP = dis.opmap["BINARY_OP"]
_AUGMENTED = frozenset([n for n, (name, _) in enumerate(dis._nb_ops) if "INPLACE" in name])  # type: ignore[attr-defined]
_PURE = (
    *(ast.Subscript, ast.Name, ast.Constant, ast.Slice, ast.Tuple, ast.List, ast.Attribute),
    *(ast.UnaryOp, ast.BinOp, ast.Compare, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop),
)
_PURE_CALLS = ("len", "int", "range", "slice", "abs", "min", "max")


def user_frame() -> FrameType | None:
    """The innermost frame that is not letir's."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_letir_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def instruction_name(frame: FrameType) -> str:
    """The name of the instruction that a frame executes."""
    return dis.opname[frame.f_code.co_code[instruction_at(frame)]]


def instruction_after_augmented(frame: FrameType) -> str | None:
    """The name of the instruction after the augmented operator that a frame executes."""
    code, at = frame.f_code.co_code, instruction_at(frame)
    if code[at] != _BINARY_OP or code[at + 1] not in _AUGMENTED:
        return None
    at += 2
    while dis.opname[code[at]] in ("CACHE", "SWAP", "NOP"):
        at += 2
    return dis.opname[code[at]]


def item_target(frame: FrameType) -> tuple[str, Callable[[FrameType], Any]] | None:
    """The variable, and a function that evaluates the key, of the item that a frame assigns."""
    if not is_item_write(frame):
        return None
    code, at = frame.f_code, instruction_at(frame)
    entry = _targets.get((id(code), at))
    if entry is None:
        entry = _targets[(id(code), at)] = code, _parsed_target(frame, at)
    return entry[1]


_targets: dict[tuple[int, int], tuple[CodeType, Any]] = {}  # with the code, so that ids stay valid


def _parsed_target(frame: FrameType, at: int) -> tuple[str, Callable[[FrameType], Any]] | None:
    """(variable, function that computes the index from a frame) of the item that is written at
    the instruction ``at``; None if evaluating the index twice may differ.
    """
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


def is_value_written_alone(frame: FrameType) -> bool:
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
