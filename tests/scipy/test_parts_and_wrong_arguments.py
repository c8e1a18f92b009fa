"""Recorded functions of SciPy read the parts of matrices that SciPy reads, and do not compute
with arguments that SciPy refuses or treats in another way.
"""

import warnings

import numpy as np
import pytest
from scipy import interpolate, linalg, signal, stats
from scipy.spatial import distance

import letir as lt
from letir.testing import assert_close, check_grads
from tests.each_sample import in_one_test

RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(4, 4)) + 5 * np.eye(4)
TURNED = MATRIX + 1j * RNG.normal(size=(4, 4))
LINE = RNG.normal(size=4)
SIGNAL = RNG.normal(size=20)
TIMES = np.arange(20.0)


@in_one_test
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("a", [MATRIX, TURNED], ids=["real", "complex"])
@pytest.mark.parametrize(
    "assumed",
    [
        *(None, "general", "sym", "her", "pos", "symmetric", "hermitian", "positive definite"),
        *("diagonal", "tridiagonal", "upper triangular", "lower triangular"),
    ],
)
def test_a_solution_reads_the_elements_that_the_structure_names(assumed, a, lower):
    def f(a):
        return linalg.solve(a, LINE, lower=lower, assume_a=assumed)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", linalg.LinAlgWarning)
        assert_close(f(a), lt.trace(f, a + 1)(a))
        if a is MATRIX:
            check_grads(f, (a,))


def test_a_matrix_that_is_not_square_has_no_solution():
    fast = lt.jit(lambda a: linalg.solve(a, LINE, assume_a="pos"))

    with pytest.raises(ValueError, match="square"):
        fast(MATRIX[:1])


SPLINES = {
    "CubicSpline": lambda y: interpolate.CubicSpline(TIMES, y)([2.5, 3.1]),
    "PchipInterpolator": lambda y: interpolate.PchipInterpolator(TIMES, y)(2.5),
    "Akima1DInterpolator": lambda y: interpolate.Akima1DInterpolator(TIMES, y)(2.5),
    "interp1d": lambda y: interpolate.interp1d(TIMES, y)(2.5),
    "make_interp_spline": lambda y: interpolate.make_interp_spline(TIMES, y)(2.5),
    "detrend": signal.detrend,
    "sosfilt": lambda y: signal.sosfilt(signal.butter(2, 0.3, output="sos"), y),
    "savgol_filter": lambda y: signal.savgol_filter(y, 5, 2),
    "normal": lambda y: stats.norm.cdf(y, 0.1, 2),
    "many normals": lambda y: stats.multivariate_normal.logpdf(y, 0.0, 2.0),
}


@in_one_test
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SPLINES)
@pytest.mark.parametrize("kind", ["nan", "infinite", "complex"])
def test_jit_gives_scipys_result_or_error_for_unusual_values(name, kind):
    f, fast, y = SPLINES[name], lt.jit(SPLINES[name]), SIGNAL.astype(complex)
    y[4] = {"nan": np.nan, "infinite": np.inf, "complex": 2 + 1j}[kind]
    y = y if kind == "complex" else y.real.copy()
    assert_close(f(SIGNAL), fast(SIGNAL))
    try:
        expected = f(y)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            fast(y)
    else:
        found = fast(y)
        assert np.asarray(expected).dtype == np.asarray(found).dtype
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@in_one_test
@pytest.mark.parametrize("dtype", [float, np.float32, int])
@pytest.mark.parametrize("f", [distance.euclidean, distance.minkowski, distance.cosine])
def test_distances_are_of_scipys_type(f, dtype):
    u, v = (3 * LINE).astype(dtype), (2 * LINE[::-1]).astype(dtype)
    if dtype is float or f is distance.euclidean:
        assert type(f(u, v)) is type(lt.jit(f)(u, v))
    assert f(u, v) == pytest.approx(lt.trace(f, u, v)(u, v), rel=1e-6)


@in_one_test
@pytest.mark.parametrize("f", [linalg.toeplitz, lambda x: signal.correlate(x, x[:2])])
def test_truth_values_stay_truth_values(f):
    x = np.array([True, False, True])

    assert f(x).dtype == lt.jit(f)(x).dtype
