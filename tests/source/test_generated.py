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
        assert_same(g.backward(expected[1], *cts), backward(kept[1], *cts))


def the_source_of_a_raw_gradient_program_computes_the_same(fn, args):
    g = lt.differentiate(fn)
    _, residuals = g.forward(*args)
    df = loaded(lt.to_source(g.df), "f")
    missing = [None] * (len(g.df_input_vjps) - len(cotangents(g, args)))

    for cts in masks(cotangents(g, args)):
        given = [*cts, *missing, *residuals]
        expected = Evaluator(np).call(g.df, [Undef if a is None else a for a in given])
        found = df(*given)
        assert_same(without_undef(expected), found if len(expected) != 1 else (found,))


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


@pytest.mark.hypothesis
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_hold_for_generated_programs(law):
    holds(law, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_hold_for_5_000_generated_programs(law):
    holds(law, MANY)
