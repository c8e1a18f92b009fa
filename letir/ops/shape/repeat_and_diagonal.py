"""Operations that repeat elements or work on diagonals: roll, tile, repeat, tril, triu, diagonal,
diagflat, trace.

All are linear in their operand; most are composites of other operations.
"""

from typing import Any

import numpy as np

from letir.ast.attrs import Here
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive, SeveralBinds
from letir.ast.sizes.size import Size
from letir.ast.symbolic_sizes import is_static_shape, smaller_size
from letir.errors import ShapeError
from letir.ops.define.batch_rules import (
    batch_first,
    emit_op,
    emit_with_shape,
    flatten_examples,
    rank_of,
    shift_axes,
)
from letir.ops.define.records import composite, define, unbroadcast
from letir.ops.indexing.basic import assemble
from letir.ops.indexing.dynamic_slice import dynamic_slice
from letir.ops.linalg.matmul_einsum import einsum
from letir.ops.reductions.reductions import reduced_axis, sum_
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import as_size, broadcast_to, indices_below
from letir.ops.shape.transpose import array_as_tuple, int_or_tuple, move_axes, normalize_axes


def count_axes(a: Any) -> int:
    """The number of axes of an array, a list or a number that a user passed."""
    return a.ndim if hasattr(a, "ndim") else np.ndim(a)


def _integer_or_tuple(numbers):
    """Counts as an attribute: an int or a tuple of ints. A traced count records a guard."""
    if getattr(numbers, "shape", ()) or isinstance(numbers, list | tuple):
        return tuple([as_size(n) for n in numbers])
    return as_size(numbers)


def _whole_count(count: Any) -> Any:
    """A count as np.roll and np.repeat take it: a boolean or a float as an integer, with a guard.

    Arrays, and lists of counts but for their items, are returned unchanged.
    """
    if isinstance(count, list | tuple):
        return [_whole_count(n) for n in count]
    if isinstance(count, Value):
        is_other = count.dtype.kind in "fb" and not count.shape
    else:
        is_other = isinstance(count, bool | float | np.bool_ | np.floating)
    return int(count) if is_other else count


# ---- roll ----


def _roll_prepare(a, shift, axis=None):
    """np.roll, with as many shifts as axes."""
    shift, axis = _whole_count(shift), array_as_tuple(axis)
    shifts = shift if isinstance(shift, list | tuple) else (shift,)
    axes = int_or_tuple(axis) if isinstance(axis, list | tuple) else (axis,)
    sizes = (a.size,) if axis is None else a.shape
    if len(shifts) == 1:
        shifts = tuple(shifts) * len(axes)
    if any(map(_is_traced_shift, shifts)) and is_static_shape(sizes) and len(shifts) == len(axes):
        raise SeveralBinds(lambda: _rolled_by_operands(a, shifts, axes))
    shift, axis = _integer_or_tuple(shift), int_or_tuple(axis)
    if axis is None or (type(shift) is int and type(axis) is int):
        total = sum(shift) if type(shift) is tuple else shift  # by Python: no overflow
        if type(total) is int and total.bit_length() > 63 and axis is None and a.size:
            total %= a.size
        return (a,), {"shift": total, "axis": axis}
    if type(shift) is Size and (axis is None or type(axis) is int):
        return (a,), {"shift": shift, "axis": axis}
    shifts, axes = np.broadcast_arrays(shift, axis)
    return (a,), {"shift": tuple(shifts.tolist()), "axis": tuple(axes.tolist())}


def _is_traced_shift(shift) -> bool:
    """Whether a shift is a traced integer, which may be an operand."""
    return isinstance(shift, Value) and shift.dtype.kind == "i" and not shift.shape


def _rolled_by_operands(a, shifts: tuple, axes: tuple):
    """``a`` rolled along each axis in turn, or flattened for None, by shifts that are operands."""
    for shift, axis in zip(shifts, axes, strict=True):
        if axis is None:
            rolled = _rolled_by_operand(reshape(a, -1), shift, 0)
            a = reshape(rolled, a.shape)
        else:
            a = _rolled_by_operand(a, shift, normalize_axes(axis, a.ndim)[0])
    return a


