"""The methods of binary ufuncs along an axis: accumulate, reduce, reduceat.

The attribute ``ufunc`` names the record of the ufunc: ``ufunc_reduce(x; ufunc="hypot")`` is
np.hypot.reduce. Methods such as np.add.reduce and np.multiply.reduce are recorded as ``sum`` and
``prod`` instead. Derivatives follow from the rules of the ufunc: an accumulation is a chain of
steps, so its tangents are a linear recurrence (``linear_recurrence``), and a reduction is the last
element of an accumulation.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, record_of
from letir.ast.record_fields import Absent
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.types import ArrayType
from letir.errors import DTypeError, MissingRule, ShapeError
from letir.ops.define.batch_rules import (
    axes_rule,
    batch_first,
    rank_of,
    reduction_rule,
    shift_axes,
)
from letir.ops.define.composite_programs import composite_rules
from letir.ops.define.records import (
    broadcast_tangent,
    cast_cotangent,
    composite,
    define,
    unbroadcast,
)
from letir.ops.elementwise.comparisons_and_where import equal, where
from letir.ops.elementwise.logaddexp import log_share
from letir.ops.elementwise.ufuncs import exp, exp2
from letir.ops.indexing.index_expressions import check_bounds
from letir.ops.reductions.linear_recurrence import linear_recurrence
from letir.ops.reductions.product import prod
from letir.ops.reductions.reductions import (
    broadcast_back,
    max_,
    min_,
    no_gradient,
    numpy_keywords,
    reduced_shape,
    sum_,
)
from letir.ops.shape.concatenate_stack_split import concatenate, stack
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import full, ones_like, zeros_like
from letir.ops.shape.transpose import move_axes, normalize_axes
from letir.ops.shape.unit_axes_and_flip import flip

# ---- the ufunc of a record ----


def ufunc_of(name: str) -> np.ufunc:
    """The NumPy ufunc that the record called ``name`` stands for."""
    record = record_of(name) if type(name) is str else None
    result = next((f for f in record.numpy if isinstance(f, np.ufunc)), None) if record else None
    if result is None:
        raise DTypeError(f"{name!r} is not the name of a ufunc\n  take one such as 'maximum'")
    return result


def _ufunc_method(xp, name: str, method: str) -> Callable:
    """The method of the ufunc in the array module."""
    return getattr(getattr(xp, ufunc_of(name).__name__), method)


def _fold_dtype(name: str, dtype: np.dtype, requested_dtype: np.dtype | None) -> np.dtype:
    """The dtype in which a ufunc folds arrays of ``dtype``. Raises DTypeError if it cannot."""
    ufunc = ufunc_of(name)
    try:
        if requested_dtype is None:
            # NumPy decides: some ufuncs widen small integers, and some have no loop for these
            # dtypes
            return ufunc.resolve_dtypes((None, dtype, None), reduction=True)[-1]
        loop = ufunc.resolve_dtypes((requested_dtype, requested_dtype, None))
    except TypeError as error:
        raise DTypeError(
            f"{ufunc.__name__} does not fold arrays of {dtype}: {error}\n"
            "  convert the array with .astype"
        ) from None
    if set(loop) != {requested_dtype}:
        raise DTypeError(
            f"{ufunc.__name__} does not fold in {requested_dtype}, but in {loop}\n"
            "  leave dtype out, or convert the array first"
        )
    return requested_dtype


# ---- accumulate ----


def _accumulate_aval(x, *, ufunc, axis, dtype):
    """The operand's shape, in the dtype in which the ufunc folds."""
    if not x.shape:
        raise ShapeError(
            "accumulate: a 0-d array has no axis\n  make it a vector: np.atleast_1d(x)"
        )
    normalize_axes(axis, x.ndim)
    return ArrayType(_fold_dtype(ufunc, x.dtype, dtype), x.shape)


