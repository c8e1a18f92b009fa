"""Copies of traced integer arrays that code outside of NumPy gets as ordinary arrays.

A guard fixes their elements. If the code writes into such a copy, the traced array stays as it was,
where Python would change it; the end of the trace finds such writes and refuses the function.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.errors import TraceError, mark_unrecorded_code
from letir.tracing.source_locations import at_user
from letir.tracing.trace_state import Trace


def lend_integers(x: Any, dtype: Any, copy: bool | None) -> np.ndarray:
    """The elements of a traced array of integers as an ordinary array, with a guard.

    A copy that NumPy would share with ``x`` is compared with its elements when the trace ends.
    """
    if not x.shape:
        return np.array(x.item(), dtype)
    elements = x.guarded(np.copy, "the elements")
    result = np.array(elements, dtype)
    if result.dtype == x.dtype and not copy:
        notes = vars(x.emitter)
        if "lent" not in notes:
            notes["lent"] = []
            notes.setdefault("at_end", []).append(_refuse_writes)
        notes["lent"].append((result, elements, at_user()))
    return result


def _refuse_writes(trace: Trace, results: Sequence) -> None:
    """Raise TraceError if an array that was lent has been changed."""
    for lent, elements, place in vars(trace)["lent"]:
        if not np.array_equal(lent, elements):
            raise mark_unrecorded_code(
                TraceError(
                    "a function that is not recorded wrote into a copy of a traced array of type "
                    f"{elements.dtype}{list(elements.shape)}, which itself is unchanged{place}\n"
                    "  write with NumPy's functions: x[...] = values"
                )
            )


LATE_BOUND["lend_integers"] = lend_integers
