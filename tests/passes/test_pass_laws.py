"""Laws of every pass: results keep their bits, programs stay closed and well-typed, a program
without anything to do is returned itself, names and source lines are kept.
"""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import letir as lt
from letir import passes
from letir.ast.terms import Lambda
from letir.passes.pipeline import run_pipeline
from letir.testing import assert_same, functions, programs
from tests.each_sample import in_one_test

# passes that keep every bit of the results of every program
EXACT = (
    "dead_code",
    "common_subexpressions",
    "constant_pooling",
    "constant_propagation",
    "propagate_shapes",
    "inline_bodies",
    "normalize_order",
    "peephole",
    "canonicalize_ops",
    "remove_implicit_expands",
    "in_place_check",
    "loop_invariants",
    "unroll",
    "fuse",
    "join_error_regions",
    "lower_tuples",
)
PASSES = [getattr(passes, name) for name in EXACT if name in passes.__all__]


def gradients(f: Lambda) -> Lambda | None:
    """Values and gradients of the sum of all floating results, as one program; None if there are
    no derivatives.
    """
    positions = [i for i, p in enumerate(f.params) if p.type is not None and p.type.inexact]
    builder = lt.ast.builder.LetBuilder()
    xs = [builder.param(p.type) for p in f.params]
    results = [r for r in builder.call(f, xs) if getattr(r, "type", None) is not None]
    floating = [r for r in results if r.dtype.kind == "f"]
    if not positions or not floating:
        return None
    total = floating[0].sum()
    for result in floating[1:]:
        total = total + result.sum()
    try:
        return lt.value_and_grad(builder.build([total]), tuple(positions), holomorphic=False)
    except lt.LetirError:  # no rule
        return None


@pytest.mark.parametrize("pass_", PASSES, ids=lambda p: p.__name__)
@settings(max_examples=15)
@given(program=programs())
def test_a_pass_keeps_results(pass_, program):
    f, args = program

    g = lt.check(pass_(f))

    with np.errstate(all="ignore"):
        assert_same(lt.run_forward(f, *args), lt.run_forward(g, *args))
    assert (g.in_tree, g.out_tree, g.params) == (f.in_tree, f.out_tree, f.params)


@pytest.mark.parametrize("pass_", PASSES, ids=lambda p: p.__name__)
@settings(max_examples=12)
@given(program=programs(dtypes=("float64", "int64", "bool")))
def test_a_pass_keeps_results_of_gradients(pass_, program):
    f, args = program
    df = gradients(f)
    if df is None:
        return

    g = lt.check(pass_(df))

    with np.errstate(all="ignore"):
        assert_same(lt.run_forward(df, *args), lt.run_forward(g, *args))


@settings(max_examples=40)
@given(functions(), st.lists(st.sampled_from(PASSES), max_size=6))
def test_any_pipeline_keeps_results_of_functions(function, pipeline):
    f, args = function
    program = lt.trace(f, *copy.deepcopy(args))

    found = lt.check(run_pipeline(tuple(pipeline), program))

    own, also = copy.deepcopy(args), copy.deepcopy(args)  # the function may write into them
    with np.errstate(all="ignore"):
        assert_same(lt.run_forward(program, *own), lt.run_forward(found, *also))
    assert_same(own, also)


@pytest.mark.parametrize("pass_", PASSES, ids=lambda p: p.__name__)
@settings(max_examples=15)
@given(program=programs())
def test_a_pass_with_nothing_left_to_do_returns_the_same_object(pass_, program):
    """A pipeline may see a fixpoint."""
    g, _ = program
    for _ in range(len(g) + 3):
        before, g = g, pass_(g)
        if before is g:
            return

    assert g is before


@in_one_test
@pytest.mark.parametrize("pass_", PASSES, ids=lambda p: p.__name__)
def test_a_pass_returns_an_empty_program_unchanged(pass_):
    f = lt.parse("lambda %0 { return %0 }")

    assert pass_(f) is f


@in_one_test
@pytest.mark.parametrize("pass_", PASSES, ids=lambda p: p.__name__)
def test_a_pass_never_mutates_its_argument(pass_):
    f = lt.trace(lambda x: (np.exp(x) * np.exp(x) * 1.0, x[None] + 0 * x), np.ones(3))
    text = lt.dumps(f)

    pass_(f)

    assert lt.dumps(f) == text
