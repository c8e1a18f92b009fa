"""The linear filter 1 / a along the last axis: all_pole_filter.

y[t] = (x[t] - a[1] y[t - 1] - a[2] y[t - 2] - ...) / a[0]. The transpose of the filter runs back in
time; the derivative with respect to ``a`` filters delayed results.
"""

import numpy as np

from letir.ast.primitive import Primitive
from letir.ast.record_fields import never
from letir.ast.types import ArrayType
from letir.errors import ShapeError
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.ops.define.records import add_terms, broadcast_tangent, define, unbroadcast
from letir.ops.reductions.reductions import sum_
from letir.ops.shape.concatenate_stack_split import concatenate, stack
from letir.ops.shape.shape_and_creation import zeros_like
from letir.ops.shape.unit_axes_and_flip import flip
from letir.ops.special.define import scipy_or_cupy_function


def _all_pole_filter_impl(xp, a, x):
    """``scipy.signal.lfilter([1], a, x)``."""
    dtype = xp.result_type(a.dtype, x.dtype, xp.float32)
    one = xp.ones(1, dtype)
    result = scipy_or_cupy_function(xp, "signal", "lfilter")(one, a.astype(dtype), x.astype(dtype))
    return result.astype(dtype, copy=False)


def _all_pole_filter_aval(a, x):
    """The type of a signal with the coefficients ``a``, a vector."""
    if len(a.shape) != 1 or not a.shape[0] or not x.shape:
        raise ShapeError(
            f"all_pole_filter: coefficients of shape {a.shape} and a signal of shape {x.shape}\n"
            "  pass a vector of coefficients and a signal with at least one axis"
        )
    return ArrayType(np.result_type(a.dtype, x.dtype, np.float32), x.shape)


def _delayed(y, count: int):
    """``y`` moved by ``count`` samples along the last axis, after zeros."""
    n = y.shape[-1]
    if count == 0:
        return y
    if count >= n:
        return zeros_like(y)
    return concatenate([zeros_like(y[..., :count]), y[..., : n - count]], axis=-1)


def _all_pole_filter_vjp(ct, y, a, x):
    """The filter run back in time, and its products with delayed results."""
    by_x = flip(all_pole_filter(a, flip(ct, -1)), -1)
    by_a = stack([-sum_(by_x * _delayed(y, k)) for k in range(a.shape[0])])
    return unbroadcast(by_a, a), unbroadcast(by_x, x)


def _all_pole_filter_jvp(tangents, y, a, x):
    """The filter of the tangent minus delayed results times the tangents of the coefficients."""
    by_a, by_x = tangents
    terms = [] if by_a is None else [-(by_a[k] * _delayed(y, k)) for k in range(a.shape[0])]
    return broadcast_tangent(all_pole_filter(a, add_terms([by_x, *terms])), y)


all_pole_filter: Primitive = define(
    "all_pole_filter",
    _all_pole_filter_impl,
    _all_pole_filter_aval,
    vjp=_all_pole_filter_vjp,
    jvp=_all_pole_filter_jvp,
    batch=LoopOverExamples(lambda: all_pole_filter),
    source=lambda write, a, x: (
        f"{write.writer.module.imported('scipy.signal', 'lfilter')}(np.ones(1, np.result_type"
        f"({a}, {x})), {a}, {x})"
    ),
    onnx=never("ONNX has no recursive filter"),
    raises=True,
)
