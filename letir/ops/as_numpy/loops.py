"""NumPy source of loops and choices: Python's ``for``, ``while`` and ``if``.

The body of a ``scan`` is written as a separate function, other bodies are written inline.
"""

from collections.abc import Sequence
from typing import Any

from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.errors import ExportError


def scan(
    write: Any, *args: str, body: Lambda, n_carry: int, n_xs: int, length: int | None, reverse: bool
) -> None:
    """A ``for`` loop that calls the step function and fills a row of each stacked result."""
    step = write.function(body, "step", "One step of a loop.")
    end, names = n_carry + n_xs, write.results()
    carry = [name or write.named("carry") for name in names[:n_carry]]
    for i, (name, start) in enumerate(zip(carry, args, strict=False)):
        write.line(
            f"{name} = {start if write.is_array(i) else _number_as_array(write, start, body, i)}"
        )
    rows = [
        _stack_target(write, name, write.bind.binders[i].type, args)
        for i, name in enumerate(names[n_carry:], n_carry)
    ]
    i = write.named("i")
    targets = [*carry, *[f"{row}[{i}]" if row else "_" for row in rows]]
    operands = [*carry, *[f"{x}[{i}]" for x in args[n_carry:end]], *args[end:]]
    steps = f"range({f'len({args[n_carry]})' if length is None else length})"
    with write.block(f"for {i} in {f'reversed({steps})' if reverse else steps}:"):
        call = f"{step}({', '.join(operands)})"
        write.line(f"{', '.join(targets)} = {call}" if targets else call)


def _number_as_array(write, start: str, body, i: int) -> str:
    """A Python number as an array, for the initial carry."""
    aval = body.params[i].type
    return f"np.asarray({start}{f', {write.literal(aval.dtype)}' if aval else ''})[()]"


def _stack_target(write, name: str | None, aval: ArrayType | None, args: tuple) -> str | None:
    """Write an empty array for a stacked result and return its name; None if nothing uses it."""
    if name is None:
        return None
    if aval is None:
        raise ExportError(
            "to_source: the type of a result of scan is not known\n"
            "  give the program types: letir.retype"
        )
    sizes = [str(n) if type(n) is int else _named_size(write, n, args) for n in aval.shape]
    shape = f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"
    write.line(f"{name} = np.empty({shape}, {write.literal(aval.dtype)})")
    return name


def _named_size(write, n, args: Sequence[str]) -> str:
    """The text of a symbolic size: ``x.shape[i]`` of an operand that has it."""
    for i, arg in enumerate(args):
        aval = write.type(i)
        if aval is not None and n in aval.shape:
            return f"{arg}.shape[{aval.shape.index(n)}]"
    raise ExportError(f"to_source: no operand of scan has the size {n} of its result")


def cond(write: Any, pred: str, *args: str, on_true: Lambda, on_false: Lambda) -> None:
    """An ``if`` statement with the two bodies."""
    _write_branches(write, [f"if {pred}:", "else:"], [on_true, on_false], args)


def switch(write: Any, index: str, *args: str, branches: Sequence[Lambda]) -> Any:
    """``if``, ``elif`` ..., ``else``; numbers out of range select the first or last branch."""
    if len(branches) == 1:
        return write.writer.body(branches[0], args)
    number = write.named("index")
    write.line(f"{number} = int({index})")
    between = [f"elif {number} == {i}:" for i in range(1, len(branches) - 1)]
    _write_branches(write, [f"if {number} <= 0:", *between, "else:"], branches, args)
    return None


def _write_branches(
    write, heads: Sequence[str], bodies: Sequence[Lambda], args: Sequence[str]
) -> None:
    """Write each body below its head; all assign to the same names."""
    names = write.results()
    for head, body in zip(heads, bodies, strict=True):
        with write.block(head):
            write.writer.body(body, args, names)


def _assign_carry(write, names: Sequence[str | None], args: Sequence[str]) -> list[str]:
    """Write the initial assignments of the carried values and return their names."""
    carry = [name or write.named("carry") for name in names]
    for name, start in zip(carry, args, strict=False):
        write.line(f"{name} = {start}")
    return carry


def _update_carry(write, carry: Sequence[str], results: Sequence[str]) -> None:
    """Write the assignment of the carried values at the end of an iteration."""
    changed = [(name, text) for name, text in zip(carry, results, strict=True) if name != text]
    if changed:
        names, texts = zip(*changed, strict=True)
        write.line(f"{', '.join(names)} = {', '.join(texts)}")  # at once, as texts read old values


def _leave_unless(write, test: Lambda, values: Sequence[str]) -> None:
    """Write a ``break`` that is taken when the test fails."""
    (continues,) = write.writer.body(test, values)
    with write.block(f"if not {continues}:"):
        write.line("break")


def while_loop(write: Any, *args: str, test: Lambda, body: Lambda) -> None:
    """``while True`` with a ``break`` when the test fails."""
    carry, captured = _assign_carry(write, write.results(), args), args[len(body.ret.args) :]
    with write.block("while True:"):
        _leave_unless(write, test, [*carry, *captured])
        _update_carry(write, carry, write.writer.body(body, [*carry, *captured]))


def fori_loop(write: Any, lower: str, upper: str, *args: str, body: Lambda) -> None:
    """``for`` over a range."""
    carry, captured = _assign_carry(write, write.results(), args), args[len(body.ret.args) :]
    index = body.params[0]
    i = write.named(index.name or "i")
    with write.block(f"for {i} in range({lower}, {upper}):"):
        if index.type is not None and not index.type.weak:
            write.line(f"{i} = np.int64({i})")
        _update_carry(write, carry, write.writer.body(body, [i, *carry, *captured]))


def while_scan(
    write: Any, *args: str, test: Lambda, body: Lambda, n_carry: int, numbered: bool
) -> None:
    """``while True``, with a list to which each iteration appends the rows of a stacked result."""
    names, captured = write.results(), args[n_carry:]
    carry = _assign_carry(write, names[:n_carry], args)
    rows = names[n_carry + (not numbered) :]
    lists = [write.named("rows") if name else None for name in rows]
    numbers = None if numbered else names[n_carry]
    if numbers:
        write.line(f"{numbers} = 0")
    for row in filter(None, lists):
        write.line(f"{row} = []")
    with write.block("while True:"):
        _leave_unless(write, test, [*carry, *captured])
        results = write.writer.body(body, [*carry, *captured])
        for row, text in zip(lists, results[n_carry:], strict=True):
            if row:
                write.line(f"{row}.append({text})")
        _update_carry(write, carry, results[:n_carry])
        if numbers:
            write.line(f"{numbers} += 1")
    if numbers:
        write.line(f"{numbers} = np.arange({numbers})")
    for name, row, arg in zip(rows, lists, body.ret.args[n_carry:], strict=True):
        if name:
            write.line(
                f"{name} = np.stack({row}) if {row} else {_empty_stack(write, arg.type, args)}"
            )


def _empty_stack(write, aval, args: Sequence[str]) -> str:
    """The text of an empty stacked result, for a loop without iterations."""
    if aval is None:
        raise ExportError(
            "to_source: the type of a result of a loop is not known\n"
            "  give the program types: letir.retype"
        )
    sizes = ["0", *[str(n) if type(n) is int else _named_size(write, n, args) for n in aval.shape]]
    comma = "," if len(sizes) == 1 else ""
    return f"np.empty(({', '.join(sizes)}{comma}), {write.literal(aval.dtype)})"
