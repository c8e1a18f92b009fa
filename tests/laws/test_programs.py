"""Laws of programs, on generated ones (``letir.testing.programs``).

A law is a function of a program, its arguments, and a number that chooses among what the law leaves
open. Each runs on few programs here and on 10,000 in the slow test.
"""

import pickle

import numpy as np
import pytest
from attrs import frozen
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from scipy.integrate import ODEintWarning

from letir import (
    Lambda,
    Ret,
    canonicalize,
    check,
    checkpoint,
    differentiate,
    dumps,
    grad,
    jacfwd,
    jacrev,
    jvp,
    lower_grad_of,
    run_forward,
    specialize_undef,
    vjp,
)
from letir.ad.forward import linear_program
from letir.ast.pytrees import flatten
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.text.parser import parse
from letir.ast.types import Undef
from letir.errors import GuardError
from letir.eval.evaluator import Evaluator, run_flat
from letir.passes import dead_code
from letir.testing import SAMPLES, assert_close, assert_same, programs
from letir.testing.gradient_checks import is_inexact, pair_sum, random_direction, step_along
from letir.transforms.transposition import transposed_program

QUICK = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(QUICK, max_examples=10_000)
STEP = 1e-6


def keeping(*laws: str) -> set[str]:
    """The operations all of whose samples keep these laws."""
    kept = [name for name, samples in SAMPLES.items() if laws_left_out(samples).isdisjoint(laws)]
    return set(kept)


def laws_left_out(samples) -> set[str]:
    """The laws from which any of the samples is exempt."""
    return {law for sample in samples for law in sample.exempt}


NUMBERS = [np.dtype(name) for name in ("bool", "int64", "uint64", "float64", "complex128")]
ANY = programs()
DOUBLE = programs(ops=keeping("program_derivative"), dtypes=NUMBERS)
TWICE = programs(ops=keeping("program_derivative", "program_second_derivative"), dtypes=NUMBERS)
SMOOTH = programs(ops=keeping("program_derivative", "program_difference"), dtypes=NUMBERS)
# not at equal singular values: what has no second derivative there follows rounding errors
STEADY = keeping("program_derivative", "program_second_derivative", "transposition")
TURNED = programs(ops=STEADY, dtypes=NUMBERS)
REAL = programs(ops=keeping("program_derivative"), dtypes=NUMBERS[:-1], max_steps=8)


# ---- programs as they are ----


def programs_are_well_formed(fn, args, choice):
    check(fn)


def text_brings_the_program_back(fn, args, choice):
    again = parse(dumps(fn))

    assert fn == again
    assert dumps(fn) == dumps(again)


def pickles_bring_the_program_back(fn, args, choice):
    again = pickle.loads(pickle.dumps(fn))

    assert fn == again
    assert hash(fn) == hash(again)


def the_canonical_form_is_equal_and_canonical(fn, args, choice):
    canonical = canonicalize(fn)

    assert fn == canonical
    assert hash(fn) == hash(canonical)
    assert dumps(canonical) == dumps(canonicalize(parse(dumps(fn))))
    assert_same(run_forward(fn, *args), run_forward(canonical, *args))


def replay_is_deterministic_and_leaves_its_arguments_alone(fn, args, choice):
    before = [np.copy(arg) for arg in args]

    first, second = run_forward(fn, *args), run_forward(fn, *args)

    assert_same(first, second)
    assert_same(before, [np.copy(arg) for arg in args])


def dead_code_keeps_results(fn, args, choice):
    live = dead_code(fn)

    assert_same(run_forward(fn, *args), run_forward(check(live), *args))
    assert live == dead_code(live)


# ---- derivatives ----


@frozen(eq=False)
class Case:
    """A program whose results require grad, with directions for results and arguments."""

    fn: Lambda
    args: list
    gradient: object
    results: tuple
    residuals: tuple
    places: list  # positions of the results that require grad
    cts: list  # their cotangents


