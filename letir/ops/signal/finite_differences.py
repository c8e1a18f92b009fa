"""Differences and sums along an axis: diff, gradient, trapezoid.

Each is one bind, computed by NumPy's own function; derivatives are taken of its decomposition.
"""

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.errors import ShapeError
from letir.ops.define.batch_rules import axes_rule
from letir.ops.define.records import cast_cotangent, composite, unbroadcast
from letir.ops.elementwise.casting import cast
from letir.ops.reductions.reductions import NO_VALUE, sum_
from letir.ops.shape.concatenate_stack_split import concatenate
from letir.ops.shape.padding import pad
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import as_size, broadcast_to
from letir.ops.shape.transpose import move_axes, normalize_axes
from letir.ops.shape.unit_axes_and_flip import expand_dims

# ---- differences of neighbours ----


def _split_neighbours(x: Value, axis: int) -> tuple[Value, Value]:
    """(all elements along an axis but the first, all but the last)."""
    before = (slice(None),) * normalize_axes(axis, x.ndim)[0]
    return x[(*before, slice(1, None))], x[(*before, slice(None, -1))]


def _diff_decompose(x, *, n=1, axis=-1) -> Value:
    """Each element minus the one before it, ``n`` times."""
    if n < 0:
        raise ShapeError(f"diff: order must be non-negative, found {n}\n  pass the number of times")
    if n and not x.shape:
        raise ShapeError(
            "diff requires input that is at least one dimensional\n  pass an array with an axis"
        )
    for _ in range(n):
        later, earlier = _split_neighbours(x, axis)
        x = later != earlier if x.dtype.kind == "b" else later - earlier
    return x


def _diff_prepare(a, n=1, axis=-1, prepend=NO_VALUE, append=NO_VALUE):
    """np.diff's call; ``prepend`` and ``append`` are concatenated with ``a`` first."""
    n, axis = as_size(n), as_size(axis)
    if not (prepend is append is NO_VALUE) and isinstance(a, Value):
        normalize_axes(axis, a.ndim)  # raises for an axis that does not exist
    parts = [_as_part(part, a, axis) for part in (prepend, a, append) if part is not NO_VALUE]
    return (a if len(parts) == 1 else concatenate(parts, axis),), {"n": n, "axis": axis}


def _as_part(part, a, axis: int):
    """``prepend`` or ``append`` as an array; a number becomes one element along the axis."""
    if part is a:
        return a
    part = part if isinstance(part, Value) else np.asarray(part)
    if part.shape:
        return part
    shape = list(np.shape(a) if not isinstance(a, Value) else a.shape)
    shape[axis] = 1
    return broadcast_to(part, tuple(shape))


def _diff_vjp(ct, y, x, *, n, axis, transform=None):
    """The negative differences of the cotangent, padded with zeros at both ends."""
    if n == 0:
        return (ct,)
    if 0 in y.shape:  # the axis had at most n elements
        return (None,)
    width = [(0, 0)] * x.ndim
    width[axis] = (n, n)
    cotangent = diff(pad(ct, tuple(width)), n, axis)
    return (unbroadcast(-cotangent if n % 2 else cotangent, x),)


diff: Primitive = composite(
    "diff",
    _diff_decompose,
    impl=lambda xp, x, *, n=1, axis=-1: xp.diff(x, n, axis),
    vjp=_diff_vjp,
    jvp=lambda t, y, x, *, n, axis, transform: diff(t[0], n, axis),
    prepare=_diff_prepare,
    numpy=(np.diff,),
    batch=axes_rule("diff"),
    memory="may_alias",
    views=lambda x, *edges, n, **_: n == 0 and not edges,
    write_through=lambda parent, new, **_: new,
)

# ---- gradients ----


