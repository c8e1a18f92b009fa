"""Statistics: var, std, average, ptp, count_nonzero.

Each is one operation computed by NumPy's own function. ``var`` and ``std`` have derivative rules of
their own; ``average`` and ``ptp`` are differentiated through their decompositions. A standard
deviation of 0 has no derivative, and its rules give 0 there.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError
from letir.ops.define.batch_rules import (
    axes_rule,
    batch_first,
    broadcast_batch,
    emit_op,
    first_mapped,
    rank_of,
    shift_axes,
    widen_rank,
)
from letir.ops.define.records import DISCRETE, cast_cotangent, composite, define, unbroadcast
from letir.ops.elementwise.casting import cast
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import conj, real, real_part
from letir.ops.elementwise.ufuncs import maximum, sqrt
from letir.ops.reductions.reductions import (
    NO_VALUE,
    apply_mask,
    broadcast_back,
    count_elements,
    divide_by_count,
    is_given,
    max_,
    mean,
    mean_prepare,
    min_,
    reduced_axis,
    reduced_shape,
    sum_,
)
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import as_flag
from letir.ops.shape.transpose import normalize_axes, transpose

# ---- variance and deviation ----


def drop_trailing_nones(*operands: Any) -> tuple:
    """The operands up to the last that is not None."""
    while operands[-1] is None:
        operands = operands[:-1]
    return operands


def var_prepare(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> tuple[tuple, dict[str, Any]]:
    """np.var and np.std: the operands are (array, mask, mean), without trailing Nones."""
    if is_given(correction):
        if ddof != 0:
            raise ShapeError(
                "ddof and correction can't be provided simultaneously.\n  leave one of them out"
            )
        ddof = correction
    operands, attrs = mean_prepare(a, axis, dtype, out, keepdims, where=where)
    mask = operands[1] if len(operands) > 1 else None
    return drop_trailing_nones(a, mask, mean if is_given(mean) else None), {**attrs, "ddof": ddof}


def var_aval(
    x: ArrayType,
    mask: ArrayType | None = None,
    mean: ArrayType | None = None,
    *,
    axis: Any,
    dtype: Any,
    ddof: Any,
    keepdims: bool,
) -> ArrayType:
    """The reduced shape in the real dtype that np.var returns."""
    dtype = np.var(np.ones(1, x.dtype), dtype=dtype).dtype  # NumPy itself resolves the dtype
    return ArrayType(dtype, reduced_shape(x.shape, axis, keepdims))


def _deviations_from_mean(x, mask, center, axis, dtype) -> Value:
    """``x`` minus its mean, or minus the given ``center``."""
    if center is None:
        # for a real dtype NumPy subtracts the mean of the real parts from the complex elements
        part = real_part(x) if dtype is not None and dtype.kind != "c" else x
        center = mean(part, axis=axis, keepdims=True, where=True if mask is None else mask)
    return x - center


def _variance_divisor(y: Value, x: Value, mask, axis, ddof, keepdims):
    """The divisor of a sum of squares: the number of elements minus ``ddof``, at least 0."""
    n = count_elements(y, x, () if mask is None else (mask,), axis, keepdims)
    return max(n - ddof, 0) if type(n) is int else maximum(n - ddof, 0)


def var_decompose(
    x: Value,
    mask: Any = None,
    mean: Any = None,
    *,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
) -> Value:
    """The sum of the squared deviations, divided by their number minus ``ddof``."""
    aval = None
    if x.type is not None:
        aval = var_aval(x.type, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims)
    x = x if aval is None or x.type.inexact else cast(x, aval.dtype)
    deviations = _deviations_from_mean(x, mask, mean, axis, dtype)
    squares = real(deviations * conj(deviations))
    total = sum_(squares, axis=axis, keepdims=keepdims, where=True if mask is None else mask)
    result = total / _variance_divisor(total, x, mask, axis, ddof, keepdims)
    return result if aval is None else cast_cotangent(result, aval.dtype)


def _var_vjp(ct, y, x, mask=None, mean=None, *, axis, dtype, ddof, keepdims, transform=None):
    """Twice the conjugated deviations times the cotangent, divided as the variance is.

    The mean of ``x`` contributes nothing, since the deviations from it add up to 0.
    """
    deviations = conj(_deviations_from_mean(x, mask, mean, axis, dtype))
    each = divide_by_count(2 * real_part(ct), _variance_divisor(y, x, mask, axis, ddof, keepdims))
    slopes = apply_mask(
        broadcast_back(each, x, axis, keepdims) * deviations, () if mask is None else (mask,)
    )
    result = unbroadcast(slopes, x), None, None if mean is None else unbroadcast(-slopes, mean)
    return result[: 1 + (mask is not None or mean is not None) + (mean is not None)]


def _var_jvp(tangents, y, x, mask=None, mean=None, *, axis, dtype, ddof, keepdims, transform=None):
    """Twice the sum of the deviations times the tangents, divided as the variance is."""
    by_x, by_mean = tangents[0], tangents[2] if mean is not None else None
    toward = by_x if by_mean is None else -by_mean if by_x is None else by_x - by_mean
    each = 2 * real(conj(_deviations_from_mean(x, mask, mean, axis, dtype)) * toward)
    total = sum_(each, axis=axis, keepdims=keepdims, where=True if mask is None else mask)
    return cast_cotangent(
        divide_by_count(total, _variance_divisor(y, x, mask, axis, ddof, keepdims)), y.dtype
    )


def _one_for_zero(y: Value) -> Value:
    """``y`` with each 0 replaced by 1."""
    return where(y == 0, 1, y)


def variance_impl(name: str) -> Callable:
    """The ``impl`` that calls the NumPy function ``name``: var, std or a nan-skipping variant."""

    def impl(xp, x, mask=None, mean=None, *, axis=None, dtype=None, ddof=0, keepdims=False):
        options = {} if mask is None else {"where": mask}
        options = options if mean is None else {**options, "mean": mean}
        options |= {"ddof": ddof, "keepdims": keepdims}
        if name.startswith("nan"):
            return LATE_BOUND["call_at_user"](getattr(xp, name), x, axis, dtype, **options)
        return LATE_BOUND["reduce_at_user"](xp, name, x, axis, dtype, **options)

    return impl


def keyword_call(*names: str) -> Callable:
    """The ``source`` of a call whose operands after the first are keywords with these names."""

    def source(write, x, *others, **attrs):
        named = zip(names, others, strict=False)
        return write.numpy_call(x, *[f"{k}={v}" for k, v in named if v != "None"], **attrs)

    return source


def variance_batch(name: str) -> Callable:
    """The batching rule of var and std, in which each example's mask and mean broadcast to it."""

    def rule(args, mapped, *, axis, transform=None, **attrs):
        x = broadcast_batch(args[0], mapped[0], first_mapped(args, mapped))
        ndim = rank_of(x, True)
        pairs = zip(args[1:], mapped[1:], strict=True)
        rest = [widen_rank(arg, ndim) if is_mapped else arg for arg, is_mapped in pairs]
        return emit_op(name, (x, *rest), axis=shift_axes(axis, ndim), **attrs)

    return batch_first(rule)


