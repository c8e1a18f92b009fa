"""[B6, F6] Random programs with views and in-place writes agree with NumPy, to the bit."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.ast.text.parser import parse
from letir.errors import TraceError
from letir.testing import assert_close, assert_same
from tests.tracing.mutation.in_place_programs import argument, possible, programs, run

QUICK = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(QUICK, max_examples=10_000)


def made(arguments: list, nudge: float = 0.0) -> list:
    """New arrays for these arguments, moved by a step along a direction."""
    found = [argument(*how, i) for i, how in enumerate(arguments)]
    for x in found if nudge else ():
        np.add(x, nudge * direction(x), out=x)
    return found


def direction(x) -> np.ndarray:
    """A direction without symmetries."""
    return np.cos(np.arange(1.0, x.size + 1)).reshape(x.shape)


def total(results) -> float:
    """A number that depends on every element."""
    return sum((r * direction(r)).sum() for r in results)


def check_replay(program) -> None:
    """Assert that a replay agrees with NumPy in results and in changes of the arguments."""
    arguments, todo = program
    todo = possible(todo, made(arguments))
    expected_args = made(arguments)
    expected = run(todo, expected_args)
    found_args = made(arguments)

    f = lt.trace(lambda *args: run(todo, args), *made(arguments))
    found = f(*found_args)

    assert_same(expected, found)
    assert_same(expected_args, found_args)
    pairs = itertools.combinations(range(len(found)), 2)
    for i, j in pairs:  # [C4]
        assert not np.shares_memory(found[i], found[j]) or np.shares_memory(
            expected[i], expected[j]
        )
    assert f == parse(lt.dumps(f))


def check_abstract(program) -> None:
    """Assert that an abstract trace gives the same results, or has an unknown memory order."""
    arguments, todo = program
    arguments = [(shape, "C", kind) for shape, _, kind in arguments]
    todo = possible(todo, made(arguments))
    expected_args, found_args = made(arguments), made(arguments)
    expected = run(todo, expected_args)
    try:
        f = lt.trace(lambda *args: run(todo, args), *made(arguments), abstract=True)
    except TraceError as error:
        assert "memory order" in str(error)
        return

    assert_same(expected, f(*found_args))
    assert_same(expected_args, found_args)


def check_gradient(program) -> None:
    """Assert that the gradient agrees with differences and leaves the arguments unchanged."""
    arguments, todo = program
    todo = possible(todo, made(arguments))
    args = made(arguments)

    slopes = lt.grad(lambda *args: total(run(todo, args)), argnums=tuple(range(len(args))))(*args)
    pushed = lt.jvp(lambda *args: total(run(todo, args)), tuple(args), tuple(map(direction, args)))

    assert_same(made(arguments), args)
    step = 1e-6
    by_differences = (
        total(run(todo, made(arguments, step))) - total(run(todo, made(arguments, -step)))
    ) / (2 * step)
    along = sum((slope * direction(slope)).sum() for slope in slopes)
    assert_close(np.float64(by_differences), np.float64(along), rtol=1e-5, atol=1e-6)
    assert_close(np.float64(along), np.float64(pushed[1]), rtol=1e-9, atol=1e-9)


LAWS = {check_replay: "fffci", check_abstract: "fffci", check_gradient: "f"}
EACH = pytest.mark.parametrize("law", LAWS, ids=lambda f: f.__name__)


@EACH
@QUICK
@given(data=st.data())
def test_generated_in_place_programs_agree_with_numpy(law, data):
    law(data.draw(programs(LAWS[law])))


@pytest.mark.slow
@EACH
@MANY
@given(data=st.data())
def test_many_generated_in_place_programs_agree_with_numpy(law, data):
    law(data.draw(programs(LAWS[law])))
