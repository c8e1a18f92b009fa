"""Operations and their gradients, exported with a named size, at other sizes and numbers."""

import warnings

import numpy as np
import pytest
from attrs import evolve

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.errors import LetirError
from letir.testing.samples import SAMPLES
from letir.testing.samples.sample import applied_program
from tests.each_sample import in_one_test
from tests.laws.test_batch_sizes import DIFFERENTIABLE, batched_positions, is_as_typed, named
from tests.onnx.exporting.test_node_emission import QUICK
from tests.onnx.running import UNDETERMINED, assert_agrees, exported, gradient_of


def with_rows(sample, positions, size: int):
    """The sample with ``size`` rows in these operands, other rows at each place."""
    args = [
        arg[(np.arange(size) + 1) % len(arg)] if i in positions else arg
        for i, arg in enumerate(sample.args)
    ]
    return evolve(sample, args=tuple(args))


def replays(op, case) -> bool:
    """Whether the operation has results of the declared shapes at these sizes."""
    try:
        program, args = applied_program(op, case, constants=True)
        results = program(*args)
    except (LetirError, IndexError, ValueError):  # the size determines another shape
        return False
    return is_as_typed(program, results if isinstance(results, tuple) else (results,))


def agrees_at_other_sizes(op, sample) -> bool:
    """Whether the sample has a symbolic size; asserts that its models give the numbers."""
    positions = batched_positions(sample)
    if not positions or not len(sample.args[positions[0]]):
        return False
    length = len(sample.args[positions[0]])
    cases = [with_rows(sample, positions, n) for n in (length, length + 1, 3 * length)]
    cases = [case for case in cases if replays(op, case)]
    try:
        programs = [named(op, sample, positions)]
        gradient = gradient_of(programs[0], applied_program(op, sample, constants=True)[1])
    except LetirError:
        return False
    models = [exported(p) for p in (programs[0], gradient) if p is not None]
    for case in cases:
        args = applied_program(op, case, constants=True)[1]
        for program, model in zip((programs[0], gradient), models, strict=False):
            assert_agrees(model, program, args)
    return bool(cases)


def check_operation(name: str) -> None:
    """All samples of an operation; those without a form in ONNX say so."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in SAMPLES[name][:4]:
            try:
                agrees_at_other_sizes(PRIMITIVES[name], sample)
            except lt.ExportError as error:
                assert "ONNX" in str(error)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(DIFFERENTIABLE) - UNDETERMINED.keys()))
def test_all_operations_and_gradients_run_at_other_sizes(name):
    check_operation(name)


@in_one_test
@pytest.mark.parametrize("name", [name for name in QUICK if name in DIFFERENTIABLE])
def test_operations_and_gradients_run_at_other_sizes(name):
    check_operation(name)


def test_a_matrix_of_its_singular_vectors_and_its_gradient():
    """The signs cancel."""

    def f(x):
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        w, v = np.linalg.eigh(x + np.swapaxes(x, -1, -2))
        return (u * np.sin(s)[..., None, :]) @ vh + (v * np.cos(w)[..., None, :]) @ v.mT

    kind = lt.ShapeDtype(("n", 3, 3), float)
    program, slope = lt.trace(f, kind), lt.grad(lt.trace(lambda x: (f(x) ** 2).sum(), kind))
    x = np.random.default_rng(0).normal(size=(2, 3, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the signs of vectors may differ
        models = [exported(p) for p in (program, slope)]

    assert_agrees(models[0], program, [x])
    assert_agrees(models[1], slope, [x])
