"""Passes: functions from a Lambda to a Lambda with the same results."""

from letir.passes.cleanup import dead_code

__all__ = ["dead_code"]
