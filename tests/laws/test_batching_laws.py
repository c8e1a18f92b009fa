"""Laws of batching, for every operation on all of its samples: a batch agrees with a loop."""

import itertools
import warnings

import numpy as np
from attrs import evolve, frozen

import letir as lt
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.record_fields import NO_BATCH, Absent
from letir.ast.types import Size, Undef
from letir.eval.array_modules import type_of
from letir.eval.evaluator import run_flat
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.testing import SAMPLES, Sample, applied_program, assert_close, check_grads
from letir.transforms.batching import batch_program
from tests.each_sample import each_sample

# operations made by other tests are left out
OWN = [name for name in PRIMITIVES if "." not in name]


BY_LOOP = {name for name in OWN if type(PRIMITIVES[name].batch) is LoopOverExamples}


# ---- the table of operations ----


def test_every_operation_has_a_batching_rule():
    """Only users' operations without a rule are batched by a loop."""
    assert [] == [name for name in OWN if PRIMITIVES[name].batch is NO_BATCH]
    for name in OWN:
        is_exempt = all("batch_rule" in sample.exempt for sample in SAMPLES[name])
        assert callable(PRIMITIVES[name].batch) is not is_exempt, name


def test_fewer_than_one_in_twenty_differentiable_operations_are_batched_by_a_loop():
    differentiable = [name for name in OWN if PRIMITIVES[name].is_differentiable]

    draws, solvers = (
        {"random_places", "random_gamma"},
        {"all_pole_filter", "odeint", "scipy_call", "scipy_solve", "vector_integral"},
    )
    assert {*draws, *solvers, "generalized_eigh"} == BY_LOOP
    assert len(BY_LOOP.intersection(differentiable)) < 0.05 * len(differentiable)


# ---- batch against loop ----


def has_values(op: Primitive, sample: Sample) -> bool:
    """Whether the sample has operands, whose values can then differ between examples."""
    return any(arg is not None and arg is not Undef for arg in sample.args)


def examples(arg, count: int) -> list:
    """``count`` different values like ``arg``; Python numbers become array elements."""
    kind = type_of(arg)
    array = np.asarray(arg, kind.dtype)
    if kind.inexact:
        return [(array * (1 + 0.03125 * i)).astype(kind.dtype)[()] for i in range(count)]
    return [(np.roll(array, i, -1) if array.ndim else array)[()] for i in range(count)]


def masks(count: int) -> list[tuple]:
    """Which operands are mapped: each alone, all, and every combination of up to three."""
    every = [mask for mask in itertools.product((False, True), repeat=count) if any(mask)]
    return [mask for mask in every if count <= 3 or sum(mask) in (1, count)]


def specimen(sample: Sample, args: list) -> Sample:
    """``sample`` with its defined operands replaced by these."""
    rest = iter(args)
    return evolve(
        sample, args=tuple(a if a is None or a is Undef else next(rest) for a in sample.args)
    )


@frozen
class Case:
    """``size`` examples along the first or a new last axis; the size is a number or symbolic."""

    size: int
    last: bool = False
    known: bool = True


CASES = (Case(3), Case(2, last=True), Case(1), Case(3, known=False), Case(0))
MOST = max(case.size for case in CASES)


@frozen
class Loop:
    """The program of a single example, and its results for each of ``MOST`` examples.

    ``columns``: for each operand its values, all the same for an operand that is not mapped.
    """

    fn: lt.Lambda
    columns: list
    results: list


def loop_over(op: Primitive, sample: Sample, mask: tuple) -> Loop:
    """The loop that a batch of these operands has to agree with."""
    args = [arg for arg in sample.args if arg is not None and arg is not Undef]
    columns = [examples(a, MOST) if m else [a] * MOST for a, m in zip(args, mask, strict=True)]
    fn, _ = applied_program(op, specimen(sample, [column[0] for column in columns]))
    return Loop(fn, columns, [run_flat(fn, list(row)) for row in zip(*columns, strict=True)])


