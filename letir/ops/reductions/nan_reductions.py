"""Reductions that skip nan: nansum, nanprod, nanmax, nanmin, nanmean, nanvar, nanstd, nanargmax,
nanargmin, nancumsum, nancumprod.

Each is a composite computed by NumPy's own function, with NumPy's warnings. The decomposition
replaces every nan before it computes with it, so that derivatives of any order are 0 for nan
elements and nan never spreads.
"""

import math

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ops.define.batch_rules import along_axis_rule, reduction_rule
from letir.ops.define.records import cast_cotangent, composite
from letir.ops.elementwise.comparisons_and_where import isnan, where
from letir.ops.elementwise.rounding_sign_parts import real_part
from letir.ops.elementwise.ufuncs import maximum, sqrt
from letir.ops.reductions.cumulative import cumprod, cumsum
from letir.ops.reductions.product import prod
from letir.ops.reductions.reductions import (
    any_,
    define_arg_reduction,
    extremum_prepare,
    max_,
    max_aval,
    mean,
    mean_prepare,
    min_,
    numpy_keywords,
    reduced_axis,
    reduction_prepare,
    sum_,
)
from letir.ops.reductions.variance_and_average import (
    keyword_call,
    var_aval,
    var_decompose,
    var_prepare,
    variance_batch,
    variance_impl,
)
from letir.ops.shape.shape_and_creation import broadcast_to

# ---- nan ----


def _replace_nan(x: Value, number) -> Value:
    """``x`` with each nan replaced by ``number``."""
    return where(isnan(x), number, x) if x.type is None or x.type.inexact else x


def _valid_mask(x: Value, mask):
    """A mask of elements that are not nan and in ``mask``; True if all elements are."""
    valid = ~isnan(x) if x.type is None or x.type.inexact else True
    if mask is None:
        return valid
    return mask if valid is True else mask & valid


# ---- sums and products ----


def _nansum_decompose(
    x, mask=None, *, axis=None, dtype=None, keepdims=False, initial=None
) -> Value:
    """The sum with 0 for nan."""
    options = {"axis": axis, "dtype": dtype, "keepdims": keepdims, "initial": initial}
    return sum_(_replace_nan(x, 0), where=True if mask is None else mask, **options)


def _nanprod_decompose(
    x, mask=None, *, axis=None, dtype=None, keepdims=False, initial=None
) -> Value:
    """The product with 1 for nan."""
    options = {"axis": axis, "dtype": dtype, "keepdims": keepdims, "initial": initial}
    return prod(_replace_nan(x, 1), where=True if mask is None else mask, **options)


def _define_nan_reduction(name: str, numpy, decompose, prepare, **fields):
    """Register a reduction that takes NumPy's keywords and a mask."""

    def impl(xp, x, *mask, **attrs):
        axis = attrs.pop("axis")  # None means all axes, not "not given"
        options = numpy_keywords(mask, **attrs)
        return LATE_BOUND["call_at_user"](getattr(xp, name), x, axis=axis, **options)

    return composite(
        name,
        decompose,
        impl=impl,
        prepare=prepare,
        numpy=(numpy,),
        batch=reduction_rule(name),
        source=keyword_call("where"),
        **fields,
    )


nansum = _define_nan_reduction(
    "nansum",
    np.nansum,
    _nansum_decompose,
    reduction_prepare,
    reduction="parts",
    out_takes_part=True,
)
nanprod = _define_nan_reduction(
    "nanprod",
    np.nanprod,
    _nanprod_decompose,
    reduction_prepare,
    reduction="parts",
    out_takes_part=True,
)


def _nanmean_decompose(x, mask=None, *, axis=None, dtype=None, keepdims=False) -> Value:
    """The mean of the elements that are not nan; nan if there are none."""
    options = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
    return mean(_replace_nan(x, 0), where=_valid_mask(x, mask), **options)


def _nanmean_prepare(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True):
    """np.nanmean, which accepts an axis for a 0-d array."""
    return mean_prepare(a, _axis_of(a, axis), dtype, out, keepdims, where=where)


def _axis_of(a, axis):
    """``axis`` as an attribute. NumPy accepts an axis for a 0-d array only if it may be nan; others
    are handed to np.mean or np.var.
    """
    return reduced_axis(a, axis) if isinstance(a, Value) and a.type.inexact else axis


nanmean = _define_nan_reduction("nanmean", np.nanmean, _nanmean_decompose, _nanmean_prepare)

# ---- variance and deviation ----


def _center_of(x: Value, valid: Value, axis, dtype) -> Value:
    """The mean of the valid elements, 0 if there are none: nan would reach derivatives."""
    part = real_part(x) if dtype is not None and dtype.kind != "c" else x
    total = sum_(part, axis=axis, keepdims=True, where=valid)
    n = sum_(broadcast_to(valid, x), axis=axis, keepdims=True)
    return cast_cotangent(total / maximum(n, 1), total.dtype)


