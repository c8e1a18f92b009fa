"""Array forms: operations on small arrays as instructions on their elements.

A record names its form in the field ``scalar``. The form ``f(b, *operands, **attrs)`` takes arrays
of scalars, of dtype object, and gives one; it raises TypeError for attributes or dtypes that it
does not take.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from letir.kernels.loop_language import Builder
from letir.ops.indexing.index_expressions import fill_item

Scalars = np.ndarray  # of dtype object
ArrayForm = Callable[..., Scalars]


def array_form_of(name: str | None) -> ArrayForm | None:
    """The array form of this name, None if there is none."""
    return None if name is None else _FORMS.get(name)


def _matmul(b: Builder, x: Scalars, y: Scalars, **attrs: Any) -> Scalars:
    """A product of matrices or vectors, summed in the order of their elements."""
    _expect_plain(attrs)
    left = x if x.ndim > 1 else x[None]
    right = y if y.ndim > 1 else y[:, None]
    shape = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left = np.broadcast_to(left, shape + left.shape[-2:])
    right = np.broadcast_to(right, shape + right.shape[-2:])
    out = np.empty((*shape, left.shape[-2], right.shape[-1]), object)
    for *batch, i, j in np.ndindex(out.shape):
        row, column = left[(*batch, i)], right[(*batch, slice(None), j)]
        out[(*batch, i, j)] = _total(b, [b.mul(p, q) for p, q in zip(row, column, strict=True)])
    out = out if x.ndim > 1 else out[..., 0, :]
    return out if y.ndim > 1 else out[..., 0]


def _total(b: Builder, terms: Sequence) -> Any:
    if not terms:
        raise TypeError("an empty sum has no dtype")
    return reduce(b.add, terms)


def _expect_plain(attrs: dict) -> None:
    """Raise TypeError unless all attributes but ``axis`` and ``keepdims`` are absent."""
    if any(value is not None for name, value in attrs.items() if name not in ("axis", "keepdims")):
        raise TypeError(f"no array form with {attrs}")


def _sum(b: Builder, x: Scalars, *, axis=None, keepdims=False, **attrs: Any) -> Scalars:
    """The sum over one axis, several, or all."""
    _expect_plain(attrs)
    axes = range(x.ndim) if axis is None else axis if type(axis) is tuple else (axis,)
    summed = tuple([n % x.ndim for n in axes]) if x.ndim else ()
    kept = tuple([n for n in range(x.ndim) if n not in summed])
    rows = x.transpose(kept + summed).reshape([x.shape[n] for n in kept] + [-1])
    if rows.size and rows.ravel()[0].dtype.kind != "f":
        raise TypeError("sums of integers have another dtype")
    out = np.empty(rows.shape[:-1], object)
    for index in np.ndindex(out.shape):
        out[index] = _total(b, list(rows[index]))
    if keepdims:
        out = out.reshape([1 if n in summed else length for n, length in enumerate(x.shape)])
    return out


def _index_add(b: Builder, x: Scalars, new: Scalars, *, item) -> Scalars:
    """``x`` with ``new`` added at an index without arrays."""
    item, out = fill_item(item, ()), x.copy()
    part: Any = np.broadcast_to(new, np.shape(out[item]))
    if not part.shape:
        out[item] = b.add(out[item], part[()])
        return out
    view = out[item]
    for index in np.ndindex(part.shape):
        view[index] = b.add(view[index], part[index])
    return out


_FORMS: dict[str, ArrayForm] = {"matmul": _matmul, "sum": _sum, "index_add": _index_add}
