"""letir.scipy.ndimage and optimize: SciPy's numbers outside and inside of traces, derivatives."""

import numpy as np
import pytest
import scipy
import scipy.ndimage
import scipy.optimize
from scipy import stats
from scipy.linalg import solve_banded
from scipy.special import logsumexp
from scipy.stats import norm

import letir as lt
import letir.scipy
from letir.testing import assert_close, assert_same, check_grads
from tests.each_sample import in_one_test

RNG = np.random.default_rng(5)
X, CUBE, V = RNG.normal(size=(6, 7)), RNG.normal(size=(4, 5, 3)), RNG.normal(size=9)
W, EVEN = RNG.normal(size=(3, 3)), RNG.normal(size=(2, 4))
F32, WHOLE = X.astype(np.float32), RNG.integers(-9, 9, (5, 6))
MODES = ["reflect", "mirror", "nearest", "wrap", "constant", "grid-wrap", "grid-constant"]

# name -> (call of ndimage, arguments)
CALLS = {
    **{
        f"convolve {mode}": (
            lambda n, x, w, mode=mode: n.convolve(x, w, mode=mode, cval=0.5),
            (X, W),
        )
        for mode in MODES
    },
    **{
        f"gaussian {mode}": (lambda n, x, mode=mode: n.gaussian_filter(x, 1.5, mode=mode), (X,))
        for mode in MODES
    },
    "correlate": (lambda n, x, w: n.correlate(x, w), (X, W)),
    "correlate by even weights": (lambda n, x, w: n.correlate(x, w), (X, EVEN)),
    "convolve by even weights": (lambda n, x, w: n.convolve(x, w, mode="mirror"), (X, EVEN)),
    "convolve from an origin": (lambda n, x, w: n.convolve(x, w, origin=(1, -1)), (X, W)),
    "correlate from an origin": (lambda n, x, w: n.correlate(x, w, origin=-1), (X, EVEN)),
    "convolve of axes": (lambda n, x, w: n.convolve(x, w, axes=(2, 0)), (CUBE, W)),
    "convolve of float32": (lambda n, x, w: n.convolve(x, w), (F32, W)),
    "convolve of integers": (lambda n, x: n.convolve(x, [[1, 2], [0, 1]]), (WHOLE,)),
    "convolve to float32": (lambda n, x, w: n.convolve(x, w, output=np.float32), (X, W)),
    "convolve of complex": (lambda n, x, w: n.convolve(x + 1j, w), (X, W)),
    "correlate of complex to float32": (
        lambda n, x, w: n.correlate(x + 1j, w, output=np.complex64),
        (X, W),
    ),
    "uniform along an axis": (lambda n, x: n.uniform_filter(x, 3, axes=-1), (X,)),
    "convolve1d": (lambda n, x, w: n.convolve1d(x, w, axis=0), (X, W[0])),
    "correlate1d": (lambda n, x: n.correlate1d(x, [1, 2, 4, 8], 1, origin=-1), (X,)),
    "gaussian of sigmas": (lambda n, x: n.gaussian_filter(x, (1.0, 0.0)), (X,)),
    "gaussian by sigma": (lambda n, x, s: n.gaussian_filter(x, s), (X, 1.2)),
    "gaussian of orders": (lambda n, x: n.gaussian_filter(x, 1.0, order=(0, 3)), (X,)),
    "gaussian truncated": (lambda n, x: n.gaussian_filter(x, 1, truncate=2.0), (X,)),
    "gaussian of a radius": (lambda n, x: n.gaussian_filter(x, 2.0, radius=3), (V,)),
    "gaussian of integers": (lambda n, x: n.gaussian_filter(x, 1.0), (WHOLE,)),
    "gaussian_filter1d": (lambda n, x: n.gaussian_filter1d(x, 1.0, 0, 1), (X,)),
    "gaussian_laplace": (lambda n, x: n.gaussian_laplace(x, 1.0), (X,)),
    "gaussian_gradient": (lambda n, x: n.gaussian_gradient_magnitude(x, 1.0), (X,)),
    "laplace": (lambda n, x: n.laplace(x, mode="wrap"), (X,)),
    "uniform": (lambda n, x: n.uniform_filter(x, (3, 4)), (X,)),
    "uniform1d": (lambda n, x: n.uniform_filter1d(x, 4, 0, origin=-1), (X,)),
    "sobel": (lambda n, x: n.sobel(x, 0), (X,)),
    "prewitt": (lambda n, x: n.prewitt(x, mode=["nearest", "wrap"]), (X,)),
    "maximum": (lambda n, x: n.maximum_filter(x, 3), (X,)),
    "minimum": (lambda n, x: n.minimum_filter(x, (2, 4), mode="constant"), (X,)),
    "maximum of a footprint": (lambda n, x: n.maximum_filter(x, footprint=EVEN > 0), (X,)),
    "median": (lambda n, x: n.median_filter(x, 3), (X,)),
    "median of an even window": (lambda n, x: n.median_filter(x, 4, mode="nearest"), (V,)),
    "shift": (lambda n, x: n.shift(x, 2), (V,)),
    "shift of axes": (lambda n, x: n.shift(x, (-1, 2), cval=3.0), (X,)),
    "shift around": (lambda n, x: n.shift(x, (3, -1), mode="grid-wrap"), (X,)),
    "shift reflected": (lambda n, x: n.shift(x, 2.0, mode="reflect"), (V,)),
    "shift of order 1": (lambda n, x: n.shift(x, 0.4, order=1, mode="nearest"), (V,)),
    "shift by a traced fraction": (lambda n, x, s: n.shift(x, s, order=1), (V, 0.4)),
    "map_coordinates": (
        lambda n, x, c: n.map_coordinates(x, c, order=1, mode="nearest"),
        (X, 3 + W[:2] * 2),
    ),
    "map_coordinates of 0": (
        lambda n, x: n.map_coordinates(x, 3 + W[:2] * 3, order=0, cval=0.5),
        (X,),
    ),
}


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_a_filter_gives_scipys_numbers_inside_and_outside_of_a_trace(name):
    f, args = CALLS[name]
    expected = f(scipy.ndimage, *args)

    program = lt.trace(lambda *args: f(letir.scipy.ndimage, *args), *args)

    assert_same(expected, f(letir.scipy.ndimage, *args))
    assert_close(expected, program(*args))
    others = [a * 1.01 if np.asarray(a).dtype.kind == "f" else a for a in args]
    assert_close(f(scipy.ndimage, *others), program(*others))


