"""Statistics as users call them, with every keyword of NumPy."""

import warnings

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, assert_same, check_grads
from tests.each_sample import in_one_test

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
NAN = np.array([[0.5, np.nan, 2.0], [np.nan, np.nan, np.nan]])
W = np.array([0.5, 1.25, 2.0])
MASK = np.array([[True, False, True], [True, True, True]])

CALLS = {
    "average": lambda x, w: np.average(x),
    "average returned": lambda x, w: np.average(x, axis=0, returned=True),
    "average weighted": lambda x, w: np.average(x, axis=1, weights=w, keepdims=True),
    "average weighted, returned": lambda x, w: np.average(x, 1, w, True),
    "average of constants": lambda x, w: np.average(X, axis=-1, weights=w, returned=True),
    "mean keyword": lambda x, w: np.var(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)),
    "correction": lambda x, w: np.std(x, correction=1, where=MASK),
    "method": lambda x, w: (x.var(ddof=1), x.std(axis=0, keepdims=True)),
    "cov": lambda x, w: np.cov(x, x[::-1], False, True),
    "cov of weights": lambda x, w: np.cov(x, aweights=w, fweights=[1, 2, 1]),
    "corrcoef": lambda x, w: np.corrcoef(x, x[:1] ** 2),
    "ptp of 0-d": lambda x, w: np.ptp(x[0, 0], axis=0),
    "cumulative_sum": lambda x, w: np.cumulative_sum(x, axis=1, include_initial=True),
    "cumulative_prod": lambda x, w: np.cumulative_prod(w, include_initial=True),
    "cumulative_sum of a row": lambda x, w: np.cumulative_sum(w, dtype=np.float32),
    "ediff1d": lambda x, w: np.ediff1d(x, to_begin=w[0], to_end=[1.0, 2.0]),
    "amax": lambda x, w: np.amax(x, axis=0) - np.amin(x, axis=-1)[0],
    "nansum of 0-d": lambda x, w: np.nansum(x[0, 0], axis=0),
    "nanmean of 0-d": lambda x, w: np.nanmean(x[0, 0], axis=-1),
    "nanmax": lambda x, w: np.nanmax(x, initial=3.0, where=MASK, keepdims=True),
    "nanvar": lambda x, w: np.nanvar(x, axis=0, correction=0, where=MASK, dtype=np.float32),
}


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_recorded_and_replayed_bitwise(name):
    f = CALLS[name]
    x, w = X[::-1] * 1.25, W[::-1]

    assert_same(f(x, w), lt.run_forward(lt.trace(f, X, W), x, w))


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_derivatives_of_a_call_agree_with_differences(name):
    if "float32" not in CALLS[name].__code__.co_names:
        check_grads(CALLS[name], (X, W))


def test_each_statistic_is_recorded_as_one_bind():
    """[B4]"""
    program = lt.trace(lambda x: np.std(x, axis=0) + np.var(x) + np.cov(x)[0, 0], X)

    assert {"std", "var", "cov"} <= {bind.op.name for bind in program.binds}


def test_the_deviation_of_equal_numbers_has_a_zero_derivative():
    """[D13]"""
    for f in (np.std, np.nanstd):
        assert_same(np.zeros(3), lt.grad(lambda x, f=f: f(x))(np.full(3, 0.5)))


def test_rows_of_nan_warn_as_in_numpy_and_have_a_zero_derivative():
    """[D13]"""
    for f in (np.nansum, np.nanmax, np.nanmean):
        with warnings.catch_warnings(action="ignore"):
            expected = f(NAN, axis=1)
            found, pull = lt.vjp(lambda x, f=f: f(x, axis=1), NAN)
            by_x = pull(np.ones(2))[0]

        assert_same(expected, found)
        assert np.isfinite(by_x).all()
        assert not by_x[1].any()
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        lt.run_forward(lt.trace(lambda x: np.nanmean(x, axis=1), X), NAN)


def test_second_derivatives_of_nan_statistics_are_not_nan():
    """[D13]"""
    x = np.array([0.5, np.nan, 2.0, 1.25])
    for f in (np.nansum, np.nanprod, np.nanvar, np.nanstd, np.nancumprod, np.nanmean):
        second = lt.grad(lambda x, f=f: lt.grad(lambda x: (f(x) ** 2).sum())(x).sum())(x)

        assert np.isfinite(second[[0, 2, 3]]).all()


NAMED = {
    "var": np.var,
    "std": lambda x: np.std(x, ddof=1),
    "cov": lambda x: np.cov(x, x**2),
    "ptp": np.ptp,
    "average": lambda x: np.average(x, weights=x),
    "nanmean": np.nanmean,
    "nanvar": np.nanvar,
    "nanmax": np.nanmax,
    "median": np.median,
    "quantile": lambda x: np.quantile(x, [0.3, 0.8]),
    "diff": lambda x: np.diff(x, 2),
    "ediff1d": np.ediff1d,
    "trapezoid": np.trapezoid,
    "interp": lambda x: np.interp(x, W, W**2),
    "histogram": lambda x: np.histogram(x, 3, weights=x**2)[0],
    "polyval": lambda x: np.polyval(W, x),
}


