"""Array forms: operations on small arrays as instructions on their elements.

An operation's record names its form in the field ``scalar``. The form ``f(b, *operands, **attrs)``
takes and returns NumPy arrays of dtype object, whose elements are scalars of the loop language. It
raises TypeError for attributes or dtypes that it does not support.
"""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from letir.kernels.loop_builder import Builder
from letir.kernels.scalar_forms import form_of
from letir.ops.indexing.index_expressions import fill_item
from letir.ops.linalg.matmul_einsum import parse_subscripts

Scalars = np.ndarray  # has dtype object
ArrayForm = Callable[..., Scalars]
_MAX_TERMS = 256  # products of elements in the sums of an einsum


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
        out[(*batch, i, j)] = _sum_in_order(
            b, [b.mul(p, q) for p, q in zip(row, column, strict=True)]
        )
    out = out if x.ndim > 1 else out[..., 0, :]
    return out if y.ndim > 1 else out[..., 0]


def _sum_in_order(b: Builder, terms: Sequence) -> Any:
    if not terms:
        raise TypeError("an empty sum has no dtype")
    total = reduce(b.add, terms)
    # NumPy's sums begin with 0.0, so that no sum is -0.0
    return b.add(total, b.number(0, total.dtype)) if total.dtype.kind == "f" else total


def _expect_plain(attrs: dict) -> None:
    """Raise TypeError unless all attributes but ``axis`` and ``keepdims`` are absent."""
    if any(value is not None for name, value in attrs.items() if name not in ("axis", "keepdims")):
        raise TypeError(f"no array form with {attrs}")


def _reduction_form(finish: Callable[[Builder, list], Any]) -> ArrayForm:
    """The form of a reduction over axes: ``finish(b, row)`` reduces one row of scalars."""

    def form(b: Builder, x: Scalars, *, axis=None, keepdims=False, **attrs: Any) -> Scalars:
        _expect_plain(attrs)
        axes = range(x.ndim) if axis is None else axis if type(axis) is tuple else (axis,)
        reduced = tuple([n % x.ndim for n in axes]) if x.ndim else ()
        remaining = tuple([n for n in range(x.ndim) if n not in reduced])
        rows = x.transpose(remaining + reduced).reshape([x.shape[n] for n in remaining] + [-1])
        out = np.empty(rows.shape[:-1], object)
        for index in np.ndindex(out.shape):
            out[index] = finish(b, list(rows[index]))
        if keepdims:
            out = out.reshape([1 if n in reduced else length for n, length in enumerate(x.shape)])
        return out

    return form


def _sum_of_row(b: Builder, row: list) -> Any:
    """The sum of a row, in NumPy's result dtype: 64 bits for smaller integers and booleans."""
    kind = row[0].dtype.kind
    return _sum_in_order(b, row if kind == "f" else [b.convert(x, _SUMS[kind]) for x in row])


def _mean(b: Builder, row: list) -> Any:
    row = row if row[0].dtype.kind == "f" else [b.convert(x, "f8") for x in row]
    return b.div(_sum_in_order(b, row), b.number(len(row), row[0].dtype))


def _place_of_extreme(name: str) -> Callable[[Builder, list], Any]:
    """The form of argmax or argmin: the index of the first nan, else of the first extremum."""

    def finish(b: Builder, row: list) -> Any:
        best, place = row[0], b.convert(b.number(0, "i8"), "i8")
        for n, x in enumerate(row[1:], start=1):
            is_better = b.let(name, x, best)
            if x.dtype.kind == "f":
                is_nan = b.let("ne", best, best)
                is_better = b.let("or", is_better, b.let("ne", x, x))
                is_better = b.select(is_nan, b.number(False, "?"), is_better)
            best, place = (
                b.select(is_better, x, best),
                b.select(is_better, b.number(n, "i8"), place),
            )
        return place

    return finish


def _extreme_form(name: str) -> Callable[[Builder, list], Any]:
    """The form of a maximum or minimum of a row, from the one of two numbers."""
    form: Any = form_of(name)
    return lambda b, row: reduce(lambda x, y: form(b, x, y), row)


def _cumsum(b: Builder, x: Scalars, *, axis=None, **attrs: Any) -> Scalars:
    """Cumulative sums along an axis, or of the flattened array."""
    _expect_plain(attrs)
    x = x.reshape(-1) if axis is None else np.atleast_1d(x)
    out = np.moveaxis(x.copy(), axis or 0, 0)
    if x.ravel()[0].dtype.kind != "f":
        raise TypeError("NumPy computes it in another dtype")
    for n in range(1, len(out)):
        for index in np.ndindex(out.shape[1:]):
            out[(n, *index)] = b.add(out[(n - 1, *index)], out[(n, *index)])
    return np.moveaxis(out, 0, axis or 0)


def _full(b: Builder, value: Scalars, *, shape: tuple, dtype: np.dtype) -> Scalars:
    """An array filled with one value, which the kernel converts to the dtype."""
    return np.broadcast_to(value, shape)


