"""Reads of symbolic sizes during a trace: an error with the line if the answer depends on the size
[B10].
"""

from functools import partial
from typing import TYPE_CHECKING

from letir.ast import LATE_BOUND
from letir.ast.types import SIZE_READS
from letir.errors import TraceError

if TYPE_CHECKING:
    from letir.tracing.trace_state import Trace


def watch_size_reads(trace: "Trace") -> None:
    """Refuse such reads until ``trace``, which has a parameter with symbolic sizes, is closed.

    An existing watch stays: ``jit`` then gives up symbolic sizes, and uses the numbers.
    """
    if SIZE_READS.get() is None:
        SIZE_READS.set(partial(_refuse_size_read, trace))
        trace.watches_sizes = True


def _refuse_size_read(trace, place: str, asked: str, is_decided: bool) -> None:
    """Raise TraceError for a read whose answer depends on the value of a symbolic size."""
    if is_decided:
        return
    error = TraceError(
        f"{asked}: the size has a name but no value while this is traced\n"
        f"  at {place}\n"
        "  make the choice where the number is known, pass the number as a static argument,\n"
        "  or trace with concrete arrays"
    )
    trace.refusal = trace.refusal or str(error)  # also if the function catches it [B2]
    raise error


LATE_BOUND["watch_size_reads"] = watch_size_reads
