"""``with np.errstate(...)`` in a traced function holds for what it was written around."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same, check_grads

X = np.array([1.0, 0.0, -2.0])


def logarithms(x):
    """Logarithms where there are some, without a warning."""
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(x)
    return np.where(x > 0, y, 0.0)


def test_a_replay_is_as_silent_as_the_function():
    program = lt.trace(logarithms, X)

    assert_same(np.zeros(3), program(X))
    assert_same(np.zeros(3), lt.parse(lt.dumps(program))(X))
    assert ["errstate", "greater", "where"] == [bind.op.name for bind in program.binds]


def test_its_derivatives_are_silent_too():
    def f(x):
        with np.errstate(all="ignore"):
            return np.sqrt(x)

    assert_same(np.full(2, np.inf), lt.grad(lambda x: f(x).sum())(np.zeros(2)))
    assert_same(np.full(2, np.inf), lt.jvp(f, (np.zeros(2),), (np.ones(2),))[1])
    check_grads(logarithms, (np.array([0.5, 1.5]),))


def test_a_batch_is_silent_too():
    assert_same(np.zeros((2, 3)), lt.vmap(logarithms)(np.stack([X, X])))


def test_around_the_block_the_state_is_that_of_the_run():
    def f(x):
        with np.errstate(divide="ignore"):
            y = 1 / x
        return y, np.log(x)

    with np.errstate(all="ignore"):
        program = lt.trace(f, X)

    with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
        program(np.abs(X))
    assert ["errstate", "log"] == [bind.op.name for bind in program.binds]


def test_an_error_that_was_asked_for_is_raised():
    def f(x):
        with np.errstate(over="raise"):
            return np.exp(x)

    program = lt.trace(f, np.ones(2))

    with pytest.raises(FloatingPointError, match="overflow"):
        program(np.full(2, 1e4))


def test_no_state_is_recorded_that_was_there_before():
    with np.errstate(all="raise"):
        assert ["exp"] == [bind.op.name for bind in lt.trace(np.exp, np.ones(2)).binds]


def test_changes_in_place_and_views_stay_what_they_are():
    def f(x):
        y = x.copy()
        with np.errstate(divide="ignore"):
            y[1:] = 1 / y[1:]
            y += x
            part = y[:2]
            part *= 2
        return y, np.divmod(x, 2.0)

    program = lt.trace(f, np.abs(X) + 1)

    assert_same(f(np.abs(X)), program(np.abs(X)))


def test_a_source_says_the_state():
    source = lt.to_source(lt.trace(logarithms, X))

    assert "with np.errstate(divide='ignore', over='warn', under='ignore', invalid=" in source
    namespace: dict = {}
    exec(source, namespace)
    assert_same(np.zeros(3), namespace["f"](X))


def test_a_state_that_calls_a_function_is_refused():
    def f(x):
        with np.errstate(divide="call", call=print):
            return 1 / x

    with pytest.raises(lt.LetirError, match="'call' or 'log' is not recorded"):
        lt.trace(f, np.ones(2))
