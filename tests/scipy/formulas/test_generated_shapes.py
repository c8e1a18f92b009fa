"""The formulas on generated shapes and values: against complex step, each element, and modes."""

# ruff: noqa: PLW0108  a function must read its name while it is recorded

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import fft, integrate, linalg, ndimage, signal, special, stats

import letir as lt
from letir.testing import assert_close, check_grads

SIZES = st.integers(1, 4)
SEEDS = st.integers(0, 2**16)
SHAPES = st.sampled_from([(), (1,), (3,), (0,), (2, 1), (1, 3), (2, 3), (0, 3)])


def draw(rng, *shape):
    """Numbers from -1 to 1."""
    return rng.uniform(-1.0, 1.0, shape)


def turned(x, axis):
    """``x`` with its first axis moved to ``axis``, which may be negative."""
    return np.moveaxis(x, 0, axis)


# functions that SciPy computes for complex numbers too: (function of arrays, maker of the arrays)
ANALYTIC = {
    "tanm": (lambda a: linalg.tanm(a), lambda rng, n: [0.3 * draw(rng, n, n)]),  # no pole is near
    "tanhm": (lambda a: linalg.tanhm(a), lambda rng, n: [draw(rng, n, n)]),
    "coshm, sinhm": (
        lambda a: linalg.coshm(a) @ linalg.sinhm(a),
        lambda rng, n: [draw(rng, n, n)],
    ),
    "expm_frechet": (
        lambda a, e: linalg.expm_frechet(a, e),
        lambda rng, n: [draw(rng, n, n), draw(rng, n, n)],
    ),
    "khatri_rao": (
        lambda a, b: linalg.khatri_rao(a, b),
        lambda rng, n: [draw(rng, n, 2), draw(rng, 3, 2)],
    ),
    "companion": (lambda a: linalg.companion(a), lambda rng, n: [2.0 + draw(rng, 2, n + 1)]),
    "matmul_toeplitz": (
        lambda c, r, x: linalg.matmul_toeplitz((c, r), x),
        lambda rng, n: [draw(rng, 3), draw(rng, n), draw(rng, n, 2)],
    ),
    "lfilter": (
        lambda b, a, x: signal.lfilter(b, a, x, axis=-2),
        lambda rng, n: [draw(rng, n), 2.0 + draw(rng, 3), draw(rng, n, 2)],
    ),
    "lfilter with a state": (
        lambda b, a, x, zi: signal.lfilter(b, a, x, zi=zi),
        lambda rng, n: [draw(rng, 3), 2.0 + draw(rng, 2), draw(rng, 2, n), draw(rng, 2, 2)],
    ),
    "lfilter_zi": (
        lambda b, a: signal.lfilter_zi(b, a),
        lambda rng, n: [draw(rng, n), np.append(3.0, draw(rng, 2))],
    ),
    "filtfilt": (
        lambda b, a, x: signal.filtfilt(b, a, x, axis=0, padlen=2),
        lambda rng, n: [draw(rng, n + 1), np.append(3.0, draw(rng, 1)), draw(rng, 5, n)],
    ),
    "convolve2d": (
        lambda x, y: signal.convolve2d(x, y, "same", "symm"),
        lambda rng, n: [draw(rng, 4, n), draw(rng, n, 2)],
    ),
    "convolve2d around": (
        lambda x, y: signal.convolve2d(x, y, "full", "wrap"),
        lambda rng, n: [draw(rng, 4, n), draw(rng, n, 2)],
    ),
    "upfirdn": (
        lambda h, x: signal.upfirdn(h, x, 3, 2, axis=0),
        lambda rng, n: [draw(rng, 3), draw(rng, n, 2)],
    ),
    "freqz": (
        lambda b, a: signal.freqz(b, a, worN=3)[1].real,
        lambda rng, n: [draw(rng, n), 3.0 + draw(rng, 2)],
    ),
    "dctn": (lambda x: fft.dctn(x, axes=(-1,)), lambda rng, n: [draw(rng, 2, n)]),
    "romb": (lambda y: integrate.romb(y, 0.5, axis=-2), lambda rng, n: [draw(rng, 5, n)]),
    "zoom": (
        lambda x: ndimage.zoom(x, 1.5, order=2, mode="reflect"),
        lambda rng, n: [draw(rng, n + 1, 3)],
    ),
}
ROUNDED = {"freqz", "matmul_toeplitz", "tanm"}  # tiny imaginary parts are rounded


