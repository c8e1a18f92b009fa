"""How choices and loops that carry values are written: Python's ``if``, ``while`` and ``for``, with
the bodies in their places.
"""

from collections.abc import Sequence

from letir.ast.terms import Lambda
from letir.errors import ExportError
from letir.ops.written_loops import named_size


def cond(write, pred, *args, on_true, on_false):
    """``if`` and ``else``."""
    choose(write, [f"if {pred}:", "else:"], [on_true, on_false], args)


def switch(write, index, *args, branches):
    """One ``if`` after the other; the first and the last branch stand for all numbers beyond."""
    if len(branches) == 1:
        return write.writer.body(branches[0], args)
    number = write.named("index")
    write.line(f"{number} = int({index})")
    between = [f"elif {number} == {i}:" for i in range(1, len(branches) - 1)]
    choose(write, [f"if {number} <= 0:", *between, "else:"], branches, args)
    return None


def choose(write, heads: Sequence[str], bodies: Sequence[Lambda], args: Sequence[str]) -> None:
    """Each body below its head, with the same names for the results."""
    names = write.results()
    for head, body in zip(heads, bodies, strict=True):
        with write.block(head):
            write.writer.body(body, args, names)


def started(write, names: Sequence[str | None], args: Sequence[str]) -> list[str]:
    """Names for what a loop carries, which begin as its operands."""
    carry = [name or write.named("carry") for name in names]
    for name, start in zip(carry, args, strict=False):
        write.line(f"{name} = {start}")
    return carry


def carried_on(write, carry: Sequence[str], found: Sequence[str]) -> None:
    """What is carried, as this iteration leaves it."""
    changed = [(name, text) for name, text in zip(carry, found, strict=True) if name != text]
    if changed:
        names, texts = zip(*changed, strict=True)
        write.line(f"{', '.join(names)} = {', '.join(texts)}")  # at once: texts read old names


def leave_unless(write, test: Lambda, values: Sequence[str]) -> None:
    """The end of the loop where the test fails."""
    (goes_on,) = write.writer.body(test, values)
    with write.block(f"if not {goes_on}:"):
        write.line("break")


def while_loop(write, *args, test, body):
    """``while True``, left where the test fails."""
    carry, captured = started(write, write.results(), args), args[len(body.ret.args) :]
    with write.block("while True:"):
        leave_unless(write, test, [*carry, *captured])
        carried_on(write, carry, write.writer.body(body, [*carry, *captured]))


def fori_loop(write, lower, upper, *args, body):
    """``for`` over a range."""
    carry, captured = started(write, write.results(), args), args[len(body.ret.args) :]
    index = body.params[0]
    i = write.named(index.name or "i")
    with write.block(f"for {i} in range({lower}, {upper}):"):
        if index.type is not None and not index.type.weak:
            write.line(f"{i} = np.int64({i})")
        carried_on(write, carry, write.writer.body(body, [i, *carry, *captured]))


def while_scan(write, *args, test, body, n_carry, numbered):
    """``while True``, with a list for what each iteration gives."""
    names, captured = write.results(), args[n_carry:]
    carry = started(write, names[:n_carry], args)
    rows = names[n_carry + (not numbered) :]
    lists = [write.named("rows") if name else None for name in rows]
    numbers = None if numbered else names[n_carry]
    if numbers:
        write.line(f"{numbers} = 0")
    for row in filter(None, lists):
        write.line(f"{row} = []")
    with write.block("while True:"):
        leave_unless(write, test, [*carry, *captured])
        found = write.writer.body(body, [*carry, *captured])
        for row, text in zip(lists, found[n_carry:], strict=True):
            if row:
                write.line(f"{row}.append({text})")
        carried_on(write, carry, found[:n_carry])
        if numbers:
            write.line(f"{numbers} += 1")
    if numbers:
        write.line(f"{numbers} = np.arange({numbers})")
    for name, row, arg in zip(rows, lists, body.ret.args[n_carry:], strict=True):
        if name:
            write.line(f"{name} = np.stack({row}) if {row} else {empty(write, arg.type, args)}")


def empty(write, kind, args: Sequence[str]) -> str:
    """An array for no iteration at all."""
    if kind is None:
        raise ExportError(
            "to_source: the type of a result of a loop is not known\n  retype the program first"
        )
    sizes = ["0", *[str(n) if type(n) is int else named_size(write, n, args) for n in kind.shape]]
    comma = "," if len(sizes) == 1 else ""
    return f"np.empty(({', '.join(sizes)}{comma}), {write.literal(kind.dtype)})"
