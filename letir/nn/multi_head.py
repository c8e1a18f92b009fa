"""Multi-head attention."""

from collections.abc import Sequence
from typing import Any

from letir.ast import entry_point
from letir.errors import ShapeError
from letir.ops.nn.attention import attention
from letir.ops.nn.embedding_linear_dropout import linear
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.transpose import transpose


@entry_point
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
    """Attention in which each of ``heads`` heads attends with its own part of the features.

    ``query``: (..., L, features); ``key`` and ``value``: (..., S, features). ``weights``: of the
    linear maps of query, key, value and result, each (outputs, inputs); ``biases``: likewise, each
    may be None. ``mask``: as in ``attention``, with an axis for the heads before the last two.

    >>> import numpy as np
    >>> x = np.ones((2, 5, 4))
    >>> multi_head_attention(x, x, x, [np.eye(4)] * 4, heads=2, causal=True).shape
    (2, 5, 4)
    """
    maps = list(zip(weights, biases, strict=True))
    q, k, v = (
        _split_heads(linear(x, *pair), heads)
        for x, pair in zip((query, key, value), maps, strict=False)
    )
    result = attention(q, k, v, mask, causal=causal)
    result = transpose(result, _swap_head_axis(result.ndim))
    return linear(reshape(result, (*result.shape[:-2], -1)), *maps[3])


def _split_heads(x: Any, heads: int) -> Any:
    """(..., L, features) as (..., heads, L, features / heads)."""
    if x.shape[-1] % heads:
        raise ShapeError(
            f"multi_head_attention: {heads} heads do not divide {x.shape[-1]}\n"
            "  choose a number of heads that divides the last axis"
        )
    by_head = reshape(x, (*x.shape[:-1], heads, x.shape[-1] // heads))
    return transpose(by_head, _swap_head_axis(by_head.ndim))


def _swap_head_axis(ndim: int) -> tuple:
    """A permutation of axes that exchanges axes -2 and -3."""
    return (*range(ndim - 3), ndim - 2, ndim - 3, ndim - 1)