def _step_derivatives(y: Value, x: Value, ufunc: str) -> list[Value]:
    """The derivatives of each step of an accumulation along axis 0, with respect to the result
    before it and to the element of ``x``.
    """
    rule: Any = PRIMITIVES[ufunc].vjp
    before, after = y[:-1], y[1:]
    here = x[1:].astype(y.dtype) if x.dtype != y.dtype else x[1:]
    derivatives = (
        (None, None) if type(rule) is Absent else rule(ones_like(after), after, before, here)
    )
    return [zeros_like(after) if d is None else d for d in derivatives]


def _accumulate_vjp(ct, y, x, *, ufunc, axis, dtype):
    """The chain rule through all steps, from the last to the first."""
    _check_length(x, axis, ufunc)
    if not x.shape[axis]:
        return (unbroadcast(ct, x),)
    y, x_first, ct = (move_axes(v, (axis,), (0,)) for v in (y, x, ct))
    by_before, by_x = _step_derivatives(y, x_first, ufunc)
    sums = flip(linear_recurrence(flip(by_before, 0), flip(ct, 0)), 0)
    cotangent = concatenate([sums[:1], sums[1:] * by_x])
    return (unbroadcast(move_axes(cotangent, (0,), (axis,)), x),)


def _accumulate_jvp(tangents, y, x, *, ufunc, axis, dtype):
    """The chain rule through all steps, from the first to the last."""
    _check_length(x, axis, ufunc)
    (t,) = tangents
    if not x.shape[axis]:
        return cast_cotangent(t, y.dtype)
    y_first, x, t = (move_axes(v, (axis,), (0,)) for v in (y, x, cast_cotangent(t, y.dtype)))
    by_before, by_x = _step_derivatives(y_first, x, ufunc)
    result = linear_recurrence(by_before, concatenate([t[:1], t[1:] * by_x]))
    return cast_cotangent(move_axes(result, (0,), (axis,)), y.dtype)


def _check_length(x: Value, axis, ufunc: str) -> None:
    """Raise MissingRule unless the length of the axis is known: the derivative has a step for each
    element.
    """
    aval = x.type
    axes = None if aval is None else range(x.ndim) if axis is None else normalize_axes(axis, x.ndim)
    if axes is None or not is_static_shape([aval.shape[a] for a in axes]):
        raise MissingRule(
            f"{ufunc}: the derivative of a fold needs the length of the axis as a number\n"
            "  trace with concrete arrays, or give the program types: letir.retype"
        )


def _method_call(write, method: str, ufunc: str, *operands: str, **attrs) -> str:
    """A call of the method ``method`` of a ufunc, as text."""
    return write.call(f"np.{ufunc_of(ufunc).__name__}.{method}", *operands, **attrs)


ufunc_accumulate = define(
    "ufunc_accumulate",
    lambda xp, x, *, ufunc, axis=0, dtype=None: _ufunc_method(xp, ufunc, "accumulate")(
        x, axis=axis, dtype=dtype
    ),
    _accumulate_aval,
    vjp=_accumulate_vjp,
    jvp=_accumulate_jvp,
    batch=axes_rule("ufunc_accumulate"),
    source=lambda write, x, *, ufunc, **attrs: _method_call(write, "accumulate", ufunc, x, **attrs),
)

# ---- reduce ----

# the second operand for which a step returns its first operand unchanged
_NEUTRAL = {
    **{"sub": 0, "div": 1, "power": 1, "float_power": 1, "hypot": 0},
    **dict.fromkeys(("logaddexp", "logaddexp2"), -np.inf),
    **dict.fromkeys(("fmax", "fmin"), np.nan),
    "fmod": np.inf,
}


def _chosen_weight(y, x, axis):
    """The derivative of an extremum, split equally among the elements that tie for it."""
    here = equal(x, y)
    ties = sum_(here, axis=axis, keepdims=True)
    return where(here, 1 / where(ties == 0, 1, ties).astype(y.dtype), 0)


