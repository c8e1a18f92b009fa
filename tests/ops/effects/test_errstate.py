"""``with np.errstate(...)`` in a traced function applies to the operations in its block."""

import warnings

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same, check_grads

X = np.array([1.0, 0.0, -2.0])


def logarithms(x):
    """log(x) where x is positive, without a warning elsewhere."""
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(x)
    return np.where(x > 0, y, 0.0)


def test_a_replay_warns_no_more_than_the_function():
    program = lt.trace(logarithms, X)

    assert_same(np.zeros(3), program(X))
    assert_same(np.zeros(3), lt.parse(lt.dumps(program))(X))
    assert ["errstate", "greater", "where"] == [bind.op.name for bind in program.binds]


def hiding(function, *filters, **options):
    """A function that calls ``function`` while these filters of warnings are set."""

    def f(x):
        with warnings.catch_warnings():
            for text in filters:
                warnings.filterwarnings("ignore", text, **options)
            return function(x)

    return f


NAN = np.full((2, 3), np.nan)
HIDDEN = {
    "nanmean": hiding(lambda x: np.nanmean(x, axis=1), "", category=RuntimeWarning),
    "nanmedian": hiding(np.nanmedian, ""),
    "nanmax by its text": hiding(lambda x: np.nanmax(x, axis=0), "Mean", "all-nan slice"),
    "nanvar": hiding(lambda x: np.nanvar(x, ddof=1), "Degrees of freedom"),
    "logarithms, too": hiding(lambda x: np.nanmin(x) + np.log(x - x - 1), ""),
    "a polynomial": hiding(
        lambda x: np.polyfit(np.nan_to_num(x[0], nan=1.0), np.ones(3), 2),
        "",
        category=np.exceptions.RankWarning,
    ),
}


@pytest.mark.parametrize("f", HIDDEN.values(), ids=HIDDEN)
def test_warnings_of_numpy_that_filters_ignore_are_not_shown(f):
    expected, program, jitted = f(NAN), lt.trace(f, NAN), lt.jit(f)

    with warnings.catch_warnings(action="error"):
        for run in (program, lt.parse(lt.dumps(program)), jitted, jitted, jitted):
            assert_same(expected, run(NAN))


def test_warnings_of_numpy_that_no_filter_ignores_are_shown():
    f = hiding(lambda x: np.nanmean(x, axis=1), "All-NaN slice")

    for run in (lambda x: lt.trace(f, x)(x), lt.jit(f)):
        with pytest.warns(RuntimeWarning, match="Mean of empty slice") as caught:
            run(NAN)
        assert {__file__} == {warning.filename for warning in caught}


def test_the_source_of_a_program_contains_its_filters():
    program = lt.trace(HIDDEN["nanmean"], NAN)
    scope = {}
    exec(lt.to_source(program), scope)

    with warnings.catch_warnings(action="error"):
        assert_same(np.full(2, np.nan), scope["f"](NAN))


def test_derivatives_of_a_silent_block_are_silent():
    def f(x):
        with np.errstate(all="ignore"):
            return np.sqrt(x)

    assert_same(np.full(2, np.inf), lt.grad(lambda x: f(x).sum())(np.zeros(2)))
    assert_same(np.full(2, np.inf), lt.jvp(f, (np.zeros(2),), (np.ones(2),))[1])
    check_grads(logarithms, (np.array([0.5, 1.5]),))


def test_a_batch_of_a_silent_block_is_silent():
    assert_same(np.zeros((2, 3)), lt.vmap(logarithms)(np.stack([X, X])))


def test_operations_outside_the_block_run_in_the_callers_errstate():
    def f(x):
        with np.errstate(divide="ignore"):
            y = 1 / x
        return y, np.log(x)

    with np.errstate(all="ignore"):
        program = lt.trace(f, X)

    with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
        program(np.abs(X))
    assert ["errstate", "log"] == [bind.op.name for bind in program.binds]


def test_an_errstate_that_raises_raises_in_a_replay():
    def f(x):
        with np.errstate(over="raise"):
            return np.exp(x)

    program = lt.trace(f, np.ones(2))

    with pytest.raises(FloatingPointError, match="overflow"):
        program(np.full(2, 1e4))


def test_the_errstate_around_a_trace_is_not_recorded():
    with np.errstate(all="raise"):
        assert ["exp"] == [bind.op.name for bind in lt.trace(np.exp, np.ones(2)).binds]


def test_in_place_changes_and_views_work_inside_a_block():
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


def test_the_source_of_a_program_contains_its_errstate():
    source = lt.to_source(lt.trace(logarithms, X))

    assert "with np.errstate(divide='ignore', over='warn', under='ignore', invalid=" in source
    namespace: dict = {}
    exec(source, namespace)
    assert_same(np.zeros(3), namespace["f"](X))


def test_an_errstate_that_calls_a_function_is_refused():
    def f(x):
        with np.errstate(divide="call", call=print):
            return 1 / x

    with pytest.raises(lt.LetirError, match="'call' or 'log' is not recorded"):
        lt.trace(f, np.ones(2))
