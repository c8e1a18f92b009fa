"""Axes that an array does not have, or that are given twice, are errors in NumPy and SciPy."""

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.ndimage
import scipy.signal
import scipy.stats

import letir as lt

X = np.random.default_rng(0).uniform(0.5, 1.5, (3, 4))
SECTIONS = [[1, 0, 0, 1, 0, 0]]
ALONG_ONE = {
    "compress": lambda x, axis: np.compress([1, 0], x, axis=axis),
    "trim_zeros": lambda x, axis: np.trim_zeros(x, axis=axis),
    "gradient": lambda x, axis: np.gradient(x, axis=axis),
    "permutation": lambda x, axis: np.random.default_rng(0).permutation(x, axis=axis),
    "shuffle": lambda x, axis: np.random.default_rng(0).shuffle(x, axis=axis),
    "choice": lambda x, axis: np.random.default_rng(0).choice(x, 2, axis=axis),
    "simpson": lambda x, axis: scipy.integrate.simpson(x, axis=axis),
    "cumulative_trapezoid": lambda x, axis: scipy.integrate.cumulative_trapezoid(x, axis=axis),
    "dct": lambda x, axis: scipy.fft.dct(x, axis=axis),
    "fft": lambda x, axis: scipy.fft.fft(x, axis=axis),
    "lfilter": lambda x, axis: scipy.signal.lfilter([1, 0.5], [1, 0.2], x, axis=axis),
    "sosfilt": lambda x, axis: scipy.signal.sosfilt(SECTIONS, x, axis=axis),
    "detrend": lambda x, axis: scipy.signal.detrend(x, axis=axis),
    "hilbert": lambda x, axis: scipy.signal.hilbert(x, axis=axis),
    "correlate1d": lambda x, axis: scipy.ndimage.correlate1d(x, [1, 2, 1], axis=axis),
    "sobel": lambda x, axis: scipy.ndimage.sobel(x, axis=axis),
    "skew": lambda x, axis: scipy.stats.skew(x, axis=axis),
    "zscore": lambda x, axis: scipy.stats.zscore(x, axis=axis),
}
ALONG_SEVERAL = {
    "trim_zeros": lambda x, axes: np.trim_zeros(x, axis=axes),
    "gradient": lambda x, axes: np.gradient(x, axis=axes),
    "fftn": lambda x, axes: scipy.fft.fftn(x, axes=axes),
    "fftconvolve": lambda x, axes: scipy.signal.fftconvolve(x, x, axes=axes),
    "gaussian_filter": lambda x, axes: scipy.ndimage.gaussian_filter(x, 1.0, axes=axes),
    "maximum_filter": lambda x, axes: scipy.ndimage.maximum_filter(x, 3, axes=axes),
}


def assert_raises_as_python(function, axis):
    def f(x):
        return function(x, axis)

    with pytest.raises((ValueError, IndexError)):
        f(X.copy())
    with pytest.raises((ValueError, IndexError)):
        lt.trace(f, X)
    with pytest.raises((ValueError, IndexError)):
        lt.jit(f)(X.copy())


@pytest.mark.parametrize("function", ALONG_ONE.values(), ids=ALONG_ONE.keys())
def test_an_axis_that_an_array_does_not_have_raises(function):
    for axis in (2, -3, 7):
        assert_raises_as_python(function, axis)


@pytest.mark.parametrize("function", ALONG_SEVERAL.values(), ids=ALONG_SEVERAL.keys())
def test_an_axis_that_is_given_twice_raises(function):
    for axes in ((0, 0), (1, -1), (0, 2)):
        assert_raises_as_python(function, axes)
