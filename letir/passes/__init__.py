"""Passes: functions from a Lambda to a Lambda with the same results."""

from letir.passes.arguments import without_writes
from letir.passes.cleanup import dead_code
from letir.passes.merging import merged_sums
from letir.passes.outliving import parts_apart
from letir.passes.signs import carried_signs

__all__ = ["carried_signs", "dead_code", "merged_sums", "parts_apart", "without_writes"]
