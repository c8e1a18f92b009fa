"""Reductions: sum, mean, max, min, any, all, argmax, argmin. See ``product.py`` for prod.

All take NumPy's ``axis`` (None, an int or a tuple), ``keepdims``, ``dtype``, ``initial`` and, as an
operand, the mask ``where``. Axes stay as the user wrote them, negative ones too, so that programs
do not depend on ranks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.types import ArrayType, number_dtype
from letir.errors import ShapeError
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import arg_reduction_rule, reduction_rule
from letir.ops.define.records import DISCRETE, cast_cotangent, define, unbroadcast
from letir.ops.elementwise.comparisons_and_where import equal, where
from letir.ops.shape.shape_and_creation import as_flag, as_mask, broadcast_to, size
from letir.ops.shape.transpose import int_or_tuple, normalize_axes
from letir.ops.shape.unit_axes_and_flip import expand_dims


def reduced_shape(shape: tuple, axis: Any, keepdims: bool) -> tuple:
    """``shape`` without the reduced axes, or with 1 in their place if ``keepdims``."""
    axes = range(len(shape)) if axis is None else normalize_axes(axis, len(shape))
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes)


def sum_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype in which NumPy sums elements of ``dtype``: integers below 64 bits widen."""
    kind = dtype.kind
    # https://numpy.org/doc/stable/reference/generated/numpy.sum.html, under dtype
    return np.dtype(np.uint64 if kind == "u" else np.int64) if kind in "biu" else dtype


# facts of reductions whose results are new compact arrays, or NumPy scalars
_COMPACT: dict[str, Any] = {"order": "all", "compact": "scalar", "cost": "moderate"}
_COMPACT["only_float_warnings"] = True
NO_VALUE = np._NoValue  # type: ignore[attr-defined]  # NumPy's private mark for "not given"


def is_given(value: Any) -> bool:
    """Whether a caller gave this keyword; NumPy marks "not given" with a special object."""
    return value is not NO_VALUE and value is not None


def reduced_axis(a: Any, axis: Any) -> Any:
    """``axis`` as an attribute. For a 0-d array NumPy accepts 0 and -1 as well as None."""
    if axis is None:
        return None
    if type(axis) is int and axis in (0, -1) and isinstance(a, Value) and a.type and not a.shape:
        return None
    return int_or_tuple(axis)


def reduction_prepare(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: Any = False,
    initial: Any = NO_VALUE,
    where: Any = True,
) -> tuple[tuple, dict[str, Any]]:
    """np.sum and np.prod: the operands are the array, and the mask if there is one."""
    operands = (a,) if where is True or where is NO_VALUE else (a, as_mask(where))
    return operands, {
        "axis": reduced_axis(a, axis),
        "dtype": None if dtype is None or dtype is NO_VALUE else number_dtype(dtype),
        "keepdims": keepdims is not NO_VALUE and as_flag(keepdims),
        "initial": initial if is_given(initial) else None,
    }


def extremum_prepare(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: Any = False,
    initial: Any = NO_VALUE,
    where: Any = True,
) -> tuple[tuple, dict[str, Any]]:
    """np.max and np.min, which have no ``dtype``."""
    operands, attrs = reduction_prepare(a, axis, None, out, keepdims, initial, where)
    del attrs["dtype"]
    return operands, attrs


def _logical_prepare(a, axis=None, out=None, keepdims=False, *, where=True):
    """np.any and np.all."""
    operands, attrs = extremum_prepare(a, axis, out, keepdims, NO_VALUE, where)
    del attrs["initial"]
    return operands, attrs


