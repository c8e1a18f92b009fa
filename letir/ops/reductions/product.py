"""The product along axes: prod, whose derivative needs the product of all other factors."""

import math

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.errors import MissingRule
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import reduction_rule
from letir.ops.define.records import cast_cotangent, define, unbroadcast
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.reductions.reductions import (
    apply_mask,
    broadcast_back,
    no_gradient,
    numpy_keywords,
    reduction_prepare,
    sum_,
    sum_aval,
)
from letir.ops.shape.concatenate_stack_split import concatenate, stack
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import ones_like
from letir.ops.shape.transpose import move_axes, normalize_axes
from letir.ops.shape.unit_axes_and_flip import flip


def _products_of_others(x: Value, mask: tuple, axis, initial) -> tuple[Value, Value]:
    """(the product, the product of all other factors) for each element along the reduced axes,
    which are flattened to one last axis.

    A tree of pairwise products, up and down again: right where factors are zero, unlike y / x, and
    log2(n) deep.
    """
    if x.type is None:
        raise MissingRule(
            "prod: its derivative needs the shape of its operand\n"
            "  give the program types: letir.retype"
        )
    x = where(mask[0], x, 1) if mask else x  # masked elements are not factors
    axes = range(x.ndim) if axis is None else normalize_axes(axis, x.ndim)
    outer_shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    n = math.prod(x.shape[i] for i in axes)
    level = reshape(
        move_axes(x, tuple(sorted(axes)), tuple(range(-len(axes), 0))), (*outer_shape, n)
    )
    if type(n) is not int:
        return _from_both_ends(level, initial)
    levels = []
    while level.shape[-1] > 1:
        if level.shape[-1] % 2:
            level = concatenate([level, ones_like(level[..., :1])], axis=-1)
        levels.append((level[..., 0::2], level[..., 1::2]))
        level = levels[-1][0] * levels[-1][1]
    total, others = level, ones_like(level) * (1 if initial is None else initial)
    for left, right in reversed(levels):
        others = others[..., : left.shape[-1]]  # drop the 1 that made the level above even
        others = reshape(
            stack([others * right, others * left], axis=-1), (*outer_shape, 2 * left.shape[-1])
        )
    return total, others[..., :n]


def _from_both_ends(x: Value, initial) -> tuple[Value, Value]:
    """``_products_of_others`` along a last axis of symbolic size: the product of all factors before
    each one times the product of all after it.
    """
    one = ones_like(sum_(x, axis=-1, keepdims=True)) * (1 if initial is None else initial)
    before = PRIMITIVES["cumprod"](concatenate([one, x], -1), -1)
    after = PRIMITIVES["cumprod"](concatenate([ones_like(one), flip(x, -1)], -1), -1)
    return before[..., -1:], before[..., :-1] * flip(after[..., :-1], -1)


def _others_in_shape(x: Value, mask, axis, initial) -> Value:
    """The product of all other factors for each element, in the shape of ``x``."""
    axes = tuple(range(x.ndim)) if axis is None else tuple(sorted(normalize_axes(axis, x.ndim)))
    _, others = _products_of_others(x, mask, axis, initial)
    outer_shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    unflattened = reshape(others, (*outer_shape, *[x.shape[i] for i in axes]))
    return move_axes(unflattened, tuple(range(-len(axes), 0)), axes)


def _cast_like(y: Value, x: Value) -> Value:
    """``x`` in the dtype of ``y``, in which it is multiplied; its real part if that is real."""
    return x if x.type is None else cast_cotangent(x, y.dtype)


def _prod_vjp(ct, y, x, *mask, axis, dtype, keepdims, initial):
    """The cotangent times the product of all other factors."""
    others = _others_in_shape(_cast_like(y, x), mask, axis, initial)
    return unbroadcast(
        apply_mask(broadcast_back(ct, x, axis, keepdims) * others, mask), x
    ), *no_gradient(mask)


def _prod_jvp(tangents, y, x, *mask, axis, dtype, keepdims, initial):
    """The sum of each tangent times the product of all other factors."""
    others = _others_in_shape(_cast_like(y, x), mask, axis, initial)
    each = apply_mask(_cast_like(y, tangents[0]) * others, mask)
    return cast_cotangent(sum_(each, axis=axis, keepdims=keepdims), y.dtype)


prod = define(
    "prod",
    lambda xp, x, *mask, axis=None, dtype=None, keepdims=False, initial=None: xp.prod(
        x, axis=axis, keepdims=keepdims, **numpy_keywords(mask, dtype=dtype, initial=initial)
    ),
    sum_aval,
    vjp=_prod_vjp,
    jvp=_prod_jvp,
    prepare=reduction_prepare,
    numpy=(np.prod,),
    batch=reduction_rule("prod"),
    onnx="ReduceProd",
    source=arrays.masked_reduction,
    linear_in=(),
    only_float_warnings=True,
    order="all",
    compact="scalar",
    cost="moderate",
    out_takes_part=True,
    reduction="prod",
)
