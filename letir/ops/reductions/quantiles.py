"""Order statistics: median, quantile, percentile, and nanmedian, nanquantile, nanpercentile.

Each is a composite computed by NumPy's own function and differentiated through a sort: the
cotangent goes to the elements between which the result lies (to one of them where elements tie),
and the derivative with respect to ``q`` is the slope between these elements. A nan result has no
derivative.
"""

import math

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.types import WEAK, ArrayType
from letir.errors import DTypeError, MissingRule, ShapeError
from letir.ops.define.composite_programs import type_of_operand
from letir.ops.define.records import composite
from letir.ops.elementwise.casting import cast
from letir.ops.elementwise.comparisons_and_where import isnan, where
from letir.ops.elementwise.ufuncs import minimum
from letir.ops.indexing.sorting import argsort, sort
from letir.ops.indexing.take import take_along_axis
from letir.ops.reductions.cumulative import cumsum
from letir.ops.reductions.quantile_positions import known_method, quantile_positions
from letir.ops.reductions.reductions import is_given, reduced_shape, sum_
from letir.ops.reductions.variance_and_average import drop_trailing_nones, weights_along
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import Sizes, as_flag, broadcast_to
from letir.ops.shape.transpose import int_or_tuple, move_axes, normalize_axes

# ---- columns: the elements of each result along axis 0 ----


def _reduced_axes_first(x: Value, axis) -> Value:
    """``x`` with its reduced axes merged into one and moved to the front."""
    axes = tuple(range(x.ndim)) if axis is None else tuple(sorted(normalize_axes(axis, x.ndim)))
    in_front = move_axes(x, axes, tuple(range(len(axes))))
    if len(axes) == 1:
        return in_front
    if len(axes) == x.ndim:
        return reshape(in_front, -1)
    if not is_static_shape(x.shape):
        raise MissingRule("quantile: its derivative needs the shape of its operand as numbers")
    inner_shape = in_front.shape[len(axes) :]
    return reshape(in_front, (math.prod(in_front.shape[: len(axes)]), *inner_shape))


def _may_be_nan(x: Value) -> bool:
    """Whether the dtype has nan."""
    return x.type.inexact


def _zero_for_nan(x: Value) -> Value:
    """``x`` with each nan replaced by 0, so that nan does not reach derivatives."""
    return where(isnan(x), 0, x) if _may_be_nan(x) else x


def _count_valid(x: Value, skips: bool) -> tuple:
    """(the number of elements that count in each column, whether it differs between columns).

    ``skips``: nan elements do not count.
    """
    if skips and _may_be_nan(x):
        return sum_(~isnan(x), axis=0), True
    return Sizes.from_value(x)[0], False


def _lacks_quantile(x: Value, n, differ: bool):
    """Where a column has no quantile, because it has a nan or no element that counts; False if all
    columns have one.
    """
    if differ:
        return n == 0
    return sum_(isnan(x), axis=0) > 0 if _may_be_nan(x) else False


def _take_rows(x: Value, places: Value, differ: bool) -> Value:
    """The elements of sorted columns at these indices, which differ between columns or not."""
    if not differ:
        return x[places]
    inner_shape = x.shape[1:]
    flat = reshape(
        places, (math.prod(places.shape[: places.ndim - len(inner_shape)]), *inner_shape)
    )
    return reshape(take_along_axis(x, flat, 0), places.shape)


def _finish_result(
    result: Value, absent, x: Value, axis, keepdims: bool, dtype, lead: int = 0
) -> Value:
    """The result in its final dtype and shape, nan where ``absent``.

    ``lead``: the number of axes of ``q``.
    """
    result = cast(result, dtype)
    if absent is not False:
        result = where(absent, math.nan, result)
    shape = reduced_shape(x.shape, axis, keepdims)
    return reshape(result, (*result.shape[:lead], *shape)) if keepdims else result


def _empty_result(rows: Value, x: Value, axis, keepdims: bool, dtype) -> Value:
    """The result for columns without elements: nan for each column."""
    return _finish_result(sum_(rows, axis=0), True, x, axis, keepdims, dtype)


# ---- medians ----


def _median_dtype(x) -> np.dtype:
    """The dtype of a median, as of a mean."""
    return x.dtype if x.dtype.kind in "fc" else np.dtype(np.float64)


