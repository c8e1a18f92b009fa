"""Functions that turn warnings into errors, or keep them in a list, which replays would not do."""

import warnings

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same


def counted(x):
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        y = np.log(x)
    return y, len(log)


def roots(x):
    return np.sqrt(x)


def as_errors(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.log(x)
        except RuntimeWarning:
            return 0 * x


VALUES = [np.array([2.0, 1.0]), np.array([-1.0, 0.0]), np.array([0.0, 3.0])]


@pytest.mark.parametrize("f", [counted, as_errors])
def test_a_program_that_depends_on_warnings_is_refused_and_jit_calls_it(f):
    for x in VALUES:
        with pytest.raises(lt.TraceError, match=r"where warnings are .*\n.*test_warning_filters"):
            lt.trace(f, x)
    jitted = lt.jit(f)
    for x in VALUES:
        assert_same(f(x), jitted(x))


def test_warnings_that_the_caller_keeps_are_no_obstacle():
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        f = lt.trace(roots, VALUES[1])

    assert 1 == len(log)
    assert_same(roots(VALUES[0]), f(VALUES[0]))


def ignored(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=RuntimeWarning)
        y = np.log(x)
    return np.where(x > 0, y, 0.0)


def ignored_by_text(x):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="divide by zero")
        y = 1 / x
    return np.where(x == 0, 0.0, y)


@pytest.mark.parametrize("f", [ignored, ignored_by_text])
def test_warnings_that_the_function_ignores_are_ignored_in_replays(f):
    program, jitted = lt.trace(f, VALUES[0]), lt.jit(f)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in VALUES:
            assert_same(f(x), program(x))
            assert_same(f(x), jitted(x))
            assert_same(np.isfinite(x), np.isfinite(lt.grad(lambda x: f(x).sum())(x + 0.5)))


def test_only_the_ignored_warnings_are_ignored():
    def f(x):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="divide by zero")
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            warnings.filterwarnings("ignore", module="another_module")
            return np.log(x)

    program = lt.trace(f, VALUES[0])

    with pytest.warns(RuntimeWarning, match="invalid value encountered in log") as shown:
        program(VALUES[1])
    assert 1 == len(shown)


def test_filters_that_ignore_no_floating_point_warning_leave_the_program_unchanged():
    def f(x):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            return np.log(x)

    assert ["log"] == [bind.op.name for bind in lt.trace(f, VALUES[0]).binds]