def _outer(b: Builder, x: Scalars, y: Scalars) -> Scalars:
    """``np.outer``: the products of all pairs of elements."""
    out = np.empty((x.size, y.size), object)
    for (i, p), (j, q) in product(enumerate(x.ravel()), enumerate(y.ravel())):
        out[i, j] = b.mul(p, q)
    return out


def _dot(b: Builder, x: Scalars, y: Scalars) -> Scalars:
    """``np.dot``: a product of matrices or vectors, or by a number."""
    if x.ndim > 2 or y.ndim > 2:
        raise TypeError("np.dot of several axes")
    if x.ndim and y.ndim:
        return _matmul(b, x, y)
    pairs = np.broadcast(x, y)
    out = np.empty(pairs.size, object)
    out[:] = [b.mul(p, q) for p, q in pairs]
    return out.reshape(pairs.shape)


def _einsum(b: Builder, *xs: Scalars, subscripts: str, optimize: Any = False) -> Scalars:
    """``np.einsum`` of real arrays, summed in the order of the elements."""
    if len(xs) < 2 or any(not x.size or x.ravel()[0].dtype.kind != "f" for x in xs):
        raise TypeError("a view, an empty sum, or sums in another dtype")
    inputs, out = parse_subscripts(subscripts, [x.ndim for x in xs])
    operands = list(zip(inputs, xs, strict=True))
    sizes: dict[str, int] = {}
    for labels, x in operands:
        sizes |= dict(zip(labels, x.shape, strict=True))
    if any(x.shape != tuple([sizes[c] for c in labels]) for labels, x in operands):
        raise TypeError("axes of length 1 that are broadcast")
    if math.prod(sizes.values()) > _MAX_TERMS or not _is_c_order(subscripts, xs):
        raise TypeError("a large sum, or results in another memory order")
    order = out + "".join([c for c in sizes if c not in out])
    rows: dict[tuple[int, ...], list] = {}
    for place in np.ndindex(*[sizes[c] for c in order]):
        at = dict(zip(order, place, strict=True))
        factors = [x[tuple([at[c] for c in labels])] for labels, x in operands]
        rows.setdefault(place[: len(out)], []).append(reduce(b.mul, factors))
    result = np.empty([sizes[c] for c in out], object)
    for place, terms in rows.items():
        result[place] = _sum_in_order(b, terms)
    return result


def _is_c_order(subscripts: str, xs: Sequence[Scalars]) -> bool:
    """Whether ``np.einsum`` lays out its result in the order of C, for operands that are so."""
    small = [np.zeros([min(n, 2) for n in x.shape]) for x in xs]
    return np.einsum(subscripts, *small).flags.c_contiguous


def _index_add(b: Builder, x: Scalars, new: Scalars, *, item) -> Scalars:
    """``x`` with ``new`` added at a basic index (integers and slices)."""
    item, out = fill_item(item, ()), x.copy()
    part: Any = np.broadcast_to(new, np.shape(out[item]))
    if not part.shape:
        out[item] = b.add(out[item], part[()])
        return out
    view = out[item]
    for index in np.ndindex(part.shape):
        view[index] = b.add(view[index], part[index])
    return out


def _assemble(b: Builder, *parts: Scalars, items, shape) -> Scalars:
    """Zeros of a shape, with parts added at basic indices (integers and slices)."""
    if len(parts) != len(items) or not all(part.size for part in parts):
        raise TypeError("indices of arrays, or an unknown shape")
    out = np.empty(shape, object)
    out[...] = b.number(0, parts[0].ravel()[0].dtype)
    for part, item in zip(parts, items, strict=True):
        out = _index_add(b, out, part, item=item)
    return out


def _sum_to_size(b: Builder, x: Scalars, *, shape: tuple | None) -> Scalars:
    """The sum over leading axes, and over the axes that have the length 1 in ``shape``."""
    if shape is None or not x.size or x.ravel()[0].dtype.kind != "f":
        raise TypeError("an unknown or empty shape, or integers, which are added modulo 2^n")
    lead = x.ndim - len(shape)
    summed = [lead + n for n, length in enumerate(shape) if length == 1 != x.shape[lead + n]]
    axes = (*range(lead), *summed)
    return _reduction_form(_sum_of_row)(b, x, axis=axes, keepdims=True).reshape(shape)


_SUMS = {"b": "i8", "i": "i8", "u": "u8"}
_FORMS: dict[str, ArrayForm] = {
    "matmul": _matmul,
    "dot": _dot,
    "einsum": _einsum,
    "outer": _outer,
    "index_add": _index_add,
    "assemble": _assemble,
    "full": _full,
    "cumsum": _cumsum,
    "sum": _reduction_form(_sum_of_row),
    "sum_to_size": _sum_to_size,
    "mean": _reduction_form(_mean),
    "max": _reduction_form(_extreme_form("maximum")),
    "min": _reduction_form(_extreme_form("minimum")),
    "argmax": _reduction_form(_place_of_extreme("gt")),
    "argmin": _reduction_form(_place_of_extreme("lt")),
}
