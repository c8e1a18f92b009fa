"""The one rule of exactness, for all passes and pipelines [F4]: on generated programs, those with
control flow and gradients among them, results keep every bit; passes that sum in another order say
so, and stay within rounding.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir import passes
from letir.ast.terms import Lambda
from letir.errors import GuardError
from letir.eval.evaluator import run_flat
from letir.executor.default_pipeline import optimize_program
from letir.plan.plan import plan_of
from letir.testing import assert_close, assert_same, control_functions, programs

EXACT = (
    *("canonicalize_ops", "common_subexpressions", "constant_pooling", "constant_propagation"),
    "join_error_regions",
    *("dead_code", "decompose_addmm", "erase_number_types", "fuse", "in_place_check"),
    *(
        "inline_bodies",
        "loop_invariants",
        "lower_tuples",
        "normalize_order",
        "copy_outliving_views",
    ),
    *("peephole", "propagate_shapes", "remove_implicit_expands", "unroll", "without_barriers"),
)
LOOSE = (
    "batch_matmuls",
    "multiply_powers",
    "sink_negations",
    "decompose",
    "combine_sums",
)  # within rounding
OTHERS = {"without_writes"}  # used for derivatives: keeps results, not effects
NO_PASSES = {"is_differentiable", "propagate_requires_grad", "register", "unregister"}
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(QUICK, max_examples=3000)
CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # some programs compute in single precision


def results(f: Lambda, args) -> tuple | str:
    """The flat results for copies of the arguments (some programs write into them); "guard" if
    one failed.
    """
    given_ = [np.copy(x, order="K") if isinstance(x, np.ndarray) else x for x in args]
    with np.errstate(all="ignore"):
        try:
            return run_flat(f, given_)
        except GuardError:
            return "guard"


def gradient(f, args) -> Lambda:
    """The gradient of the sum of all results with respect to the first arguments."""

    def total(*xs):
        return sum([out.sum() for out in f(*xs)])

    with np.errstate(all="ignore"):
        return lt.grad(lt.trace(total, *args), (0, 1, 2, 3))


def recorded(program) -> tuple[Lambda, list]:
    """(program, arguments) of a function and arguments."""
    f, args = program
    with np.errstate(all="ignore"):
        return lt.trace(f, *args), args


CONTROL = control_functions(max_steps=3).map(recorded)
GRADIENTS = control_functions(smooth=True, max_steps=2).map(lambda p: (gradient(*p), p[1]))
PROGRAMS = st.one_of(programs(max_steps=16), CONTROL, GRADIENTS)


def check_all(f: Lambda, args) -> None:
    """Every pass alone, and the compiled program after every pass of the pipeline."""
    expected = results(f, args)
    for name in EXACT:
        changed = getattr(passes, name)(f)
        if changed is not f:
            assert_same(expected, results(lt.check(changed), args))
    for name in LOOSE:
        assert_close(expected, results(lt.check(getattr(passes, name)(f)), args), **CLOSE)
    check_pipeline(f, args, expected)


def check_pipeline(f: Lambda, args, expected) -> None:
    """The program after each pass of the pipeline."""
    prefixes = []

    def observe(name, before, after, seconds):
        prefixes.append(after)

    whole = optimize_program(f, exact=True, observe=observe)
    for prefix in prefixes:
        assert_same(expected, results(lt.check(prefix), args))
    if expected != "guard":
        with np.errstate(all="ignore"):
            copies = [np.copy(x, order="K") if isinstance(x, np.ndarray) else x for x in args]
            assert_same(expected, plan_of(whole).run(copies))
    assert_close(expected, results(lt.check(optimize_program(f)), args), **CLOSE)


def test_every_pass_is_covered_by_a_law():
    assert {*EXACT, *LOOSE, *OTHERS, *NO_PASSES} == set(passes.__all__)


@QUICK
@given(PROGRAMS)
def test_passes_keep_results_to_the_bit(program):
    """[F4]"""
    check_all(*program)


@pytest.mark.slow
@MANY
@given(PROGRAMS)
def test_passes_keep_results_to_the_bit_many_times(program):
    """[F4]"""
    check_all(*program)


@QUICK
@given(PROGRAMS, st.lists(st.sampled_from(EXACT), min_size=2, max_size=8))
def test_passes_in_any_order_keep_results_to_the_bit(program, names):
    """No pass depends on the passes before it."""
    f, args = program
    changed = f
    for name in names:
        changed = lt.check(getattr(passes, name)(changed))

    assert_same(results(f, args), results(changed, args))


@QUICK
@given(PROGRAMS)
def test_passes_reach_a_fixpoint(program):
    """A pass with nothing to do returns its argument itself."""
    f, _ = program
    for name in EXACT:
        change, found = getattr(passes, name), f
        for _ in range(6):
            before, found = found, change(found)
        assert found is before, name


@QUICK
@given(control_functions(max_steps=3), st.integers(-1, 4))
def test_passes_keep_results_for_arguments_that_take_another_path(program, steps):
    """A loop has another trip count, a conditional takes another branch."""
    f, args = recorded(program)
    others = [~x if x.dtype.kind == "b" else -x for x in args[:4]]
    others += [np.asarray(steps), args[5]]
    expected = results(f, others)

    for name in EXACT:
        assert_same(expected, results(getattr(passes, name)(f), others))
    assert_same(expected, results(optimize_program(f, exact=True), others))