def mean_prepare(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> tuple[tuple, dict[str, Any]]:
    """np.mean, which has no ``initial``, and which refuses an axis for a 0-d array without mask."""
    operands, attrs = reduction_prepare(a, None, dtype, out, keepdims, NO_VALUE, where)
    del attrs["initial"]
    attrs["axis"] = int_or_tuple(axis) if len(operands) == 1 else reduced_axis(a, axis)
    return operands, attrs


def numpy_keywords(mask: tuple, **attrs: Any) -> dict[str, Any]:
    """The keyword arguments for NumPy: the attributes that are not None, and the mask."""
    options = {name: value for name, value in attrs.items() if value is not None}
    return options | {"where": mask[0]} if mask else options


def broadcast_back(ct: Value, x: Value, axis: Any, keepdims: bool) -> Value:
    """``ct``, of the shape of a reduction's result, broadcast to the shape of its operand ``x``."""
    if axis is not None and not keepdims:  # with axis None the result is 0-d and broadcasts
        ct = expand_dims(ct, axis)
    return broadcast_to(ct, x)


def apply_mask(value: Value, mask: tuple) -> Value:
    """``value`` where the mask holds, else 0."""
    return where(mask[0], value, 0) if mask else value


def no_gradient(mask: tuple) -> tuple:
    """None for each mask operand."""
    return (None,) * len(mask)


# ---- sum and mean ----


def sum_aval(
    x: ArrayType, *mask: ArrayType, axis: Any, dtype: Any, keepdims: bool, initial: Any = None
) -> ArrayType:
    """The result's type, in the widened dtype unless ``dtype`` is given."""
    return ArrayType(dtype or sum_dtype(x.dtype), reduced_shape(x.shape, axis, keepdims))


def _sum_vjp(ct, y, x, *mask, axis, keepdims, **_):
    """The cotangent, broadcast to every element that was summed."""
    return unbroadcast(apply_mask(broadcast_back(ct, x, axis, keepdims), mask), x), *no_gradient(
        mask
    )


sum_: Primitive = define(
    "sum",
    lambda xp, x, *mask, axis=None, dtype=None, keepdims=False, initial=None: xp.sum(
        x, axis=axis, keepdims=keepdims, **numpy_keywords(mask, dtype=dtype, initial=initial)
    ),
    sum_aval,
    vjp=_sum_vjp,
    jvp=lambda t, y, x, *mask, initial, **attrs: sum_(  # initial is a constant
        t[0], where=mask[0] if mask else True, **attrs
    ),
    prepare=reduction_prepare,
    numpy=(np.sum,),
    batch=reduction_rule("sum"),
    onnx="ReduceSum",
    source=arrays.masked_reduction,
    odd_in=(0,),
    added="initial",
    **_COMPACT,
    out_takes_part=True,
    reduction="sum",
    scalar="sum",
)


def _mean_aval(x, *mask, axis, dtype, keepdims):
    """The result's type: float64 for integers, else the operand's dtype, unless ``dtype`` is
    given.
    """
    default = np.dtype(np.float64) if x.dtype.kind in "biu" else x.dtype
    return ArrayType(dtype or default, reduced_shape(x.shape, axis, keepdims))


def count_elements(y: Value, x: Value, mask: tuple, axis: Any, keepdims: bool) -> Any:
    """The number of elements of ``x`` that are reduced to each element of ``y``.

    An int where the shapes are known; one count for each result if there is a mask.
    """
    if mask:
        # broadcast first: an element of a smaller mask counts for each element that it selects
        return sum_(broadcast_to(mask[0], x), axis=axis, keepdims=keepdims)
    if x.type is not None and y.type is not None and type(x.size) is int:
        return x.size // y.size if y.size else 1  # an empty result has no elements to divide
    # unknown shapes: counted when the program runs
    return PRIMITIVES["prod"](size(x)) // PRIMITIVES["prod"](size(y))


def _mean_vjp(ct, y, x, *mask, axis, dtype, keepdims):
    """The cotangent divided by the number of elements, broadcast to all that were averaged."""
    # divided before it is broadcast: fewer divisions
    each = divide_by_count(ct, count_elements(y, x, mask, axis, keepdims))
    return unbroadcast(apply_mask(broadcast_back(each, x, axis, keepdims), mask), x), *no_gradient(
        mask
    )


def divide_by_count(g: Value, count: Any) -> Value:
    """``g / count`` in the dtype of ``g``, divided in double precision, in which no integer count
    overflows.
    """
    return g / count if g.type is None else cast_cotangent(g / count, g.dtype)


mean: Primitive = define(
    "mean",
    lambda xp, x, *mask, axis=None, dtype=None, keepdims=False: LATE_BOUND["reduce_at_user"](
        xp, "mean", x, axis=axis, keepdims=keepdims, **numpy_keywords(mask, dtype=dtype)
    ),
    _mean_aval,
    vjp=_mean_vjp,
    jvp=lambda t, y, x, *mask, **attrs: mean(t[0], where=mask[0] if mask else True, **attrs),
    prepare=mean_prepare,
    numpy=(np.mean,),
    batch=reduction_rule("mean"),
    onnx="ReduceMean",
    source=arrays.masked_reduction,
    odd_in=(0,),
    order="all",
    cost="moderate",
    reduction="mean",
    scalar="mean",
    gives_scalars=True,
)


# ---- extrema ----


def max_aval(x: ArrayType, *mask: ArrayType, axis: Any, keepdims: bool, initial: Any) -> ArrayType:
    """The operand's dtype in the reduced shape. An empty axis needs an initial value."""
    shape = reduced_shape(x.shape, axis, keepdims)
    if initial is None and x.size == 0 and 0 not in shape:  # an empty result needs no extremum
        raise ShapeError(
            f"the extremum of an empty axis of {x.shape} has no value: give initial=\n"
            "  or reduce over an axis with elements"
        )
    return ArrayType(x.dtype, shape)


def _extremum_ties(y, x, mask, axis, keepdims) -> tuple[Value, Value]:
    """(where ``x`` is the extremum, the number of such elements for each result, at least 1)."""
    here = equal(x, broadcast_back(y, x, axis, keepdims))
    here = mask[0] & here if mask else here
    ties = sum_(here, axis=axis, keepdims=keepdims)
    # 0 ties: the extremum is nan, which equals nothing, or the initial value
    return here, where(ties == 0, 1, ties)


def _max_vjp(ct, y, x, *mask, axis, keepdims, initial):
    """The cotangent, split equally among the elements that tie for the extremum."""
    here, ties = _extremum_ties(y, x, mask, axis, keepdims)
    return unbroadcast(
        where(here, broadcast_back(divide_by_count(ct, ties), x, axis, keepdims), 0), x
    ), *no_gradient(mask)


def _max_jvp(tangents, y, x, *mask, axis, keepdims, initial):
    """The mean of the tangents of the elements that tie for the extremum."""
    here, ties = _extremum_ties(y, x, mask, axis, keepdims)
    return divide_by_count(sum_(where(here, tangents[0], 0), axis=axis, keepdims=keepdims), ties)


def _define_extremum(name, numpy, impl, **fields):
    """Register np.max or np.min."""
    return define(
        name,
        impl,
        max_aval,
        vjp=_max_vjp,
        jvp=_max_jvp,
        prepare=extremum_prepare,
        numpy=numpy,
        batch=reduction_rule(name),
        source=arrays.masked_reduction,
        **_COMPACT,
        needs_elements=True,
        reduction=name,
        is_extremum=True,
        **fields,
    )


max_ = _define_extremum(
    "max",
    (np.max, np.amax),
    lambda xp, x, *mask, axis=None, keepdims=False, initial=None: xp.max(
        x, axis=axis, keepdims=keepdims, **numpy_keywords(mask, initial=initial)
    ),
    onnx="ReduceMax",
    scalar="max",
)
min_ = _define_extremum(
    "min",
    (np.min, np.amin),
    lambda xp, x, *mask, axis=None, keepdims=False, initial=None: xp.min(
        x, axis=axis, keepdims=keepdims, **numpy_keywords(mask, initial=initial)
    ),
    onnx="ReduceMin",
    scalar="min",
)

# ---- any, all, argmax, argmin ----


def _define_logical(name, numpy, impl):
    """Register np.any or np.all."""
    return define(
        name,
        impl,
        lambda x, *mask, axis, keepdims: ArrayType(bool, reduced_shape(x.shape, axis, keepdims)),
        vjp=DISCRETE,
        jvp=DISCRETE,
        prepare=_logical_prepare,
        numpy=(numpy,),
        batch=reduction_rule(name),
        source=arrays.masked_reduction,
        **_COMPACT,
        no_float_errors=True,
        reduction=name,
    )


any_ = _define_logical(
    "any",
    np.any,
    lambda xp, x, *mask, axis=None, keepdims=False: xp.any(
        x, axis=axis, keepdims=keepdims, **numpy_keywords(mask)
    ),
)
all_ = _define_logical(
    "all",
    np.all,
    lambda xp, x, *mask, axis=None, keepdims=False: xp.all(
        x, axis=axis, keepdims=keepdims, **numpy_keywords(mask)
    ),
)


def define_arg_reduction(name: str, numpy: Callable, impl: Callable, **facts: Any) -> Primitive:
    """Register np.argmax, np.argmin or one of their nan-skipping variants."""

    def aval(x, *, axis, keepdims):
        if (x.size if axis is None else x.shape[normalize_axes(axis, x.ndim)[0]]) == 0:
            raise ShapeError(
                f"{name}: an empty axis of an array of shape {x.shape} has no index\n"
                "  reduce over an axis with elements"
            )
        return ArrayType(np.intp, reduced_shape(x.shape, axis, keepdims))

    return define(
        name,
        impl,
        aval,
        vjp=DISCRETE,
        jvp=DISCRETE,
        prepare=lambda a, axis=None, out=None, *, keepdims=False: (
            (a,),
            {"axis": reduced_axis(a, axis), "keepdims": is_given(keepdims) and as_flag(keepdims)},
        ),
        numpy=(numpy,),
        batch=arg_reduction_rule(name),
        gives_scalars=True,
        **facts,
    )


argmax = define_arg_reduction(
    "argmax",
    np.argmax,
    lambda xp, x, *, axis=None, keepdims=False: xp.argmax(x, axis=axis, keepdims=keepdims),
    only_float_warnings=True,
    needs_elements=True,
    cost="moderate",
    scalar="argmax",
    no_float_errors=True,
)
argmin = define_arg_reduction(
    "argmin",
    np.argmin,
    lambda xp, x, *, axis=None, keepdims=False: xp.argmin(x, axis=axis, keepdims=keepdims),
    only_float_warnings=True,
    needs_elements=True,
    cost="moderate",
    scalar="argmin",
    no_float_errors=True,
)
