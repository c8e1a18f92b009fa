"""explain_residuals: each residual with its bytes, its readers and the alternative."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings

import letir as lt
from letir.testing.strategies import programs

X = np.linspace(-1, 1, 12).reshape(4, 3)
W = np.eye(3)


def layer(x, w):
    h = np.tanh(x @ w)
    return (h * np.exp(h)).sum()


LINE = inspect.getsourcelines(layer)[1]


def by_text(found) -> dict:
    """The rows of a report by the operation that computes the residual."""
    return {row.text.partition("= ")[2].partition("(")[0]: row for row in found}


def test_each_residual_is_described():
    found = lt.explain_residuals(lt.differentiate(lt.trace(layer, X, W)))
    tanh = by_text(found)["tanh"]

    assert [True, True, False, False] == [row.is_argument for row in found]
    assert ("%3", "h", "%3 = tanh(%2)") == (tanh.number, tanh.name, tanh.text)
    assert (np.dtype(float), (4, 3), 96) == (tanh.dtype, tanh.shape, tanh.nbytes)
    assert {"tanh", "mul"} == set(tanh.readers)
    assert (LINE + 1, __file__) == (tanh.source.line, tanh.source.file)


def test_the_report_lists_what_a_policy_would_recompute():
    found = by_text(lt.explain_residuals(lt.trace(layer, X, W)))

    assert "kept" == found["tanh"].instead
    assert "exp of %3" == found["exp"].instead


def test_residuals_that_a_policy_makes_unnecessary_are_reported():
    """The rule of tanh reads its result only."""
    f = lt.trace(lambda x, w: np.tanh(x @ w), X, W)
    found = lt.explain_residuals(lt.differentiate(f, policy=lambda bind: bind.op.name == "matmul"))

    assert "not needed" == by_text(found)["matmul"].instead


def test_totals_with_and_without_arguments():
    found = lt.explain_residuals(layer, X, W)

    assert (192, 192 + X.nbytes + W.nbytes) == (found.temporaries, found.total)
    assert 96 == found.instead
    assert 0 == found.unknown


@pytest.mark.parametrize("policy", ["recompute_cheap", "min_bytes", lambda b: b.op.name == "tanh"])
def test_a_function_and_a_lambda_are_differentiated_under_a_policy(policy):
    f = lt.trace(layer, X, W)
    found = lt.explain_residuals(layer, X, W, policy=policy)
    tanh = by_text(found)["tanh"]

    assert str(found) == str(lt.explain_residuals(f, policy=policy))
    assert {"tanh", "mul"} <= set(tanh.readers)
    assert lt.explain_residuals(lt.differentiate(f, policy=policy)).total == found.total


def test_a_rule_that_reads_a_residual_through_a_recomputation_is_named():
    found = lt.explain_residuals(layer, X, W, policy="min_bytes")

    assert {"tanh", "mul", "exp"} == set(by_text(found)["tanh"].readers)


def test_a_residual_computed_inside_a_rule_belongs_to_that_rule():
    """The cosine in the rule of sin is as large as its operand, and is kept."""
    found = lt.explain_residuals(lambda x, w: np.sin(x @ w).sum(), X, W, policy="min_bytes")

    assert ("sin",) == by_text(found)["cos"].readers
    assert ("matmul",) == found[0].readers


def test_the_report_prints_as_a_table():
    summary, head, *lines = str(lt.explain_residuals(layer, X, W)).splitlines()
    (tanh,) = [line for line in lines if "tanh(" in line]

    assert "2 values of 192 bytes and 2 arguments, 360 bytes in all; min_bytes: 96 bytes" == summary
    assert "kept type bytes read by the rule of made by at instead" == " ".join(head.split())
    assert tanh.startswith("%3:h  float64[4, 3]  96     mul, tanh")
    assert tanh.endswith(f"%3 = tanh(%2)  test_residual_report.py:{LINE + 1}  kept")


def test_long_tables_are_bounded():
    """[A5]"""

    def long(x):
        for _ in range(300):
            x = np.sin(x)
        return x

    found = lt.explain_residuals(long, X)

    assert 300 == len(found)
    assert "... 100 left out" in str(found)
    assert 203 == len(str(found).splitlines())


def test_symbolic_sizes_give_formulas():
    """[B10]"""
    f = lt.trace(lambda x: (np.exp(x) * x).sum(axis=0), lt.ShapeDtype(("n", 4)))
    found = lt.explain_residuals(f)

    assert "32*n" == str(by_text(found)["exp"].nbytes)
    assert "96*n" == str(found.total)
    assert 0 == found.instead
    assert "32*n" in str(found)


def test_unknown_types_are_reported():
    f = lt.parse("lambda %0 { %1 = exp(%0); return %1 }")
    found = lt.explain_residuals(f)

    assert {None} == {row.nbytes for row in found}
    assert (0, len(found)) == (found.total, found.unknown)
    assert f"{len(found)} of unknown size" in str(found)


def test_a_view_of_another_residual_counts_once():
    """[C2]"""

    def f(x):
        y = np.exp(x)
        return (y * np.sin(y.T.reshape(4, 3))).sum()

    found = lt.explain_residuals(f, X)
    views = [row for row in found if row.view_of is not None]

    assert [by_text(found)["exp"].number] == [row.view_of for row in views]
    assert sum(row.nbytes for row in found) - 96 == found.total
    assert "(a view of %1)" in str(found)


def test_a_broadcast_value_counts_as_its_base():
    def f(x):
        wide = np.broadcast_to(np.exp(x[:1]), (1000, 3))
        return (wide * wide * np.sin(wide)).sum()

    found = lt.explain_residuals(f, X)

    assert found.temporaries < 60_000


@given(programs(max_steps=8))
@settings(deadline=None, max_examples=50)
def test_every_gradient_can_be_explained(program):
    f, _ = program
    try:
        g = lt.differentiate(f)
    except lt.MissingRule:
        return
    found = lt.explain_residuals(g)
    small = lt.explain_residuals(g, policy="min_bytes")

    assert len(found) == len(g.df_input_captured_inputs) + len(g.df_input_captured_outputs)
    assert str(found).count("\n") == len(found) + 1
    assert all(row.readers for row in small)


def test_an_object_that_cannot_be_explained_is_an_error():
    with pytest.raises(lt.LetirError, match="found 3, expected a Gradient, a Lambda"):
        lt.explain_residuals(3)
