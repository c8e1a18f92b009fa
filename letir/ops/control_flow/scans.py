"""``scan``: a loop over the first axis of some arrays that carries values from step to step.

``body(*carry, *x, *captured)`` returns the carry of the next step and one row of each stacked
result. Read the record at the end first; its derivatives are in ``letir.ops.control_flow.scan_vjp``
and ``letir.ops.control_flow.scan_jvp``, its batching rule in
``letir.ops.control_flow.scan_batching``.
"""

from collections.abc import Sequence
from typing import Any

from letir.ast.derivative_types import strong_type
from letir.ast.record_fields import BodyLayout
from letir.ast.terms import Bind, Lambda, Local
from letir.ast.types import PYTHON_NUMBERS, ArrayType, Size
from letir.errors import DTypeError, ShapeError
from letir.ops.as_numpy import loops
from letir.ops.autodiff.checkpoint_and_custom_jvp import define_body_op, fit_body
from letir.ops.control_flow.scan_batching import scan_batch
from letir.ops.control_flow.scan_jvp import scan_fused_jvp, scan_jvp, scan_with_tangent_residuals
from letir.ops.control_flow.scan_vjp import scan_vjp, scan_with_residuals

# ---- types ----


def _trip_count(xs: Sequence[ArrayType], length: int | None):
    """The number of steps: an int, or a symbolic size. Raises ShapeError where sizes differ."""
    for aval in xs:
        if not aval.shape:
            raise ShapeError(
                f"scan: it runs over the first axis of its arrays, and {aval} has none\n"
                "  pass arrays with at least one axis, or close over numbers"
            )
    sizes = [aval.shape[0] for aval in xs] + ([] if length is None else [length])
    if not sizes:
        raise ShapeError(
            "scan: without arrays to run over, it needs length, the number of steps\n"
            "  pass length=n"
        )
    # an internal size, the trip count of a while_scan, is unknown and fits any number
    sizes = [n for n in sizes if type(n) is int or not n.is_internal] or sizes
    numbers = {n for n in sizes if type(n) is int}
    if len(numbers) > 1 or (length is None and len(set(sizes)) > 1):
        listed = ", ".join(map(str, sizes))
        raise ShapeError(
            f"scan: the sizes of axis 0 of its arrays, and length, differ: {listed}\n"
            "  make the arrays equally long, or leave length out"
        )
    return next(iter(numbers), sizes[0])


def _step_types(types: Sequence, n_carry: int, n_xs: int) -> list[ArrayType | None]:
    """The types of the body's parameters for operands of these types."""
    end = n_carry + n_xs
    sliced = [aval and aval.with_shape(aval.shape[1:]) for aval in types[n_carry:end]]
    return [*map(strong_type, types[:n_carry]), *sliced, *types[end:]]


def _scan_aval(*types, body, n_carry, n_xs, length, reverse):
    """The types of the last carry, then of the stacked results."""
    n = _trip_count(types[n_carry : n_carry + n_xs], length)
    body = fit_body(body, _step_types(types, n_carry, n_xs))
    result_types = [strong_type(arg.type) for arg in body.ret.args]
    for param, aval in zip(body.params[:n_carry], result_types, strict=False):
        if aval is not None and param.type is not aval:
            error = DTypeError if aval.dtype != param.type.dtype else ShapeError
            name = f" {param.name}" if param.name else ""
            raise error(
                f"scan: the carry{name} comes in as {param.type} and goes out as {aval}\n"
                "  the carry that a step returns must have the type of the carry that it takes"
            )
    stacked = [aval and ArrayType(aval.dtype, (n, *aval.shape)) for aval in result_types[n_carry:]]
    return (*result_types[:n_carry], *stacked)


# ---- numerics ----


def _initial_carry(xp, values: Sequence, params: Sequence[Local]) -> list:
    """The initial carry; Python numbers become arrays of their parameters' dtypes."""
    return [
        xp.asarray(value, param.type and param.type.dtype)[()]
        if type(value) in PYTHON_NUMBERS
        else value
        for value, param in zip(values, params, strict=False)
    ]


