"""The facts stated in records are true, on all samples and at values where operations may warn."""

import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from letir.ast.attrs import Attrs
from letir.ast.bodies import BODY_ATTRIBUTES, bodies_in, bodies_of
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.terms import Const
from letir.ast.types import PYTHON_NUMBERS
from letir.eval.array_modules import type_of
from letir.eval.evaluator import compute, run_flat
from letir.testing import SAMPLES, Sample, applied_program, assert_same
from tests.each_sample import each_of, in_one_test


def records(fact: Callable[[Primitive], object]) -> list[str]:
    """The names of the records with samples that state this fact."""
    return [name for name in SAMPLES if fact(PRIMITIVES[name])]


def special(dtype: np.dtype) -> np.ndarray:
    """Values at which operations may warn."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        return np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, 7], dtype)
    info = np.finfo(dtype)
    ends = [info.max, -info.max, info.tiny, info.smallest_subnormal]
    return np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, *ends], dtype)


def with_special_values(sample: Sample) -> Iterator[list]:
    """The operands of ``sample`` with special values in its arrays, one variant at a time."""
    for shift in range(9):
        yield [
            np.resize(np.roll(special(arg.dtype), shift * i), arg.shape).astype(arg.dtype)[()]
            if hasattr(arg, "dtype")
            else arg
            for i, arg in enumerate(sample.args)
        ]


def kinds_of(sample: Sample) -> set[str]:
    """The dtype kinds of the arrays; "p" for operands that are not arrays."""
    return {arg.dtype.kind if hasattr(arg, "dtype") else "p" for arg in sample.args}


def computed(op: Primitive, args, sample: Sample):
    """The result of ``op`` on ``args`` with the attributes of ``sample``."""
    return compute(op, list(args), Attrs(op.complete(sample.attrs)))


def results_of(op: Primitive, args, sample: Sample) -> tuple:
    """The results as a tuple."""
    found = computed(op, args, sample)
    return (found,) if op.results is None else tuple(found)


def bits(x) -> tuple:
    """Values that are equal exactly for bitwise equal arrays, up to the payload of nan."""
    x = np.asarray(x)
    return x.dtype, x.shape, np.where(np.isnan(x), 0, x).tobytes(), np.isnan(x).tobytes()


# ---- errors and warnings ----


@in_one_test
@pytest.mark.parametrize("name", records(lambda op: op.never_fails or op.never_fails_alone))
def test_operations_that_never_fail_neither_raise_nor_warn(name):
    op, count = PRIMITIVES[name], 0
    takes_sizes = name in ("zeros", "ones")  # their operand is a size, never negative
    for sample in SAMPLES[name]:
        kinds = kinds_of(sample)
        if op.never_fails_alone:
            is_safe = len(sample.args) <= (not takes_sizes) and "p" not in kinds
        else:
            is_safe = kinds <= set(op.never_fails) and sample.attrs.get("dtype") is None
        for args in with_special_values(sample) if is_safe and "c" not in kinds else ():
            with warnings.catch_warnings(action="error"), np.errstate(all="raise"):
                computed(op, args, sample)
            count += 1

    assert count


@in_one_test
@pytest.mark.parametrize("name", records(lambda op: op.only_float_warnings))
def test_operations_with_float_warnings_only_are_silent_in_np_errstate(name):
    op = PRIMITIVES[name]
    for sample in SAMPLES[name]:
        if "c" in kinds_of(sample):
            operands: list = [sample.args] if not op.casts_operands else []
        else:
            operands = [sample.args, *with_special_values(sample)]
        for args in operands:
            with warnings.catch_warnings(action="error"), np.errstate(all="ignore"):
                try:
                    computed(op, args, sample)
                except Warning:
                    raise
                except Exception:  # an index out of range: errors are not warnings
                    assert args is not sample.args


@pytest.mark.parametrize("name", records(lambda op: op.needs_elements))
def test_operations_that_need_elements_refuse_empty_arrays(name):
    with pytest.raises(ValueError):
        PRIMITIVES[name].impl(np, np.zeros(0))


# ---- algebra ----


@in_one_test
@pytest.mark.parametrize("name", records(lambda op: op.commutative))
def test_commutative_operations_give_the_same_bits_for_swapped_operands(name):
    op = PRIMITIVES[name]
    for sample in SAMPLES[name]:
        if not all(hasattr(arg, "dtype") or type(arg) in PYTHON_NUMBERS for arg in sample.args):
            continue  # an undefined cotangent
        for x, y in (
            sample.args,
            *([] if "c" in kinds_of(sample) else with_special_values(sample)),
        ):
            with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
                one, other = computed(op, (x, y), sample), computed(op, (y, x), sample)
            # 0.0 and -0.0 are equal, and maximum may return either
            assert bits(one + 0.0) == bits(other + 0.0)


@in_one_test
@pytest.mark.parametrize("name", records(lambda op: op.odd_in))
def test_negating_an_operand_of_an_odd_operation_negates_the_result(name):
    op, count = PRIMITIVES[name], 0
    for sample in SAMPLES[name]:
        for i in op.odd_in:
            x = sample.args[i]
            is_added = op.added is not None and sample.attrs.get(op.added)
            out = np.asarray(computed(op, sample.args, sample))
            if is_added or np.asarray(x).dtype.kind not in "fc" or out.dtype.kind not in "fc":
                continue
            negated = [-arg if j == i else arg for j, arg in enumerate(sample.args)]
            assert bits(0.0 - out) == bits(computed(op, negated, sample) + 0.0)
            count += 1

    assert count


@pytest.mark.parametrize("name", records(lambda op: op.linear_in == ()))
def test_operations_that_are_never_linear_have_a_sample_that_shows_it(name):
    op = PRIMITIVES[name]

    def is_homogeneous(sample: Sample, i: int) -> bool:
        doubled = [2 * arg if j == i else arg for j, arg in enumerate(sample.args)]
        try:
            found = results_of(op, doubled, sample)
        except ValueError:  # math.asin of twice the number
            return False
        pairs = zip(results_of(op, sample.args, sample), found, strict=True)
        return all(np.array_equal(2 * np.asarray(x), y) for x, y in pairs)

    places = [
        (sample, i)
        for sample in SAMPLES[name]
        for i, arg in enumerate(sample.args)
        if np.asarray(arg).dtype.kind == "f"
    ]
    assert not all(is_homogeneous(*place) for place in places)


@pytest.mark.parametrize("name", records(lambda op: op.is_zero is not None))
def test_results_stated_to_be_zero_are_zero(name):
    op, count = PRIMITIVES[name], 0
    for sample in SAMPLES[name]:
        if op.is_zero(*map(type_of, sample.args), **op.complete(sample.attrs)):
            assert not np.any(computed(op, sample.args, sample))
            count += 1

    assert count or name == "constant"


@pytest.mark.parametrize("name", records(lambda op: op.result_below is not None))
def test_results_are_below_the_operand_stated_to_bound_them(name):
    op = PRIMITIVES[name]
    for x, bound in [(20, 8), (16, 8), (-3, 8), (0, 1), (7, 8)]:
        args = np.int64(x), np.int64(bound)

        assert 0 <= computed(op, args, SAMPLES[name][0]) < args[op.result_below]


# ---- values, sizes and memory ----


@in_one_test
@pytest.mark.parametrize("name", records(lambda op: op.exact))
def test_exact_operations_are_bitwise_equal_for_every_memory_layout(name):
    op = PRIMITIVES[name]
    random = np.random.default_rng(7)
    for sample in SAMPLES[name]:
        if any(np.shape(arg) != np.shape(sample.args[0]) for arg in sample.args):
            continue
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            for _ in range(3):
                args = [
                    (random.standard_normal(67) * 9).astype(np.asarray(arg).dtype)
                    for arg in sample.args
                ]
                apart = [np.repeat(arg, 3)[::3] for arg in args]
                one, other = computed(op, args, sample), computed(op, apart, sample)
                assert bits(one) == bits(other)


@pytest.mark.parametrize("name", records(lambda op: op.reads_sizes_only))
def test_operations_on_sizes_do_not_read_elements(name):
    op = PRIMITIVES[name]
    for sample in SAMPLES[name]:
        for args in with_special_values(sample):
            assert_same(computed(op, sample.args, sample), computed(op, args, sample))


@pytest.mark.parametrize("name", records(lambda op: op.operand_dtypes is not None))
def test_python_numbers_are_converted_to_the_stated_dtype(name):
    op, count = PRIMITIVES[name], 0
    for sample in SAMPLES[name]:
        out = computed(op, sample.args, sample)
        dtypes = op.operand_dtypes(np.asarray(out).dtype, len(sample.args))
        is_number = [type(arg) in PYTHON_NUMBERS for arg in sample.args]
        if not any(is_number):
            continue
        pairs = zip(sample.args, dtypes, is_number, strict=True)
        args = [np.asarray(arg, dtype) if given else arg for arg, dtype, given in pairs]

        assert_same(out, computed(op, args, sample))
        count += 1

    assert count


def is_compact(x: np.ndarray) -> bool:
    """Whether the elements of an array fill its memory without gaps, in some order of its axes."""
    axes = sorted((stride, n) for stride, n in zip(x.strides, x.shape, strict=True) if n > 1)
    expected = x.itemsize
    for stride, n in axes:
        if stride != expected:
            return False
        expected *= n
    return True


@in_one_test
@pytest.mark.parametrize("name", records(lambda op: op.compact))
def test_compact_results_share_no_memory_and_have_no_gaps(name):
    op = PRIMITIVES[name]
    for sample in SAMPLES[name]:
        turned = [a.T.copy().T if isinstance(a, np.ndarray) else a for a in sample.args]
        for args in (sample.args, turned):
            out = computed(op, args, sample)

            assert not any(np.may_share_memory(out, a) for a in args if np.ndim(a))
            assert not np.size(out) or is_compact(np.asarray(out))
            if np.ndim(out) == 0 and op.compact == "scalar":
                assert isinstance(out, np.generic)


@pytest.mark.parametrize(
    "name", records(lambda op: op.memory == "view" and not op.views and not op.results)
)
def test_a_view_is_another_object_than_its_operand_unless_stated(name):
    op = PRIMITIVES[name]
    operands = [(sample, sample.args) for sample in SAMPLES[name] if np.ndim(sample.args[0])]
    same = [computed(op, args, sample) is args[0] for sample, args in operands]

    assert operands
    assert any(same) <= op.may_return_operand


# ---- bodies ----


def held(fact: Callable) -> list[str]:
    """The names of records with samples whose body layout satisfies ``fact``."""
    return records(lambda op: op.bodies is not None and fact(op.bodies))


def binds_of(name: str) -> Iterator[tuple]:
    """(bind, program, arguments) for each sample."""
    for sample in SAMPLES[name]:
        program, args = applied_program(PRIMITIVES[name], sample)
        yield next(bind for bind in program.binds if bind.op.name == name), program, args


@pytest.mark.parametrize("name", held(lambda layout: layout.is_separable))
def test_operands_and_results_of_a_bind_correspond_to_parameters_and_results_of_its_bodies(name):
    for bind, _, _ in binds_of(name):
        layout, bodies = bind.op.bodies, bodies_of(bind)
        n_carry, own = layout.n_carry(bind), layout.own(bind)

        for body in bodies:
            assert len(body.params) == layout.steps + len(bind.args) - layout.ahead
        assert len(bind.binders) == len(bodies[-1].ret.args) + own
        assert 0 <= n_carry + own <= len(bind.binders)
        kept = [*range(len(bind.binders))], [*range(len(bodies[-1].params))]
        assert {**bind.attrs, **layout.counts(bind, *kept)} == {**bind.attrs}


@pytest.mark.parametrize("name", held(lambda layout: layout.in_place is not None))
def test_a_body_that_may_replace_its_bind_computes_the_same_results(name):
    for bind, program, args in binds_of(name):
        values = dict(zip(program.params, args, strict=True))

        def number(arg, values=values):
            return arg.value if type(arg) is Const else values[arg]

        body, operands = bind.op.bodies.in_place(bind, number)
        assert_same(run_flat(program, list(args)), run_flat(body, list(map(number, operands))))


@pytest.mark.parametrize("name", held(lambda layout: layout.given_types is not None))
def test_parameters_of_bodies_have_the_stated_types(name):
    for bind, _, _ in binds_of(name):
        found = bind.op.bodies.given_types([arg.type for arg in bind.args], bind.attrs)

        params = [param.type for param in bodies_of(bind)[-1].params]
        assert [(t.dtype, t.shape) for t in found] == [(t.dtype, t.shape) for t in params]


def test_every_operation_with_bodies_has_a_body_layout():
    """Except those that are computed and differentiated by their decomposition."""
    silent = set()
    for name in records(lambda op: op.holds_lambdas and op.bodies is None and not op.decompose):
        if any(bodies_of(bind) for bind, _, _ in binds_of(name)):
            silent.add(name)

    # a loop over examples, solvers that choose how often to call their bodies, and an operation
    # that has to raise what it raised
    assert {"looped", "odeint", "scipy_solve", "vector_integral", "guard_raised"} >= silent


@each_of(records(lambda op: op.holds_lambdas))
def test_only_body_attributes_hold_programs(name):
    """``check`` refuses programs in all other attributes."""
    for sample in SAMPLES[name]:
        for bind in applied_program(PRIMITIVES[name], sample)[0].binds:
            held = {key for key, value in bind.attrs.items() if bodies_in((value,))}
            assert held <= BODY_ATTRIBUTES