_WEIGHTS = {  # weight(y, x, axis): the derivative for each element, where no chain is needed
    "logaddexp": lambda y, x, axis: log_share(1, y, x, exp),
    "logaddexp2": lambda y, x, axis: log_share(1, y, x, exp2),
    "hypot": lambda y, x, axis: x / where(equal(y, 0), 1, y),
    "fmax": _chosen_weight,
    "fmin": _chosen_weight,
}


def _element_weights(y, x, mask, ufunc: str, axis, keepdims: bool) -> Value:
    """The derivative of a reduction with respect to each element, 0 where it is masked."""
    x = where(mask[0], x, _NEUTRAL[ufunc]) if mask else x
    return _WEIGHTS[ufunc](broadcast_back(y, x, axis, keepdims), x, axis)


def _reduce_aval(x, *mask, ufunc, axis, dtype, keepdims, initial):
    """The reduced shape, in the dtype in which the ufunc folds."""
    f, shape = ufunc_of(ufunc), reduced_shape(x.shape, axis, keepdims)
    if f.identity is None and initial is None:
        if mask:
            raise ShapeError(
                f"{f.__name__}.reduce has no identity: where= needs initial=\n  pass initial="
            )
        if x.size == 0 and 0 not in shape:
            raise ShapeError(
                f"{f.__name__}.reduce of an empty axis of {x.shape} has no value: "
                "give initial=\n"
                "  or reduce over an axis with elements"
            )
    return ArrayType(_fold_dtype(ufunc, x.dtype, dtype), shape)


def _reduce_decompose(x, *mask, ufunc, axis=0, dtype=None, keepdims=False, initial=None):
    """The last element of an accumulation over the reduced axes, merged into one."""
    fold_dtype = _fold_dtype(ufunc, x.dtype, dtype)
    if mask and ufunc not in _NEUTRAL:
        raise MissingRule(f"{ufunc}: reduce with where= has no derivative: use numpy.where instead")
    x = x if x.dtype == fold_dtype else x.astype(fold_dtype)
    x = where(mask[0], x, _NEUTRAL[ufunc]) if mask else x
    axes = tuple(range(x.ndim)) if axis is None else tuple(sorted(normalize_axes(axis, x.ndim)))
    inner_shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    rows = move_axes(x, axes, tuple(range(len(axes))))
    if len(axes) != 1:
        rows = reshape(rows, (math.prod(x.shape[i] for i in axes), *inner_shape))
    start = ufunc_of(ufunc).identity if initial is None else initial
    if initial is not None or not rows.shape[0]:
        first = x.emitter.apply(
            full, (start,), full.complete({"shape": (1, *inner_shape), "dtype": fold_dtype})
        )
        rows = concatenate([first, rows])
    last = ufunc_accumulate(rows, ufunc=ufunc, axis=0)[-1]
    return reshape(last, reduced_shape(x.shape, axis, keepdims)) if keepdims else last


_chain_vjp, _chain_jvp = composite_rules(_reduce_decompose, several=False)


def _reduce_vjp(ct, y, x, *mask, transform, ufunc, axis, keepdims, **attrs):
    """The cotangent times the derivative for each element, or the VJP of the accumulation."""
    if ufunc not in _WEIGHTS:
        _check_length(x, axis, ufunc)
        attrs |= {"ufunc": ufunc, "axis": axis, "keepdims": keepdims}
        return _chain_vjp(ct, y, x, *mask, transform=transform, **attrs)
    each = _element_weights(y, x, mask, ufunc, axis, keepdims)
    return unbroadcast(broadcast_back(ct, x, axis, keepdims) * each, x), *no_gradient(mask)


