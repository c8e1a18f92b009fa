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


def guarded_integer_copy(x: Any, dtype: Any, copy: bool | None) -> np.ndarray:
    """A traced array of integers as an ordinary array of this dtype; a guard fixes the elements.

    If NumPy's conversion would return ``x`` itself, not a copy, the end of the trace tests that the
    array still has these elements.
    """
    if not x.shape:
        return np.array(x.item(), dtype)
    elements = x.guarded(np.copy, "the elements")
    result = np.array(elements, dtype)
    if result.dtype == x.dtype and not copy:
        notes = vars(x.emitter)
        if "guarded_copies" not in notes:
            notes["guarded_copies"] = []
            notes.setdefault("at_end", []).append(_refuse_writes)
        notes["guarded_copies"].append((result, elements, at_user()))
    return result


def _refuse_writes(trace: Trace, results: Sequence) -> None:
    """Raise TraceError if code has written into one of the copies."""
    for copy, elements, place in vars(trace)["guarded_copies"]:
        if not np.array_equal(copy, elements):
            raise mark_unrecorded_code(
                TraceError(
                    "a function that is not recorded wrote into a copy of a traced array of type "
                    f"{elements.dtype}{list(elements.shape)}, which itself is unchanged{place}\n"
                    "  write with NumPy's functions: x[...] = values"
                )
            )


LATE_BOUND["guarded_integer_copy"] = guarded_integer_copy
