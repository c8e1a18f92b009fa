"""sink_negations: negations move towards their uses, where they may cancel."""

import numpy as np
import pytest
from hypothesis import given

import letir as lt
from letir import run_forward
from letir.ast.text.parser import parse
from letir.passes import sink_negations
from letir.testing import assert_close, programs

HEAD = "lambda %0: float64[3], %1: float64[3] { %2: float64[3] = neg(%0); "
SUMS = {  # operands -> the remaining binds
    "%3: float64[3] = add(%1, %2); return %3": ["sub"],
    "%3: float64[3] = add(%2, %1); return %3": ["sub"],
    "%3: float64[3] = sub(%1, %2); return %3": ["add"],
    "%3: float64[3] = sub(%2, %1); return %3": ["add", "neg"],
    "%3: float64[3] = add(%2, %2); return %3": ["add", "neg"],
    "%3: float64[3] = sub(%2, %2); return %3": ["sub"],
    "%3: float64[3] = mul(%2, %2); return %3": ["mul"],
    "%3: float64[3] = neg(%2); return %3": [],
    "%3: float64[3] = exp(%2); return %3": ["neg", "exp"],
    "%3: float64[3] = exp(%2); %4: float64[3] = add(%3, %2); return %4": ["neg", "exp", "add"],
    "%3: float64[] = sum(%2, axis=None); return (%3, %2)": ["sum", "neg", "neg"],
    "%3: float64[] = sum(%2, axis=None, initial=3.0); return %3": ["neg", "sum"],
}


def ops(f: lt.Lambda) -> list[str]:
    """The names of the operations, in order."""
    return [bind.op.name for bind in f.binds]


@pytest.mark.parametrize("body", SUMS)
def test_a_negation_moves_as_far_down_as_possible(body):
    f = parse(f"{HEAD}{body} }}")
    args = np.array([0.5, -1.5, 2.0]), np.array([1.0, 0.25, -3.0])

    carried = lt.check(sink_negations(f))

    assert SUMS[body] == ops(carried)
    assert_close(run_forward(f, *args), run_forward(carried, *args))


def test_negations_of_integers_do_not_move():
    f = parse("lambda %0: uint8[3] { %1: uint8[3] = neg(%0); %2: uint8[3] = neg(%1); return %2 }")

    assert f == sink_negations(f)


def test_the_backward_pass_of_a_sigmoid_contains_no_negation():
    f = lt.trace(lambda x: (1 / (1 + np.exp(-x))).sum(), np.ones(3))

    df = lt.differentiate(f, defined=[True]).df

    assert "neg" not in ops(df)


def finite(results) -> list:
    """The results with nan for infinities, whose sign may come from a division by a signed zero."""
    leaves = results if isinstance(results, tuple) else (results,)
    return [np.where(np.isfinite(leaf), leaf, np.nan) for leaf in leaves]


@given(programs())
def test_sinking_negations_keeps_results(program):
    f, args = program
    carried = lt.check(sink_negations(f))

    with np.errstate(all="ignore"):
        assert_close(finite(run_forward(f, *args)), finite(run_forward(carried, *args)))
