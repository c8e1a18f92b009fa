"""Random numbers that need special functions: gamma and truncated normal numbers."""

from letir.ast.primitive import Primitive
from letir.ops.as_numpy.random import gamma_draw
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.ops.define.records import broadcast_tangent, cast_cotangent, define, unbroadcast
from letir.ops.elementwise.clip import clip
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.random.distributions import (
    cast_parameter,
    define_distribution,
    draw_call,
    draw_numbers,
    draw_type_rule,
)
from letir.ops.random.keys_and_draws import NO_ONNX, key_generators, stack_results
from letir.ops.shape.shape_and_creation import runtime_shape
from letir.ops.special.gamma_gradient import gamma_slope
from letir.ops.special.special_functions import ndtr, ndtri

# ---- gamma numbers, drawn by rejection ----


def _gamma_impl(xp, key, a, *sizes, shape, dtype):
    """NumPy's or CuPy's gamma numbers, by the method of Marsaglia and Tsang, A simple method for
    generating gamma variables, ACM Trans. Math. Softw., 2000.
    """
    shape = runtime_shape(shape, sizes)
    results = [
        xp.asarray(generator.standard_gamma(a, shape)).astype(dtype, copy=False)
        for generator in key_generators(key, xp)
    ]
    out = stack_results(key, results, shape, dtype, xp)
    return out if out.shape else out[()]


def _gamma_vjp(ct, y, key, a, *sizes, shape, dtype):
    """The implicit derivative with respect to the shape parameter ``a``."""
    return None, unbroadcast(ct * gamma_slope(cast_parameter(a, dtype), y), a), *[None] * len(sizes)


def _gamma_jvp(tangents, y, key, a, *sizes, shape, dtype):
    """The implicit derivative with respect to the shape parameter ``a``."""
    return broadcast_tangent(
        tangents[1] * cast_cotangent(gamma_slope(cast_parameter(a, dtype), y), y.dtype), y
    )


random_gamma: Primitive = define(
    "random_gamma",
    _gamma_impl,
    draw_type_rule(1),
    vjp=_gamma_vjp,
    jvp=_gamma_jvp,
    prepare=lambda key, a, shape=None, dtype=None: draw_call(key, (a,), shape, dtype),
    batch=LoopOverExamples(lambda: random_gamma),
    random=True,
    source=gamma_draw,
    onnx=NO_ONNX,
)

# ---- normal numbers between bounds ----


def _truncated_normal_decompose(key, lower, upper, *sizes, shape, dtype):
    """The inverse of the normal distribution function, of uniform numbers between its bounds.

    Bounds above 0 are mirrored: near 1 the inverse of the distribution function is inexact.
    """
    u = draw_numbers(key, "uniform", sizes, shape, dtype)
    lower, upper = cast_parameter(lower, dtype), cast_parameter(upper, dtype)
    is_above = lower > 0
    low, high = where(is_above, -upper, lower), where(is_above, -lower, upper)
    bottom, top = ndtr(low), ndtr(high)
    x = ndtri(bottom + u * (top - bottom))
    # in the far tail bottom and top are both 0: clip returns the bound
    return where(is_above, -1.0, 1.0).astype(dtype) * clip(x, low, high)


random_truncated_normal = define_distribution(
    "random_truncated_normal",
    _truncated_normal_decompose,
    parameters=2,
    prepare=lambda key, lower, upper, shape=None, dtype=None: draw_call(
        key, (lower, upper), shape, dtype
    ),
)
