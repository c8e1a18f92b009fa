"""``jit`` calls functions that cannot be recorded as Python, and says so once."""

import warnings

import numpy as np
import pytest

import letir as lt

TOLD = "as Python, without a plan"
COUNTS: list = []


def masked_mean(x):
    """The mean of the elements that are not negative, by a masked array."""
    return np.ma.masked_less(x, 0).mean()


def counted(x):
    COUNTS.append(1)
    return masked_mean(x)


def by_matrix(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        m = np.matrix(x)
        return np.asarray(m * m)


def reflectors(x):
    return np.linalg.qr(x, mode="raw")[0]


def extended(x):
    return float(x.astype(np.longdouble).sum())


def bits(x):
    return x.view(np.int64) + 1


def sometimes(x, n):
    return np.ma.masked_less(x, 0).sum() if n > 2 else x.sum()


@pytest.mark.parametrize("f", [masked_mean, by_matrix, reflectors, extended, bits])
def test_the_python_function_gives_the_results(f):
    fast, rng = lt.jit(f), np.random.default_rng(0)

    with pytest.warns(RuntimeWarning, match=TOLD):
        for n in (3, 3, 4):
            x = rng.normal(size=(n, n))
            np.testing.assert_array_equal(f(x), fast(x))


def test_the_warning_comes_once_and_names_the_line():
    fast = lt.jit(masked_mean)

    with pytest.warns(RuntimeWarning, match="test_unrecorded_functions.py:16") as told:
        fast(np.ones(3))
        fast(np.ones(4))

    assert 1 == len(told)


def test_what_the_recording_changed_is_put_back():
    COUNTS.clear()

    with pytest.warns(RuntimeWarning, match=TOLD):
        fast = lt.jit(counted)
        fast(np.ones(3))
        fast(np.ones(3))

    assert 2 == len(COUNTS)


def test_explain_says_why_there_is_no_plan():
    with pytest.warns(RuntimeWarning, match=TOLD):
        fast = lt.jit(masked_mean)
        fast(np.ones(3))
    found = lt.explain(fast, np.ones(3))

    assert "cannot become an ordinary array" in found.why_python
    assert str(found).startswith("masked_mean(float64[3])\ncalled as Python, without a plan: ")


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="longdouble is float64 here")
def test_longdouble_arguments_reach_the_python_function():
    fast = lt.jit(lambda x: x + 1)

    with pytest.warns(RuntimeWarning, match="float128|longdouble"):
        found = fast(np.longdouble(1) / 3)

    assert np.longdouble(1) / 3 + 1 == found
    assert 2.5 == fast(1.5)


def test_a_branch_that_cannot_be_recorded_runs_at_other_sizes():
    fast = lt.jit(sometimes)

    with pytest.warns(RuntimeWarning, match=TOLD):
        for n in range(1, 6):
            x = np.linspace(-1, 2, n + 3)
            np.testing.assert_allclose(fast(x, n), sometimes(x, n))


@pytest.mark.parametrize("transform", [lt.grad, lambda f: lt.grad(lt.jit(f))])
def test_a_gradient_is_a_named_error_without_a_warning(transform):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(lt.TraceError, match="cannot become an ordinary array"):
            lt.jit(transform(masked_mean))(np.ones(3))


def test_a_trace_refuses():
    with pytest.raises(lt.TraceError, match="masked arrays are not recorded"):
        lt.trace(masked_mean, np.ones(3))