def _reduce_jvp(tangents, y, x, *mask, transform, ufunc, axis, keepdims, **attrs):
    """The sum of the tangents times the derivatives, or the JVP of the accumulation."""
    if ufunc not in _WEIGHTS:
        _check_length(x, axis, ufunc)
        attrs |= {"ufunc": ufunc, "axis": axis, "keepdims": keepdims}
        return _chain_jvp(tangents, y, x, *mask, transform=transform, **attrs)
    each = _element_weights(y, x, mask, ufunc, axis, keepdims)
    return broadcast_tangent(sum_(tangents[0] * each, axis=axis, keepdims=keepdims), y)


def _without_transform(rule: Callable) -> Callable:
    """``rule`` without the argument ``transform``, which it does not need."""

    def batch(args, axes, *, transform, **attrs):
        return rule(args, axes, **attrs)

    return batch


ufunc_reduce = composite(
    "ufunc_reduce",
    _reduce_decompose,
    impl=lambda xp, x, *mask, ufunc, axis, dtype, keepdims, initial: _ufunc_method(
        xp, ufunc, "reduce"
    )(x, axis=axis, keepdims=keepdims, **numpy_keywords(mask, dtype=dtype, initial=initial)),
    aval=_reduce_aval,
    vjp=_reduce_vjp,
    jvp=_reduce_jvp,
    batch=_without_transform(reduction_rule("ufunc_reduce")),
    source=lambda write, x, *mask, ufunc, **attrs: _method_call(
        write, "reduce", ufunc, x, *[f"where={m}" for m in mask], **attrs
    ),
)

# ---- reduceat ----

_SEGMENT = {"add": sum_, "mul": prod, "maximum": max_, "minimum": min_}


def _reduceat_aval(x, *, ufunc, indices, axis, dtype):
    """The operand's shape with one element for each index along the axis."""
    if not x.shape:
        raise ShapeError("reduceat: a 0-d array has no axis\n  make it a vector: np.atleast_1d(x)")
    (axis,) = normalize_axes(axis, x.ndim)
    for i in indices:
        check_bounds(i, x.shape[axis], axis)
        if i < 0:
            raise ShapeError(f"reduceat: index {i} is negative\n  count indices from 0")
    shape = (*x.shape[:axis], len(indices), *x.shape[axis + 1 :])
    return ArrayType(_fold_dtype(ufunc, x.dtype, dtype), shape)


def _reduceat_decompose(x, *, ufunc, indices, axis=0, dtype=None):
    """A reduction of each segment. An index that is not below the next one selects one element."""
    fold_dtype = _fold_dtype(ufunc, x.dtype, dtype)
    x = move_axes(x if x.dtype == fold_dtype else x.astype(fold_dtype), (axis % x.ndim,), (0,))
    parts = []
    for start, end in itertools.pairwise((*indices, x.shape[0])):
        if end <= start:
            parts.append(x[start])
        elif ufunc in _SEGMENT:
            parts.append(_SEGMENT[ufunc](x[start:end], axis=0))
        else:
            parts.append(ufunc_reduce(x[start:end], ufunc=ufunc, axis=0))
    if not parts:
        return move_axes(x[:0], (0,), (axis % x.ndim,))
    return stack(parts, axis % x.ndim)


@batch_first
def _batched_reduceat(args, mapped, *, axis, transform, **attrs):
    """The batching rule of reduceat."""
    return ufunc_reduceat(*args, axis=shift_axes(axis, rank_of(args[0], True)), **attrs)


ufunc_reduceat = composite(
    "ufunc_reduceat",
    _reduceat_decompose,
    impl=lambda xp, x, *, ufunc, indices, axis, dtype: _ufunc_method(xp, ufunc, "reduceat")(
        x, xp.asarray(indices, dtype=int), axis=axis, dtype=dtype
    ),
    aval=_reduceat_aval,
    batch=_batched_reduceat,
    source=lambda write, x, *, ufunc, indices, **attrs: _method_call(
        write, "reduceat", ufunc, x, f"np.array({list(indices)}, dtype=int)", **attrs
    ),
)