def _rolled_by_operand(a, shift, axis: int):
    """``a`` rolled along one axis: a part of two copies of it in a row."""
    n = a.shape[axis]
    if not n:
        return a.copy()
    twice = PRIMITIVES["concatenate"]([a, a], axis)
    return dynamic_slice(twice, n - shift % n, size=n, axis=axis).copy()


def _roll_aval(x, *, shift, axis):
    """The operand's type."""
    for a in axis if type(axis) is tuple else (axis,):  # an axis may be given twice
        normalize_axes(() if a is None else a, x.ndim)
    return x.with_shape(x.shape)


def _inverse_shift(shift):
    """The shift that undoes ``shift``."""
    return tuple([-n for n in shift]) if type(shift) is tuple else -shift


@batch_first
def _batched_roll(args, mapped, *, shift, axis):
    """The batching rule of roll, which flattens each example if no axis is given."""
    (x,) = args
    if axis is None:
        return emit_with_shape(
            "reshape", emit_op("roll", (flatten_examples(x),), shift=shift, axis=1), x.shape, x
        )
    return emit_op("roll", args, shift=shift, axis=shift_axes(axis, rank_of(x, True)))


roll: Primitive = define(
    "roll",
    lambda xp, x, *, shift, axis=None: xp.roll(x, shift, axis),
    _roll_aval,
    vjp=lambda ct, y, x, *, shift, axis: (unbroadcast(roll(ct, _inverse_shift(shift), axis), x),),
    jvp=lambda t, y, x, *, shift, axis: roll(t[0], shift, axis),
    prepare=_roll_prepare,
    numpy=(np.roll,),
    sizes_in=("shift",),
    batch=_batched_roll,
    moves_elements=1,
    role="roll",
)

# ---- tile and repeat ----


def _tile_decompose(x, *, reps):
    """A new axis in front of each axis, broadcast and merged with it."""
    ndim = max(x.ndim, len(reps))
    shape = (1,) * (ndim - x.ndim) + x.shape
    reps = (1,) * (ndim - len(reps)) + reps
    pairs = list(zip(reps, shape, strict=True))
    with_unit_axes = reshape(x, tuple([n for _, size in pairs for n in (1, size)]))
    copies = broadcast_to(with_unit_axes, tuple([n for pair in pairs for n in pair]))
    shape = tuple([r * n for r, n in pairs])
    return reshape(copies, shape if shape != x.shape else x)


tile = composite(
    "tile",
    _tile_decompose,
    impl=lambda xp, x, *, reps: xp.tile(x, reps),
    prepare=lambda A, reps: ((A,), {"reps": one_or_more(reps)}),
    numpy=(np.tile,),
    sizes_in=("reps",),
    order="all",
    no_float_errors=True,
)


def one_or_more(numbers: Any) -> tuple:
    """One or more counts, sizes or axes as a tuple."""
    numbers = _integer_or_tuple(numbers)
    return numbers if type(numbers) is tuple else (numbers,)


def _repeats_of(repeats: Any) -> Any:
    """The counts of np.repeat: a single one may be a float."""
    return repeats if isinstance(repeats, list | tuple) else _whole_count(repeats)


def _repeat_decompose(x, *, repeats, axis=None):
    """A new axis, broadcast and merged; indexing where the counts differ."""
    if axis is None:
        x, axis = reshape(x, -1), 0
    (axis,) = normalize_axes(axis, x.ndim)
    n, front = x.shape[axis], (slice(None),) * axis
    if type(repeats) is tuple and len(repeats) > 1:
        if len(repeats) != n:
            raise ShapeError(
                f"repeat: {len(repeats)} counts for an axis of {n}\n"
                "  pass one count for each element, or one for all"
            )
        return x[(*front, np.repeat(np.arange(n), repeats))]
    (count,) = repeats if type(repeats) is tuple else (repeats,)
    shape = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
    copies = broadcast_to(x[(*front, slice(None), None)], shape)
    return reshape(copies, (*x.shape[:axis], n * count, *x.shape[axis + 1 :]))


repeat = composite(
    "repeat",
    _repeat_decompose,
    impl=lambda xp, x, *, repeats, axis=None: xp.repeat(
        x, list(repeats) if type(repeats) is tuple else repeats, axis
    ),
    prepare=lambda a, repeats, axis=None: (
        (a,),
        {"repeats": _integer_or_tuple(_repeats_of(repeats)), "axis": reduced_axis(a, axis)},
    ),
    numpy=(np.repeat,),
    sizes_in=("repeats",),
    order="all",
    no_float_errors=True,
)