def _empty_stacks(xp, n_carry: int, count: int, first_results: tuple) -> list:
    """Uninitialised arrays for ``count`` rows like ``first_results``, the results of one step."""
    first = [xp.asarray(y) if type(y) in PYTHON_NUMBERS else y for y in first_results[n_carry:]]
    return [xp.empty((count, *y.shape), y.dtype) for y in first]


def _run_scan(xp, operands: list, *, call, body, n_carry, n_xs, length, reverse):
    """Run the steps in order; empties ``operands``, and each step frees the carry that it takes."""
    end = n_carry + n_xs
    xs, captured = operands[n_carry:end], operands[end:]
    count = len(xs[0]) if length is None else length
    if any(len(x) != count for x in xs):
        raise ShapeError(
            f"scan: {count} steps, but arrays of length {', '.join(str(len(x)) for x in xs)}\n"
            "  make the arrays as long as the number of steps"
        )
    carry = _initial_carry(xp, operands[:n_carry], body.params)
    if not count:
        return (*carry, *zero_trip_results(xp, operands, body, n_carry, n_xs))
    operands.clear()
    ys: list = []
    for i in range(count - 1, -1, -1) if reverse else range(count):
        carry += [x[i] for x in xs]
        carry += captured
        results = call(body, carry)  # call empties the list: a value is freed at its last use
        carry = [*results[:n_carry]]
        if not ys:
            ys = _empty_stacks(xp, n_carry, count, results)
        # not zip(ys, found): the loop variable would keep the last value alive through a step
        for k, y in enumerate(ys, n_carry):
            y[i] = results[k]
        del results
    return (*carry, *ys)


def zero_trip_results(xp: Any, args: Sequence, body: Lambda, n_carry: int, n_xs: int) -> list:
    """The stacked results of a loop without any step: empty arrays of the results' types."""
    sizes = {}
    for i, (param, arg) in enumerate(zip(body.params, args, strict=True)):
        shape = getattr(arg, "shape", ())[n_carry <= i < n_carry + n_xs :]
        for size, n in zip(param.type.shape if param.type else (), shape, strict=False):
            if type(size) is Size and len(size.terms) == 1 and size.terms[0][0] == (str(size),):
                sizes[str(size)] = n
    avals = [arg.type for arg in body.ret.args[n_carry:]]
    if any(
        aval is None or any(type(n) is Size and not n.names <= sizes.keys() for n in aval.shape)
        for aval in avals
    ):
        raise ShapeError(
            "scan: the trip count is 0, and the shape of a result is not known without a step\n"
            "  trace with concrete arguments, or give the program types: letir.retype"
        )
    shapes = [
        tuple(n.evaluate(sizes) if type(n) is Size else n for n in aval.shape) for aval in avals
    ]
    return [xp.empty((0, *s), aval.dtype) for s, aval in zip(shapes, avals, strict=True)]


def _scan_counts(bind: Bind, results: Sequence[int], params: Sequence[int]) -> dict:
    """The number of carried values among results, and of elements among parameters."""
    n_carry, n_xs = bind.attrs["n_carry"], bind.attrs["n_xs"]
    xs = range(n_carry, n_carry + n_xs)
    return {"n_carry": sum(i < n_carry for i in results), "n_xs": sum(i in xs for i in params)}


scan = define_body_op(
    "scan",
    _run_scan,
    _scan_aval,
    vjp=scan_vjp,
    jvp=scan_jvp,
    batch=scan_batch,
    with_residuals=scan_with_residuals,
    with_tangent_residuals=scan_with_tangent_residuals,
    fused_jvp=scan_fused_jvp,
    results=lambda *, body, **_: len(body.ret.args),
    source=loops.scan,
    bodies=BodyLayout(
        loop="elements",
        n_carry=lambda bind: bind.attrs["n_carry"],
        n_elements=lambda bind: bind.attrs["n_xs"],
        given_types=lambda types, attrs: _step_types(types, attrs["n_carry"], attrs["n_xs"]),
        needs_sizes=True,
        counts=_scan_counts,
    ),
)