def case_of(fn, args) -> Case | None:
    """The case of a program, or None if no result requires grad."""
    gradient = differentiate(fn)
    places = [i for i in gradient.df_input_vjps if i < gradient.f_real_outputs]
    if not places:
        event("no result requires grad")
        return None
    results = run_flat(fn, list(args))
    rng = np.random.default_rng(0)
    cts = [random_direction(results[i], rng) for i in places]
    return Case(fn, args, gradient, results, gradient.forward(*args)[1], places, cts)


def tangents_of(args, seed: int = 1) -> tuple:
    """A direction for each floating argument."""
    rng = np.random.default_rng(seed)
    return tuple(random_direction(arg, rng) if is_inexact(arg) else None for arg in args)


def shifted(args, tangents, step: float) -> list:
    """``args`` moved a step along the tangents."""
    pairs = zip(args, tangents, strict=True)
    return [arg if t is None else step_along(arg, step * t) for arg, t in pairs]


def derivative_programs_are_well_formed_and_printable(fn, args, choice):
    gradient = differentiate(fn)

    for program in (gradient.f, gradient.df, lower_grad_of(gradient.df)):
        assert program == parse(dumps(check(program)))


def grad_vjp_and_the_pair_agree(fn, args, choice):
    case = case_of(fn, args)
    if case is None:
        return
    full = [np.zeros(np.shape(r)) for r in case.results]
    for i, ct in zip(case.places, case.cts, strict=True):
        full[i] = ct

    def total(*args):
        results = fn(*args) if len(full) > 1 else (fn(*args),)
        return sum((results[i] * full[i]).sum().real for i in case.places)

    by_pair = case.gradient.backward(case.residuals, *case.cts)
    by_vjp = vjp(fn, *args)[1](tuple(full) if len(full) > 1 else full[0])
    by_grad = grad(total, argnums=case.gradient.df_output_vjps)(*args)

    by_vjp = tuple(by_vjp[i] for i in case.gradient.df_output_vjps)
    assert_close(by_pair, by_vjp)  # vjp sums in another order
    assert_close(by_pair, by_grad)


def forward_mode_is_reverse_mode_transposed(fn, args, choice):
    case = case_of(fn, args)
    if case is None:
        return
    tangents = tangents_of(args)
    found = jvp(fn, args, tangents)[1]
    pushed = found if len(case.results) > 1 else (found,)
    pulled = case.gradient.backward(case.residuals, *case.cts)

    left, size = pair_sum(case.cts, [pushed[i] for i in case.places])
    right, other = pair_sum(pulled, [tangents[i] for i in case.gradient.df_output_vjps])
    assert agree(left, right, size + other, 1e-9)


def is_rounding_error(size: float) -> bool:
    """Whether derivatives of this size are rounding errors of values.

    Examples are the logarithm of the smallest singular value of a singular matrix, and quantiles of
    distributions with nearly no degrees of freedom.
    """
    return not size < 1 / np.finfo(float).eps


def agree(left: float, right: float, size: float, tolerance: float) -> bool:
    """Whether two derivatives agree, or are rounding errors of values."""
    return is_rounding_error(size) or abs(left - right) <= tolerance * (1 + size)


def derivatives_agree_with_differences(fn, args, choice):
    """Evaluated near the samples, where there are fewer ties and kinks."""
    args = shifted(args, tangents_of(args, 2), 1e-3)
    try:
        case = case_of(fn, args)
    except (GuardError, IndexError, ValueError):
        return
    if case is None:
        return
    tangents = tangents_of(args)
    ahead, behind, nearer = (one_sided(case, tangents, h) for h in (STEP, -STEP, STEP / 3))
    pulled = case.gradient.backward(case.residuals, *case.cts)
    found, size = pair_sum(pulled, [tangents[i] for i in case.gradient.df_output_vjps])
    smooth = is_near(ahead, behind, size, 1e-3) and is_near(ahead, nearer, size, 1e-3)
    if not smooth or is_rounding_error(size):
        event("no derivative there")
        return
    event("compared")
    assert is_near(found, (ahead + behind) / 2, size, 1e-4)


