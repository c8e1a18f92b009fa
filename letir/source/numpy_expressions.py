"""The default source form of operations: an operator, or a call of a NumPy function."""

import inspect
import itertools
from collections.abc import Callable
from typing import Any

from letir.ast.primitive import PRIMITIVES, Primitive
from letir.errors import ExportError
from letir.ops.define.records import decomposition
from letir.ops.shape.size_numbers import filled_attrs
from letir.source.bind_writer import BindWriter
from letir.source.numpy_literals import SourceText


def source_form(write: BindWriter, operands: list[str]) -> Any:
    """The form by the record's ``source``, or the form that follows from its other fields."""
    op, attrs = write.bind.op, write.bind.attrs
    if isinstance(op.source, str):
        # a template may put a negative number before ** or a dot, which bind more tightly
        operands = [f"({text})" if text.startswith("-") else text for text in operands]
        return op.source.format(*operands, **{k: write.literal(v) for k, v in attrs.items()})
    if op.role == "sized":
        return _sized_form(write)
    if op.source is not None:
        return op.source(write, *operands, **attrs)
    if op.decompose is not None and not _is_numpys(op):
        return _composite_call(write, operands)
    if op.symbol and len(operands) == 2 and write.is_exact_infix(op.symbol):
        return _infix_expression(op.symbol, *operands)
    return write.numpy_call(*operands, **attrs)


def _sized_form(write: BindWriter) -> Any:
    """An operation with attributes that are symbolic sizes: their numbers are in an array."""
    bind, numbers = write.bind, write.operands[-1]
    op = PRIMITIVES[bind.attrs["operation"]]
    attrs = dict(zip(bind.attrs["names"], bind.attrs["settings"], strict=True))
    texts = (SourceText(f"{numbers}[{i}]") for i in itertools.count())
    filled: Any = filled_attrs(op, attrs, texts)
    inner = bind.replace(op=op, args=bind.args[:-1], attrs=filled)
    return source_form(BindWriter(write.writer, inner, write.operands[:-1]), write.operands[:-1])


def _is_numpys(op: Primitive) -> bool:
    """Whether a composite is one of NumPy's functions, which computes it."""
    return bool(op.numpy) and not op.is_user_defined


def _infix_expression(symbol: str, x: str, y: str) -> str:
    """``x + y``; a negative number to the left of ``**`` in brackets."""
    x = f"({x})" if symbol == "**" and x.startswith("-") else x
    return f"{x} {symbol} {y}"


def _composite_call(write: BindWriter, operands: list[str]) -> str:
    """A call of a new function, whose body is the decomposition for these types."""
    bind = write.bind
    present = [i for i, arg in enumerate(bind.args) if operands[i] != "None"]
    # as in the evaluator, absent operands are None, and have no parameters
    types = tuple([write.type(i) if i in present else None for i in range(len(operands))])
    if any(types[i] is None for i in present):
        raise ExportError(
            f"to_source: {bind.op.name} of operands of unknown types cannot be written\n"
            "  give the program types: letir.retype"
        )
    fn = decomposition(bind.op.decompose, types, dict(bind.attrs))
    settings = ", ".join(f"{name}={value!r}" for name, value in bind.attrs.items())
    about = f"{bind.op.name}({settings})" if settings else bind.op.name
    names = [_parameter_names(bind.op.decompose, len(operands))[i] for i in present]
    name = write.writer.function(fn, bind.op.name.rpartition(".")[2], about, names)
    return f"{name}({', '.join([operands[i] for i in present])})"


def _parameter_names(decompose: Callable, count: int) -> list[str]:
    """The names of a composite's operands, from the signature of its decomposition."""
    parameters = inspect.signature(decompose).parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [*names, *(f"x{i}" for i in range(len(names) + 1, count + 1))]
