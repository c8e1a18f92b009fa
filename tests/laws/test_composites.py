"""Composite operations: a decomposition computes the same as the operation itself."""

import warnings

import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import Primitive
from letir.ast.types import ArrayType
from letir.eval.array_modules import type_of
from letir.eval.evaluator import run_flat
from letir.ops.define.records import decomposition
from letir.testing import applied_program, assert_close
from tests.each_sample import each_sample


def is_composite(op: Primitive) -> bool:
    """Whether the operation decomposes deterministically."""
    return op.decompose is not None and not op.random


@each_sample(among=is_composite, in_one_test=True)
def test_a_decomposition_agrees_with_its_composite(op, sample):
    """To rounding, and of the same type [B4]."""
    program, args = applied_program(op, sample)
    kinds = tuple(None if arg is None else type_of(arg) for arg in sample.args)
    parts = decomposition(op.decompose, kinds, op.complete(sample.attrs))

    with warnings.catch_warnings(action="ignore"):
        expected, found = (run_flat(f, list(args)) for f in (program, parts))

    assert_close(expected, found)
    for one, other in zip(expected, found, strict=True):
        assert (np.shape(one), np.asarray(one).dtype) == (np.shape(other), np.asarray(other).dtype)


def test_an_operation_that_stands_for_too_many_others_is_recorded_once():
    """A check that fails looks a second time for the place of the error."""
    calls = []

    def unrolled(x):
        calls.append(x)
        for _ in range(1_000_000):
            x = x + 1.0
        return x

    for _ in range(2):
        with pytest.raises(lt.ShapeError, match="more than 10000 others"):
            decomposition(unrolled, (ArrayType(float, (3,)),), {})

    assert len(calls) == 1