def one_sided(case: Case, tangents, step: float) -> float:
    """The one-sided difference of the paired results along the tangents; nan where a run fails."""
    try:
        results = run_flat(case.fn, shifted(case.args, tangents, step))
    except (GuardError, IndexError, ValueError):
        return np.nan
    changes = [np.subtract(results[i], case.results[i]) / step for i in case.places]
    return pair_sum(case.cts, changes)[0]


def is_near(a: float, b: float, size: float, tolerance: float) -> bool:
    """Whether two derivatives nearly agree; False if one is nan."""
    return bool(abs(a - b) <= tolerance * (1 + abs(a) + abs(b) + size))


def missing_cotangents_are_zeros_however_they_are_taken_out(fn, args, choice):
    case = case_of(fn, args)
    if case is None:
        return
    df, count = case.gradient.df, len(case.gradient.df_input_vjps)
    given = [*case.cts, *[Undef] * (count - len(case.cts))]
    rest = [True] * (len(df.params) - count)

    for mask in masks(count, len(case.cts), choice):
        cts = [ct if there else Undef for ct, there in zip(given, mask, strict=True)]
        operands = [*cts, *case.residuals]
        expected = evaluated(df, operands)
        for program in (
            lower_grad_of(df),
            check(specialize_undef(df, [*mask, *rest])),
            specialize_undef(df, [None if there else False for there in mask] + rest),
            lower_grad_of(specialize_undef(df, [None] * count + rest)),
        ):
            assert_same(expected, evaluated(program, operands))


def masks(count: int, real: int, choice: int):
    """Masks of ``count`` cotangents of which only the first ``real`` may be defined."""
    choices = range(2**real) if real <= 3 else [choice * k % 2**real for k in (1, 3, 7, 13)]
    for bits in choices:
        yield [i < real and bool(bits >> i & 1) for i in range(count)]


def evaluated(program: Lambda, operands: list) -> tuple:
    """The results for operands that may be ``Undef``."""
    return Evaluator(np).call(program, list(operands))


def second_derivatives_in_both_orders_agree(fn, args, choice):
    """Reverse over reverse and forward over reverse, with the same cotangents and tangents."""
    case = case_of(fn, args)
    if case is None:
        return
    wanted = [i for i in range(len(args)) if is_inexact(args[i])]
    tangents = tangents_of(args)

    def pulled(*chosen):
        filled = list(args)
        for i, arg in zip(wanted, chosen, strict=True):
            filled[i] = arg
        full = [np.zeros(np.shape(r)) for r in case.results]
        for i, ct in zip(case.places, case.cts, strict=True):
            full[i] = ct
        cts = vjp(fn, *filled)[1](tuple(full) if len(full) > 1 else full[0])
        return tuple(cts[i] for i in wanted)

    chosen, along = [args[i] for i in wanted], [tangents[i] for i in wanted]
    pushed = jvp(pulled, tuple(chosen), tuple(along))[1]
    again = vjp(pulled, *chosen)[1](tuple(along))

    left, size = pair_sum(along, pushed)
    right, other = pair_sum(again, along)
    assert agree(left, right, size + other, 1e-8)


def reverse_mode_is_the_linearization_transposed(fn, args, choice):
    """Reverse mode equals transposed forward mode, and linear programs are recognised as linear."""
    inputs = [i for i, arg in enumerate(args) if is_inexact(arg)]
    case = case_of(fn, args)
    if case is None:
        return
    pair = linear_program(fn, inputs)
    transpose = check(transposed_program(pair.linear, list(range(len(inputs)))))
    cts = dict(zip(case.places, case.cts, strict=True))

    captured = pair.captured(args, run_flat(pair.f, list(args)))
    found = run_flat(transpose, [*(cts[i] for i in pair.outputs), *captured])

    expected = dict(
        zip(
            case.gradient.df_output_vjps,
            case.gradient.backward(case.residuals, *case.cts),
            strict=True,
        )
    )
    assert_close([expected[i] for i in inputs], list(found))


