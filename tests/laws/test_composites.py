"""Composites: what one decomposes into computes what its own numerics compute."""

import warnings

import numpy as np
import pytest

from letir.ast.primitive import PRIMITIVES
from letir.eval.array_modules import type_of
from letir.eval.evaluator import run_flat
from letir.ops.define.records import decomposition
from letir.testing import SAMPLES, applied, assert_close

CASES = [
    pytest.param(PRIMITIVES[name], sample, id=f"{name}-{i}")
    for name, samples in SAMPLES.items()
    if PRIMITIVES[name].decompose is not None and not PRIMITIVES[name].random
    for i, sample in enumerate(samples)
]


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_a_decomposition_computes_what_the_composite_computes(op, sample):
    """To rounding, and of the same type [B4]."""
    program, args = applied(op, sample)
    kinds = tuple(None if arg is None else type_of(arg) for arg in sample.args)
    parts = decomposition(op.decompose, kinds, op.complete(sample.attrs))

    with warnings.catch_warnings(action="ignore"):
        expected, found = (run_flat(f, list(args)) for f in (program, parts))

    assert_close(expected, found)
    for one, other in zip(expected, found, strict=True):
        assert (np.shape(one), np.asarray(one).dtype) == (np.shape(other), np.asarray(other).dtype)
