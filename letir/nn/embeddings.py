"""``embedding``: the rows of a table at given indices."""

from typing import Any

import numpy as np

from letir.ast import entry_point
from letir.errors import BoundsError, DTypeError
from letir.ops.nn.embedding_linear_dropout import embedding as embedding_op
from letir.tracing.source_locations import error_at_user_line


@entry_point
def embedding(
    indices: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """The rows of ``weight`` at ``indices``, of shape ``indices.shape + weight.shape[1:]``.

    ``indices``: integers of any shape; ``weight``: shape (words, width). The row ``padding_idx``,
    which may be counted from the end, gets no gradient. The arguments are those of PyTorch's
    function, but ``max_norm``, ``scale_grad_by_freq`` and ``sparse`` are refused. One bind, whose
    first operand is ``weight``.

    >>> weight = np.arange(6.0).reshape(3, 2)
    >>> embedding(np.array([2, 0]), weight)
    array([[4., 5.],
           [0., 1.]])
    """
    indices, weight = (np.asarray(x) if type(x) is list else x for x in (indices, weight))
    if _dtype_kind(indices) not in "iu":
        dtype_name = f"{getattr(indices, 'dtype', type(indices).__name__)}"
        order = ", in this order" if _dtype_kind(weight) in "iu" else ""
        raise error_at_user_line(
            DTypeError(
                f"embedding: the indices must be integers, found {dtype_name}\n"
                f"  write embedding(indices, weight){order}"
            )
        )
    row = -1
    if padding_idx is not None:
        count = weight.shape[0]
        if type(count) is int and not -count <= padding_idx < count:
            raise error_at_user_line(
                BoundsError(
                    f"embedding: there is no row {padding_idx}, the table has {count} rows\n"
                    "  padding_idx counts rows from 0, or from -1 for the last one"
                )
            )
        row = padding_idx + count if padding_idx < 0 else padding_idx
    return embedding_op(
        weight,
        indices,
        padding_idx=row,
        max_norm=max_norm,
        norm_type=norm_type,
        scale_grad_by_freq=scale_grad_by_freq,
        sparse=sparse,
    )


def _dtype_kind(x: Any) -> str:
    """The kind of the dtype of an array or number."""
    return "i" if type(x) is int else getattr(getattr(x, "dtype", None), "kind", "O")
