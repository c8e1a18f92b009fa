"""Activation functions of networks: relu and its relatives, sigmoid, softplus, gelu.

Composites of real arrays. Where two pieces of a function meet, its derivative is the derivative of
the left piece; for relu and at the bounds of clamped ranges it is 0, as in PyTorch
(docs/semantics.md, D13). No intermediate value overflows where the result does not.
"""

import math
from collections.abc import Callable

from letir.errors import DTypeError
from letir.ops.define.batch_rules import align_ranks, axes_rule, batch_first, emit_op
from letir.ops.define.composite_programs import composite_numerics
from letir.ops.define.records import composite
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.logaddexp import logaddexp
from letir.ops.elementwise.rounding_sign_parts import abs_
from letir.ops.elementwise.ufuncs import exp, expm1, tanh
from letir.ops.shape.concatenate_stack_split import split
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.special.normal_cdf import normal_cdf


def _elementwise_rule(name: str):
    """The batching rule of an elementwise composite: the same composite of the whole batch."""

    def rule(args, mapped, *, transform, **attrs):
        return emit_op(name, align_ranks(args, mapped), **attrs)

    return batch_first(rule)


def real_type_rule(name: str, decompose: Callable) -> Callable:
    """The type rule of a composite that refuses complex arrays, because it compares."""
    aval = composite_numerics(decompose, False)[1]

    def real_aval(*types, **attrs):
        if any(kind is not None and kind.dtype.kind == "c" for kind in types):
            raise DTypeError(
                f"{name} takes real arrays, found {', '.join(map(str, types))}\n"
                "  convert with .astype(float), or take .real"
            )
        return aval(*types, **attrs)

    return real_aval


def _define_activation(name: str, decompose, **fields):
    """Register an elementwise function of one real array."""
    fields = {"aval": real_type_rule(name, decompose), "batch": _elementwise_rule(name), **fields}
    return composite(name, decompose, **fields)


# ---- piecewise functions ----


def _relu_decompose(x):
    """x, or 0 where x is negative.

    >>> import numpy as np
    >>> relu(np.array([-1.0, 0.0, 2.0]))
    array([0., 0., 2.])
    """
    return where(x <= 0, 0, x)  # a nan stays nan


def _leaky_relu_decompose(x, *, negative_slope=0.01):
    """x, or ``negative_slope * x`` where x is not positive.

    >>> import numpy as np
    >>> leaky_relu(np.array([-1.0, 0.0, 2.0]), negative_slope=0.5)
    array([-0.5,  0. ,  2. ])
    """
    return where(x > 0, x, negative_slope * x)


def _elu_decompose(x, *, alpha=1.0):
    """x, or ``alpha * (exp(x) - 1)`` where x is not positive.

    >>> import numpy as np
    >>> elu(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.632,  0.   ,  2.   ])
    """
    return where(x > 0, x, alpha * expm1(_negative_part(x)))


def _negative_part(x):
    """x where it is negative, else 0."""
    # not minimum, whose derivative at 0 is 1/2
    return where(x > 0, 0, x)


def _celu_decompose(x, *, alpha=1.0):
    """x, or ``alpha * (exp(x / alpha) - 1)`` where x is not positive.

    >>> import numpy as np
    >>> celu(np.array([-1.0, 0.0, 2.0]), alpha=2.0).round(3)
    array([-0.787,  0.   ,  2.   ])
    """
    return where(x > 0, x, alpha * expm1(_negative_part(x) / alpha))


def _selu_decompose(x):
    """elu with the constants for which layers keep mean 0 and variance 1.

    Klambauer, Unterthiner, Mayr and Hochreiter, Self-normalizing neural networks, NeurIPS 2017.

    >>> import numpy as np
    >>> selu(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-1.111,  0.   ,  2.101])
    """
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return scale * where(x > 0, x, alpha * expm1(_negative_part(x)))


def _clamp_flat(x, low, high):
    """x limited to the bounds; the derivative at the bounds is 0, whereas clip has 1."""
    return where(x <= low, low, where(x >= high, high, x))


def _hardtanh_decompose(x, *, low=-1.0, high=1.0):
    """x limited to [``low``, ``high``].

    >>> import numpy as np
    >>> hardtanh(np.array([-1.0, 0.0, 2.0]))
    array([-1.,  0.,  1.])
    """
    return _clamp_flat(x, low, high)


def _hardsigmoid_decompose(x):
    """A line from 0 at -3 to 1 at 3, constant outside.

    >>> import numpy as np
    >>> hardsigmoid(np.array([-4.0, 0.0, 4.0]))
    array([0. , 0.5, 1. ])
    """
    return _clamp_flat(x + 3, 0, 6) / 6


def _hardshrink_decompose(x, *, threshold=0.5):
    """x, or 0 where abs(x) is at most ``threshold``.

    >>> import numpy as np
    >>> hardshrink(np.array([-1.0, 0.0, 2.0]), threshold=1.5)
    array([0., 0., 2.])
    """
    return where(abs_(x) <= threshold, 0, x)


def _softshrink_decompose(x, *, threshold=0.5):
    """x moved towards 0 by ``threshold``; 0 where abs(x) is at most ``threshold``.

    >>> import numpy as np
    >>> softshrink(np.array([-1.0, 0.0, 2.0]))
    array([-0.5,  0. ,  1.5])
    """
    return where(x > threshold, x - threshold, where(x < -threshold, x + threshold, 0 * x))


def _relu6_decompose(x):
    """x limited to [0, 6].

    >>> import numpy as np
    >>> relu6(np.array([-1.0, 3.0, 8.0]))
    array([0., 3., 6.])
    """
    return _clamp_flat(x, 0, 6)


