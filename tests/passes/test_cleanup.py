"""dead_code: what is not needed goes, effects stay."""

import numpy as np
import pytest
from hypothesis import given

import letir as lt
from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder
from letir.ast.parser import parse
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Lambda
from letir.passes import dead_code
from letir.testing import assert_same, programs


def test_a_bind_that_nobody_uses_is_dropped():
    f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%0); return %2 }")

    assert parse("lambda %0 { %1 = neg(%0); return %1 }") == dead_code(f)


def test_a_let_that_only_dead_lets_use_is_dropped():
    f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); return %0 }")

    assert parse("lambda %0 { return %0 }") == dead_code(f)


def test_a_bind_stays_if_any_of_its_results_is_used():
    f = parse("lambda %0 { %1, %2 = split(%0, sections=2); return %2 }")

    assert f == dead_code(f)


def test_parameters_stay():
    f = parse("lambda %0, %1 { return () }")

    assert f == dead_code(f)


def test_what_stays_is_shared_with_its_names_and_lines():
    f = lt.trace(lambda x: (x * 2, x + 1)[0], np.ones(2))

    assert [f.binds[0]] == list(dead_code(f).binds)
    assert dead_code(f).binds[0] is f.binds[0]


def test_nesting_stays():
    f = lt.trace(lambda p: {"y": p["w"] * 2}, {"w": np.ones(2)})

    assert (f.in_tree, f.out_tree) == (dead_code(f).in_tree, dead_code(f).out_tree)


def test_effects_stay_in_their_order_with_what_they_need():
    """[C5]"""
    f = parse("""
    lambda %0 {
      %1 = exp(%0)
      guard(%1, value=1.0)
      %2 = neg(%0)
      %3 = sin(%0)
      guard(%3, value=0.0)
      return %0
    }""")

    expected = """
    lambda %0 {
      %1 = exp(%0)
      guard(%1, value=1.0)
      %2 = sin(%0)
      guard(%2, value=0.0)
      return %0
    }"""
    assert parse(expected) == dead_code(f)


def holding(body: Lambda, levels: int) -> Lambda:
    """A program that returns its argument and holds ``body`` so many levels down in dead binds."""
    for _ in range(levels):
        builder = LetBuilder()
        x = builder.param()
        builder.emit(PRIMITIVES["when_defined"], (x.arg,), Attrs(n_cts=1, body=body))
        body = builder.build([x])
    return body


@pytest.mark.parametrize("levels", [1, 3])
def test_a_bind_whose_body_has_an_effect_stays(levels):
    """[B4, C5]"""
    f = holding(parse("lambda %0 { guard(%0, value=True); return %0 }"), levels)

    assert f == dead_code(f)


@pytest.mark.parametrize("levels", [1, 3])
def test_a_bind_whose_body_has_none_is_dropped(levels):
    f = holding(parse("lambda %0 { %1 = neg(%0); return %1 }"), levels)

    assert parse("lambda %0 { return %0 }") == dead_code(f)


def test_twice_is_once():
    f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); %3 = sin(%0); return %3 }")

    assert dead_code(f) == dead_code(dead_code(f))


@given(programs())
def test_results_stay(program):
    f, args = program

    assert_same(lt.run_forward(f, *args), lt.run_forward(lt.check(dead_code(f)), *args))
