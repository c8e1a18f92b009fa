"""Recorded functions of SciPy give arrays in SciPy's memory order and dtype."""

import numpy as np
import pytest
from scipy import fft, linalg, ndimage, signal, special, stats
from scipy.spatial import distance

import letir as lt
from tests.each_sample import in_one_test

RNG = np.random.default_rng(7)
ROWS, KERNEL = RNG.normal(size=(6, 8)), RNG.normal(size=(3, 2))
SQUARE = RNG.normal(size=(4, 4)) / 4 + 3 * np.eye(4)
CALLS = {
    "fft": (lambda x: fft.fft(x, axis=0), ROWS),
    "irfftn": (fft.irfftn, ROWS),
    "dct": (lambda x: fft.dct(x, axis=0), ROWS),
    "fftshift": (fft.fftshift, ROWS),
    "cholesky": (lambda x: linalg.cholesky(x @ x.T), SQUARE),
    "svd": (linalg.svd, SQUARE),
    "block_diag": (lambda x: linalg.block_diag(x, x[:2]), ROWS),
    "solve_sylvester": (lambda x: linalg.solve_sylvester(x, x, x), SQUARE),
    "solve_banded": (lambda x: linalg.solve_banded((1, 1), x[:3] + 9, x.T), SQUARE),
    "median_filter": (lambda x: ndimage.median_filter(x, 3), ROWS),
    "shift": (lambda x: ndimage.shift(x, 1, order=1), ROWS),
    "convolve": (lambda x: signal.convolve(x, KERNEL, "same"), ROWS),
    "fftconvolve": (lambda x: signal.fftconvolve(x, KERNEL), ROWS),
    "lfilter": (lambda x: signal.lfilter([0.5, 0.25], [1.0, -0.5], x, axis=0), ROWS),
    "cdist": (lambda x: distance.cdist(x, 2 * x), ROWS),
    "multigammaln": (lambda x: special.multigammaln(np.abs(x) + 3, 2), ROWS),
    "norm.pdf": (stats.norm.pdf, ROWS),
    "sem": (stats.sem, ROWS),
}
LAYOUTS = {
    "as it is": lambda f: f,
    "transposed": lambda f: lambda x: f(np.ascontiguousarray(x.T).T),
    "every other": lambda f: lambda x: f(np.repeat(x, 2, axis=1)[:, ::2]),
    "float32": lambda f: lambda x: f(x.astype("float32")),
}


def layouts_of(result):
    """The class, the dtype and the memory order of each array of a result."""
    if isinstance(result, tuple):
        return [layouts_of(item) for item in result]
    flags = result.flags
    return type(result), result.dtype, result.shape, flags.c_contiguous, flags.f_contiguous


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_results_have_the_memory_order_and_dtype_of_scipy(name):
    function, argument = CALLS[name]
    for layout in LAYOUTS.values():
        f = layout(function)
        expected = layouts_of(f(argument))

        assert layouts_of(lt.trace(f, argument)(argument)) == expected
        assert layouts_of(lt.jit(f)(argument)) == expected


@pytest.mark.filterwarnings("ignore:jit calls logm as Python", "ignore:logm result")
def test_the_logarithm_of_a_single_precision_matrix_is_refused():
    a = SQUARE.astype("float32")

    with pytest.raises(lt.MissingRule, match="depends on rounding"):
        lt.trace(linalg.logm, a)
    assert lt.jit(linalg.logm)(a).dtype == linalg.logm(a).dtype