def _hardswish_decompose(x):
    """x times ``hardsigmoid(x)``.

    >>> import numpy as np
    >>> hardswish(np.array([-4.0, 1.5, 4.0]))
    array([-0.   ,  1.125,  4.   ])
    """
    return x * hardsigmoid(x)


relu = _define_activation("relu", _relu_decompose, onnx="Relu")
relu6 = _define_activation("relu6", _relu6_decompose)
leaky_relu = _define_activation("leaky_relu", _leaky_relu_decompose, onnx="LeakyRelu")
elu = _define_activation("elu", _elu_decompose, onnx="Elu")
celu = _define_activation("celu", _celu_decompose, onnx="Celu")
selu = _define_activation("selu", _selu_decompose, onnx="Selu")
hardtanh = _define_activation("hardtanh", _hardtanh_decompose)
hardsigmoid = _define_activation("hardsigmoid", _hardsigmoid_decompose)
hardswish = _define_activation("hardswish", _hardswish_decompose, onnx="HardSwish")
hardshrink = _define_activation("hardshrink", _hardshrink_decompose)
softshrink = _define_activation("softshrink", _softshrink_decompose)


def _prelu_decompose(x, weight):
    """leaky_relu with learnt slopes: one number, or one for each channel (axis 1 of x).

    >>> import numpy as np
    >>> prelu(np.array([-1.0, 0.0, 2.0]), 0.25)
    array([-0.25,  0.  ,  2.  ])
    """
    if weight.ndim == 1 and x.ndim > 1:
        weight = reshape(weight, (-1, *[1] * (x.ndim - 2)))
    return where(x > 0, x, weight * x)


prelu = composite(
    "prelu", _prelu_decompose, aval=real_type_rule("prelu", _prelu_decompose), onnx="PRelu"
)

# ---- smooth ----


def _sigmoid_decompose(x):
    """1 / (1 + exp(-x)), written so that no exponential overflows.

    >>> import numpy as np
    >>> sigmoid(np.array([-1.0, 0.0, 2.0])).round(3)
    array([0.269, 0.5  , 0.881])
    """
    small = exp(-abs_(x))
    return where(x >= 0, 1, small) / (1 + small)


sigmoid = _define_activation(
    "sigmoid",
    _sigmoid_decompose,
    vjp=lambda ct, y, x, *, transform: (ct * (y * (1 - y)),),
    jvp=lambda t, y, x, *, transform: t[0] * (y * (1 - y)),
    onnx="Sigmoid",
)


def _softplus_decompose(x, *, beta=1.0):
    """log(1 + exp(beta * x)) / beta.

    >>> import numpy as np
    >>> softplus(np.array([-1.0, 0.0, 2.0])).round(3)
    array([0.313, 0.693, 2.127])
    """
    return logaddexp(x, 0) if beta == 1 else logaddexp(beta * x, 0) / beta


def _gelu_decompose(x, *, approximate="none"):
    """x times the normal distribution function of x; ``approximate="tanh"`` for the faster form.

    Hendrycks and Gimpel, Gaussian error linear units, arXiv:1606.08415.

    >>> import numpy as np
    >>> gelu(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.159,  0.   ,  1.954])
    """
    if approximate not in ("none", "tanh"):
        message = f"gelu: approximate must be 'none' or 'tanh', found {approximate!r}"
        raise DTypeError(f"{message}\n  leave it out for the exact function")
    if approximate == "none":
        return x * normal_cdf(x)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1 + tanh(inner))


def _softsign_decompose(x):
    """x / (1 + abs(x)).

    >>> import numpy as np
    >>> softsign(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.5  ,  0.   ,  0.667])
    """
    return x / (1 + abs_(x))


def _log_sigmoid_decompose(x):
    """log(sigmoid(x)), which is about x for x far below 0.

    >>> import numpy as np
    >>> log_sigmoid(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-1.313, -0.693, -0.127])
    """
    return -logaddexp(-x, 0)


def _silu_decompose(x):
    """x times ``sigmoid(x)``, also called swish.

    >>> import numpy as np
    >>> silu(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.269,  0.   ,  1.762])
    """
    return x * sigmoid(x)


def _mish_decompose(x):
    """x times ``tanh(softplus(x))``.

    >>> import numpy as np
    >>> mish(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.303,  0.   ,  1.944])
    """
    return x * tanh(logaddexp(x, 0))


def _tanhshrink_decompose(x):
    """x - tanh(x).

    >>> import numpy as np
    >>> tanhshrink(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.238,  0.   ,  1.036])
    """
    return x - tanh(x)


softplus = _define_activation("softplus", _softplus_decompose, onnx="Softplus")
log_sigmoid = _define_activation("log_sigmoid", _log_sigmoid_decompose)
silu = _define_activation("silu", _silu_decompose)
mish = _define_activation("mish", _mish_decompose, onnx="Mish")
gelu = _define_activation("gelu", _gelu_decompose, onnx="Gelu")
softsign = _define_activation("softsign", _softsign_decompose, onnx="Softsign")
tanhshrink = _define_activation("tanhshrink", _tanhshrink_decompose)


def _glu_decompose(x, *, axis=-1):
    """The first half of x along ``axis`` times the sigmoid of the second.

    >>> import numpy as np
    >>> glu(np.array([1.0, 2.0, 0.0, 0.0]))
    array([0.5, 1. ])
    """
    first, second = split(x, 2, axis)
    return first * sigmoid(second)


glu = composite("glu", _glu_decompose, batch=axes_rule("glu"))
