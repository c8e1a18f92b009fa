"""Samples become programs, and cover the cases that the laws need."""

import numpy as np
import pytest

from letir import run_forward
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import PYTHON_NUMBERS, Undef
from letir.eval.array_modules import type_of
from letir.testing import SAMPLES, Sample, applied_program, assert_same
from tests.each_sample import each_sample, in_one_test

REDUCTIONS = ("sum", "mean", "prod", "max", "min", "any", "all")


def types_of(name: str) -> set:
    """The types of all operands of all samples."""
    return {
        type_of(arg)
        for sample in SAMPLES[name]
        for arg in sample.args
        if arg is not None and arg is not Undef
    }


def test_a_sample_becomes_a_program_of_one_bind():
    program, args = applied_program(PRIMITIVES["sub"], Sample((np.ones(2), 3.0)))

    assert "lambda %0: float64[2], %1: float64*[] {" in str(program)
    assert_same(np.array([-2.0, -2.0]), run_forward(program, *args))


def test_python_numbers_may_be_constants():
    program, args = applied_program(PRIMITIVES["sub"], Sample((np.ones(2), 3.0)), constants=True)

    assert "sub(%0, 3.0)" in str(program)
    assert len(args) == 1


@in_one_test
@pytest.mark.parametrize(
    "name", [name for name, op in PRIMITIVES.items() if op.elementwise and op.numpy]
)
def test_elementwise_samples_cover_scalars_empty_arrays_and_python_numbers(name):
    types = types_of(name)

    assert any(not kind.shape and not kind.weak for kind in types)
    assert any(0 in kind.shape for kind in types)
    assert any(kind.weak for kind in types)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_are_sampled_with_axes_keepdims_and_masks(name):
    samples = SAMPLES[name]
    axes = {sample.attrs.get("axis") for sample in samples}

    assert {None, 0, -1, (0, 1), (-1, 0)} <= axes
    assert any(sample.attrs.get("keepdims") for sample in samples)
    assert any(len(sample.args) == 2 for sample in samples)
    assert any(type(sample.args[0]) in PYTHON_NUMBERS for sample in samples)


@each_sample(in_one_test=True)
def test_evaluating_a_sample_does_not_change_its_arrays(op, sample):
    program, args = applied_program(op, sample)
    before = [np.copy(arg) for arg in args]

    run_forward(program, *args)

    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, args, strict=True))
