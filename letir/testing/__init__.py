"""What tests of array programs need: exact comparison, checks of derivatives, samples of every operation, strategies.

    assert_same(expected, found)        to the last bit: kind, dtype, shape, values
    check_grads(f, args)                derivatives of any order against differences
    @given(programs())                  Hypothesis: a program and its arguments

The strategies ``arrays``, ``avals`` and ``programs`` need Hypothesis, which is imported when they are first used.
"""

import importlib

from letir.testing.comparing import assert_close, assert_same
from letir.testing.gradients import check_grads
from letir.testing.samples import SAMPLES, Sample, applied

__all__ = ["SAMPLES", "Sample", "applied", "arrays", "assert_close", "assert_same", "avals", "check_grads", "programs"]

_STRATEGIES = ("arrays", "avals", "programs")


def __getattr__(name: str):
    if name in _STRATEGIES:
        return getattr(importlib.import_module("letir.testing.strategies"), name)
    raise AttributeError(f"module 'letir.testing' has no attribute {name!r}")
