"""How loops are written in NumPy: a function for a step, and Python's ``for``."""

from letir.ast.types import ArrayType
from letir.errors import ExportError


def scan(write, *args, body, n_carry, n_xs, length, reverse):
    """The step as a function; arrays for the results, of which each step gives a row."""
    step = write.function(body, "step", "One step of a loop.")
    end, names = n_carry + n_xs, write.results()
    carry = [name or write.named("carry") for name in names[:n_carry]]
    for i, (name, start) in enumerate(zip(carry, args, strict=False)):
        write.line(f"{name} = {start if write.is_array(i) else number(write, start, body, i)}")
    rows = [
        stack_target(write, name, write.bind.binders[i].type, args)
        for i, name in enumerate(names[n_carry:], n_carry)
    ]
    i = write.named("i")
    targets = [*carry, *[f"{row}[{i}]" if row else "_" for row in rows]]
    operands = [*carry, *[f"{x}[{i}]" for x in args[n_carry:end]], *args[end:]]
    steps = f"range({f'len({args[n_carry]})' if length is None else length})"
    with write.block(f"for {i} in {f'reversed({steps})' if reverse else steps}:"):
        call = f"{step}({', '.join(operands)})"
        write.line(f"{', '.join(targets)} = {call}" if targets else call)


def number(write, start: str, body, i: int) -> str:
    """A Python number as the first value of the carry."""
    kind = body.params[i].type
    return f"np.asarray({start}{f', {write.literal(kind.dtype)}' if kind else ''})[()]"


def stack_target(write, name: str | None, kind: ArrayType | None, args: tuple) -> str | None:
    """The name of a result, as an array to be filled; None if nothing uses it."""
    if name is None:
        return None
    if kind is None:
        raise ExportError("to_source: the type of a result of scan is not known\n  retype it first")
    sizes = [str(n) if type(n) is int else named_size(write, n, args) for n in kind.shape]
    shape = f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"
    write.line(f"{name} = np.empty({shape}, {write.literal(kind.dtype)})")
    return name


def named_size(write, n, args: tuple) -> str:
    """A size that has a name, asked of an operand that has it."""
    for i, arg in enumerate(args):
        kind = write.type(i)
        if kind is not None and n in kind.shape:
            return f"{arg}.shape[{kind.shape.index(n)}]"
    raise ExportError(f"to_source: no operand of scan has the size {n} of its result")
