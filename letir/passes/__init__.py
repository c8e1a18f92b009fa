"""Passes: functions from a Lambda to a Lambda with the same results."""

from letir.passes.cleanup import dead_code
from letir.passes.merging import merged_sums

__all__ = ["dead_code", "merged_sums"]
