"""Scaled dot-product attention."""

import math

from letir.errors import ShapeError
from letir.ops.define.records import composite
from letir.ops.elementwise.comparisons_and_where import less_equal, logical_and, where
from letir.ops.linalg.matmul_einsum import matmul
from letir.ops.nn.softmax import softmax
from letir.ops.reductions.cumulative import cumsum
from letir.ops.reductions.reductions import any_
from letir.ops.shape.shape_and_creation import ones_like
from letir.ops.shape.transpose import move_axes
from letir.ops.shape.unit_axes_and_flip import expand_dims


def _attention_decompose(query, key, value, mask=None, *, causal=False, scale=None):
    """softmax(query @ key.T * scale) @ value, over the last two axes.

    ``query``: (..., L, E); ``key``: (..., S, E); ``value``: (..., S, V); result (..., L, V).
    ``mask``, broadcast to (..., L, S): booleans, False for keys not attended to, or numbers that
    are added to the scores. ``causal``: keys at later positions are not attended to.
    ``scale``: by default 1 / sqrt(E). A query that attends to no key gets 0 with a zero gradient.

    Vaswani et al., Attention is all you need, NeurIPS 2017.

    >>> import numpy as np
    >>> key = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> attention(10 * key, key, np.array([[1.0], [2.0]])).round(3)
    array([[1.001],
           [1.999]])
    """
    if min(query.ndim, key.ndim, value.ndim) < 2 or query.shape[-1] != key.shape[-1]:
        raise ShapeError(
            "attention takes query (..., L, E), key (..., S, E) and value (..., S, V), found "
            f"{query.shape}, {key.shape} and {value.shape}\n"
            "  the last axes of query and key, and the lengths of key and value, must agree"
        )
    scores = matmul(query, move_axes(key, (-1,), (-2,)))
    scores = scores * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    visible = None
    if mask is not None and mask.dtype.kind == "b":
        visible = mask
    elif mask is not None:
        scores = scores + mask
    if causal:
        earlier = _causal_mask(scores)
        visible = earlier if visible is None else logical_and(visible, earlier)
    if visible is None:
        return matmul(softmax(scores), value)
    something = any_(visible, axis=-1, keepdims=True)
    # a query that attends to no key gets a finite score, because softmax of all -inf is nan
    scores = where(something, where(visible, scores, -math.inf), 0)
    return matmul(where(something, softmax(scores), 0), value)


def _causal_mask(scores):
    """Booleans of shape (L, S): whether key position j is at or before query position i."""
    rows, columns = (_axis_positions(scores, axis) for axis in (-2, -1))
    return less_equal(columns, expand_dims(rows, -1))


def _axis_positions(scores, axis: int):
    """The positions 1, 2, ... along one axis of the scores."""
    lead = (0,) * (scores.ndim - 2)
    ones = ones_like(scores[(*lead, slice(None), 0) if axis == -2 else (*lead, 0)])
    return cumsum(ones, 0)  # not arange, which takes no symbolic size


attention = composite("attention", _attention_decompose, onnx="Attention")