# ---- triangles ----


def _triangle_prepare(m, k=0):
    """np.tril and np.triu, which repeat a 1-d array as the rows of a square matrix."""
    if count_axes(m) == 1:
        m = broadcast_to(m, (len(m), len(m)))
    return (m,), {"k": as_size(k)}


def _define_triangle(name: str, numpy, impl):
    """Register np.tril or np.triu."""

    def aval(x, *, k):
        if x.ndim < 2:
            raise ShapeError(
                f"{name}: needs an array with at least 2 axes, found {x.shape}\n"
                "  use np.diag to make a matrix of a vector"
            )
        return x

    return define(
        name,
        impl,
        aval,
        vjp=lambda ct, y, x, *, k: (emit_op(name, (ct,), k=k),),
        jvp=lambda t, y, x, *, k: emit_op(name, (t[0],), k=k),
        prepare=_triangle_prepare,
        numpy=(numpy,),
        batch=batch_first(lambda args, mapped, *, k: emit_op(name, args, k=k)),
        no_float_errors=True,
    )


tril = _define_triangle("tril", np.tril, lambda xp, x, *, k=0: xp.tril(x, k))
triu = _define_triangle("triu", np.triu, lambda xp, x, *, k=0: xp.triu(x, k))

# ---- diagonals ----


def _diagonal_places(n: int, m: int, offset: int, like: Value) -> tuple[Any, Any]:
    """(row indices, column indices) of a diagonal of an n x m matrix, for a program of ``like``."""
    count = smaller_size(n + min(offset, 0), m - max(offset, 0))
    if isinstance(count, int):
        steps = indices_below(max(count, 0), like)
    else:  # a symbolic size
        steps = PRIMITIVES["arange"](count)
    return steps + max(-offset, 0), steps + max(offset, 0)


def _diagonal_decompose(x, *, offset=0, axis1=0, axis2=1):
    """The elements of the diagonal, indexed after the two axes are moved to the end."""
    first, second = normalize_axes((axis1, axis2), x.ndim)
    last = move_axes(x, (first, second), (-2, -1))
    rows, columns = last.shape[-2:]
    if offset == 0 and rows == columns and type(rows) is not int:  # symbolic: no index array
        return einsum("...ii->...i", last)
    return last[(..., *_diagonal_places(*last.shape[-2:], offset, last))]


def _diagonal_prepare(a, offset=0, axis1=0, axis2=1):
    """np.diagonal."""
    return (a,), {"offset": as_size(offset), "axis1": as_size(axis1), "axis2": as_size(axis2)}


diagonal = composite(
    "diagonal",
    _diagonal_decompose,
    impl=lambda xp, x, *, offset=0, axis1=0, axis2=1: xp.diagonal(x, offset, axis1, axis2),
    prepare=_diagonal_prepare,
    numpy=(np.diagonal,),
    memory="may_alias",
    write_through="read_only",
    no_float_errors=True,
)


def _trace_decompose(x, *, offset=0, axis1=0, axis2=1, dtype=None):
    """The sum of the diagonal."""
    return sum_(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


def _trace_prepare(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """np.trace."""
    operands, attrs = _diagonal_prepare(a, offset, axis1, axis2)
    return operands, {**attrs, "dtype": None if dtype is None else np.dtype(dtype)}


trace = composite(
    "trace",
    _trace_decompose,
    impl=lambda xp, x, *, offset=0, axis1=0, axis2=1, dtype=None: xp.trace(
        x, offset, axis1, axis2, dtype
    ),
    prepare=_trace_prepare,
    numpy=(np.trace,),
    memory="may_alias",
)


def _diagflat_decompose(x, *, k=0):
    """The elements written to a diagonal of zeros."""
    x = reshape(x, -1)
    n = len(x) + abs(k)
    return assemble((n, n), (((Here(), Here()), x, _diagonal_places(n, n, k, x)),))


diagflat = composite(
    "diagflat",
    _diagflat_decompose,
    impl=lambda xp, x, *, k=0: xp.diagflat(x, k),
    prepare=lambda v, k=0: ((v,), {"k": as_size(k)}),
    numpy=(np.diagflat,),
    no_float_errors=True,
)
