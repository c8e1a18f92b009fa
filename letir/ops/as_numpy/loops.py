"""How loops are written in NumPy: a function for a step, and Python's ``for``.

How choices and loops that carry values are written: Python's ``if``, ``while`` and ``for``, with
the bodies in their places.
"""

from collections.abc import Sequence

from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.errors import ExportError


def scan(write, *args, body, n_carry, n_xs, length, reverse):
    """The step as a function; arrays for the results, of which each step gives a row."""
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
    """A Python number as the first value of the carry."""
    kind = body.params[i].type
    return f"np.asarray({start}{f', {write.literal(kind.dtype)}' if kind else ''})[()]"


def _stack_target(write, name: str | None, kind: ArrayType | None, args: tuple) -> str | None:
    """The name of a result, as an array to be filled; None if nothing uses it."""
    if name is None:
        return None
    if kind is None:
        raise ExportError("to_source: the type of a result of scan is not known\n  retype it first")
    sizes = [str(n) if type(n) is int else _named_size(write, n, args) for n in kind.shape]
    shape = f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"
    write.line(f"{name} = np.empty({shape}, {write.literal(kind.dtype)})")
    return name


def _named_size(write, n, args: tuple) -> str:
    """A size that has a name, asked of an operand that has it."""
    for i, arg in enumerate(args):
        kind = write.type(i)
        if kind is not None and n in kind.shape:
            return f"{arg}.shape[{kind.shape.index(n)}]"
    raise ExportError(f"to_source: no operand of scan has the size {n} of its result")


def cond(write, pred, *args, on_true, on_false):
    """``if`` and ``else``."""
    _write_branches(write, [f"if {pred}:", "else:"], [on_true, on_false], args)


def switch(write, index, *args, branches):
    """One ``if`` after the other; the first and the last branch stand for all numbers beyond."""
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
    """Each body below its head, with the same names for the results."""
    names = write.results()
    for head, body in zip(heads, bodies, strict=True):
        with write.block(head):
            write.writer.body(body, args, names)


def _assign_carry(write, names: Sequence[str | None], args: Sequence[str]) -> list[str]:
    """Names for what a loop carries, which begin as its operands."""
    carry = [name or write.named("carry") for name in names]
    for name, start in zip(carry, args, strict=False):
        write.line(f"{name} = {start}")
    return carry


def _update_carry(write, carry: Sequence[str], found: Sequence[str]) -> None:
    """What is carried, as this iteration leaves it."""
    changed = [(name, text) for name, text in zip(carry, found, strict=True) if name != text]
    if changed:
        names, texts = zip(*changed, strict=True)
        write.line(f"{', '.join(names)} = {', '.join(texts)}")  # at once: texts read old names


def _leave_unless(write, test: Lambda, values: Sequence[str]) -> None:
    """The end of the loop where the test fails."""
    (goes_on,) = write.writer.body(test, values)
    with write.block(f"if not {goes_on}:"):
        write.line("break")


def while_loop(write, *args, test, body):
    """``while True``, left where the test fails."""
    carry, captured = _assign_carry(write, write.results(), args), args[len(body.ret.args) :]
    with write.block("while True:"):
        _leave_unless(write, test, [*carry, *captured])
        _update_carry(write, carry, write.writer.body(body, [*carry, *captured]))


def fori_loop(write, lower, upper, *args, body):
    """``for`` over a range."""
    carry, captured = _assign_carry(write, write.results(), args), args[len(body.ret.args) :]
    index = body.params[0]
    i = write.named(index.name or "i")
    with write.block(f"for {i} in range({lower}, {upper}):"):
        if index.type is not None and not index.type.weak:
            write.line(f"{i} = np.int64({i})")
        _update_carry(write, carry, write.writer.body(body, [i, *carry, *captured]))


def while_scan(write, *args, test, body, n_carry, numbered):
    """``while True``, with a list for what each iteration gives."""
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
        found = write.writer.body(body, [*carry, *captured])
        for row, text in zip(lists, found[n_carry:], strict=True):
            if row:
                write.line(f"{row}.append({text})")
        _update_carry(write, carry, found[:n_carry])
        if numbers:
            write.line(f"{numbers} += 1")
    if numbers:
        write.line(f"{numbers} = np.arange({numbers})")
    for name, row, arg in zip(rows, lists, body.ret.args[n_carry:], strict=True):
        if name:
            write.line(
                f"{name} = np.stack({row}) if {row} else {_empty_stack(write, arg.type, args)}"
            )


def _empty_stack(write, kind, args: Sequence[str]) -> str:
    """An array for no iteration at all."""
    if kind is None:
        raise ExportError(
            "to_source: the type of a result of a loop is not known\n  retype the program first"
        )
    sizes = ["0", *[str(n) if type(n) is int else _named_size(write, n, args) for n in kind.shape]]
    comma = "," if len(sizes) == 1 else ""
    return f"np.empty(({', '.join(sizes)}{comma}), {write.literal(kind.dtype)})"
