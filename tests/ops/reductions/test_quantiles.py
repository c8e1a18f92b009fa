"""Medians and quantiles as users call them, with every method of NumPy."""

import numpy as np
import pytest

import letir as lt
from letir.ops.reductions.quantile_positions import METHODS
from letir.testing import assert_close, assert_same, check_grads
from tests.each_sample import in_one_test

X = np.array([[0.5, -1.25, 2.0, 0.3, 1.1], [1.5, 0.75, -0.625, 0.9, -0.2]])
HOLE = X == 0.3
NAN = np.where(HOLE, np.nan, X)
W = np.array([0.5, 1.25, 2.0, 0.25, 1.0])

CALLS = {
    "median": lambda x, w: np.median(x, axis=1, overwrite_input=True),
    "listed quantiles": lambda x, w: np.quantile(x, [0.25, 0.5, 0.9], axis=1, keepdims=True),
    "percentile": lambda x, w: np.percentile(x, (10, 80)),
    "weights": lambda x, w: np.quantile(x, 0.43, axis=1, method="inverted_cdf", weights=w),
    "weights and nan": lambda x, w: np.nanquantile(
        np.where(HOLE, np.nan, x), 0.43, weights=np.stack([w, w]), method="inverted_cdf"
    ),
    "traced quantiles": lambda x, w: np.quantile(x, w / 5.3, axis=0),
    "nanmedian": lambda x, w: np.nanmedian(np.where(HOLE, np.nan, x), axis=1),
    "nanpercentile": lambda x, w: np.nanpercentile(x, 35, keepdims=True, axis=(0, 1)),
    "of constants": lambda x, w: np.quantile(X, w[0] * 0.9, axis=1),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_recorded_and_replayed_bitwise(name):
    f = CALLS[name]
    x, w = X[::-1] * 1.25, W * 1.1

    assert_same(f(x, w), lt.run_forward(lt.trace(f, X, W), x, w))


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_of_a_call_agree_with_differences(name):
    check_grads(CALLS[name], (X, W))


@in_one_test
@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_has_numpys_values_and_right_derivatives(method):
    for f, x in ((np.quantile, X), (np.nanquantile, NAN)):
        for q in (0.0, 0.13, 0.5, 0.81, 1.0):

            def call(x, f=f, q=q):
                return f(x, q, 1, method=method)

            assert_same(call(x), lt.run_forward(lt.trace(call, x), x))
            check_grads(call, (x,), order=1)
            rows = np.stack([x, x[::-1] * 1.5])
            assert_close(np.stack([call(row) for row in rows]), lt.vmap(call)(rows))


def test_a_nan_in_a_row_makes_its_quantile_nan_with_a_zero_derivative():
    """[D13]"""
    for f in (np.median, lambda x, axis: np.quantile(x, 0.3, axis)):
        out, pull = lt.vjp(lambda x, f=f: f(x, 1), NAN)
        by_x = pull(np.ones(2))[0]

        assert_same(f(NAN, 1), out)
        assert not by_x[0].any()
        assert np.isfinite(by_x).all()
        assert np.isclose(by_x[1].sum(), 1)


def test_infinite_elements_next_to_a_median_leave_its_derivative_finite():
    x = np.array([-np.inf, 0.5, np.inf])

    assert_same(np.array([0.0, 1.0, 0.0]), lt.grad(np.median)(x))


def test_calls_that_numpy_refuses_are_refused():
    with pytest.raises(lt.ShapeError, match="not a valid method"):
        lt.trace(lambda x: np.quantile(x, 0.5, method="best"), X)
    with pytest.raises(lt.ShapeError, match="supports weights"):
        lt.trace(lambda x: np.quantile(x, 0.5, weights=X), X)
    with pytest.raises(lt.DTypeError, match="real numbers"):
        lt.trace(lambda x: np.quantile(x, 0.5), X + 0j)
    with pytest.raises(ValueError, match="range"):
        lt.trace(lambda x: np.quantile(x, 1.5), X)


@pytest.mark.parametrize("x", [2.5, np.nan])
def test_a_quantile_of_a_python_number_is_numpys(x):
    assert_same(np.quantile(x, 0.3), lt.trace(lambda x: np.quantile(x, 0.3), 1.0)(x))


def test_quantiles_of_no_rows_have_the_shape_of_numpys():
    x, q = np.zeros((0, 3)), [0.25, 0.75]
    for function in (np.quantile, np.nanquantile):
        expected = function(x, q, axis=1)
        traced = lt.trace(lambda x, f=function: f(x, q, axis=1), x)

        assert expected.shape == traced.ret.args[0].type.shape
        assert_same(expected, traced(x))
