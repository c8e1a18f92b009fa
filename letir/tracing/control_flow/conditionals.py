"""``cond`` and ``switch`` for Python functions: all branches are recorded, one is evaluated."""

from collections.abc import Callable, Sequence
from typing import Any

from letir.ast import entry_point
from letir.ast.pytrees import flatten
from letir.ast.signatures import R
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError
from letir.eval.array_modules import type_of
from letir.ops.control_flow.conditionals import cond as cond_op
from letir.ops.control_flow.conditionals import switch as switch_op
from letir.tracing.control_flow.traced_bodies import (
    Body,
    close_bodies,
    common_type,
    examples_of,
    leaf_path,
    record_body,
    results_of,
    return_arrays,
)
from letir.tracing.source_locations import error_at_user_line, user_place


@entry_point
def cond(pred: Any, true_fun: Callable[..., R], false_fun: Callable[..., R], *operands: Any) -> R:
    """``true_fun(*operands)`` if ``pred`` is true, else ``false_fun(*operands)``.

    Both functions are recorded abstractly (they cannot ask for values), and one of them is
    evaluated and differentiated when the program runs. ``pred`` is a scalar truth value or number,
    the operands are pytrees; other traced values that the functions use are captured. Both must
    return the same nesting, shapes and dtypes; Python numbers take the dtype of the other branch.

    >>> import numpy as np
    >>> from letir import grad
    >>> def f(x):
    ...     return cond(x > 0, lambda x: np.sqrt(x), lambda x: 0.0, x)
    >>> float(f(4.0)), float(grad(f)(4.0)), float(grad(f)(-4.0))
    (2.0, 0.25, 0.0)
    """
    source, _ = user_place(2)
    _check_one_number("cond", pred, "biufc")
    names = (_name_of_branch(true_fun, "true_fun"), _name_of_branch(false_fun, "false_fun"))
    tree, bodies, captured = _branches_of("cond", (true_fun, false_fun), names, operands)
    attrs = {"on_true": bodies[0], "on_false": bodies[1]}
    leaves = [pred, *flatten(operands)[0], *captured]
    return tree.unflatten(results_of(cond_op, attrs, leaves, source))


@entry_point
def switch(index: Any, branches: Sequence[Callable[..., R]], *operands: Any) -> R:
    """``branches[index](*operands)``, with the index clamped to the range of branches.

    Like ``cond``, for any number of functions: all are recorded, one is evaluated.

    >>> import numpy as np
    >>> [float(switch(i, [np.sin, np.cos, np.exp], 0.0)) for i in range(3)]
    [0.0, 1.0, 1.0]
    """
    source, _ = user_place(2)
    branches = tuple(branches)
    if not branches:
        raise error_at_user_line(
            ShapeError("switch: at least one branch is needed\n  pass a list of functions")
        )
    _check_one_number("switch", index, "biu")
    names = [_name_of_branch(f, f"branch {i}") for i, f in enumerate(branches)]
    tree, bodies, captured = _branches_of("switch", branches, names, operands)
    leaves = [index, *flatten(operands)[0], *captured]
    attrs = {"branches": tuple(bodies)}
    return tree.unflatten(results_of(switch_op, attrs, leaves, source))


def _check_one_number(caller: str, value, kinds: str) -> None:
    """Raise unless ``value`` is a scalar with one of these kinds of dtypes."""
    try:
        aval = type_of(value)
    except DTypeError as error:
        reason, _, _ = str(error).partition("\n")
        remedy = "a condition such as x.sum() > 0" if caller == "cond" else "an integer"
        raise error_at_user_line(
            DTypeError(
                f"{caller}: the branch must be chosen by a number: {reason}\n  pass {remedy}"
            )
        ) from None
    if aval is not None and aval.shape:
        raise error_at_user_line(
            ShapeError(
                f"{caller}: the branch must be chosen by one number, found {aval!r}\n"
                "  reduce it first (x.all(), x.any()), or choose element by element: numpy.where"
            )
        )
    if aval is not None and aval.dtype.kind not in kinds:
        raise error_at_user_line(
            DTypeError(
                f"{caller}: the branch must be chosen by an integer, found {aval!r}\n"
                "  round it explicitly: numpy.floor(x).astype(int)"
            )
        )


def _name_of_branch(f, otherwise: str) -> str:
    """The name of a branch in messages."""
    name = getattr(f, "__name__", "<lambda>")
    return otherwise if name == "<lambda>" else f"{otherwise} ({name})"


def _branches_of(caller: str, functions: Sequence[Callable], names: Sequence[str], operands: tuple):
    """(tree of the results, bodies, captured values) of functions with the same result types."""
    examples = examples_of(operands, caller)
    bodies = [
        record_body(f"{caller.partition(':')[0]}: {name}", f, examples)
        for name, f in zip(names, functions, strict=True)
    ]
    first = bodies[0]
    for name, body in zip(names, bodies, strict=True):
        if body.tree != first.tree:
            raise error_at_user_line(
                DTypeError(
                    f"{caller}: the branches nest their results differently\n"
                    f"  {names[0]}: {first.tree}\n  {name}: {body.tree}\n"
                    "  return the same containers from each"
                )
            )
    avals = [common_type(avals) for avals in zip(*[body.types for body in bodies], strict=True)]
    if None in avals:
        raise _branches_differ_error(caller, bodies, names, avals)
    programs, captured = close_bodies(bodies)
    return first.tree, [return_arrays(program, avals) for program in programs], captured


def _branches_differ_error(
    caller: str, bodies: Sequence[Body], names: Sequence[str], kinds: list
) -> Exception:
    """The error that lists the different results."""
    lines: list[str] = []
    error: type[ShapeError] | type[DTypeError] = ShapeError
    for place, aval in enumerate(kinds):
        if aval is None:
            types: list[ArrayType] = [body.types[place] for body in bodies]
            error = ShapeError if len({aval.dtype for aval in types}) == 1 else DTypeError
            path = leaf_path(bodies[0].tree, place)
            pairs = zip(types, names, strict=True)
            listed = ", ".join(f"{aval!r} in {name}" for aval, name in pairs)
            lines.append(f"\n  result{path}: {listed}")
    return error_at_user_line(
        error(
            f"{caller}: its branches give results of different types{''.join(lines)}\n"
            "  give them the same shape and dtype: x.astype(...), numpy.broadcast_to(x, shape)"
        )
    )
