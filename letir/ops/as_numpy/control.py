"""NumPy source of guards, users' functions and gradient programs: the ``source`` of their records.

``Undef`` is written as None; a step of a gradient program tests the cotangents that may be None.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ast.terms import Lambda
from letir.errors import ExportError
from letir.ops.as_numpy.arrays import zeros as zeros_call

# ---- guards, functions ----


def guard(write: Any, x: str, *, value: Any) -> None:
    """A statement that raises if ``x`` is not the value with which the function was recorded."""
    if type(value) is bool:
        wrong = f"not {x}" if value else x
    elif type(value) is int:
        wrong = f"int({x}) != {value}"
    elif not hasattr(value, "shape"):  # by repr: it distinguishes 0.0 and -0.0, and nan equals nan
        convert = type(value).__name__
        wrong = f"repr({convert}({x})) != {repr(value)!r}"
    else:
        same = f"np.asarray({write.literal(value)})"
        wrong = f"np.asarray({x}).tobytes() != {same}.tobytes()"  # bit by bit, as in guard_impl
    source = write.bind.source
    condition = source.excerpt if source else ""  # the user's code, if it is known
    message = f"{write.place}recorded where {condition or x} was {value!r}"
    with write.block(f"if {wrong}:"):
        write.line(f"raise ValueError({message!r})")


def imported_call(function: Callable, name: str, places: tuple[int, ...] = ()) -> Callable:
    """The source of a call of a user's function, which the module imports.

    ``name``: the operation that calls it. ``places``: the results to keep; by default all.
    """

    def source(write, *operands):
        imported = write.imported(function)
        if imported is None:
            raise ExportError(
                f"to_source: {name} calls {function!r}, which no import finds\n"
                "  define it at the top of a module, under its own name"
            )
        call = f"{imported}({', '.join(operands)})"
        if not places:
            return call
        every = write.named("cts")
        write.line(f"{every} = {call}")
        return tuple(f"{every}[{i}]" for i in places)

    return source


def looped(write: Any, *args: str, body: Lambda, mapped: Sequence[bool]) -> str:
    """The body as a function, called on one example after the other; results are stacked."""
    example_function = write.function(body, "example", "One example of a batch.")
    counted = next(arg for arg, is_mapped in zip(args, mapped, strict=True) if is_mapped)
    rows, i = write.named("examples"), write.named("i")
    each = [
        f"{arg}[{i}]" if is_mapped else arg for arg, is_mapped in zip(args, mapped, strict=True)
    ]
    write.line(f"{rows} = [{example_function}({', '.join(each)}) for {i} in range(len({counted}))]")
    avals = [arg.type for arg in body.ret.args]
    empty = [
        write.call("np.zeros", write.literal((0, *aval.shape)), dtype=aval.dtype) for aval in avals
    ]
    if len(avals) == 1:
        return f"[np.stack({rows}) if {rows} else {empty[0]}]"
    return f"map(np.stack, zip(*{rows})) if {rows} else ({', '.join(empty)})"


# ---- custom rules and gradient programs ----


def first_results(write: Any, *args: str, n_outs: int, **_: Any) -> tuple[str, ...]:
    """The first operands, which are the results of the custom function."""
    return args[:n_outs]


def inline_body(write: Any, *args: str, body: Lambda, **_: Any) -> Any:
    """The body, written inline."""
    return write.body(body, args)


def inline_forward(write: Any, *args: str, forward: Lambda, **_: Any) -> Any:
    """The forward program, written inline, without the backward program."""
    return write.body(forward, args)


def inline_primal(write: Any, *args: str, primal: Lambda, **_: Any) -> Any:
    """The function, written inline, without its derivative rule."""
    return write.body(primal, args[: len(primal.params)])


def autograd_add(write: Any, x: str, y: str) -> str | tuple[str] | None:
    """The sum, where None counts as zero."""
    is_defined = [not write.may_be_none(i) for i in range(2)]
    if all(is_defined):
        return f"{x} + {y}"
    if "None" in (x, y):
        return (y if x == "None" else x,)
    (out,) = write.results(may_be_none=not any(is_defined))
    by_y = f"{x} + {y}" if is_defined[1] else f"{x} if {y} is None else {x} + {y}"
    if out:
        write.line(
            f"{out} = {by_y}" if is_defined[0] else f"{out} = {y} if {x} is None else {by_y}"
        )
    return None


def instantiate(
    write: Any, x: str, *sizes: str, shape: tuple | None, dtype: np.dtype
) -> str | tuple[str]:
    """The operand, or zeros if it is None."""
    if not write.may_be_none(0):
        return (x,)
    zeros = zeros_call(write, *sizes, shape=shape, dtype=dtype)
    return zeros if x == "None" else f"{zeros} if {x} is None else {x}"


def gradient_step(write: Any, *args: str, n_cts: int, body: Lambda, **_: Any) -> Any:
    """The body, unless all cotangents are None: then all results are None."""
    cts = args[:n_cts]
    # if one cotangent is never None, no test is needed
    if n_cts and not all(map(write.may_be_none, range(n_cts))):
        return write.body(body, args)
    needed = list(dict.fromkeys(ct for ct in cts if ct != "None"))
    if not needed:
        return ("None",) * len(body.ret.args)
    names = write.results(may_be_none=True)
    bound_names = [name for name in names if name]
    with write.block(f"if {' and '.join(f'{ct} is None' for ct in needed)}:"):
        if bound_names:
            write.line(f"{' = '.join(bound_names)} = None")
    # with several cotangents, some may still be None in the body
    with write.block("else:"), write.defined(needed if len(needed) == 1 else ()):
        write.body(body, args, into=names)
    return None
