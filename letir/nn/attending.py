"""Attention of several heads."""

from collections.abc import Sequence
from typing import Any

from letir.errors import ShapeError
from letir.ops.nn.attention import attention
from letir.ops.nn.embedding_linear_dropout import linear
from letir.ops.shape.shape_and_creation import reshape
from letir.ops.shape.transpose_join_split import transpose


def multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    weights: Sequence,
    biases: Sequence = (None,) * 4,
    *,
    heads: int,
    mask: Any = None,
    causal: bool = False,
) -> Any:
    """Attention of ``heads`` parts of the features each by itself.

    ``query``: (..., L, features); ``key`` and ``value``: (..., S, features). ``weights``: of the
    linear maps of the query, the key, the value and the result, each (outputs, inputs); ``biases``
    likewise, or None. ``mask`` as in ``attention``, with an axis for the heads before the last two.

    >>> import numpy as np
    >>> x = np.ones((2, 5, 4))
    >>> multi_head_attention(x, x, x, [np.eye(4)] * 4, heads=2, causal=True).shape
    (2, 5, 4)
    """
    maps = list(zip(weights, biases, strict=True))
    q, k, v = (
        split_heads(linear(x, *pair), heads)
        for x, pair in zip((query, key, value), maps, strict=False)
    )
    found = attention(q, k, v, mask, causal=causal)
    found = transpose(found, swap_head_axis(found.ndim))
    return linear(reshape(found, (*found.shape[:-2], -1)), *maps[3])


def split_heads(x: Any, heads: int) -> Any:
    """(..., L, features) as (..., heads, L, features / heads)."""
    if x.shape[-1] % heads:
        raise ShapeError(f"multi_head_attention: {heads} heads do not divide {x.shape[-1]}")
    apart = reshape(x, (*x.shape[:-1], heads, x.shape[-1] // heads))
    return transpose(apart, swap_head_axis(apart.ndim))


def swap_head_axis(ndim: int) -> tuple:
    """The order of axes with the two before the last exchanged."""
    return (*range(ndim - 3), ndim - 2, ndim - 3, ndim - 1)
