"""``scan``: a loop over the first axis of some arrays that carries values from step to step.

``body(*carry, *x, *captured)`` gives the carry of the next step and what this one adds to the
stacked results. Read the record at the end first; its derivatives are in
``letir.ops.control_flow.scan_vjp`` and ``letir.ops.control_flow.scan_jvp``, its batching rule in
``letir.ops.control_flow.scan_batching``.
"""

from collections.abc import Sequence

from letir.ast.terms import Lambda, Local
from letir.ast.types import PYTHON_NUMBERS, ArrayType, Size
from letir.errors import DTypeError, ShapeError
from letir.ops.as_numpy import loops
from letir.ops.autodiff.checkpoint_and_custom_jvp import body_op, fitted
from letir.ops.control_flow.scan_batching import scan_batch
from letir.ops.control_flow.scan_jvp import scan_joint, scan_jvp, scan_saving_tangents
from letir.ops.control_flow.scan_vjp import scan_saving, scan_vjp

# ---- types ----


def strong(kind: ArrayType | None) -> ArrayType | None:
    """The type of an array of this type: carried values are no Python numbers."""
    return ArrayType(kind.dtype, kind.shape) if kind is not None and kind.weak else kind


def _trip_count(xs: Sequence[ArrayType], length: int | None):
    """How many steps there are: an int, or a named size. Raises ShapeError where sizes differ."""
    for kind in xs:
        if not kind.shape:
            raise ShapeError(f"scan: a loop goes over the first axis, and {kind} has none")
    sizes = [kind.shape[0] for kind in xs] + ([] if length is None else [length])
    if not sizes:
        raise ShapeError("scan: without arrays to go over, length says how many steps there are")
    # as many as another loop took: known when it has run, and then it is any number
    sizes = [n for n in sizes if type(n) is int or not n.is_internal] or sizes
    numbers = {n for n in sizes if type(n) is int}
    if len(numbers) > 1 or (length is None and len(set(sizes)) > 1):
        listed = ", ".join(map(str, sizes))
        raise ShapeError(f"scan: the first axes of its arrays, and length, differ: {listed}")
    return next(iter(numbers), sizes[0])


def step_types(types: Sequence, n_carry: int, n_xs: int) -> list[ArrayType | None]:
    """The types of the body's parameters for operands of these types."""
    end = n_carry + n_xs
    sliced = [kind and kind.with_shape(kind.shape[1:]) for kind in types[n_carry:end]]
    return [*map(strong, types[:n_carry]), *sliced, *types[end:]]


def _scan_aval(*types, body, n_carry, n_xs, length, reverse):
    """The types of the last carry, and of the results of all steps, stacked."""
    n = _trip_count(types[n_carry : n_carry + n_xs], length)
    body = fitted(body, step_types(types, n_carry, n_xs))
    found = [strong(arg.type) for arg in body.ret.args]
    for param, kind in zip(body.params[:n_carry], found, strict=False):
        if kind is not None and param.type is not kind:
            error = DTypeError if kind.dtype != param.type.dtype else ShapeError
            name = f" {param.name}" if param.name else ""
            raise error(
                f"scan: the carry{name} comes in as {param.type} and goes out as {kind}\n"
                "  what a step hands on has the type of what it got"
            )
    stacked = [kind and ArrayType(kind.dtype, (n, *kind.shape)) for kind in found[n_carry:]]
    return (*found[:n_carry], *stacked)


# ---- numerics ----


def _started(xp, values: Sequence, params: Sequence[Local]) -> list:
    """The first carry; Python numbers as arrays of their parameters' dtypes."""
    return [
        xp.asarray(value, param.type and param.type.dtype)[()]
        if type(value) in PYTHON_NUMBERS
        else value
        for value, param in zip(values, params, strict=False)
    ]


def _stacks(xp, n_carry: int, count: int, found: tuple) -> list:
    """Empty arrays for what the steps give, like what the first one gave."""
    first = [xp.asarray(y) if type(y) in PYTHON_NUMBERS else y for y in found[n_carry:]]
    return [xp.empty((count, *y.shape), y.dtype) for y in first]


def _run_scan(xp, operands: list, *, call, body, n_carry, n_xs, length, reverse):
    """One step after the other; ``operands`` is emptied, and each step frees the carry that it
    gets.
    """
    end = n_carry + n_xs
    xs, captured = operands[n_carry:end], operands[end:]
    count = len(xs[0]) if length is None else length
    if any(len(x) != count for x in xs):
        raise ShapeError(f"scan: {count} steps over arrays of {', '.join(str(len(x)) for x in xs)}")
    carry = _started(xp, operands[:n_carry], body.params)
    if not count:
        return (*carry, *no_steps(xp, operands, body, n_carry, n_xs))
    operands.clear()
    ys: list = []
    for i in range(count - 1, -1, -1) if reverse else range(count):
        carry += [x[i] for x in xs]
        carry += captured
        found = call(body, carry)  # which empties the list: a value is freed at its last use
        carry = [*found[:n_carry]]
        if not ys:
            ys = _stacks(xp, n_carry, count, found)
        # no name for the values: it would keep the last one through the next step
        for k, y in enumerate(ys, n_carry):
            y[i] = found[k]
        del found
    return (*carry, *ys)


def no_steps(xp, args: Sequence, body: Lambda, n_carry: int, n_xs: int) -> list:
    """What no step at all gives: empty arrays of the results' types."""
    sizes = {}
    for i, (param, arg) in enumerate(zip(body.params, args, strict=True)):
        shape = getattr(arg, "shape", ())[n_carry <= i < n_carry + n_xs :]
        for size, n in zip(param.type.shape if param.type else (), shape, strict=False):
            if type(size) is Size and len(size.terms) == 1 and size.terms[0][0] == (str(size),):
                sizes[str(size)] = n
    kinds = [arg.type for arg in body.ret.args[n_carry:]]
    if any(
        kind is None or any(type(n) is Size and not n.names <= sizes.keys() for n in kind.shape)
        for kind in kinds
    ):
        raise ShapeError(
            "scan: the shape of a result is not known where there is no step\n"
            "  trace with concrete arguments, or retype the program"
        )
    known = [
        tuple(n.evaluate(sizes) if type(n) is Size else n for n in kind.shape) for kind in kinds
    ]
    return [xp.empty((0, *s), kind.dtype) for s, kind in zip(known, kinds, strict=True)]


scan = body_op(
    "scan",
    _run_scan,
    _scan_aval,
    vjp=scan_vjp,
    jvp=scan_jvp,
    batch=scan_batch,
    saving=scan_saving,
    saving_tangents=scan_saving_tangents,
    joint=scan_joint,
    results=lambda *, body, **_: len(body.ret.args),
    source=loops.scan,
)