def _define_variance(name: str, numpy, decompose, vjp, jvp):
    """Register np.var or np.std."""
    return composite(
        name,
        decompose,
        impl=variance_impl(name),
        aval=var_aval,
        vjp=vjp,
        jvp=jvp,
        batch=variance_batch(name),
        prepare=var_prepare,
        numpy=(numpy,),
        source=keyword_call("where", "mean"),
        reduction="parts",
    )


var = _define_variance("var", np.var, var_decompose, _var_vjp, _var_jvp)


def _std_vjp(ct, y, x, *rest, transform=None, **attrs):
    """The VJP of the variance with the cotangent divided by 2 * std."""
    # where y is 0 all deviations are 0: the cotangent is 0 too, not 0 / 0
    return _var_vjp(real_part(ct) / (2 * _one_for_zero(real_part(y))), y, x, *rest, **attrs)


def _std_jvp(tangents, y, x, *rest, transform=None, **attrs):
    """The tangent of the variance, divided by 2 * std."""
    return _var_jvp(tangents, y, x, *rest, **attrs) / (2 * _one_for_zero(y))


def _std_decompose(
    x, mask=None, mean=None, *, axis=None, dtype=None, ddof=0, keepdims=False
) -> Value:
    """The square root of the variance."""
    options = {"axis": axis, "dtype": dtype, "ddof": ddof, "keepdims": keepdims}
    return sqrt(var_decompose(x, mask, mean, **options))