def _gradient_decompose(f, spacing=None, *, axis, edge_order=1) -> Value:
    """Central differences inside, one-sided differences at the two ends.

    ``spacing``: the distance between neighbours, or the coordinates along the axis.
    """
    (axis,) = normalize_axes(axis, f.ndim)
    if edge_order not in (1, 2):
        raise ShapeError(
            f"gradient: edge_order must be 1 or 2, found {edge_order}\n"
            "  write edge_order=1 or edge_order=2"
        )
    if type(f.shape[axis]) is int and f.shape[axis] < edge_order + 1:
        raise ShapeError(
            f"gradient: an axis of {f.shape[axis]} is too short: edge_order + 1 "
            "elements are needed\n"
            "  pass more samples, or a lower edge_order"
        )
    f = f if f.type.inexact else cast(f, np.float64)
    row = move_axes(f, (axis,), (-1,))
    if isinstance(spacing, Value) and spacing.shape:
        if spacing.shape != (f.shape[axis],):
            raise ShapeError(
                f"gradient: coordinates of shape {spacing.shape} for an axis of {f.shape[axis]}\n"
                "  pass one coordinate for each sample along the axis"
            )
        inside, weights = _uneven_differences(row, spacing, edge_order)
    else:
        inside, weights = _even_differences(row, 1.0 if spacing is None else spacing, edge_order)
    first, last = (cast_cotangent(expand_dims(_weighted_sum(row, w), -1), f.dtype) for w in weights)
    return move_axes(
        concatenate([first, cast_cotangent(inside, f.dtype), last], -1), (-1,), (axis,)
    )


def _weighted_sum(row: Value, weights: dict) -> Value:
    """The weighted sum of some elements; ``weights`` maps places to weights."""
    total = None
    for place, weight in weights.items():
        term = row[..., place] * weight
        total = term if total is None else total + term
    return total


def _even_differences(row: Value, h, edge_order: int) -> tuple:
    """(central differences, (weights for the first, for the last element)) for spacing ``h``."""
    inside = (row[..., 2:] - row[..., :-2]) / (2.0 * h)
    if edge_order == 1:
        return inside, ({0: -1 / h, 1: 1 / h}, {-2: -1 / h, -1: 1 / h})
    first, last = (-1.5 / h, 2 / h, -0.5 / h), (0.5 / h, -2 / h, 1.5 / h)
    return inside, (dict(enumerate(first)), dict(enumerate(last, -3)))


def _uneven_differences(row: Value, places: Value, edge_order: int) -> tuple:
    """Like ``_even_differences``, for elements at the coordinates ``places``."""
    places = places if places.type.inexact else cast(places, np.float64)
    steps = places[1:] - places[:-1]
    a, b = steps[:-1], steps[1:]
    inside = (
        row[..., :-2] * (-b / (a * (a + b)))
        + row[..., 1:-1] * ((b - a) / (a * b))
        + row[..., 2:] * (a / (b * (a + b)))
    )
    if edge_order == 1:
        h, k = steps[0], steps[-1]
        return inside, ({0: -1 / h, 1: 1 / h}, {-2: -1 / k, -1: 1 / k})
    a, b, c, d = steps[0], steps[1], steps[-2], steps[-1]
    first = (-(2 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b)))
    last = (d / (c * (c + d)), -(c + d) / (c * d), (2 * d + c) / (d * (c + d)))
    return inside, (dict(enumerate(first)), dict(enumerate(last, -3)))


def _gradient_impl(xp, f, *spacing, axis, edge_order=1):
    """np.gradient along one axis, without attributes where NumPy's own values are the same."""
    if edge_order == 1 and axis == 0 and f.ndim == 1:
        return xp.gradient(f, *spacing)  # NumPy's checks of attributes take as long as its ufuncs
    return xp.gradient(f, *spacing, axis=axis, edge_order=edge_order)


gradient = composite(
    "gradient",
    _gradient_decompose,
    impl=_gradient_impl,
    source=lambda write, f, *spacing, **attrs: write.call("np.gradient", f, *spacing, **attrs),
)

# ---- the trapezoidal rule ----


def _trapezoid_decompose(y, x=None, dx=1.0, *, axis=-1) -> Value:
    """The sum of the means of neighbours, each times their distance."""
    later, earlier = _split_neighbours(y, axis)
    if x is not None:
        dx = _diff_decompose(x, axis=axis if x.ndim > 1 else 0)
        if x.ndim == 1:
            shape = [1] * y.ndim
            shape[axis] = dx.shape[0]
            dx = reshape(dx, tuple(shape))
    return sum_(dx * (later + earlier) / 2.0, axis=axis)


def _trapezoid_prepare(y, x=None, dx=1.0, axis=-1):
    """np.trapezoid's call: the operands are (values, coordinates), or (values, None, distance)."""
    is_one = type(dx) is float and dx == 1.0
    operands = (y, x) if x is not None else (y,) if is_one else (y, None, dx)
    return operands, {"axis": as_size(axis)}


trapezoid = composite(
    "trapezoid",
    _trapezoid_decompose,
    impl=lambda xp, y, x=None, dx=1.0, *, axis=-1: xp.trapezoid(y, x, dx, axis),
    prepare=_trapezoid_prepare,
    numpy=(np.trapezoid,),
)
