"""slice: the part of a program that a value needs."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.ast.text.parser import parse
from letir.testing import assert_same, programs


def f(x, y):
    h = np.exp(x)
    z = np.sin(h)
    w = y * 2
    return z, w


X, Y = np.array([0.5, -1.0]), np.arange(3.0)


@pytest.fixture
def recorded():
    return lt.trace(f, np.ones(2), np.ones(3))


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (0, "lambda %0, %1 { %2 = exp(%0); %3 = sin(%2); return %3 }"),
        (-1, "lambda %0, %1 { %2 = mul(%1, 2); return %2 }"),
        ("h", "lambda %0, %1 { %2 = exp(%0); return %2 }"),
        ("%2", "lambda %0, %1 { %2 = exp(%0); return %2 }"),
        ("y", "lambda %0, %1 { return %1 }"),
        (["w", 0, "h"], None),
        ((), "lambda %0, %1 { return () }"),
    ],
)
def test_results_are_selected_by_position_name_or_number(recorded, results, expected):
    part = lt.check(lt.slice(recorded, results))

    if expected is not None:
        assert lt.retype(parse(expected), *[p.type for p in recorded.params]) == part
    else:
        assert_same((Y * 2, np.sin(np.exp(X)), np.exp(X)), part(X, Y))


def test_a_result_is_selected_by_its_local(recorded):
    part = lt.slice(recorded, recorded.binds[0].binders[0])

    assert part == lt.slice(recorded, "h")


def test_unused_parameters_may_be_dropped(recorded):
    part = lt.slice(recorded, "w", drop_unused=True)

    assert [param.name for param in part.params] == ["y"]
    assert_same(Y * 2, part(Y))


def test_a_slice_keeps_as_much_nesting_as_it_can():
    g = lt.trace(lambda p: {"a": p["w"] * 2, "b": p["v"]}, {"w": np.ones(2), "v": np.ones(1)})

    assert lt.slice(g, range(2)).out_tree == g.out_tree
    assert lt.slice(g, 0).out_tree is None
    assert_same(2 * X, lt.slice(g, 0)({"w": X, "v": np.ones(1)}))
    assert lt.slice(g, 0, drop_unused=True).in_tree is None


def test_a_slice_keeps_guards_up_to_the_last_value_it_needs():
    """[C5] After a guard the recorded path is the right one; later guards do not matter."""

    def branching(x):
        y = -x
        if x.sum() > 0:
            y = x * 2
        z = y + 1 if y.sum() > 3 else y
        return y, z

    g = lt.trace(branching, np.ones(2))
    guards = [bind.op.name for bind in lt.slice(g, 0).binds].count("guard")

    assert guards == 1
    with pytest.raises(lt.GuardError):
        lt.slice(g, 0)(-np.ones(2))
    assert_same(-2 * np.ones(2), lt.slice(g, 0, effects=False)(-np.ones(2)))
    assert len(lt.slice(g, 0, effects=False)) == 1


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (2, "no result 2: the program has 2"),
        ("hh", "no value is called 'hh'\n  did you mean h"),
        ("%99", "no value is called '%99'"),
        (lt.Local(), "is not a value of this program"),
    ],
)
def test_slicing_by_an_unknown_value_is_an_error(recorded, results, message):
    with pytest.raises(lt.ScopeError, match=message):
        lt.slice(recorded, results)


def test_slicing_by_an_object_of_another_type_is_an_error(recorded):
    with pytest.raises(lt.DTypeError, match=r"a Local, found 0\.5"):
        lt.slice(recorded, 0.5)
    assert lt.slice(recorded, np.int64(1)) == lt.slice(recorded, 1)


def test_an_ambiguous_name_is_an_error_that_lists_the_candidates():
    def twice(x):
        y = x * 2
        y = y + 1
        return y

    with pytest.raises(lt.ScopeError, match=r"2 values are called 'y': %1, %2"):
        lt.slice(lt.trace(twice, 1.0 * X), "y")


def test_binds_are_shared_in_their_order(recorded):
    assert list(recorded.binds[:2]) == list(lt.slice(recorded, 0).binds)
    assert lt.slice(recorded, 0).binds[0] is recorded.binds[0]


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 5))
def test_a_slice_computes_the_result_of_the_program(program, choice):
    g, args = program
    place = choice % len(g.ret.args)
    results = g(*args)

    expected = results if len(g.ret.args) == 1 else results[place]
    assert_same(expected, lt.check(lt.slice(g, place))(*args))