def a_checkpoint_changes_neither_values_nor_derivatives(fn, args, choice):
    """For every policy."""
    kept = checkpoint(fn, policy=lambda bind: bool(choice >> len(bind.op.name) % 20 & 1))
    results = run_flat(fn, list(args))
    cts = full_cts(results)

    for program in (check(kept), checkpoint(checkpoint(fn))):
        assert_same(results, run_flat(program, list(args)))
        assert_close(vjp(fn, *args)[1](cts), vjp(program, *args)[1](cts))


def full_cts(results: tuple):
    """A cotangent for each result, in the form that ``pull`` takes."""
    rng = np.random.default_rng(3)
    cts = [random_direction(r, rng) if is_inexact(r) else np.zeros(np.shape(r)) for r in results]
    return cts[0] if len(cts) == 1 else tuple(cts)


def both_modes_give_the_same_jacobian(fn, args, choice):
    case = case_of(fn, args)
    wanted = tuple(i for i, arg in enumerate(args) if is_inexact(arg))
    results = [] if case is None else [fn.ret.args[i] for i in case.places]
    results = [r for r in results if has_static_shape(r.type)]  # a matrix has a number of rows
    if not (results and wanted):
        return
    chosen = Lambda(fn.params, fn.binds, Ret(tuple(results)))

    forward, reverse = (jac(chosen, wanted)(*args) for jac in (jacfwd, jacrev))

    if all(np.isfinite(leaf).all() for leaf in flatten((forward, reverse))[0]):
        assert_close(forward, reverse, rtol=1e-9, atol=1e-9)


LAWS = {
    programs_are_well_formed: ANY,
    text_brings_the_program_back: ANY,
    pickles_bring_the_program_back: ANY,
    the_canonical_form_is_equal_and_canonical: ANY,
    replay_is_deterministic_and_leaves_its_arguments_alone: ANY,
    dead_code_keeps_results: ANY,
    derivative_programs_are_well_formed_and_printable: ANY,
    missing_cotangents_are_zeros_however_they_are_taken_out: ANY,
    grad_vjp_and_the_pair_agree: DOUBLE,
    forward_mode_is_reverse_mode_transposed: DOUBLE,
    second_derivatives_in_both_orders_agree: TWICE,
    derivatives_agree_with_differences: SMOOTH,
    reverse_mode_is_the_linearization_transposed: TURNED,
    a_checkpoint_changes_neither_values_nor_derivatives: DOUBLE,
    both_modes_give_the_same_jacobian: REAL,
}


def hold(kind: str, how: settings) -> None:
    """Check all laws of a kind of program on generated ones, which are made once for all laws.

    Derivatives may be infinite where values are not.
    """
    programs_of_kind = KINDS[kind]

    @how
    @given(programs_of_kind, st.integers(0, 2**20))
    def run(program, choice):
        for law in [law for law, drawn in LAWS.items() if drawn is programs_of_kind]:
            with np.errstate(all="ignore"):
                try:
                    law(*program, choice)
                except np.linalg.LinAlgError:  # e.g. eigenvectors that do not form a basis
                    event("no derivative there")
                except ODEintWarning:  # steps would be too small
                    event("no derivative that SciPy can compute")
                except Exception as error:
                    error.add_note(f"the law {law.__name__} does not hold")
                    raise

    run()


# SciPy's, of a matrix that has no square root
quiet = pytest.mark.filterwarnings("ignore:Matrix is singular")
KINDS = {"any": ANY, "double": DOUBLE, "twice": TWICE}
KINDS |= {"smooth": SMOOTH, "turned": TURNED, "real": REAL}


def test_every_law_is_of_a_kind():
    assert set(map(id, LAWS.values())) == set(map(id, KINDS.values()))


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", KINDS)
@quiet
def test_laws_hold_for_generated_programs(kind):
    hold(kind, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@quiet
def test_laws_hold_for_10_000_generated_programs(kind):
    hold(kind, MANY)
