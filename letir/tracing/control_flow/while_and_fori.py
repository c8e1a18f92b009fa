"""``while_loop`` and ``fori_loop`` for Python functions: the body is recorded once."""

from collections.abc import Callable
from typing import Any

from letir.ast import entry_point
from letir.ast.builder import Value
from letir.ast.pytrees import Tree, flatten
from letir.ast.signatures import C
from letir.ast.types import WEAK, ArrayType, ShapeDtype
from letir.errors import DTypeError, ShapeError
from letir.eval.array_modules import type_of
from letir.ops.control_flow.while_and_fori import fori_loop as fori_loop_op
from letir.ops.control_flow.while_and_fori import while_loop as while_loop_op
from letir.ops.define.records import result_dtype
from letir.ops.elementwise.casting import cast
from letir.tracing.control_flow.checkpointed_loops import (
    fori_in_segments,
    while_in_segments,
)
from letir.tracing.control_flow.traced_bodies import (
    Body,
    as_type,
    close_bodies,
    common_type,
    example_of,
    leaf_path,
    record_body,
    results_of,
    return_arrays,
    run_program,
)
from letir.tracing.operands import positive_int
from letir.tracing.source_locations import error_at_user_line, user_place

_MAX_TIMES = 5  # recordings of a body until the dtypes of the carried values are stable


@entry_point
def while_loop(
    cond_fun: Callable[[C], Any],
    body_fun: Callable[[C], C],
    init: C,
    *,
    checkpoint_every: int | None = None,
) -> C:
    """The final value of ``value = init; while cond_fun(value): value = body_fun(value)``.

    ``init`` is a pytree of arrays and numbers; ``body_fun`` returns one of the same nesting, shapes
    and dtypes. Both functions are recorded once, abstractly (they cannot ask for values), so the
    size of the program does not depend on the trip count. The backward pass keeps the residuals of
    each iteration; with ``checkpoint_every=k`` it keeps every k-th carried value and recomputes the
    iterations between.

    >>> from letir import grad
    >>> def sqrt(a):
    ...     return while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a)
    >>> float(sqrt(9.0)), round(float(grad(sqrt)(9.0)), 9)
    (3.0, 0.166666667)
    """
    source, _ = user_place(2)
    carry, tree, recorded = _record_carried("while_loop", body_fun, init, ())
    recorded_test = _recorded_test(cond_fun, tree, recorded.own)
    (test, body), captured = close_bodies([recorded_test, recorded])
    leaves = [*carry, *captured]
    every = checkpoint_every
    if every is not None:
        every = positive_int(every, "while_loop: checkpoint_every")
    if every is not None and carry:
        program = while_in_segments(test, body, every, source)
        return tree.unflatten(run_program(program, leaves))
    attrs = {"test": test, "body": body}
    return tree.unflatten(results_of(while_loop_op, attrs, leaves, source))


@entry_point
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, C], C],
    init: C,
    *,
    checkpoint_every: int | None = None,
) -> C:
    """The final value of ``for i in range(lower, upper): value = body_fun(i, value)``.

    The bounds are Python integers or 0-d arrays. ``init`` is a pytree of arrays and numbers;
    ``body_fun`` returns one of the same nesting, shapes and dtypes. It is recorded once, abstractly
    (it cannot ask for values), with a traced integer for ``i``. ``checkpoint_every`` as in
    ``while_loop``.

    To index an ordinary array by ``i``, write ``letir.numpy.asarray(x)[i]``.

    >>> import numpy as np
    >>> import letir.numpy as lnp
    >>> x = np.arange(4.0)
    >>> float(fori_loop(0, 4, lambda i, total: total + lnp.asarray(x)[i] * i, 0.0))
    14.0
    """
    source, _ = user_place(2)
    bounds = [_check_bound(lower), _check_bound(upper)]
    index = ShapeDtype((), WEAK[int].dtype, weak=True)  # a Python number, as in a range
    carry, tree, recorded = _record_carried("fori_loop", body_fun, init, (index,))
    (body,), captured = close_bodies([recorded])
    every = checkpoint_every
    if every is not None:
        every = positive_int(every, "fori_loop: checkpoint_every")
    if every is not None and carry:
        program = fori_in_segments(bounds[0], bounds[1], body, every, source)
        traced_bounds = [b for b in bounds if type(b) is not int]
        return tree.unflatten(run_program(program, [*traced_bounds, *carry, *captured]))
    leaves = [*bounds, *carry, *captured]
    return tree.unflatten(results_of(fori_loop_op, {"body": body}, leaves, source))


