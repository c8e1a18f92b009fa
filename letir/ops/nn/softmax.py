"""softmax, log_softmax and logsumexp along an axis, without overflow."""

import math

from letir.ops.define.batch_rules import axes_rule
from letir.ops.define.records import composite
from letir.ops.elementwise.casting import stop_gradient
from letir.ops.elementwise.comparisons_and_where import equal, isfinite, where
from letir.ops.elementwise.ufuncs import exp, log
from letir.ops.nn.activations import real_type_rule
from letir.ops.reductions.reductions import broadcast_back, max_, sum_
from letir.ops.shape.unit_axes_and_flip import squeeze


def _softmax_decompose(x, *, axis=-1):
    """exp(x) divided by its sum along ``axis``, with the maximum subtracted first.

    -inf gives 0 with a derivative of 0; if all are -inf the result is nan, as in SciPy.

    >>> import numpy as np
    >>> softmax(np.array([0.0, 0.0, np.log(2)]))
    array([0.25, 0.25, 0.5 ])
    """
    # the result does not depend on the shift: stop_gradient drops a derivative that is zero
    powers = exp(x - stop_gradient(max_(x, axis=axis, keepdims=True)))
    return powers / sum_(powers, axis=axis, keepdims=True)


def _softmax_rule(g, y, axis):
    """The derivative of softmax in either mode: its Jacobian is symmetric."""
    return y * (g - sum_(g * y, axis=axis, keepdims=True))


softmax = composite(
    "softmax",
    _softmax_decompose,
    aval=real_type_rule("softmax", _softmax_decompose),
    vjp=lambda ct, y, x, *, axis, transform: (_softmax_rule(ct, y, axis),),
    jvp=lambda t, y, x, *, axis, transform: _softmax_rule(t[0], y, axis),
    batch=axes_rule("softmax"),
    onnx="Softmax",
)


def _logsumexp_decompose(x, *, axis=-1, keepdims=False):
    """log(sum(exp(x))) along ``axis`` (None: of all elements), without overflow.

    If all elements are -inf, the result is -inf with a zero gradient. The maximum is subtracted
    first (Blanchard, Higham and Higham, IMA J. Numer. Anal., 2021).

    >>> import numpy as np
    >>> logsumexp(np.array([[0.0, 0.0], [1000.0, 0.0]])).round(3)
    array([6.93e-01, 1.00e+03])
    """
    most = stop_gradient(max_(x, axis=axis, keepdims=True))
    finite = where(isfinite(most), most, 0)
    total = sum_(exp(x - finite), axis=axis, keepdims=True)
    # the sum is 0 if all elements are -inf: log would warn
    result = where(equal(total, 0), -math.inf, log(where(equal(total, 0), 1, total)) + finite)
    axes = tuple(range(x.ndim)) if axis is None else axis
    return result if keepdims else squeeze(result, axes)


def _logsumexp_weights(y, x, axis, keepdims):
    """The derivative with respect to each element: exp(x - y), which is 0 for -inf."""
    # where: -inf - -inf would be nan
    return exp(x - broadcast_back(where(isfinite(y), y, 0), x, axis, keepdims))


def _logsumexp_vjp(ct, y, x, *, axis, keepdims, transform):
    """Distribute the cotangent by the softmax weights of the elements."""
    return (broadcast_back(ct, x, axis, keepdims) * _logsumexp_weights(y, x, axis, keepdims),)


def _logsumexp_jvp(tangents, y, x, *, axis, keepdims, transform):
    """The sum of the tangents with softmax weights."""
    return sum_(
        tangents[0] * _logsumexp_weights(y, x, axis, keepdims), axis=axis, keepdims=keepdims
    )


logsumexp = composite(
    "logsumexp",
    _logsumexp_decompose,
    aval=real_type_rule("logsumexp", _logsumexp_decompose),
    vjp=_logsumexp_vjp,
    jvp=_logsumexp_jvp,
    batch=axes_rule("logsumexp"),
    onnx="ReduceLogSumExp",
)


def _log_softmax_decompose(x, *, axis=-1):
    """x - log(sum(exp(x))) with the maximum subtracted first, so that nothing overflows.

    >>> import numpy as np
    >>> log_softmax(np.zeros(4)).round(3)
    array([-1.386, -1.386, -1.386, -1.386])
    """
    # the result does not depend on the shift: stop_gradient drops a derivative that is zero
    shifted = x - stop_gradient(max_(x, axis=axis, keepdims=True))
    return shifted - log(sum_(exp(shifted), axis=axis, keepdims=True))


log_softmax = composite(
    "log_softmax",
    _log_softmax_decompose,
    # exp(y) is the softmax
    vjp=lambda ct, y, x, *, axis, transform: (ct - exp(y) * sum_(ct, axis=axis, keepdims=True),),
    batch=axes_rule("log_softmax"),
    onnx="LogSoftmax",
)
