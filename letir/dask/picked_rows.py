"""Reading and writing one element of each row, as in ``scores[np.arange(n), labels]``.

Dask has no index of several arrays. If the first array counts the rows, each block needs only its
own rows.
"""

from collections.abc import Sequence

import numpy as np

from letir.ast.attrs import Attrs, Here
from letir.ast.terms import Bind


def counts_rows(bind: Bind, operands: Sequence) -> bool:
    """Whether a bind selects by arrays of integers, and the first array is 0, 1, ..., n - 1.

    True of ``index``, and of the operation that puts elements into zeros, its derivative.
    """
    items = bind.attrs.get("items") or (bind.attrs.get("item"),)
    if len(items) != 1 or type(items[0]) is not tuple or len(items[0]) < 2:
        return False
    if any(type(part) is not Here for part in items[0]) or len(operands) != 1 + len(items[0]):
        return False
    aval = (bind.binders if "items" in bind.attrs else bind.args)[0].type
    rows = operands[1]
    return (
        isinstance(rows, np.ndarray)
        and all(x.ndim == 1 for x in operands[1:])
        and np.array_equal(rows, np.arange(aval.shape[0]))
    )


def for_rows(bind: Bind, count: int) -> Bind:
    """The bind for a block of ``count`` rows."""
    if "shape" not in bind.attrs:
        return bind
    attrs = Attrs({**bind.attrs, "shape": (count, *bind.attrs["shape"][1:])})
    return Bind(bind.binders, bind.op, bind.args, attrs, bind.source)