@in_one_test
@pytest.mark.parametrize("name", [n for n, (_, args) in CALLS.items() if args[0].dtype == float])
def test_a_filter_is_differentiated(name):
    if "float32" in name or "complex" in name:
        pytest.skip("a result of another dtype")
    f, args = CALLS[name]

    check_grads(lt.trace(lambda *args: f(letir.scipy.ndimage, *args), *args), args)


@pytest.mark.parametrize("options", [{}, {"order": 1, "mode": "wrap"}], ids=["splines", "wrap"])
def test_what_letir_does_not_write_out_is_a_call_of_scipy(options):
    program = lt.trace(lambda x: letir.scipy.ndimage.shift(x, 0.5, **options), V)

    assert "scipy_call" in [bind.op.name for bind in program.binds]
    assert_same(scipy.ndimage.shift(V, 0.5, **options), program(V))


WRONG = {
    "a mode": (lambda n, x: n.uniform_filter(x, 3, mode="other"), "boundary mode not supported"),
    "an origin": (lambda n, x: n.convolve(x, [1.0, 2.0], origin=3), "nvalid origin"),
    "too many sizes": (lambda n, x: n.uniform_filter(x, (3, 3)), "length equal to input rank"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_scipys_error(name):
    f, words = WRONG[name]

    with pytest.raises((RuntimeError, ValueError), match=words) as expected:
        f(scipy.ndimage, V)
    with pytest.raises(expected.type, match=words):
        lt.trace(lambda x: f(letir.scipy.ndimage, x), V)


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_a_filter_writes_into_an_array(dtype):
    def f(n, x):
        out = np.zeros(9, dtype)
        n.gaussian_filter(x, 1.0, output=out)
        return out

    assert_close(f(scipy.ndimage, V), lt.trace(lambda x: f(letir.scipy.ndimage, x), V)(V))


@pytest.mark.parametrize("name", ["rosen", "rosen_der", "rosen_hess"])
def test_the_rosenbrock_function_and_its_derivatives(name):
    f, g = getattr(scipy.optimize, name), getattr(letir.scipy.optimize, name)

    program = lt.trace(g, V)

    assert_close(f(V * 2), program(V * 2))
    assert_close(f(V), g(V))
    check_grads(program, (V,))


def test_derivatives_of_the_rosenbrock_function_agree():
    rosen = letir.scipy.optimize.rosen

    assert_close(scipy.optimize.rosen_der(V), lt.grad(rosen)(V))
    assert_close(scipy.optimize.rosen_hess(V), lt.hessian(rosen)(V))
    assert_close(scipy.optimize.rosen(X), lt.trace(rosen, X)(X))
    product = lt.trace(letir.scipy.optimize.rosen_hess_prod, V, V)
    assert_close(scipy.optimize.rosen_hess_prod(V, V), product(V, V))


# ---- SciPy's own names, in functions that are recorded ----


def scipy_as_written(x):
    """Calls of SciPy as people write them."""
    smooth = scipy.ndimage.gaussian_filter(x, 1.0)
    normal = stats.norm(0, 1)
    density = normal.logpdf(smooth).sum() + norm.cdf(x)[0] + normal.mean()
    return density + logsumexp(x) + solve_banded((0, 0), x[None], x).sum()


def test_scipys_functions_record_where_they_are_called():
    program, compiled = lt.trace(scipy_as_written, V), lt.jit(scipy_as_written)

    assert_close(scipy_as_written(V + 1), program(V + 1))
    assert_close(scipy_as_written(V), compiled(V))
    check_grads(program, (V,))
    assert stats.norm is norm


def test_as_strided_records_where_it_is_called():
    def f(x):
        (step,) = x.strides
        return np.lib.stride_tricks.as_strided(x, (4, 3), (step, step)) * 2

    assert_same(f(V + 1), lt.trace(f, V)(V + 1))
    assert_same(f(V), lt.jit(f)(V))


FILTERS = {
    "gaussian_filter": lambda x: scipy.ndimage.gaussian_filter(x, 1.0, output="int32"),
    "uniform_filter": lambda x: scipy.ndimage.uniform_filter(x, 3, output="int32"),
    "laplace": lambda x: scipy.ndimage.laplace(x, output="int32"),
    "sobel": lambda x: scipy.ndimage.sobel(x, output="int32"),
    "magnitude": lambda x: scipy.ndimage.gaussian_gradient_magnitude(x, 1.0, output="int32"),
}


def test_results_that_are_cut_to_integers_are_those_of_scipy():
    """SciPy computes them: 21.999999999999996 and 22.0 are different integers."""
    image = np.arange(50, step=2).reshape((5, 5))
    functions = {
        "gaussian": lambda x: scipy.ndimage.gaussian_filter(x, sigma=1),
        "uniform": lambda x: scipy.ndimage.uniform_filter(x, 3),
        "weights": lambda x: scipy.ndimage.correlate1d(x, [0.25, 0.5, 0.25]),
        **{
            name: lambda x, name=name: FILTERS[name](x * 0.7)
            for name in ("gaussian_filter", "uniform_filter", "laplace", "sobel", "magnitude")
        },
        "between": lambda x: scipy.ndimage.map_coordinates(x, [[0.5, 1.5], [0.5, 2.5]], order=1),
    }
    for function in functions.values():
        expected = function(image)

        assert_same(expected, lt.jit(function)(image))
        assert_same(expected, lt.trace(function, image)(image))