def _nanvar_decompose(
    x, mask=None, mean=None, *, axis=None, dtype=None, ddof=0, keepdims=False
) -> Value:
    """The variance of the elements that are not nan."""
    valid = _valid_mask(x, mask)
    options = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
    if valid is True:
        return var_decompose(x, None, mean, ddof=ddof, **options)
    x = _replace_nan(x, 0)
    if mean is None:
        mean = _center_of(x, valid, axis, dtype)
    variance = var_decompose(x, valid, mean, **options)
    # nan where there are too few elements, as in NumPy, computed without a division by zero
    n = sum_(broadcast_to(valid, x), axis=axis, keepdims=keepdims)
    few = n <= ddof
    scaled = variance * where(few, 1.0, n / where(few, 1, n - ddof)) if ddof else variance
    return cast_cotangent(where(few, math.nan, scaled), variance.dtype)


def _nanstd_decompose(
    x, mask=None, mean=None, *, axis=None, dtype=None, ddof=0, keepdims=False
) -> Value:
    """The square root of the variance, whose derivative at 0 is 0."""
    options = {"axis": axis, "dtype": dtype, "ddof": ddof, "keepdims": keepdims}
    variance = _nanvar_decompose(x, mask, mean, **options)
    return where(variance == 0, 0, sqrt(where(variance == 0, 1, variance)))


def _nanvar_prepare(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, **others):
    """np.nanvar and np.nanstd, which accept an axis for a 0-d array."""
    return var_prepare(a, _axis_of(a, axis), dtype, out, ddof, keepdims, **others)


def _define_nan_variance(name: str, numpy, decompose):
    """Register np.nanvar or np.nanstd."""
    return composite(
        name,
        decompose,
        impl=variance_impl(name),
        aval=var_aval,
        prepare=_nanvar_prepare,
        numpy=(numpy,),
        batch=variance_batch(name),
        source=keyword_call("where", "mean"),
    )


nanvar = _define_nan_variance("nanvar", np.nanvar, _nanvar_decompose)
nanstd = _define_nan_variance("nanstd", np.nanstd, _nanstd_decompose)

# ---- extrema ----


def _nan_extremum(reduce, beyond: float, x, mask, axis, keepdims, initial) -> Value:
    """The extremum of the elements that are not nan; nan if there are none and no ``initial``.

    ``beyond`` is the infinity that no element exceeds.
    """
    if x.type is not None and not x.type.inexact:
        return reduce(x, axis, None, keepdims, initial, True if mask is None else mask)
    valid = _valid_mask(x, mask)
    start = beyond if initial is None else initial
    result = reduce(_replace_nan(x, 0), axis, None, keepdims, start, valid)
    if initial is not None:
        return result
    some = any_(valid, axis=axis, keepdims=keepdims)
    return where(some, result, math.nan)


def _nanmax_decompose(x, mask=None, *, axis=None, keepdims=False, initial=None) -> Value:
    """The greatest element that is not nan."""
    return _nan_extremum(max_, -math.inf, x, mask, axis, keepdims, initial)


def _nanmin_decompose(x, mask=None, *, axis=None, keepdims=False, initial=None) -> Value:
    """The least element that is not nan."""
    return _nan_extremum(min_, math.inf, x, mask, axis, keepdims, initial)


nanmax = _define_nan_reduction(
    "nanmax", np.nanmax, _nanmax_decompose, extremum_prepare, aval=max_aval
)
nanmin = _define_nan_reduction(
    "nanmin", np.nanmin, _nanmin_decompose, extremum_prepare, aval=max_aval
)
nanargmax = define_arg_reduction(
    "nanargmax",
    np.nanargmax,
    lambda xp, x, *, axis=None, keepdims=False: xp.nanargmax(x, axis=axis, keepdims=keepdims),
)
nanargmin = define_arg_reduction(
    "nanargmin",
    np.nanargmin,
    lambda xp, x, *, axis=None, keepdims=False: xp.nanargmin(x, axis=axis, keepdims=keepdims),
)

# ---- cumulative ----


def _define_nan_cumulative(name: str, numpy, decompose):
    """Register np.nancumsum or np.nancumprod."""
    return composite(
        name,
        decompose,
        impl=lambda xp, x, *, axis=None, dtype=None: getattr(xp, name)(x, axis, dtype),
        prepare=cumsum.prepare,
        numpy=(numpy,),
        batch=along_axis_rule(name),
        out_takes_part=True,
    )


def _nancumsum_decompose(x, *, axis=None, dtype=None) -> Value:
    """The cumulative sum with 0 for nan."""
    return cumsum(_replace_nan(x, 0), axis, dtype)


def _nancumprod_decompose(x, *, axis=None, dtype=None) -> Value:
    """The cumulative product with 1 for nan."""
    return cumprod(_replace_nan(x, 1), axis, dtype)


nancumsum = _define_nan_cumulative("nancumsum", np.nancumsum, _nancumsum_decompose)
nancumprod = _define_nan_cumulative("nancumprod", np.nancumprod, _nancumprod_decompose)
