"""Composites of network code: embedding, linear, dropout."""

import numpy as np

from letir.ast.sizes.size import sizes_differ
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError, TraceError
from letir.ops.define.composite_programs import composite_numerics
from letir.ops.define.records import composite
from letir.ops.elementwise.casting import copy, stop_gradient
from letir.ops.elementwise.comparisons_and_where import greater_equal, less, where
from letir.ops.random.keys_and_draws import as_key, random_draw

# ---- composites without random numbers ----


def _linear_decompose(x, weight, bias=None):
    """x @ weight.T + bias, for a weight of shape (outputs, inputs).

    >>> linear(np.ones((2, 3)), np.array([[1.0, 2.0, 3.0]]), np.array([0.5]))
    array([[6.5],
           [6.5]])
    """
    _check_inputs(x, weight)
    out = x @ weight.T
    return out if bias is None else out + bias


def _check_inputs(x, weight) -> None:
    """Raise ShapeError if ``x`` is known to have other inputs than a weight."""
    shapes = [v.type.shape for v in (x, weight) if getattr(v, "type", None) is not None]
    if len(shapes) == 2 and all(shapes) and sizes_differ(shapes[0][-1], shapes[1][-1]):
        raise ShapeError(
            f"an input of shape {shapes[0]} does not fit a weight of shape {shapes[1]}, which is "
            "(outputs, inputs)\n  the last axes must have one length: transpose the weight"
        )


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
            "they would change the gradient\n"
            "  leave them out, or write the lookup as weight[indices]"
        )
    rows = weight[indices]
    if rows.ndim == weight.ndim - 1 > 0:
        rows = copy(rows)  # indexing by one number gives a view; every other lookup copies
    if padding_idx < 0:
        return rows
    # the padding row is read like other rows, but gets no gradient
    return where((indices == padding_idx)[..., None], stop_gradient(rows), rows)


embedding = composite("embedding", _embedding_decompose, onnx="Gather", raises=True)

# ---- dropout ----


def _dropout_decompose(x, key=None, *, rate=0.5, train=True, inplace=False):
    """``x`` with elements set to 0 with probability ``rate`` and the others scaled by 1 / (1 -
    rate).

    >>> from letir import random
    >>> dropout(np.ones(6), random.key(3), rate=0.5)
    array([2., 0., 0., 2., 2., 0.])
    """
    if not train or rate == 0:
        return x * 1
    if key is None:
        raise TraceError(
            "dropout: training needs a key, or an integer seed: dropout(x, key, rate=...)\n"
            "  or pass train=False to leave the values unchanged"
        )
    if not 0 <= rate <= 1:
        raise ShapeError(
            f"dropout: the rate must be between 0 and 1, found {rate}\n"
            "  pass the share of values that are set to zero"
        )
    # random integers compare exactly, whatever the dtype of x
    bits = random_draw(as_key(key), "bits", x, np.uint64)
    mask = greater_equal(bits, int(rate * 2.0**64)) if rate < 1 else less(bits, 0)
    # a rate of 1 must not divide by 0
    return where(mask, x / (1 - rate), 0) if rate < 1 else where(mask, x, 0)


def _dropout_aval(x, key=None, **attrs):
    """The floating type of x. A missing key is an error only when dropout is computed.

    So the program of a network can be recorded from the types of its arguments [semantics.md A2].
    """
    key = ArrayType(np.uint64, (2,)) if key is None else key
    return composite_numerics(_dropout_decompose, False)[1](x, key, **attrs)


def _dropout_prepare(x, key=None, *, rate=0.5, train=True, inplace=False):
    """The operands, without ``key`` if it is None, and the attributes."""
    if isinstance(key, float):
        raise DTypeError(
            f"dropout: the second argument is the key, found {key}\n"
            "  pass the rate by keyword: dropout(x, key, rate=0.5)"
        )
    operands = (x,) if key is None else (x, key)
    return operands, {"rate": rate, "train": train, "inplace": inplace}


dropout = composite(
    "dropout",
    _dropout_decompose,
    aval=_dropout_aval,
    prepare=_dropout_prepare,
    random=True,
    key_operand=1,
    for_scripts=False,
)
