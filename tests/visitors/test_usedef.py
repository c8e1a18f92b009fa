"""Definitions, uses and live ranges [A7]."""

import gc
import weakref

import pytest
from hypothesis import given

from letir.ast.text.parser import parse
from letir.testing import programs
from letir.visitors.usedef import RETURN, use_counts, uses

TEXT = """
lambda %0:x, %1:unused {
  %2 = exp(%0)
  %3 = mul(%2, %2)
  %4, %5 = split(%3, sections=2)
  %6 = add(%0, %4)
  return (%6, %2, %6)
}
"""


@pytest.fixture
def f():
    """A program with an unused parameter, an unused result, and a local that is returned twice."""
    return parse(TEXT)


def locals_of(f) -> list:
    """All locals in order of definition: ``locals_of(f)[3]`` is %3."""
    return [*f.params, *(binder for bind in f.binds for binder in bind.binders)]


def test_a_local_is_defined_by_its_bind(f):
    x, _, y, *_ = locals_of(f)

    assert (None, f.binds[0]) == (uses(f).definition(x), uses(f).definition(y))


def test_the_results_of_one_bind_are_defined_at_one_position(f):
    first, second = f.binds[2].binders

    assert [2, 2, -1] == [uses(f).position(local) for local in (first, second, f.params[0])]


def test_uses_are_binds_and_operand_positions(f):
    """[A7]"""
    assert [(f.binds[0], 0), (f.binds[3], 0)] == uses(f).uses(f.params[0])


def test_a_local_used_twice_in_one_bind_has_two_uses(f):
    y = locals_of(f)[2]

    assert [(f.binds[1], 0), (f.binds[1], 1)] == uses(f).uses(y)[:2]


def test_a_return_is_a_use(f):
    """[A7]"""
    z = locals_of(f)[6]

    assert [(RETURN, 0), (RETURN, 2)] == uses(f).uses(z)
    assert [True, True, False] == [uses(f).is_returned(locals_of(f)[i]) for i in (6, 2, 3)]


def test_a_parameter_that_is_returned_by_a_program_without_binds_is_returned():
    g = parse("lambda %0, %1 { return %0 }")

    assert [True, False] == [uses(g).is_returned(param) for param in g.params]


def test_an_unused_local_has_no_last_use(f):
    unused, dead = f.params[1], locals_of(f)[5]

    assert [([], None, 0)] * 2 == [
        (uses(f).uses(local), uses(f).last_use(local), uses(f).uses_left(local, 0))
        for local in (unused, dead)
    ]


def test_the_last_use_is_a_bind_or_the_return(f):
    assert [3, None, 4, 2, 3, None, 4] == [uses(f).last_use(local) for local in locals_of(f)]


def test_uses_left_counts_operand_positions_from_a_bind_on(f):
    """[A7]"""
    y = locals_of(f)[2]

    assert [3, 3, 1, 1, 1, 0] == [uses(f).uses_left(y, i) for i in range(6)]


def test_live_locals_are_bound_before_and_used_from_there_on(f):
    x, _, y, z, first, _, total = locals_of(f)

    assert [[x], [x, y], [x, y, z], [x, y, first], [y, total]] == [
        uses(f).live_at(i) for i in range(5)
    ]


def test_the_analysis_is_computed_once(f):
    """[A7]"""
    assert uses(f) is uses(f)
    assert use_counts(f) is use_counts(f)


def test_the_analysis_does_not_keep_its_program(f):
    gone = []
    gc.disable()
    try:
        g = parse(TEXT)
        weakref.finalize(g, gone.append, True)
        assert uses(g).last_use(g.params[0]) == 3
        del g
    finally:
        gc.enable()

    assert [True] == gone


def test_use_counts_cover_exactly_the_used_locals(f):
    x, _, y, z, first, _, total = locals_of(f)

    assert {x: 2, y: 3, z: 1, first: 1, total: 2} == use_counts(f)


@given(programs())
def test_all_queries_agree_with_the_use_counts(program):
    """[A7]"""
    f, _ = program
    analysis, counts = uses(f), use_counts(f)

    for local in locals_of(f):
        found = analysis.uses(local)
        assert len(found) == counts.get(local, 0) == analysis.uses_left(local, 0)
        for bind, position in found:
            assert (f.ret if bind is RETURN else bind).args[position] is local