def _check_bound(value):
    """A bound of a counted loop. Raises DTypeError or ShapeError unless it is an integer."""
    try:
        aval = type_of(value)
    except DTypeError as error:
        reason, _, _ = str(error).partition("\n")
        raise error_at_user_line(
            DTypeError(f"fori_loop: the bounds must be integers: {reason}\n  pass ints")
        ) from None
    if aval is not None and (aval.shape or aval.dtype.kind not in "biu"):
        wrong = ShapeError if aval.shape else DTypeError
        raise error_at_user_line(
            wrong(
                f"fori_loop: the bounds must be integers, found {aval!r}\n"
                "  pass ints, or round them: x.astype(int)"
            )
        )
    if isinstance(value, Value):
        is_there = aval is None or aval.dtype == WEAK[int].dtype
        return value if is_there else cast(value, WEAK[int].dtype)
    return int(value)  # a Python number is a constant of the program


# ---- carried values ----


def _record_carried(caller: str, f: Callable, init, before: tuple) -> tuple[list, Tree, Body]:
    """(initial leaves, their nesting, body), with the leaves in the dtypes that the body preserves.

    Python numbers take the dtype that the body returns, by NumPy's promotion.
    """
    leaves, spec = flatten(init)
    tree = Tree(spec)
    avals = [example_of(leaf, caller).type for leaf in leaves]
    for _ in range(_MAX_TIMES):
        examples = [ShapeDtype(aval.shape, aval.dtype, aval.weak) for aval in avals]
        body = record_body(f"{caller}: body", f, (*before, tree.unflatten(examples)))
        if body.tree != tree:
            raise error_at_user_line(
                DTypeError(
                    f"{caller}: the body returns its results nested in another way than its "
                    "arguments\n"
                    f"  carried: {tree}\n  returned: {body.tree}\n"
                    "  return every carried value, in the same containers"
                )
            )
        wider = [_wider_carry_type(*pair) for pair in zip(avals, body.types, strict=True)]
        if wider == avals:
            break
        avals = wider
    _check_kept(caller, tree, avals, body)
    fn = return_arrays(body.fn, avals)
    return list(map(as_type, leaves, avals)), tree, Body(fn, tree, body.lifted)


def _wider_carry_type(aval: ArrayType, returned: ArrayType) -> ArrayType:
    """The initial type of a carried value for which the body returns another type."""
    if not aval.weak or returned is aval or returned is None:
        return aval
    return ArrayType(result_dtype(aval, returned), (), returned.weak)


def _check_kept(caller: str, tree: Tree, avals: list[ArrayType], body: Body) -> None:
    """Raise ShapeError or DTypeError that lists the leaves whose type the body changes."""
    lines: list[str] = []
    error: type[ShapeError] | type[DTypeError] = ShapeError
    for place, (aval, returned) in enumerate(zip(avals, body.types, strict=True)):
        if returned is None or common_type([aval, returned]) is not aval:
            if returned is None or returned.dtype != aval.dtype:
                error = DTypeError
            path = leaf_path(tree, place)
            lines.append(f"\n  carry{path}: {aval!r} comes in, {returned!r} goes out")
    if lines:
        raise error_at_user_line(
            error(
                f"{caller}: the body changes the type of a carried value{''.join(lines)}\n"
                "  begin with an array of the type that the body returns, or convert in the body: "
                "x.astype(...)"
            )
        )


def _recorded_test(f: Callable, tree: Tree, params) -> Body:
    """The test of a loop. Raises ShapeError unless it returns a scalar truth value."""
    avals = [param.type for param in params]
    examples = [ShapeDtype(aval.shape, aval.dtype, aval.weak) for aval in avals]
    test = record_body("while_loop: condition", f, (tree.unflatten(examples),))
    if len(test.types) != 1 or test.types[0] is None or test.types[0].shape:
        raise error_at_user_line(
            ShapeError(
                f"while_loop: the test must return one truth value, found {test.types}\n"
                "  reduce it: x.any(), x.all()"
            )
        )
    if test.types[0].dtype.kind != "b":  # a float that never becomes exactly 0 would loop forever
        raise error_at_user_line(
            DTypeError(
                f"while_loop: the test must return a truth value, found {test.types[0]!r}\n"
                "  compare it: x != 0"
            )
        )
    return test
