"""Questions to sizes that have names, in a trace: an error, with the line that asks, where the
answer is not the same for all sizes [B10].
"""

from functools import partial

from letir.ast.types import SIZE_READS
from letir.errors import TraceError


def watch_size_reads(trace) -> None:
    """Refuse such questions until ``trace``, of which a parameter has such sizes, is closed.

    Who watches already goes on to: ``jit`` gives up names, and asks for the numbers.
    """
    if SIZE_READS.get() is None:
        SIZE_READS.set(partial(_refuse_size_read, trace))
        trace.watches_sizes = True


def unwatch_size_reads(trace) -> None:
    """End what ``watch_size_reads`` began."""
    SIZE_READS.set(None)
    trace.watches_sizes = False


def _refuse_size_read(trace, place: str, asked: str, is_decided: bool) -> None:
    """Raise TraceError for a question whose answer depends on what a name stands for."""
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
