"""Searches in sorted arrays: searchsorted, digitize.

The results are integers, without derivatives. A batch of values is searched by one call; a batch of
sorted arrays needs one call for each array.
"""

import numpy as np

from letir.ast.primitive import Primitive
from letir.ast.types import ArrayType
from letir.errors import ShapeError
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.ops.define.batch_rules import batch_first, emit_op
from letir.ops.define.records import DISCRETE, define


def _search_batch(name: str, values: int, record):
    """The batching rule of a search for the elements of operand number ``values``."""
    one_by_one = LoopOverExamples(record)

    def rule(args, mapped, **attrs):
        return emit_op(name, args, **attrs)

    def batch(args, axes, /, *, transform=None, **attrs):
        if all(axis is None for i, axis in enumerate(axes) if i != values):
            return batch_first(rule)(args, axes, **attrs)
        return one_by_one(args, axes, transform=transform, **attrs)

    return batch


def _check_one_axis(name: str, aval: ArrayType) -> None:
    """Raise ShapeError unless the sorted array has one axis."""
    if aval.ndim != 1:
        raise ShapeError(
            f"{name}: the sorted array must have one axis, found shape {aval.shape}\n"
            "  search in one row at a time, or ravel it"
        )


def _searchsorted_aval(a, v, sorter=None, *, side):
    """Indices in the shape of the values."""
    _check_one_axis("searchsorted", a)
    if side not in ("left", "right"):
        raise ShapeError(
            f"searchsorted: side is 'left' or 'right', found {side!r}\n"
            "  write side='left' or side='right'"
        )
    return ArrayType(np.intp, v.shape)


def _searchsorted_prepare(a, v, side="left", sorter=None):
    """np.searchsorted."""
    return (a, v) if sorter is None else (a, v, sorter), {"side": side}


searchsorted: Primitive = define(
    "searchsorted",
    lambda xp, a, v, sorter=None, *, side="left": xp.searchsorted(a, v, side, sorter),
    _searchsorted_aval,
    vjp=DISCRETE,
    jvp=DISCRETE,
    prepare=_searchsorted_prepare,
    numpy=(np.searchsorted,),
    batch=_search_batch("searchsorted", 1, lambda: searchsorted),
    source=lambda write, a, v, *sorter, side: write.numpy_call(
        a, v, *[f"sorter={s}" for s in sorter], side=side
    ),
    no_float_errors=True,
)


def _digitize_aval(x, bins, *, right):
    """Indices in the shape of the values."""
    _check_one_axis("digitize", bins)
    return ArrayType(np.intp, x.shape)


digitize: Primitive = define(
    "digitize",
    lambda xp, x, bins, *, right=False: xp.digitize(x, bins, right),
    _digitize_aval,
    vjp=DISCRETE,
    jvp=DISCRETE,
    prepare=lambda x, bins, right=False: ((x, bins), {"right": bool(right)}),
    numpy=(np.digitize,),
    batch=_search_batch("digitize", 0, lambda: digitize),
    raises=True,
    no_float_errors=True,
)
