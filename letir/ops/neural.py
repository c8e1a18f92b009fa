"""Composites of network code: embedding, linear, log_softmax, dropout; and the random mask that
dropout draws.
"""

import numpy as np

from letir.ast.primitive import never
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError, TraceError
from letir.ops.batching import on_axes
from letir.ops.casting import stop_gradient
from letir.ops.elementwise import exp, log, where
from letir.ops.loops import OneByOne
from letir.ops.makers import DISCRETE, composite, op
from letir.ops.reductions import max_, sum_
from letir.ops.sizes import declared, spelled

# ---- composites without random numbers ----


def log_softmax_decompose(x, *, axis=-1):
    """x - log(sum(exp(x))) with the maximum subtracted first, so that nothing overflows."""
    # any shift gives the same result, so that there is no derivative by it, nor by its ties
    shifted = x - stop_gradient(max_(x, axis=axis, keepdims=True))
    return shifted - log(sum_(exp(shifted), axis=axis, keepdims=True))


log_softmax = composite(
    "log_softmax",
    log_softmax_decompose,
    # by y: softmax is exp(y)
    vjp=lambda ct, y, x, *, axis, transform: (ct - exp(y) * sum_(ct, axis=axis, keepdims=True),),
    batch=on_axes("log_softmax"),
    onnx="LogSoftmax",
)


def linear_decompose(x, weight, bias=None):
    """x @ weight.T + bias, for a weight of shape (outputs, inputs)."""
    out = x @ weight.T
    return out if bias is None else out + bias


linear = composite("linear", linear_decompose, onnx="Gemm")


def embedding_decompose(
    weight,
    indices,
    *,
    padding_idx=-1,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    sparse=False,
):
    """The rows of ``weight`` at ``indices``; the row ``padding_idx``, if it is not negative, gets
    no gradient.
    """
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise DTypeError(
            "embedding: max_norm, scale_grad_by_freq and sparse are not supported: "
            "they change the rule"
        )
    rows = weight[indices]
    if padding_idx < 0:
        return rows
    # the row is read as any other; only its gradient stops
    return where((indices == padding_idx)[..., None], stop_gradient(rows), rows)


embedding = composite("embedding", embedding_decompose, onnx="Gather")

# ---- dropout ----


def random_mask_impl(xp, key, *sizes, shape, rate):
    """True with probability 1 - rate, by the counter-based generator Philox: the same on every
    evaluator [B9].

    Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011.
    """
    # the words of Philox's key
    words = np.asarray(key.get() if hasattr(key, "get") else key, dtype=np.uint64).reshape(-1)
    philox = np.random.Philox(key=words if words.size == 2 else int(words[0]))
    # on the host also for CuPy: the same mask everywhere costs a copy
    draws = np.random.Generator(philox).random(declared(shape, sizes))
    return xp.asarray(draws >= rate)


def random_mask_aval(key, *sizes, shape, rate):
    """Booleans of the declared shape; the key is one or two integers."""
    if key.dtype.kind not in "iu" or key.size not in (1, 2):
        raise DTypeError(f"a random key is one or two integers, found {key}")
    if not 0 <= rate <= 1:
        raise ShapeError(f"a rate is between 0 and 1, found {rate}")
    return None if shape is None else ArrayType(bool, shape)


def random_mask_prepare(key, shape, rate):
    """The key, and what says the shape."""
    sizes, shape = spelled(shape)
    return (key, *sizes), {"shape": shape, "rate": rate}


random_mask = op(
    "random_mask",
    random_mask_impl,
    random_mask_aval,
    vjp=DISCRETE,
    jvp=DISCRETE,
    batch=OneByOne(lambda: random_mask),  # each mask by a key of its own
    prepare=random_mask_prepare,
    random=True,
    onnx=never("ONNX has no keyed random numbers"),
)


def dropout_decompose(x, key=None, *, rate=0.5, train=True, inplace=False):
    """``x`` with elements set to 0 with probability ``rate`` and the others scaled by 1 / (1 -
    rate).
    """
    if not train or rate == 0:
        return x * 1
    if key is None:
        raise TraceError(
            "dropout: training needs a key of one or two integers: dropout(x, key, rate=...)"
        )
    kept = random_mask(key, x, rate)
    # rate 1: no division by 0
    return where(kept, x / (1 - rate), 0) if rate < 1 else where(kept, x, 0)


dropout = composite("dropout", dropout_decompose, random=True)
