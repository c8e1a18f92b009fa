"""Sorting: sort, argsort, partition, argpartition, lexsort.

Each tangent moves with its element. In the derivative equal elements keep their order, whatever the
kind of sort: it is the derivative for one way to break the tie. nan sorts after all numbers, and
its tangent moves with it too.
"""

import numpy as np

from letir.ast.builder import Value
from letir.ast.types import ArrayType
from letir.errors import ShapeError
from letir.ops.as_numpy.arrays import list_call
from letir.ops.define.batch_rules import (
    along_axis_rule,
    batch_first,
    broadcast_batches,
    emit_op,
    shift_axes,
)
from letir.ops.define.records import DISCRETE, define, unbroadcast
from letir.ops.indexing.basic import assemble
from letir.ops.indexing.index_expressions import item_along, item_with_places
from letir.ops.indexing.take import take_along_axis
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import as_size
from letir.ops.shape.transpose import normalize_axes

# NumPy reads the first letter, in either case
_KINDS = {"q": "quicksort", "h": "heapsort", "m": "mergesort", "s": "stable"}


def _sort_prepare(a, axis=-1, kind=None, order=None, *, stable=None):
    """np.sort and np.argsort; ``stable=True`` means ``kind="stable"``."""
    if order is not None:
        raise ShapeError(
            "sort: order= names fields of a structured array; this array has none\n"
            "  leave order= out"
        )
    if kind is not None and stable is not None:
        raise ShapeError("sort: kind and stable cannot be given together\n  leave kind out")
    if kind is not None and str(kind)[:1].lower() not in _KINDS:
        raise ShapeError(
            f"sort: kind={kind!r} is not one of {', '.join(_KINDS.values())}\n"
            "  leave kind out: all of them give the same result"
        )
    kind = "stable" if stable else kind and _KINDS[kind[:1].lower()]
    return (a,), {"axis": None if axis is None else as_size(axis), "kind": kind}


def _sorted_type(x, *, axis, **_):
    """The operand's type, flattened if ``axis`` is None."""
    if axis is None:
        return x.with_shape((x.size,))
    normalize_axes(axis, x.ndim)
    return x.with_shape(x.shape)


def _sources_type(x, *, axis, **_):
    """Indices in the shape of the operand, flattened if ``axis`` is None or it is a number."""
    if axis is None or not x.shape:
        return ArrayType(np.intp, (x.size,))
    normalize_axes(axis, x.ndim)
    return ArrayType(np.intp, x.shape)


def _scatter_back(ct: Value, sources: Value, axis) -> Value:
    """``ct`` moved back to the positions ``sources`` from which sorting took the elements."""
    axis = 0 if axis is None else axis
    arrays, item = item_with_places(item_along(ct, sources, axis))
    return assemble(ct, ((item, ct, arrays),))


def _sort_vjp(ct, y, x, *, axis, kind):
    """Each cotangent at the position that its element came from."""
    by_row = _scatter_back(ct, argsort(x, axis, "stable"), axis)
    return (unbroadcast(reshape(by_row, x) if axis is None else by_row, x),)


def _sort_jvp(tangents, y, x, *, axis, kind):
    """Each tangent at the position to which its element moves."""
    return take_along_axis(tangents[0], argsort(x, axis, "stable"), axis)


def _call_sort(xp, name: str, x, axis, **attrs):
    """``xp.sort`` or ``xp.argsort`` with the keywords that are not None."""
    options = {key: value for key, value in attrs.items() if value is not None}
    return getattr(xp, name)(x, axis=axis, **options)


sort = define(
    "sort",
    lambda xp, x, *, axis=-1, kind=None: _call_sort(xp, "sort", x, axis, kind=kind),
    _sorted_type,
    vjp=_sort_vjp,
    jvp=_sort_jvp,
    prepare=_sort_prepare,
    numpy=(np.sort,),
    batch=along_axis_rule("sort"),
    order="all",
    no_float_errors=True,
)
argsort = define(
    "argsort",
    lambda xp, x, *, axis=-1, kind=None: _call_sort(xp, "argsort", x, axis, kind=kind),
    _sources_type,
    vjp=DISCRETE,
    jvp=DISCRETE,
    prepare=_sort_prepare,
    numpy=(np.argsort,),
    batch=along_axis_rule("argsort"),
    no_float_errors=True,
)

# ---- partition ----


def _partition_prepare(a, kth, axis=-1, kind="introselect", order=None):
    """np.partition and np.argpartition."""
    if order is not None or kind != "introselect":
        raise ShapeError(
            "partition: only kind='introselect' without order= is recorded\n"
            "  leave kind and order out"
        )
    kth = tuple(map(as_size, kth)) if np.ndim(kth) else as_size(kth)
    return (a,), {"kth": kth, "axis": None if axis is None else as_size(axis)}


def _partition_sources(x, y, axis) -> Value:
    """The position in ``x`` of each element of its partition ``y``, found by sorting both."""
    # not np.argpartition, which may order a part in another way than np.partition does
    along = 0 if axis is None else axis
    ranks = argsort(argsort(y, along, "stable"), along)
    return take_along_axis(argsort(x, axis, "stable"), ranks, along)


def _partition_vjp(ct, y, x, *, kth, axis):
    """Each cotangent at the position that its element came from."""
    by_row = _scatter_back(ct, _partition_sources(x, y, axis), axis)
    return (unbroadcast(reshape(by_row, x) if axis is None else by_row, x),)


def _partition_jvp(tangents, y, x, *, kth, axis):
    """Each tangent at the position to which its element moves."""
    return take_along_axis(tangents[0], _partition_sources(x, y, axis), axis)


partition = define(
    "partition",
    lambda xp, x, *, kth, axis=-1: xp.partition(x, kth, axis),
    _sorted_type,
    vjp=_partition_vjp,
    jvp=_partition_jvp,
    prepare=_partition_prepare,
    numpy=(np.partition,),
    batch=along_axis_rule("partition"),
    no_float_errors=True,
)
argpartition = define(
    "argpartition",
    lambda xp, x, *, kth, axis=-1: xp.argpartition(x, kth, axis),
    _sources_type,
    vjp=DISCRETE,
    jvp=DISCRETE,
    prepare=_partition_prepare,
    numpy=(np.argpartition,),
    batch=along_axis_rule("argpartition"),
    no_float_errors=True,
)

# ---- lexsort ----


def _lexsort_aval(*keys, axis):
    """Indices in the common shape of the keys."""
    if len({key.shape for key in keys}) != 1:
        listed = ", ".join(str(key.shape) for key in keys) or "none"
        raise ShapeError(
            f"lexsort: all keys must have one shape, found {listed}\n  pass keys of equal shapes"
        )
    if keys[0].ndim:
        normalize_axes(axis, keys[0].ndim)
    return ArrayType(np.intp, keys[0].shape)


@batch_first
def _batched_lexsort(args, mapped, *, axis):
    """The batching rule of lexsort, which needs the batch on every key."""
    keys = broadcast_batches(args, mapped)
    return emit_op("lexsort", keys, axis=shift_axes(axis, keys[0].ndim - 1))


lexsort = define(
    "lexsort",
    lambda xp, *keys, axis=-1: xp.lexsort(keys, axis),
    _lexsort_aval,
    vjp=DISCRETE,
    jvp=DISCRETE,
    prepare=lambda keys, axis=-1: (tuple(keys), {"axis": as_size(axis)}),
    numpy=(np.lexsort,),
    source=list_call,
    batch=_batched_lexsort,
    no_float_errors=True,
)