@pytest.mark.parametrize("name", ANALYTIC)
@given(seed=SEEDS, n=SIZES)
def test_derivatives_of_formulas_agree_with_complex_step_through_scipy(name, seed, n):
    function, make = ANALYTIC[name]
    args = make(np.random.default_rng(seed), n)

    check_grads(function, args, order=1, analytic=name not in ROUNDED, rtol=1e-5)


# elementwise functions: (function, numbers, then shape parameters)
ELEMENTWISE = {
    "betainc": (lambda x, a, b: special.betainc(a, b, x), (0.0, 1.0), 2),
    "stdtr": (lambda x, df: special.stdtr(df, x), (-3.0, 3.0), 1),
    "fdtr": (lambda x, a, b: special.fdtr(a, b, x), (0.0, 3.0), 2),
    "gdtr": (lambda x, a, b: special.gdtr(a, b, x), (0.0, 3.0), 2),
    "beta.logcdf": (lambda x, a, b: stats.beta.logcdf(x, a, b), (0.0, 1.0), 2),
    "t.ppf": (lambda x, df: stats.t.ppf(x, df), (0.0, 1.0), 1),
    "lognorm.sf": (lambda x, s: stats.lognorm.sf(x, s), (0.0, 3.0), 1),
    "skewnorm.cdf": (lambda x, a: stats.skewnorm.cdf(x, a), (-3.0, 3.0), 1),
    "truncpareto.logpdf": (lambda x, b: stats.truncpareto.logpdf(x, b, 5.0), (1.0, 5.0), 1),
    "genextreme.cdf": (lambda x, c: stats.genextreme.cdf(x, c), (-3.0, 0.3), 1),
    "rice.ppf": (lambda x, b: stats.rice.ppf(x, b), (0.0, 1.0), 1),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@given(seed=SEEDS, shape=SHAPES, other=SHAPES, single=st.booleans())
def test_derivatives_of_broadcast_arrays_are_those_of_each_element(
    name, seed, shape, other, single
):
    """Also for float32, in both modes, and with a batch axis."""
    function, (low, high), count = ELEMENTWISE[name]
    try:
        out = np.broadcast_shapes(shape, other)
    except ValueError:
        shape, out = other, other
    rng = np.random.default_rng(seed)
    dtype = np.float32 if single else np.float64
    x = rng.uniform(low + 0.1, high - 0.1, shape).astype(dtype)
    parameters = [rng.uniform(0.5, 3.0, other).astype(dtype) for _ in range(count)]
    args = (x, *parameters)
    tol = {"rtol": 1e-3, "atol": 1e-4} if single else {"rtol": 1e-8, "atol": 1e-10}

    value, pull = lt.vjp(function, *args)
    pulled = pull(np.ones_like(value))
    tangents = tuple([np.ones_like(arg) for arg in args])
    pushed = lt.jvp(function, args, tangents)[1]

    assert_close(function(*args), value, **(tol if single else {}))
    assert [np.shape(arg) for arg in args] == [np.shape(g) for g in pulled]
    assert [arg.dtype for arg in args] == [np.asarray(g).dtype for g in pulled]
    assert_close(np.sum([np.sum(g) for g in pulled]), np.sum(pushed), **tol)
    slope = lt.grad(function, tuple(range(count + 1)))
    wide = [np.broadcast_to(arg, out) for arg in args]
    each = [slope(*[np.float64(arg[place]) for arg in wide]) for place in np.ndindex(out)]
    if each:
        assert_close(np.sum([sum(g) for g in each]), np.sum(pushed), **tol)
        numbers = [np.float64(arg.flat[0]) for arg in wide]
        program = lt.trace(lambda *numbers: sum(slope(*numbers)), *numbers)
        mapped = lt.vmap(program)(*[np.ravel(arg).astype(float) for arg in wide])
        assert_close(np.sum(pushed), np.sum(mapped), **tol)