def _median_of(x, axis, keepdims, skips: bool) -> Value:
    """The mean of the two middle elements, which may be the same."""
    dtype = _median_dtype(x)
    rows = cast(_reduced_axes_first(x, axis), dtype)
    if rows.shape[0] == 0:
        return _empty_result(rows, x, axis, keepdims, dtype)
    n, differ = _count_valid(rows, skips)
    absent, rows = _lacks_quantile(rows, n, differ), _zero_for_nan(sort(rows, 0))
    if differ:
        ends = ((n - 1) // 2, minimum(n // 2, Sizes.from_value(rows)[0] - 1))
        one, other = (take_along_axis(rows, i[None], 0)[0] for i in ends)
    else:
        one, other = rows[(n - 1) // 2], rows[n // 2]
    # halves are added: the sum of the elements may overflow
    middle = one * 0.5 + other * 0.5
    return _finish_result(middle, absent, x, axis, keepdims, dtype)


def _median_decompose(x, *, axis=None, keepdims=False) -> Value:
    """The middle of the sorted elements."""
    return _median_of(x, axis, keepdims, skips=False)


def _nanmedian_decompose(x, *, axis=None, keepdims=False) -> Value:
    """The middle of the sorted elements that are not nan."""
    return _median_of(x, axis, keepdims, skips=True)


def _median_prepare(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """np.median and np.nanmedian."""
    keepdims = as_flag(keepdims) if is_given(keepdims) else False
    return (a,), {"axis": int_or_tuple(axis), "keepdims": keepdims}


def _define_median(name: str, numpy, decompose):
    """Register np.median or np.nanmedian."""
    return composite(
        name,
        decompose,
        impl=lambda xp, x, *, axis=None, keepdims=False: LATE_BOUND["call_at_user"](
            getattr(xp, name), x, axis, keepdims=keepdims
        ),
        aval=lambda x, *, axis, keepdims: ArrayType(
            _median_dtype(x), reduced_shape(x.shape, axis, keepdims)
        ),
        prepare=_median_prepare,
        numpy=(numpy,),
    )


median = _define_median("median", np.median, _median_decompose)
nanmedian = _define_median("nanmedian", np.nanmedian, _nanmedian_decompose)

# ---- quantiles ----


def _quantile_dtype(name: str, x: ArrayType, q: ArrayType, weights, method: str) -> np.dtype:
    """The dtype of the quantile, found by calling the NumPy function ``name``."""
    numbers = {"i": 0, "f": 0.0}
    one = numbers[q.dtype.kind] if q.weak and q.dtype.kind in numbers else np.zeros(1, q.dtype)
    options = {} if weights is None else {"weights": np.ones(1)}
    some = np.ones(1, x.dtype)
    if x.size == 0 and name.startswith("nan"):  # NumPy takes the mean of an empty array
        return np.result_type(x.dtype, *[np.float64] * (x.dtype.kind in "biu"))
    try:
        return getattr(np, name)(some, one, method=method, **options).dtype
    except (TypeError, ValueError) as error:
        raise DTypeError(
            f"{name} of {x} at {q}: {error}\n  pass numbers, not booleans or strings"
        ) from None


def _quantile_aval(name: str):
    """The type rule: the shape of ``q``, then the reduced shape of the array."""

    def aval(x, q, weights=None, *, axis, method, keepdims):
        dtype = _quantile_dtype(name, x, q, weights, method)
        # for an empty array NumPy takes one mean, however many quantiles are asked for
        lead = () if x.size == 0 and name.startswith("nan") else q.shape
        return ArrayType(dtype, lead + reduced_shape(x.shape, axis, keepdims))

    return aval


def _quantile_of(name: str, x, q, weights, axis, method, keepdims) -> Value:
    """The quantiles of ``x`` at ``q``, as the NumPy function ``name`` defines them."""
    q_type, skips = type_of_operand(q), name.startswith("nan")
    dtype = _quantile_dtype(name, type_of_operand(x), q_type, weights, method)
    q = q / 100 if name.endswith("percentile") else q
    rows, lead = _reduced_axes_first(x, axis), len(q_type.shape)
    if skips and x.size == 0:
        return _empty_result(rows, x, axis, keepdims, dtype)
    if rows.shape[0] == 0:
        raise ShapeError(
            "quantile: an empty axis has no quantile\n  reduce over an axis with elements"
        )
    n, differ = _count_valid(rows, skips)
    absent = _lacks_quantile(rows, n, differ)
    if weights is not None:
        result = _weighted_quantile(
            rows, _reduced_axes_first(broadcast_to(weights_along(weights, x, axis), x), axis), q
        )
    else:
        if differ and lead:  # every q with every column
            q = reshape(q, q.shape + (1,) * (rows.ndim - 1))
        rows = _zero_for_nan(sort(rows, 0))
        before, behind, share = quantile_positions(method, q, n)
        result = _take_rows(rows, before, differ)
        if behind is not None:
            if not differ:
                share = reshape(share, share.shape + (1,) * (rows.ndim - 1))
            result = _interpolate_linearly(
                result, _take_rows(rows, behind, differ), cast(share, dtype)
            )
    return _finish_result(result, absent, x, axis, keepdims, dtype, lead)


def _interpolate_linearly(a: Value, b: Value, share: Value) -> Value:
    """Linear interpolation between ``a`` and ``b``, from the nearer end as in NumPy."""
    step = b - a
    return where(share >= 0.5, b - step * (1 - share), a + step * share)


def _weighted_quantile(rows: Value, weights: Value, q) -> Value:
    """The first element of each column at which the cumulative weight reaches the fraction
    ``q``.
    """
    order = argsort(rows, 0)
    weights = cast(take_along_axis(weights, order, 0), np.float64)
    if _may_be_nan(rows):
        weights = where(isnan(take_along_axis(rows, order, 0)), 0, weights)
    sums = cumsum(weights, 0)
    parts = sums / where(sums[-1] == 0, 1, sums[-1])
    aval = type_of_operand(q)
    if aval.dtype.kind == "f" and not aval.weak:
        parts = cast(parts, aval.dtype)  # the dtype in which NumPy compares
    parts = where(parts == 0, -1, parts)  # elements before any weight are never chosen
    aligned_q = q if not aval.shape else reshape(q, (*aval.shape, *[1] * rows.ndim))
    places = minimum(sum_(parts < aligned_q, axis=len(aval.shape)), rows.shape[0] - 1)
    flat = reshape(places, (math.prod(aval.shape), *rows.shape[1:]))
    rows = _zero_for_nan(take_along_axis(rows, order, 0))
    return reshape(take_along_axis(rows, flat, 0), places)


def _quantile_decompose(x, q, weights=None, *, axis=None, method="linear", keepdims=False) -> Value:
    """The element at the fraction ``q`` of the sorted elements."""
    return _quantile_of("quantile", x, q, weights, axis, method, keepdims)


def _nanquantile_decompose(
    x, q, weights=None, *, axis=None, method="linear", keepdims=False
) -> Value:
    """The element at the fraction ``q`` of the sorted elements that are not nan."""
    return _quantile_of("nanquantile", x, q, weights, axis, method, keepdims)


def _percentile_decompose(
    x, q, weights=None, *, axis=None, method="linear", keepdims=False
) -> Value:
    """The quantile at q / 100."""
    return _quantile_of("percentile", x, q, weights, axis, method, keepdims)


def _nanpercentile_decompose(
    x, q, weights=None, *, axis=None, method="linear", keepdims=False
) -> Value:
    """The quantile at q / 100 of the elements that are not nan."""
    return _quantile_of("nanpercentile", x, q, weights, axis, method, keepdims)


def _quantile_prepare(
    a,
    q,
    axis=None,
    out=None,
    overwrite_input=False,
    method="linear",
    keepdims=False,
    *,
    weights=None,
    interpolation=None,
):
    """np.quantile and its variants: the operands are (array, q, weights if given)."""
    method = known_method("quantile", method if interpolation is None else interpolation)
    if weights is not None and method != "inverted_cdf":
        raise ShapeError(
            f"quantile: only method='inverted_cdf' supports weights, found {method!r}\n"
            "  write method='inverted_cdf', or leave the weights out"
        )
    keepdims = as_flag(keepdims) if is_given(keepdims) else False
    attrs = {"axis": int_or_tuple(axis), "method": method, "keepdims": keepdims}
    return drop_trailing_nones(a, _untraced_array(q), _untraced_array(weights)), attrs


def _untraced_array(numbers):
    """``numbers`` as an array if it is a list without traced values."""
    if not isinstance(numbers, list | tuple) or any(isinstance(n, Value) for n in numbers):
        return numbers
    return np.asarray(numbers)


def _define_quantile(name: str, numpy, decompose):
    """Register np.quantile or one of its variants."""

    def impl(xp, x, q, weights=None, *, axis=None, method="linear", keepdims=False):
        options = {} if weights is None else {"weights": weights}
        options |= {"method": method, "keepdims": keepdims}
        result = LATE_BOUND["call_at_user"](getattr(xp, name), x, q, axis, **options)
        if result.shape or result == result:
            return result
        # NumPy returns a single nan in the dtype of the array, whatever the dtype of q
        avals = [WEAK[type(v)] if type(v) in WEAK else ArrayType(v.dtype, v.shape) for v in (x, q)]
        return result.astype(_quantile_dtype(name, *avals, weights, method))

    return composite(
        name,
        decompose,
        impl=impl,
        aval=_quantile_aval(name),
        prepare=_quantile_prepare,
        numpy=(numpy,),
        raises=True,
        source=lambda write, x, q, *weights, **attrs: write.numpy_call(
            x, q, *[f"weights={w}" for w in weights], **attrs
        ),
    )


quantile = _define_quantile("quantile", np.quantile, _quantile_decompose)
percentile = _define_quantile("percentile", np.percentile, _percentile_decompose)
nanquantile = _define_quantile("nanquantile", np.nanquantile, _nanquantile_decompose)
nanpercentile = _define_quantile("nanpercentile", np.nanpercentile, _nanpercentile_decompose)
