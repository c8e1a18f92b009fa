"""Differentiable subgraphs: which binds they take, in which order, and what they return [F3]."""

import numpy as np
import pytest
from hypothesis import given, settings

import letir as lt
from letir.executor.autodiff.subgraphs import (
    create_autodiff_subgraphs,
    inline_autodiff_subgraphs,
    smallest_subgraphs,
)
from letir.testing import assert_same, programs

ONES = np.ones(3)
opaque_sort = lt.opaque(np.sort, lambda x: x, name="test_subgraphs.sort")


def names(fn) -> list[str]:
    """The operations of a program, in order."""
    return [bind.op.name for bind in fn.binds]


def graphs(fn) -> list[list[str]]:
    """The operations in each differentiable subgraph."""
    return [names(b.attrs["f"]) for b in fn.binds if b.op.name == "differentiable_graph"]


def test_a_differentiable_program_is_one_graph():
    fn = lt.trace(lambda x: np.exp(np.sin(x)) * 2, ONES)

    assert [["sin", "exp", "mul"]] == graphs(create_autodiff_subgraphs(fn, [True]))


def test_a_program_that_requires_no_grad_has_no_graph():
    fn = lt.trace(lambda x: np.exp(np.sin(x)) * 2, ONES)

    assert create_autodiff_subgraphs(fn, [False]) is fn


def test_a_single_operation_is_a_graph_only_when_debugging():
    fn = lt.trace(np.sin, ONES)

    assert create_autodiff_subgraphs(fn, [True]) is fn
    with smallest_subgraphs():
        small = create_autodiff_subgraphs(fn, [True])
        assert [["sin"]] == graphs(inline_autodiff_subgraphs(small))


def test_an_operation_without_a_rule_separates_two_graphs():
    def f(x, y):
        a = np.sin(x) * 2
        b = opaque_sort(a)
        # the first result does not need to wait for the sort
        return np.cos(np.exp(y)) + a, np.sin(b) * b

    fn = lt.trace(f, ONES, ONES)
    found = create_autodiff_subgraphs(fn, [True, True])

    assert names(found) == ["differentiable_graph", "test_subgraphs.sort", "differentiable_graph"]
    assert graphs(found) == [["sin", "mul", "exp", "cos", "add"], ["sin", "mul"]]
    lt.check(found)
    assert_same(fn(ONES, ONES), found(ONES, ONES))


def test_masks_and_integers_do_not_split_a_graph():
    fn = lt.trace(lambda x: np.where(x > 0, x, np.exp(x))[np.argmax(x)], ONES)

    assert len(graphs(create_autodiff_subgraphs(fn, [True]))) == 1


def test_effects_keep_their_order_among_all_binds():
    def f(x):
        y = opaque_sort(np.sin(x))
        if y.sum() > 0:
            return np.exp(x) * y
        return x

    fn = lt.trace(f, ONES)
    found = create_autodiff_subgraphs(fn, [True])

    # exp does not depend on the sort, but the guard decides whether it runs
    (after,) = [g for g in graphs(found) if "guard" in g]
    assert after.index("guard") < after.index("exp")
    assert_same(fn(ONES), found(ONES))
    with pytest.raises(lt.GuardError):
        found(-ONES)


def test_short_graphs_are_inlined():
    fn = lt.trace(lambda x: np.exp(np.sin(x)), ONES)
    cut = create_autodiff_subgraphs(fn, [True])

    assert ["differentiable_graph"] == names(cut)
    assert fn == inline_autodiff_subgraphs(cut)


def test_long_graphs_are_not_inlined():
    fn = lt.trace(lambda x: np.exp(np.sin(np.exp(np.sin(x)))) * 2, ONES)
    cut = create_autodiff_subgraphs(fn, [True])

    assert inline_autodiff_subgraphs(cut) is cut


def test_a_graph_whose_differentiation_fails_keeps_its_results():
    def f(x, y):
        g = lt.custom_jvp(lambda x: x * y)  # a rule without a tangent for y
        g.defjvp(lambda primals, tangents: (g(*primals), tangents[0]))
        return np.sin(g(x)) * 2

    fn = lt.trace(f, ONES, ONES)

    assert_same(fn(ONES, ONES), create_autodiff_subgraphs(fn, [True, True])(ONES, ONES))


@settings(max_examples=40)
@given(programs())
def test_graphs_keep_results_and_gradients(program):
    fn, args = program
    requires = [param.type.inexact and not param.type.weak for param in fn.params]

    with smallest_subgraphs():
        cut = create_autodiff_subgraphs(fn, requires)
    again = inline_autodiff_subgraphs(cut, fewest=1 << 30)

    lt.check(cut)
    lt.check(again)
    assert "differentiable_graph" not in names(again)
    assert_same(fn(*args), cut(*args))
    assert_same(fn(*args), again(*args))