@in_one_test
@pytest.mark.parametrize("name", NAMED)
def test_programs_of_symbolic_sizes_have_gradients_at_every_size(name):
    """[B10, D14]"""
    f = NAMED[name]
    gradient = lt.differentiate(lt.trace(f, lt.ShapeDtype(("n",))))

    for n in (4, 7):
        x = 0.3 + np.arange(n) ** 1.5
        out, residuals = gradient.forward(x)
        expected = lt.vjp(f, x)[1](np.ones_like(out))[0]

        assert_same(f(x), out)
        assert_close(expected, gradient.backward(residuals, np.ones_like(out))[0])


CORNERS = {
    "a whole percentile": (lambda x: np.percentile(x, 100), np.arange(6)),
    "quantiles of nothing": (lambda x: np.nanquantile(x, [0.1, 0.9]), np.zeros(0, np.float32)),
    "a nan in half precision": (
        lambda x: np.quantile(x, np.float32(0.5)).astype(np.float32),
        np.array([1.0, np.nan], np.float16),
    ),
    "no variables": (lambda x: (np.cov(x), np.corrcoef(x)), np.zeros((0, 3), complex)),
    "a masked mean of a number": (
        lambda x: np.mean(x, axis=-1, where=np.array(True)),
        np.float64(2.0),
    ),
    "no difference of a number": (lambda x: np.diff(x, 0), np.float64(2.0)),
    "sums of tables": (lambda x: np.polyadd(x, x + 1), np.ones((2, 3))),
}


@pytest.mark.parametrize("name", CORNERS)
def test_corner_cases_agree_with_numpy(name):
    f, x = CORNERS[name]

    with warnings.catch_warnings(action="ignore"):
        assert_same(f(x), lt.run_forward(lt.trace(f, x), x))


def test_calls_that_numpy_refuses_are_refused():
    with pytest.raises(lt.BoundsError):
        lt.trace(lambda x: np.nanmean(x, axis=0), np.int64(3))
    with pytest.raises(ZeroDivisionError):
        lt.trace(lambda x: np.average(x, axis=0), np.zeros((3, 0)))
    with pytest.raises(lt.DTypeError, match="give the axis"):
        lt.trace(lambda x: np.average(x, weights=W), X)
    with pytest.raises(lt.ShapeError, match="correction"):
        lt.trace(lambda x: np.var(x, ddof=1, correction=1), X)
    with pytest.raises(lt.ShapeError, match="give the axis"):
        lt.trace(np.cumulative_sum, X)


def test_complex_positions_of_interp_warn_as_in_numpy():
    def f(x):
        return np.interp(x, [0.0, 1.0], [1.0, 3.0])

    with warnings.catch_warnings(action="ignore"):
        program = lt.trace(f, np.complex128(0.5))

    with pytest.warns(np.exceptions.ComplexWarning):
        assert lt.run_forward(program, np.complex128(0.5)) == 2.0


def test_the_variance_of_too_few_numbers_is_nan_with_a_zero_derivative():
    """[D13]"""
    x = np.array([[1.0, np.nan, np.nan], [1.0, 2.0, 4.0], [np.nan, np.nan, np.nan]])
    for f in (np.nanvar, np.nanstd):
        with warnings.catch_warnings(action="ignore"):
            by_x = lt.grad(lambda x, f=f: np.nansum(f(x, axis=1, ddof=1)))(x)

        assert not by_x[[0, 2]].any()
        assert by_x[1].all()


def test_complex_arrays_have_derivatives_in_real_dtypes():
    z = X + 1j * X[::-1]
    for f in (np.var, np.std, np.nanvar, np.nanstd, np.cumprod, np.nanprod, np.prod):
        with warnings.catch_warnings(action="ignore"):  # NumPy warns of discarded imaginary parts
            check_grads(lambda x, f=f: f(x, axis=1, dtype=float), (z,))


@pytest.mark.parametrize("f", [lambda x: x.mean(), np.mean, lambda x: x.var(ddof=9), np.var])
def test_warnings_of_means_and_variances_name_the_line_of_the_user(f):
    def reduced(x):
        return f(x)

    named = reduced if f in (np.mean, np.var) else f
    line = named.__code__.co_firstlineno + (named is reduced)
    with pytest.warns(RuntimeWarning) as shown:
        for function in (lt.trace(reduced, np.ones(0)), lt.jit(reduced)):
            function(np.ones(0))

    assert len(shown) >= 3
    assert {(__file__, line)} == {(warning.filename, warning.lineno) for warning in shown}
