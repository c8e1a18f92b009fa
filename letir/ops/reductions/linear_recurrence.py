"""``linear_recurrence``: sums in which each row also adds a multiple of the row before."""

from itertools import accumulate

import numpy as np

from letir.ast.types import ArrayType
from letir.errors import ShapeError
from letir.ops.define.batch_rules import (
    batch_first,
    broadcast_batches,
    move_from_front,
)
from letir.ops.define.records import (
    add_terms,
    broadcast_tangent,
    define,
    unbroadcast,
)
from letir.ops.shape.concatenate_stack_split import concatenate
from letir.ops.shape.shape_and_creation import zeros_like
from letir.ops.shape.unit_axes_and_flip import flip


def _linear_recurrence_impl(xp, a, b):
    """s[0] = b[0], s[i] = b[i] + a[i - 1] * s[i - 1], row by row."""
    out = xp.array(b, dtype=xp.result_type(a, b), copy=True)
    if out.ndim == 1 and out.size and out.dtype == xp.float64 and hasattr(out, "tolist"):
        first, *rest = out.tolist()  # Python's numbers take a tenth of the time
        steps = zip(a.tolist(), rest, strict=True)
        sums = accumulate(steps, lambda before, step: step[1] + step[0] * before, initial=first)
        result = xp.array([*sums])
        if xp.isfinite(result).all():
            return result  # otherwise NumPy has to report errors
    for i in range(1, len(out)):  # slices, since NumPy rounds products of complex scalars otherwise
        out[i : i + 1] += a[i - 1 : i] * out[i - 1 : i]
    return out


def _linear_recurrence_aval(a, b):
    """The shape of ``b``; the coefficients ``a`` have one row fewer."""
    if a.shape[1:] != b.shape[1:] or len(a.shape) != len(b.shape):
        raise ShapeError(
            f"linear_recurrence: coefficients of shape {a.shape} do not fit rows of {b.shape}\n"
            "  all axes but the first must be equal"
        )
    return ArrayType(np.result_type(a.dtype, b.dtype), b.shape)


def _linear_recurrence_vjp(ct, s, a, b):
    """The cotangents by the same recurrence, run from the other end."""
    by_b = flip(linear_recurrence(flip(a, 0), flip(ct, 0)), 0)
    return unbroadcast(by_b[1:] * s[:-1], a), unbroadcast(by_b, b)


def _linear_recurrence_jvp(tangents, s, a, b):
    """The tangent by the same recurrence, driven by the tangents of ``a`` and ``b``."""
    by_a, by_b = tangents
    first = zeros_like(s[:1])
    pushed = None if by_a is None else concatenate([first, by_a * s[:-1]])
    return broadcast_tangent(linear_recurrence(a, add_terms((pushed, by_b))), s)


@batch_first
def _batched_recurrence(args, mapped):
    """The batching rule of linear_recurrence, with the batch as the axis after the rows."""
    a, b = (move_from_front(arg, 1) for arg in broadcast_batches(args, mapped))
    return move_from_front(linear_recurrence(a, b), 1)


linear_recurrence = define(
    "linear_recurrence",
    _linear_recurrence_impl,
    _linear_recurrence_aval,
    vjp=_linear_recurrence_vjp,
    jvp=_linear_recurrence_jvp,
    batch=_batched_recurrence,
    source=lambda write, a, b: f"{write.helper(_RECURRENCE)}({a}, {b})",
)


_RECURRENCE = '''
def linear_recurrence(a, b):
    """s[0] = b[0], s[i] = b[i] + a[i - 1] * s[i - 1]."""
    out = np.array(b, dtype=np.result_type(a, b))
    for i in range(1, len(out)):
        out[i : i + 1] += a[i - 1 : i] * out[i - 1 : i]
    return out
'''
