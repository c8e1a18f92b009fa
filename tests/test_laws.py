"""The laws that hold for every operation, on all of its samples (``letir.testing.SAMPLES``)."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
from attrs import evolve

from letir import differentiate, dumps, jvp, specialize_undef, trace, vjp
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.record_fields import Absent
from letir.ast.text.parser import parse
from letir.ast.types import Undef
from letir.eval.arguments import fits_type
from letir.eval.array_modules import type_of
from letir.eval.evaluator import run_flat
from letir.testing import SAMPLES, Sample, applied_program, assert_close, assert_same, check_grads
from letir.testing.gradient_checks import is_inexact
from tests.each_sample import each_of, each_sample, in_one_test, samples_of

# operations made by other tests are left out
OWN = [name for name in PRIMITIVES if "." not in name]
WIDE = {"f": np.float64, "c": np.complex128}
LOW = {np.dtype(name) for name in ("float16", "float32", "complex64")}
DTYPES = [np.dtype(c) for c in "?bhiqBHIQefdFD"]


def numbers(sample: Sample) -> list:
    """The operands that are arrays or numbers."""
    return [arg for arg in sample.args if arg is not None and arg is not Undef]


def is_undefined(sample: Sample) -> bool:
    """Whether the sample is a grad_of without any defined cotangent."""
    return sample.nonsmooth and any(arg is Undef for arg in sample.args)


def is_differentiable(op: Primitive, sample: Sample) -> bool:
    """Whether the sample has a differentiable result and an operand with a derivative."""
    if type(op.vjp) is Absent or not any(map(is_inexact, numbers(sample))) or is_undefined(sample):
        return False
    return any(
        arg.type is None or arg.type.inexact for arg in applied_program(op, sample)[0].ret.args
    )


def is_smooth(op: Primitive, sample: Sample) -> bool:
    """Whether finite differences approximate the derivative: no ties, and double precision."""
    narrow = not LOW.isdisjoint(type_of(arg).dtype for arg in numbers(sample))
    return is_differentiable(op, sample) and not sample.nonsmooth and not narrow


def is_analytic(op: Primitive, sample: Sample) -> bool:
    """Whether the op is a real analytic function that NumPy also defines for complex numbers."""
    if not is_smooth(op, sample) or "complex_step" in sample.exempt:
        return False
    if any(type_of(arg).dtype.kind == "c" for arg in numbers(sample)):
        return False
    complexes = evolve(sample, args=tuple(a + 0j if is_inexact(a) else a for a in sample.args))
    try:
        with warnings.catch_warnings(action="error"):
            run_flat(*applied_program(op, complexes))
    except (TypeError, np.exceptions.ComplexWarning):
        return False
    return True


def is_low(op: Primitive, sample: Sample) -> bool:
    """Whether all floating operands, except Python numbers, have less than double precision."""
    results = applied_program(op, sample)[0].ret.args
    types = [*map(type_of, numbers(sample)), *(arg.type for arg in results if arg.type)]
    floating = {kind.dtype for kind in types if kind.inexact and not kind.weak}
    has_array = any(hasattr(arg, "dtype") and is_inexact(arg) for arg in sample.args)
    return is_differentiable(op, sample) and has_array and floating <= LOW


def has_numbers(op: Primitive, sample: Sample) -> bool:
    """Whether there are Python numbers in addition to a floating array."""
    types = [*map(type_of, numbers(sample))]
    arrays = any(kind.inexact and not kind.weak for kind in types)
    return is_smooth(op, sample) and arrays and any(kind.weak for kind in types)


# ---- the table of operations ----


def test_every_record_has_samples():
    missing = [name for name in OWN if not SAMPLES.get(name)]

    assert [] == missing, "add samples of these to letir/testing/samples"


def test_every_sample_belongs_to_a_record():
    assert set(SAMPLES) <= PRIMITIVES.keys()


def test_every_rule_is_present_or_absent_with_a_reason():
    for op in map(PRIMITIVES.get, OWN):
        assert callable(op.impl), op.name
        assert callable(op.aval), op.name
        for kind in ("vjp", "jvp", "batch"):
            rule = getattr(op, kind)
            assert callable(rule) or rule.reason, f"{kind} of {op.name}"


# ---- types ----


@each_sample(in_one_test=True)
def test_the_type_rule_predicts_the_types_of_results(op, sample):
    """With parameters as operands, and with Python numbers as constants of the bind."""
    for constants in (False, True):
        program, args = applied_program(op, sample, constants=constants)
        results = run_flat(program, args)

        for declared, result in zip(program.ret.args, results, strict=True):
            is_free = result is Undef or declared.type is None
            assert is_free or fits_type(type_of(result), declared.type, {}), f"{constants=}"


UFUNCS = [
    pytest.param(name, f, id=f.__name__)
    for name in OWN
    for f in PRIMITIVES[name].numpy
    if isinstance(f, np.ufunc) and not f.signature
]


def dtypes_of(results) -> tuple:
    """The dtype of each result."""
    return tuple(r.dtype for r in (results if isinstance(results, tuple) else (results,)))


@in_one_test
@pytest.mark.parametrize(("name", "ufunc"), UFUNCS)
def test_the_type_rule_of_a_ufunc_agrees_with_numpy_for_all_dtypes_and_python_numbers(name, ufunc):
    operands = [*(np.ones(2, dtype) for dtype in DTYPES), True, 1, 1.0, 1j]

    for args in itertools.product(operands, repeat=ufunc.nin):
        try:
            with np.errstate(all="ignore"):
                expected = dtypes_of(ufunc(*args))
        except TypeError:
            expected = TypeError
        try:
            found = dtypes_of(PRIMITIVES[name].aval(*map(type_of, args)))
        except TypeError:
            found = TypeError
        assert expected == found, [type_of(arg) for arg in args]


# ---- derivatives ----


def modes_of(op: Primitive) -> tuple:
    """The modes in which the op has a rule."""
    return tuple(m for m, rule in (("rev", op.vjp), ("fwd", op.jvp)) if type(rule) is not Absent)


@each_sample(is_smooth, quick=1)
def test_derivatives_agree_with_differences_and_between_modes(op, sample):
    """To second order, and to first order with complex steps where the op is analytic."""
    order = 1 if "second_derivative" in sample.exempt else 2
    check_grads(
        *applied_program(op, sample), order, modes=modes_of(op), analytic=is_analytic(op, sample)
    )


@each_sample(has_numbers, quick=1)
def test_derivatives_with_constants_in_the_bind_agree_with_differences(op, sample):
    check_grads(*applied_program(op, sample, constants=True), modes=modes_of(op))


def ones_like(results: tuple) -> tuple:
    """Cotangents of ones for the results."""
    return tuple(np.ones_like(r) if is_inexact(r) else np.zeros(np.shape(r)) for r in results)


@each_sample(is_differentiable, in_one_test=True)
def test_a_cotangent_has_the_dtype_and_shape_of_its_operand(op, sample):
    program, args = applied_program(op, sample)
    results = run_flat(program, list(args))
    cts = ones_like(results)

    pull = vjp(program, *args)[1]

    for ct, arg in zip(pull(cts if len(cts) > 1 else cts[0]), args, strict=True):
        kind = type_of(arg)
        assert ct is None if not kind.inexact else (kind.dtype, kind.shape) == (ct.dtype, ct.shape)


@each_sample(is_low, in_one_test=True)
def test_derivatives_in_low_precision_stay_in_low_precision(op, sample):
    program, args = applied_program(op, sample, constants=True)
    gradient = differentiate(program)
    kinds = [type_of(a) for a in (*args, *run_flat(program, list(args))) if is_inexact(a)]
    widest, largest = max(kind.dtype.itemsize for kind in kinds), max(kind.size for kind in kinds)

    df = specialize_undef(gradient.df, [True] * len(gradient.df.params))

    for bind in df.binds:
        for binder in bind.binders:  # a mean may be divided by its count in double precision
            if binder.type is not None and binder.type.inexact and binder.type.size >= largest:
                assert binder.type.dtype.itemsize <= widest, bind


@each_sample(is_low, in_one_test=True)
def test_derivatives_in_low_precision_are_close_to_those_in_double(op, sample):
    wide = tuple(
        a.astype(WIDE[a.dtype.kind]) if hasattr(a, "dtype") and is_inexact(a) else a
        for a in sample.args
    )
    (program, args), (reference, wide_args) = (
        applied_program(op, sample),
        applied_program(op, evolve(sample, args=wide)),
    )

    found = jvp(program, args, directions(args))[1]
    expected = jvp(reference, wide_args, directions(wide_args))[1]

    tolerance = 1e-2 if any(type_of(a).dtype == np.float16 for a in args) else 1e-5
    assert_close(expected, found, rtol=tolerance, atol=tolerance)


def directions(args) -> tuple:
    """A tangent of each floating argument."""
    return tuple(np.full_like(a, 0.5) if is_inexact(a) else None for a in args)


@pytest.mark.parametrize("f", [np.arcsin, np.arccos])
@pytest.mark.parametrize("x", [1.5, -1.5, 0.5])
def test_derivatives_on_a_branch_cut_are_those_along_the_cut(f, x):
    """A real number cast to complex lies on the cut if it is beyond 1."""
    check_grads(lambda x: f(x.astype(complex)), (np.float64(x),), order=1)


# ---- missing cotangents of operations with several results [D7] ----


def has_several_results(op: Primitive, sample: Sample) -> bool:
    """Whether a differentiable operation has more than one result."""
    return op.results is not None and is_differentiable(op, sample)


@each_sample(has_several_results, in_one_test=True)
def test_a_missing_cotangent_counts_as_zero_for_every_mask(op, sample):
    program, args = applied_program(op, sample)
    gradient = differentiate(program)
    results, residuals = gradient.forward(*args)
    results = results if isinstance(results, tuple) else (results,)
    full = ones_like([results[i] for i in gradient.df_input_vjps if i < len(results)])

    for mask in itertools.product([False, True], repeat=len(full)):
        zeros = [ct if there else np.zeros_like(ct) for ct, there in zip(full, mask, strict=True)]
        missing = [ct if there else None for ct, there in zip(full, mask, strict=True)]
        expected, found = (gradient.backward(residuals, *given) for given in (zeros, missing))
        assert_close(expected, found, rtol=0, atol=0)  # zeros may differ in sign


@each_sample(has_several_results, in_one_test=True)
def test_all_vjps_are_undefined_without_any_cotangent(op, sample):
    gradient = differentiate(applied_program(op, sample)[0])

    defined = [i >= len(gradient.df_input_vjps) for i in range(len(gradient.df.params))]
    specialized = specialize_undef(gradient.df, defined)

    assert all(arg.value is Undef for arg in specialized.ret.args)


def test_a_shared_rule_is_specialized_separately_for_each_grad_of():
    def f(x, y):
        (_, b), (c, _) = np.split(x, 2), np.split(y, 2)
        return (b * b).sum() + (c * c).sum()

    x = np.arange(1.0, 5.0)
    gradient = differentiate(trace(f, x, x))
    count = len(gradient.df_input_vjps) - 1
    defined = [True, *[False] * count, *[True] * (len(gradient.df.params) - count - 1)]

    df = specialize_undef(gradient.df, defined)
    found = gradient.with_df(df).backward(gradient.forward(x, x)[1], np.float64(1.0))

    assert_same((np.array([0.0, 0.0, 6.0, 8.0]), np.array([2.0, 4.0, 0.0, 0.0])), found)


# ---- text and pickles ----


@each_sample(in_one_test=True)
def test_a_program_survives_printing_parsing_and_pickling(op, sample):
    program, _ = applied_program(op, sample, constants=True)

    assert program == parse(dumps(program))
    assert program == pickle.loads(pickle.dumps(program))


@each_sample(is_differentiable, in_one_test=True, quick=2)
def test_a_gradient_program_survives_printing_parsing_and_pickling(op, sample):
    df = differentiate(applied_program(op, sample)[0]).df

    assert df == parse(dumps(df))
    assert df == pickle.loads(pickle.dumps(df))


# ---- the laws themselves ----


def off_by_one_percent(rule):
    """A derivative rule whose results are 1 % too large."""

    def wrong(*args, **attrs):
        found = rule(*args, **attrs)
        off = [
            None if g is None else g * 1.01
            for g in (found if isinstance(found, tuple) else (found,))
        ]
        return tuple(off) if isinstance(found, tuple) else off[0]

    return wrong


@each_of([name for name in OWN if not PRIMITIVES[name].inlined])
def test_a_rule_that_is_wrong_by_one_percent_is_detected(name):
    """An inlined operation is left out: its decomposition is differentiated instead."""
    op = PRIMITIVES[name]
    smooth = [sample for _, sample in samples_of(name, is_smooth)]
    for kind, mode in (("vjp", "rev"), ("jvp", "fwd")):
        if not smooth or type(getattr(op, kind)) is Absent:
            continue
        # without these two a loop is differentiated by its own rule, not by another loop's
        wrong = evolve(
            op, **{kind: off_by_one_percent(getattr(op, kind))}, with_residuals=None, fused_jvp=None
        )
        with pytest.raises(AssertionError, match=r"is wrong in \w+ mode, order 1\n"):
            for sample in smooth:
                check_grads(*applied_program(wrong, sample), order=1, modes=(mode,))