std = _define_variance("std", np.std, _std_decompose, _std_vjp, _std_jvp)

# ---- average ----


def _average_decompose(x, weights, *, axis=None, keepdims=False) -> Value:
    """The sum of the products with the weights, divided by the sum of the weights."""
    dtype = _average_dtype(x, weights)
    weights = weights_along(weights, x, axis)
    total = sum_(weights, axis=axis, dtype=dtype, keepdims=keepdims)
    return sum_(cast(x * weights, dtype), axis=axis, keepdims=keepdims) / total


def _average_dtype(x, weights) -> np.dtype:
    """The dtype of a weighted average."""
    exact = (np.float64,) if x.dtype.kind in "biu" else ()
    return np.result_type(x.dtype, weights.dtype, *exact)


def weights_along(weights: Value, x: Value, axis: Any) -> Value:
    """Weights along ``axis`` of ``x``, reshaped so that they broadcast to ``x``."""
    if weights.shape == x.shape:
        return weights
    if axis is None:
        raise DTypeError(
            "average: give the axis where the shapes of array and weights differ\n"
            "  write average(a, axis=0, weights=w)"
        )
    axes = normalize_axes(axis, x.ndim)
    if weights.shape != tuple(x.shape[i] for i in axes):
        raise ShapeError(
            f"average: weights of shape {weights.shape} do not fit axis {axis} of {x.shape}\n"
            "  pass one weight for each place along the axis"
        )
    in_order = transpose(weights, tuple(np.argsort(axes).tolist()))
    return reshape(in_order, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))


average = composite(
    "average",
    _average_decompose,
    impl=lambda xp, x, weights, *, axis=None, keepdims=False: xp.average(
        x, axis, weights, keepdims=keepdims
    ),
    source=lambda write, x, weights, **attrs: write.call(
        "np.average", x, f"weights={weights}", **attrs
    ),
)

# ---- range and count ----


def _ptp_decompose(x, *, axis=None, keepdims=False) -> Value:
    """The maximum minus the minimum."""
    return max_(x, axis=axis, keepdims=keepdims) - min_(x, axis=axis, keepdims=keepdims)


def _ptp_prepare(a, axis=None, out=None, keepdims=False):
    """np.ptp."""
    return (a,), {
        "axis": reduced_axis(a, axis),
        "keepdims": as_flag(keepdims) if is_given(keepdims) else False,
    }


ptp = composite(
    "ptp",
    _ptp_decompose,
    impl=lambda xp, x, *, axis=None, keepdims=False: xp.ptp(x, axis, keepdims=keepdims),
    prepare=_ptp_prepare,
    numpy=(np.ptp,),
    batch=axes_rule("ptp"),
    reduction="parts",
)


def _count_nonzero_impl(xp, x, *, axis=None, keepdims=False):
    """np.count_nonzero, which returned a Python int before NumPy 2.4."""
    result = xp.count_nonzero(x, axis, keepdims=keepdims)
    return xp.asarray(result)[()] if type(result) is int else result


count_nonzero = define(
    "count_nonzero",
    _count_nonzero_impl,
    lambda x, *, axis, keepdims: ArrayType(np.intp, reduced_shape(x.shape, axis, keepdims)),
    vjp=DISCRETE,
    jvp=DISCRETE,
    prepare=lambda a, axis=None, *, keepdims=False: (
        (a,),
        {"axis": reduced_axis(a, axis), "keepdims": as_flag(keepdims)},
    ),
    numpy=(np.count_nonzero,),
    batch=axes_rule("count_nonzero"),
)