def check_batch(loop: Loop, mask: tuple, case: Case) -> None:
    """Raise AssertionError unless the batch of these operands agrees with the loop."""
    count = max(case.size, 1)
    columns, expected = [column[:count] for column in loop.columns], loop.results[:count]
    axes = [case.last * np.ndim(c[0]) if m else None for c, m in zip(columns, mask, strict=True)]
    given = [
        c[0] if axis is None else np.stack(c, axis) for c, axis in zip(columns, axes, strict=True)
    ]
    if case.size == 0:
        given = [g if a is None else g.take([], a) for g, a in zip(given, axes, strict=True)]

    program, out_axes = batch_program(
        loop.fn, axes, case.size if case.known else Size.named("batch")
    )
    found = run_flat(lt.check(program), given)

    for i, (result, axis) in enumerate(zip(found, out_axes, strict=True)):
        check_result([row[i] for row in expected], result, axis, case.size)


def check_result(expected: list, found, axis: int | None, size: int) -> None:
    """Raise AssertionError unless ``found`` is the stack of these, or the value common to all."""
    if expected[0] is Undef:
        assert found is Undef
        return
    wanted = expected[0] if axis is None else np.stack(expected)[:size]
    assert np.asarray(wanted).dtype == np.asarray(found).dtype
    assert_close(wanted, found)


def is_possible(op: Primitive, sample: Sample, mask: tuple) -> bool:
    """Whether these operands can differ between examples: shapes and choices cannot."""
    if "batch" in sample.exempt:
        return False
    is_shape = len(sample.args) > 1 and "batch_of_last" in sample.exempt
    return not (mask[-1] and (is_shape or "batch_rule" in sample.exempt))


def cases(op: Primitive, sample: Sample) -> tuple[Case, ...]:
    """The batches to test: a loop needs one example for a result of unknown shape."""
    unknown = any(arg.type is None for arg in applied_program(op, sample)[0].ret.args)
    return CASES[:-1] if op.name in BY_LOOP and unknown else CASES


@each_sample(has_values, quick=1)
def test_a_batch_agrees_with_a_loop(op, sample):
    """For every choice of mapped operands."""
    count = sum(arg is not None and arg is not Undef for arg in sample.args)

    for mask in masks(count):
        if not is_possible(op, sample, mask):
            continue
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            loop = loop_over(op, sample, mask)
            for case in cases(op, sample):
                try:
                    check_batch(loop, mask, case)
                # some operations need the number of examples, and say so
                except lt.ShapeError as error:
                    assert "pass axis_size" in str(error)
                    assert not case.known
                    assert "batch_of_named_size" in sample.exempt


# ---- derivatives of batches ----


def is_smooth(op: Primitive, sample: Sample) -> bool:
    """Whether finite differences approximate the derivative: no ties, and double precision."""
    is_nonsmooth = sample.nonsmooth or "batch_difference" in sample.exempt
    if type(op.vjp) is Absent or is_nonsmooth or not has_values(op, sample):
        return False
    kinds = [type_of(arg) for arg in sample.args if arg is not None and arg is not Undef]
    results = [arg.type for arg in applied_program(op, sample)[0].ret.args]
    known = [kind for kind in (*kinds, *results) if kind is not None and kind.inexact]
    has_result = any(kind is None or kind.inexact for kind in results)
    return (
        has_result
        and any(kind.inexact for kind in kinds)
        and {kind.dtype.char for kind in known} <= {"d", "D"}
    )


@each_sample(is_smooth, quick=1)
def test_derivatives_of_a_batch_agree_with_differences(op, sample):
    args = [arg for arg in sample.args if arg is not None and arg is not Undef]
    modes = tuple(m for m, r in (("rev", op.vjp), ("fwd", op.jvp)) if type(r) is not Absent)

    for mask in masks(len(args)):
        if is_possible(op, sample, mask):
            columns = [examples(a, 2) if m else [a] for a, m in zip(args, mask, strict=True)]
            fn, _ = applied_program(op, specimen(sample, [column[0] for column in columns]))
            program, _ = batch_program(fn, [0 if there else None for there in mask], 2)
            given = [np.stack(c) if m else c[0] for c, m in zip(columns, mask, strict=True)]
            check_grads(program, given, order=1, modes=modes)
