"""Convolution and correlation of two 1-d arrays: convolve, correlate.

The derivative of a convolution with respect to one operand is a convolution of the cotangent with
the other operand, reversed. The result of every mode is a slice of the result of ``mode="full"``.
"""

import numpy as np

from letir.ast.builder import Value
from letir.ast.types import ArrayType, Size
from letir.errors import MissingRule, ShapeError
from letir.ops.define.batch_rules import batch_first, broadcast_batch, emit_op, first_mapped
from letir.ops.define.records import (
    add_terms,
    array_dtype,
    broadcast_tangent,
    composite,
    define,
    takes_gradient,
    unbroadcast,
)
from letir.ops.elementwise.rounding_sign_parts import conj
from letir.ops.linalg.matmul_einsum import einsum
from letir.ops.shape.padding import pad
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.unit_axes_and_flip import expand_dims, flip

_MODES = ("valid", "same", "full")  # NumPy also takes their positions, 0 to 2


def _mode_of(caller: str, mode) -> str:
    """The name of a mode, which may be given as NumPy's number for it."""
    if type(mode) is int and 0 <= mode < 3:
        return _MODES[mode]
    if mode not in _MODES:
        raise ShapeError(
            f"{caller}: mode must be 'full', 'same' or 'valid', found {mode!r}\n"
            "  write mode='full' for all overlaps, 'same' or 'valid'"
        )
    return mode


def _result_length(n: int, m: int, mode: str) -> int:
    """The length of the convolution of ``n`` and ``m`` elements."""
    if mode == "full":
        return n + m - 1
    longer, shorter = (n, m) if n >= m else (m, n)
    return longer if mode == "same" else longer - shorter + 1


def _mode_start(n: int, m: int, mode: str) -> int:
    """The index in the full convolution at which the result of ``mode`` begins."""
    return (n + m - 1 - _result_length(n, m, mode)) // 2


def _convolve_aval(a, v, *, mode):
    """A 1-d array of the promoted dtype."""
    if a.ndim > 1 or v.ndim > 1:
        raise ShapeError(
            f"convolve: operands must have one axis, found {a.shape} and {v.shape}\n"
            "  convolve rows one by one, or use scipy.signal.convolve"
        )
    if 0 in (a.size, v.size):
        raise ShapeError("convolve: an operand is empty\n  pass at least one number")
    return ArrayType(array_dtype(a, v), (_result_length(a.size, v.size, mode),))


def _element_count(x) -> Size | int:
    """The number of elements of an operand; 1 for a Python number."""
    if not isinstance(x, Value):
        return 1
    if x.type is None:
        raise MissingRule(
            "convolve: its derivative needs the sizes of its operands\n"
            "  give the program types with known sizes: letir.retype"
        )
    return x.size


def _convolve_vjp(ct, y, a, v, *, mode):
    """The correlation of the cotangent, padded to full length, with the other operand."""
    n, m = _element_count(a), _element_count(v)
    first = _mode_start(n, m, mode)
    full = (
        ct
        if mode == "full"
        else pad(ct, ((first, n + m - 1 - first - _result_length(n, m, mode)),))
    )
    return tuple(
        unbroadcast(_reshape_like(_correlate_valid(full, other), x), x)
        if takes_gradient(x)
        else None
        for x, other in ((a, v), (v, a))
    )


def _correlate_valid(full: Value, other) -> Value:
    """The correlation of ``full`` with ``other``, at every place where it fits."""
    if not isinstance(other, Value) or not other.shape:
        return full * other
    return convolve(full, flip(other, 0), mode="valid")


def _reshape_like(row: Value, x: Value) -> Value:
    """``row``, reshaped to 0-d if the operand ``x`` is 0-d."""
    return row if x.shape else reshape(row, x)


def _convolve_jvp(tangents, y, a, v, *, mode):
    """The product rule."""
    by_a, by_v = tangents
    terms = (
        None if by_a is None else convolve(by_a, v, mode=mode),
        None if by_v is None else convolve(a, by_v, mode=mode),
    )
    return broadcast_tangent(add_terms(terms), y)


@batch_first
def _convolve_batch(args, mapped, *, mode):
    """The batching rule: windows of the longer operand times the shorter, reversed."""
    like = first_mapped(args, mapped)
    # both operands are broadcast over the batch, so that one formula fits all cases
    rows = [_row_of(x, has_axis, like) for x, has_axis in zip(args, mapped, strict=True)]
    long, short = sorted(rows, key=lambda row: -row.shape[1])
    n, m = long.shape[1], short.shape[1]
    places = _mode_start(n, m, mode) + np.arange(_result_length(n, m, mode))[:, None] + np.arange(m)
    windows = emit_op("pad", (long,), width=((0, 0), (m - 1, m - 1)), value=0)[:, places]
    return einsum("blm,bm->bl", windows, flip(short, 1))


def _row_of(x, is_mapped: bool, like: Value) -> Value:
    """An operand with a batch axis, each example as a row."""
    x = broadcast_batch(x, is_mapped, like)
    return x if x.ndim == 2 else expand_dims(x, 1)


convolve = define(
    "convolve",
    lambda xp, a, v, *, mode="full": xp.convolve(a, v, mode),
    _convolve_aval,
    vjp=_convolve_vjp,
    jvp=_convolve_jvp,
    prepare=lambda a, v, mode="full": ((a, v), {"mode": _mode_of("convolve", mode)}),
    numpy=(np.convolve,),
    batch=_convolve_batch,
)

# ---- correlation ----


def _correlate_decompose(a, v, *, mode="valid") -> Value:
    """The convolution with the second operand reversed and conjugated."""
    if a.ndim != 1 or v.ndim != 1:
        raise ShapeError(
            f"correlate: operands must have one axis, found {a.shape} and {v.shape}\n"
            "  convolve rows one by one, or use scipy.signal.convolve"
        )
    n, m = a.shape[0], v.shape[0]
    full = convolve(a, flip(conj(v) if v.dtype.kind == "c" else v, 0))
    if mode == "full":
        return full
    # if the second is longer, NumPy exchanges the operands and reverses the result
    first = (n + m - _result_length(n, m, mode) - (m <= n)) // 2
    return full[first : first + _result_length(n, m, mode)]


correlate = composite(
    "correlate",
    _correlate_decompose,
    impl=lambda xp, a, v, *, mode="valid": xp.correlate(a, v, mode),
    prepare=lambda a, v, mode="valid": ((a, v), {"mode": _mode_of("correlate", mode)}),
    numpy=(np.correlate,),
)
