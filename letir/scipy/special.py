"""``scipy.special`` for traced values: functions that are not ufuncs; ufuncs are SciPy's own."""

import math
from typing import Any

import numpy as np

from letir.ast.primitive import PRIMITIVES
from letir.scipy.namespace import as_scalar, drop_in, fallback_getattr, refusal_error
from letir.tracing.mutation.memory_order import copy_to_order
from letir.tracing.mutation.views import mark_as_array
from letir.tracing.operands import traced_or_array

__getattr__ = fallback_getattr("special")


def _as_floating(x):
    """An argument as a floating or complex array, or traced value."""
    x = traced_or_array(x)
    return x if x.dtype.kind in "fc" else x.astype(float)


@drop_in("special")
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """log(sum(b * exp(a))), without overflow.

    ``return_sign``: return the logarithm of the absolute value of the sum, and its sign.
    """
    a = _as_floating(a)
    if a.dtype.kind == "c":
        raise refusal_error(
            "logsumexp", "complex numbers are not supported; write log(sum(exp(a)))"
        )
    if b is None and not return_sign:
        return as_scalar(PRIMITIVES["logsumexp"](a, axis=axis, keepdims=keepdims))
    if b is not None:
        b = traced_or_array(b)
        shape = np.broadcast_shapes(a.shape, b.shape)
        a, b = np.broadcast_to(a, shape), np.broadcast_to(b, shape)
        a = np.where(b == 0, -math.inf, a)  # a term with b = 0 is 0, even if exp(a) is inf
    most = PRIMITIVES["stop_gradient"](a.max(axis=axis, keepdims=True))
    most = np.where(np.isfinite(most), most, 0.0)
    weights = np.exp(a - most)
    total = (weights if b is None else b * weights).sum(axis=axis, keepdims=True)
    sign, is_zero = np.sign(total), total == 0
    size = np.abs(total) if return_sign else total
    result = np.where(is_zero, -math.inf, np.log(np.where(is_zero, 1.0, size))) + most
    if not keepdims:
        axes = tuple(range(a.ndim)) if axis is None else axis
        result, sign = [as_scalar(np.squeeze(x, axes)) for x in (result, sign)]
    return (result, sign) if return_sign else result


def _apply_along(name: str, x, axis):
    """Call the record ``name`` along ``axis``: an int, a tuple, or None for all axes."""
    x = _as_floating(x)
    if x.dtype.kind == "c":
        raise refusal_error(name, "complex numbers are not supported")
    return PRIMITIVES[name](x, axis=tuple(range(x.ndim)) if axis is None else axis)


@drop_in("special")
def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along ``axis``, by default over all elements."""
    return _apply_along("softmax", x, axis)


@drop_in("special")
def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of ``softmax``."""
    return _apply_along("log_softmax", x, axis)


@drop_in("special")
def softplus(x: Any) -> Any:
    """log(1 + exp(x))."""
    return np.logaddexp(0.0, _as_floating(x))


@drop_in("special")
def polygamma(n: Any, x: Any) -> Any:
    """The derivative of order ``n``, an int, of psi."""
    if type(n) is not int:
        raise refusal_error("polygamma", f"the order must be a Python int, found {n!r}")
    return mark_as_array(PRIMITIVES["polygamma"](n, _as_floating(x)))


@drop_in("special")
def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension ``d``, an int."""
    a = _as_floating(a)
    total: Any = np.float64(d * (d - 1) / 4 * math.log(math.pi))  # of float32, too
    for j in range(1, d + 1):
        total = PRIMITIVES["gammaln"](a + (1 - j) / 2) + total
    return copy_to_order(total)
