"""[D14] A gradient program replays at other batch sizes, for every operation that allows it."""

from itertools import islice

import numpy as np
import pytest
from attrs import evolve

from letir import differentiate, vjp
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.record_fields import Absent
from letir.ast.terms import Const, Lambda
from letir.ast.types import ArrayType, Size
from letir.errors import GuardError, LetirError
from letir.eval.array_modules import type_of
from letir.testing import SAMPLES, Sample, applied_program, assert_close
from letir.testing.gradient_checks import is_inexact, random_direction

N = Size.named("n")
DIFFERENTIABLE = [
    name for name, op in PRIMITIVES.items() if type(op.vjp) is not Absent and name in SAMPLES
]


def batched_positions(sample: Sample) -> list[int]:
    """The operands of highest rank whose first axis is as long as the first such operand's."""
    arrays = [i for i, arg in enumerate(sample.args) if np.ndim(arg)]
    if not any(is_inexact(sample.args[i]) for i in arrays):
        return []
    most = max(sample.args[i].ndim for i in arrays)
    arrays = [i for i in arrays if sample.args[i].ndim == most]
    length = sample.args[arrays[0]].shape[0]
    return [i for i in arrays if sample.args[i].shape[0] == length]


def named(op: Primitive, sample: Sample, positions: list[int]) -> Lambda:
    """The program of one bind where the first axes of these operands have the symbolic size n."""
    builder, operands = LetBuilder(), []
    for i, arg in enumerate(sample.args):
        if not hasattr(arg, "dtype"):
            operands.append(Const(arg))
            continue
        kind = type_of(arg)
        if i in positions:
            kind = ArrayType(kind.dtype, (N, *kind.shape[1:]))
        operands.append(builder.param(kind).arg)
    return builder.build(builder.emit(op, tuple(operands), op.complete(sample.attrs)))


def of_size(sample: Sample, positions: list[int], size: int) -> Sample:
    """The sample with rows left out or repeated, so that these operands have ``size`` rows."""
    args = [
        arg[np.arange(size) % len(arg)] if i in positions else arg
        for i, arg in enumerate(sample.args)
    ]
    return evolve(sample, args=tuple(args))


def is_as_typed(program: Lambda, results: tuple) -> bool:
    """Whether results have the shapes that the program declares."""
    pairs = zip(program.ret.args, results, strict=True)
    return all(arg.type is None or arg.type.shape == np.shape(result) for arg, result in pairs)


def compared_at_three_sizes(op: Primitive, sample: Sample) -> bool:
    """Whether the sample has a symbolic batch size; asserts that its derivative has it, too."""
    positions = batched_positions(sample)
    if not positions or not len(sample.args[positions[0]]):
        return False
    length = len(sample.args[positions[0]])
    try:
        gradient = differentiate(named(op, sample, positions))
        cases = [of_size(sample, positions, n) for n in (length, length + 1, 3 * length)]
        programs = [applied_program(op, case, constants=True) for case in cases]
    except LetirError:
        return False
    for program, args in programs:
        try:
            expected, pull = vjp(program, *args)
        except (
            IndexError,
            ValueError,
            GuardError,
        ):  # the size determines another shape, as in unique
            return False
        results = expected if isinstance(expected, tuple) else (expected,)
        if not is_as_typed(program, results):  # a mask selects another number of elements
            return False
        rng = np.random.default_rng(0)
        cts = [
            random_direction(r, rng) if is_inexact(r) else np.zeros(np.shape(r)) for r in results
        ]
        found, residuals = gradient.forward(*args)
        places = [i for i in gradient.df_input_vjps if i < gradient.f_real_outputs]
        by_df = gradient.backward(residuals, *[cts[i] for i in places])
        by_vjp = pull(tuple(cts) if len(cts) > 1 else cts[0])
        assert_close(expected, found)
        for i, ct in zip(gradient.df_output_vjps, by_df, strict=True):
            assert_close(by_vjp[i], np.zeros_like(by_vjp[i]) if ct is None else ct)
    return True


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.parametrize("most", [2, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_one_df_replays_at_three_batch_sizes(name, most):
    """[D14] For the first two samples that have a batch size, and for all in the slow run."""
    op, samples = PRIMITIVES[name], SAMPLES[name]
    compared = [*islice((s for s in samples if compared_at_three_sizes(op, s)), most)]

    assert bool(compared) is not any("named_rows" in sample.exempt for sample in samples)
