"""Integers that encode several integers: unravel_index, ravel_multi_index, packbits, unpackbits.

They have no derivatives.
"""

import math

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import SeveralBinds
from letir.ast.sizes.size import Size
from letir.ast.types import ArrayType, broadcast_shapes
from letir.errors import DTypeError
from letir.ops.define.batch_rules import (
    align_ranks,
    batch_first,
    emit_op,
    flatten_examples,
    rank_of,
    shift_axes,
)
from letir.ops.define.records import DISCRETE, define
from letir.ops.indexing.take import as_indices, known_mode
from letir.ops.shape.repeat_and_diagonal import one_or_more
from letir.ops.shape.shape_and_creation import as_size
from letir.ops.shape.transpose import normalize_axes

# ---- flat and multi-dimensional indices ----


def _require_integers(name: str, *types) -> None:
    """Raise DTypeError unless all operands are integers."""
    for aval in types:
        if aval.dtype.kind not in "biu":
            raise DTypeError(
                f"{name}: indices must be integers, found {aval}\n  convert them with .astype(int)"
            )


def _unravel_aval(indices, *, shape, order):
    """One index array for each axis."""
    _require_integers("unravel_index", indices)
    return (ArrayType(np.intp, indices.shape),) * len(shape)


def _unravel_prepare(indices, shape, order="C"):
    """np.unravel_index."""
    indices, shape = as_indices(indices), one_or_more(shape)
    if isinstance(indices, Value) and any(type(n) is Size for n in shape) and order in ("C", "F"):
        raise SeveralBinds(lambda: _divided_by_sizes(indices, shape, order))
    return (indices,), {"shape": shape, "order": order}


def _divided_by_sizes(indices: Value, shape: tuple, order: str) -> tuple:
    """The indices for each axis, divided by symbolic sizes; records a guard that they exist."""
    count = math.prod(shape)
    if not bool(((indices >= 0) & (indices < count)).all()):
        raise ValueError(f"an index is out of bounds for array with size {count}")
    rest, result = indices.astype(np.intp), []
    for n in reversed(shape) if order == "C" else shape:
        result.append(rest % n)
        rest = rest // n
    return tuple(result[::-1] if order == "C" else result)


unravel_index = define(
    "unravel_index",
    lambda xp, indices, *, shape, order="C": xp.unravel_index(indices, shape, order),
    _unravel_aval,
    vjp=DISCRETE,
    jvp=DISCRETE,
    prepare=_unravel_prepare,
    results=lambda *, shape, order: len(shape),
    numpy=(np.unravel_index,),
    batch=batch_first(lambda args, mapped, **attrs: emit_op("unravel_index", args, **attrs)),
    memory="may_alias",
    raises=True,
)


def _ravel_aval(*indices, dims, mode, order):
    """One flat index for each element of the broadcast indices."""
    _require_integers("ravel_multi_index", *indices)
    return ArrayType(np.intp, broadcast_shapes(*[aval.shape for aval in indices]))


def _ravel_prepare(multi_index, dims, mode="raise", order="C"):
    """np.ravel_multi_index, with one mode, or one for each axis."""
    modes = tuple(map(known_mode, mode)) if type(mode) is tuple else known_mode(mode)
    indices = tuple([as_indices(index) for index in multi_index])
    return indices, {"dims": one_or_more(dims), "mode": modes, "order": order}


ravel_multi_index = define(
    "ravel_multi_index",
    lambda xp, *indices, dims, mode="raise", order="C": xp.ravel_multi_index(
        indices, dims, mode, order
    ),
    _ravel_aval,
    vjp=DISCRETE,
    jvp=DISCRETE,
    prepare=_ravel_prepare,
    numpy=(np.ravel_multi_index,),
    source=lambda write, *indices, **attrs: write.numpy_call(f"({', '.join(indices)},)", **attrs),
    batch=batch_first(
        lambda args, mapped, **attrs: emit_op(
            "ravel_multi_index", align_ranks(args, mapped), **attrs
        )
    ),
    raises=True,
    sizes_in=("dims",),
)

# ---- bits ----


def _bits_aval(name: str, count_of):
    """The type rule of packbits or unpackbits: uint8, ``count_of(n)`` along the axis."""

    def aval(x, *, axis, **attrs):
        if x.dtype.kind not in ("b", "i", "u") or (name == "unpackbits" and x.dtype != np.uint8):
            raise DTypeError(
                f"{name}: expected booleans or unsigned bytes, found {x}\n"
                "  convert with .astype(bool)"
            )
        if axis is None:
            return ArrayType(np.uint8, (count_of(x.size, **attrs),))
        (axis,) = normalize_axes(axis, x.ndim)
        count = count_of(x.shape[axis], **attrs)
        return ArrayType(np.uint8, (*x.shape[:axis], count, *x.shape[axis + 1 :]))

    return aval


def _bits_batch(name: str):
    """The batching rule of packbits or unpackbits."""

    def rule(args, mapped, *, axis, **attrs):
        (x,) = args
        if axis is None:
            return emit_op(name, (flatten_examples(x),), axis=1, **attrs)
        return emit_op(name, args, axis=shift_axes(axis, rank_of(x, True)), **attrs)

    return batch_first(rule)


def _unpacked_count(n: int, *, count, bitorder) -> int:
    """The number of bits unpacked from ``n`` bytes; a negative ``count`` drops bits at the end."""
    if count is None:
        return 8 * n
    return count if count >= 0 else 8 * n + count


packbits = define(
    "packbits",
    lambda xp, x, *, axis=None, bitorder="big": xp.packbits(x, axis=axis, bitorder=bitorder),
    _bits_aval("packbits", lambda n, *, bitorder: -(-n // 8)),
    vjp=DISCRETE,
    jvp=DISCRETE,
    prepare=lambda a, axis=None, bitorder="big": (
        (a,),
        {"axis": None if axis is None else as_size(axis), "bitorder": bitorder},
    ),
    numpy=(np.packbits,),
    batch=_bits_batch("packbits"),
)
unpackbits = define(
    "unpackbits",
    lambda xp, x, *, axis=None, count=None, bitorder="big": xp.unpackbits(
        x, axis=axis, count=count, bitorder=bitorder
    ),
    _bits_aval("unpackbits", _unpacked_count),
    vjp=DISCRETE,
    jvp=DISCRETE,
    prepare=lambda a, axis=None, count=None, bitorder="big": (
        (a,),
        {
            "axis": None if axis is None else as_size(axis),
            "count": None if count is None else as_size(count),
            "bitorder": bitorder,
        },
    ),
    numpy=(np.unpackbits,),
    batch=_bits_batch("unpackbits"),
)
