"""Composites of network code: embedding, linear, log_softmax, dropout."""

import numpy as np

from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError, TraceError
from letir.ops.define.batch_rules import axes_rule
from letir.ops.define.records import composite, composite_numerics
from letir.ops.elementwise.casting import copy, stop_gradient
from letir.ops.elementwise.ufuncs import exp, greater_equal, less, log, where
from letir.ops.random.keys_and_draws import as_key, random_draw
from letir.ops.reductions.reductions import max_, sum_

# ---- composites without random numbers ----


def _log_softmax_decompose(x, *, axis=-1):
    """x - log(sum(exp(x))) with the maximum subtracted first, so that nothing overflows."""
    # any shift gives the same result, so that there is no derivative by it, nor by its ties
    shifted = x - stop_gradient(max_(x, axis=axis, keepdims=True))
    return shifted - log(sum_(exp(shifted), axis=axis, keepdims=True))


log_softmax = composite(
    "log_softmax",
    _log_softmax_decompose,
    # by y: softmax is exp(y)
    vjp=lambda ct, y, x, *, axis, transform: (ct - exp(y) * sum_(ct, axis=axis, keepdims=True),),
    batch=axes_rule("log_softmax"),
    onnx="LogSoftmax",
)


def _linear_decompose(x, weight, bias=None):
    """x @ weight.T + bias, for a weight of shape (outputs, inputs)."""
    out = x @ weight.T
    return out if bias is None else out + bias


linear = composite("linear", _linear_decompose, onnx="Gemm")


def _embedding_decompose(
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
    if rows.ndim == weight.ndim - 1 > 0:
        rows = copy(rows)  # the row at a number is a view, which no other lookup is
    if padding_idx < 0:
        return rows
    # the row is read as any other; only its gradient stops
    return where((indices == padding_idx)[..., None], stop_gradient(rows), rows)


embedding = composite("embedding", _embedding_decompose, onnx="Gather")

# ---- dropout ----


def _dropout_decompose(x, key=None, *, rate=0.5, train=True, inplace=False):
    """``x`` with elements set to 0 with probability ``rate`` and the others scaled by 1 / (1 -
    rate).
    """
    if not train or rate == 0:
        return x * 1
    if key is None:
        raise TraceError(
            "dropout: training needs a key, or an integer seed: dropout(x, key, rate=...)"
        )
    if not 0 <= rate <= 1:
        raise ShapeError(f"a rate is between 0 and 1, found {rate}")
    # of integers: exact, and in no precision that is not that of x
    bits = random_draw(as_key(key), "bits", x, np.uint64)
    kept = greater_equal(bits, int(rate * 2.0**64)) if rate < 1 else less(bits, 0)
    # rate 1: no division by 0
    return where(kept, x / (1 - rate), 0) if rate < 1 else where(kept, x, 0)


def _dropout_aval(x, key=None, **attrs):
    """That of x as floating; also without a key, which only what is computed needs: the program of
    a network can be recorded from the types of its arguments [A2].
    """
    key = ArrayType(np.uint64, (2,)) if key is None else key
    return composite_numerics(_dropout_decompose, False)[1](x, key, **attrs)


def _dropout_prepare(x, key=None, *, rate=0.5, train=True, inplace=False):
    """A key that is not there is no operand."""
    operands = (x,) if key is None else (x, key)
    return operands, {"rate": rate, "train": train, "inplace": inplace}


dropout = composite(
    "dropout", _dropout_decompose, aval=_dropout_aval, prepare=_dropout_prepare, random=True
)
