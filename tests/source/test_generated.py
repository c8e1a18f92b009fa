"""``to_source`` on generated programs, their gradients, and gradient programs in raw form."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import letir as lt
from letir.ast.types import Undef
from letir.errors import ExportError
from letir.eval.evaluator import Evaluator, run_flat
from letir.testing import assert_same, programs
from letir.testing.gradient_checks import random_direction

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(QUICK, max_examples=5_000)


def loaded(source: str, *names: str):
    """The functions of a source."""
    namespace: dict = {}
    exec(compile(source, "<source>", "exec"), namespace)
    return [namespace[name] for name in names] if len(names) > 1 else namespace[names[0]]


def without_undef(results) -> tuple:
    """``Undef`` replaced by None, as in sources."""
    return tuple(None if r is Undef else r for r in results)


def outcome(call, *args):
    """The results of a call as a tuple, or the class of NumPy's error: a singular matrix may have
    factors and no derivative.
    """
    try:
        return without_undef(flat(call(*args)))
    except np.linalg.LinAlgError as error:
        return type(error)


def assert_same_outcome(expected, found) -> None:
    """Raise AssertionError unless two outcomes are the same."""
    if isinstance(expected, type) or isinstance(found, type):
        assert expected is found
    else:
        assert_same(expected, found)


def a_source_computes_the_same(fn, args):
    expected = without_undef(run_flat(fn, list(args)))

    found = loaded(lt.to_source(fn), "f")(*args)

    assert_same(expected if len(expected) != 1 else expected[0], found)


def the_sources_of_a_gradient_compute_the_same(fn, args):
    g = lt.differentiate(fn)
    forward, backward = loaded(lt.to_source(g), "f_forward", "f_backward")

    expected, kept = g.forward(*args), forward(*args)

    assert_same(without_undef(flat(expected[0])), flat(kept[0]))
    assert_same(expected[1], kept[1])
    for cts in masks(cotangents(g, args)):
        wanted, found = outcome(g.backward, expected[1], *cts), outcome(backward, kept[1], *cts)
        assert_same_outcome(wanted, found)


def the_source_of_a_raw_gradient_program_computes_the_same(fn, args):
    g = lt.differentiate(fn)
    _, residuals = g.forward(*args)
    df = loaded(lt.to_source(g.df), "f")
    missing = [None] * (len(g.df_input_vjps) - len(cotangents(g, args)))

    for cts in masks(cotangents(g, args)):
        given = [*cts, *missing, *residuals]
        defined = [Undef if a is None else a for a in given]
        assert_same_outcome(outcome(Evaluator(np).call, g.df, defined), outcome(df, *given))


def flat(results) -> tuple:
    """The results as a flat tuple."""
    return results if isinstance(results, tuple) else (results,)


def cotangents(g, args) -> list:
    """One for each real result that requires grad."""
    results, rng = flat(g.forward(*args)[0]), np.random.default_rng(0)
    return [random_direction(results[i], rng) for i in g.df_input_vjps if i < g.f_real_outputs]


def masks(cts: list) -> list:
    """Masks with all cotangents, none, and every second one."""
    return [cts, [None] * len(cts), [ct if i % 2 else None for i, ct in enumerate(cts)]]


LAWS = [
    a_source_computes_the_same,
    the_sources_of_a_gradient_compute_the_same,
    the_source_of_a_raw_gradient_program_computes_the_same,
]


def holds(law, how: settings) -> None:
    """Run a law on generated programs; derivatives may be infinite where values are finite."""

    @how
    @given(programs())
    def run(program):
        with np.errstate(all="ignore"):
            try:
                law(*program)
            except ExportError as error:  # of solvers, which only letir can call
                assume("has no form in NumPy" not in str(error))
                raise

    run()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_hold_for_factors_of_a_singular_matrix(law):
    """Its gradient is NumPy's error about singular matrices, in letir and in the source."""
    program = lt.trace(lambda x: tuple(np.linalg.qr(x)), x := np.zeros((2, 2)))

    law(program, [x])


@pytest.mark.hypothesis
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_hold_for_generated_programs(law):
    holds(law, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_hold_for_5_000_generated_programs(law):
    holds(law, MANY)
