"""SciPy's functions of signals, distances, samples and LU factors, called by their own names."""

import numpy as np
import pytest
from scipy import fft, fftpack, integrate, linalg, ndimage, optimize, signal, special, stats
from scipy.spatial import distance

import letir as lt
import letir.scipy
from letir.testing import assert_close, assert_same, check_grads
from tests.each_sample import in_one_test

RNG = np.random.default_rng(4)
X, Y = RNG.normal(size=(5, 3)), RNG.normal(size=(4, 3))
WAVE, ROWS = RNG.normal(size=24), RNG.normal(size=(2, 16))
FILTER = signal.butter(2, 0.3)
SECTIONS = signal.butter(3, 0.3, output="sos")
FACTORS = linalg.lu_factor(RNG.normal(size=(4, 4)))
POSITIVE = RNG.uniform(0.5, 2.0, size=(6, 2))
METRICS = ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "correlation")
# name -> (function, arguments)
CALLS = {
    **{
        f"cdist {metric}": (lambda x, y, metric=metric: distance.cdist(x, y, metric), (X, Y))
        for metric in [
            "euclidean",
            "sqeuclidean",
            "cityblock",
            "chebyshev",
            "cosine",
            "correlation",
        ]
    },
    "cdist minkowski": (lambda x, y: distance.cdist(x, y, "minkowski", p=3), (X, Y)),
    "pdist": (lambda x: distance.pdist(x), (X,)),  # noqa: PLW0108  read while recorded
    "squareform": (lambda x: distance.squareform(distance.pdist(x, "sqeuclidean")), (X,)),
    "squareform back": (
        lambda x: distance.squareform(distance.squareform(x[:, 0]) * 2.0),
        (RNG.normal(size=(6, 1)),),
    ),
    "squareform of nothing": (lambda x: distance.squareform(x[:0, 0]) + x.sum(), (X,)),
    "euclidean": (lambda x, y: distance.euclidean(x[0], y[1]), (X, Y)),
    "cosine": (lambda x, y: distance.cosine(x[0], y[1]), (X, Y)),
    "minkowski": (lambda x, y: distance.minkowski(x[0], y[1], 3), (X, Y)),
    "mahalanobis": (lambda x, y: distance.mahalanobis(x[0], y[1], 2 * np.eye(3)), (X, Y)),
    "fft": (lambda x: np.abs(fft.fft(x, 32)), (WAVE,)),
    "rfft along an axis": (
        lambda x: fft.irfft(fft.rfft(x, axis=0, norm="ortho") * 2, 2, 0),
        (ROWS,),
    ),
    "fft2": (lambda x: fft.fftshift(fft.ifft2(fft.fft2(x) * 2.0)).real, (ROWS,)),
    "dct": (lambda x: fft.idct(fft.dct(x, norm="ortho") * 2.0, norm="ortho"), (WAVE,)),
    "dst": (lambda x: fft.dst(x, type=3, axis=0) + fft.idst(x), (ROWS,)),
    "fftpack": (lambda x: fftpack.ifft2(fftpack.fft2(x) + fftpack.fft(x, 16, 1)).real, (ROWS,)),
    "fftpack of reals": (lambda x: fftpack.irfft(fftpack.rfft(x, axis=0) * 2.0, axis=0), (ROWS,)),
    "fftpack of cosines": (lambda x: fftpack.dct(x, 2, norm="ortho")[:, :4], (ROWS,)),
    "fftpack of axes": (lambda x: np.abs(fftpack.fftn(x, axes=(0,))), (ROWS,)),
    "lfilter": (lambda x: signal.lfilter(*FILTER, x), (WAVE,)),
    "lfilter along an axis": (lambda x: signal.lfilter([1.0, 0.5], [1.0], x, axis=0), (ROWS,)),
    "filtfilt": (lambda x: signal.filtfilt(*FILTER, x), (ROWS,)),
    "sosfilt": (lambda x: signal.sosfilt(SECTIONS, x), (WAVE,)),
    "sosfiltfilt": (lambda x: signal.sosfiltfilt(SECTIONS, x), (WAVE,)),
    "savgol_filter": (lambda x: signal.savgol_filter(x, 5, 2), (WAVE,)),
    "savgol_filter of constant ends": (
        lambda x: signal.savgol_filter(x, 5, 2, mode="constant", cval=2.0),
        (WAVE,),
    ),
    "detrend": (lambda x: signal.detrend(x) + signal.detrend(x, type="constant"), (ROWS,)),
    "hilbert": (lambda x: np.abs(signal.hilbert(x)), (WAVE,)),
    "resample": (lambda x: signal.resample(x, 12), (WAVE,)),
    "lu_solve": (lambda b: linalg.lu_solve(FACTORS, b), (RNG.normal(size=4),)),
    "lu_solve of columns": (
        lambda b: linalg.lu_solve(FACTORS, b, trans=1),
        (RNG.normal(size=(4, 2)),),
    ),
    "zscore": (lambda x: stats.zscore(x) + stats.zscore(x, axis=None, ddof=1), (POSITIVE,)),
    "sem": (lambda x: stats.sem(x), (POSITIVE,)),  # noqa: PLW0108
    "skew": (lambda x: stats.skew(x) + stats.skew(x, axis=0, bias=False), (POSITIVE,)),
    "kurtosis": (
        lambda x: stats.kurtosis(x) + stats.kurtosis(x, fisher=False, bias=False),
        (POSITIVE,),
    ),
    "gmean": (lambda x: stats.gmean(x) + stats.hmean(x, axis=0), (POSITIVE,)),
}


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_scipys_call_is_recorded_and_gives_scipys_numbers(name):
    call, args = CALLS[name]
    others = [0.5 + 2.0 * x for x in args]
    program, compiled = lt.trace(call, *args), lt.jit(call)

    for given in (args, others):
        expected = call(*given)
        assert np.asarray(expected).dtype == np.asarray(program(*given)).dtype
        assert_close(expected, program(*given), rtol=1e-9, atol=1e-12)
        assert_close(expected, compiled(*given), rtol=1e-9, atol=1e-12)


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_derivatives_agree_with_differences(name):
    call, args = CALLS[name]

    check_grads(call, args, order=1)


def test_a_signal_in_single_precision_keeps_scipys_dtype():
    x = WAVE.astype(np.float32)

    for call in (fft.dct, signal.detrend, lambda x: signal.lfilter(*FILTER, x)):
        assert call(x).dtype == lt.trace(call, x)(x).dtype


def test_other_arguments_are_calls_of_scipy():
    """Where letir's own version does not take the arguments, see test_library_calls."""
    long = np.linspace(0.0, 9.0, 3000) ** 2
    for call, x in (
        (lambda x: signal.lfilter([1.0], x, WAVE), FILTER[1]),
        (lambda x: signal.lfilter(*FILTER, x, zi=np.zeros(2))[0], WAVE),
        (lambda x: signal.savgol_filter(x, 5, 2), long),
        (lambda x: distance.cdist(x, x, "jaccard"), X),
        (lambda x: stats.skew(x, nan_policy="omit"), X),
    ):
        program = lt.trace(call, x)

        assert "scipy_call" in [bind.op.name for bind in program.binds]
        np.testing.assert_array_equal(call(x + 1), program(x + 1))


def test_a_distance_that_is_a_python_function_is_refused():
    with pytest.raises(lt.MissingRule, match="of traced values is not recorded"):
        lt.trace(lambda x: distance.cdist(x, x, lambda a, b: abs(a - b).max()), X)


def test_a_matrix_that_is_not_a_distance_matrix_is_scipys_error():
    with pytest.raises(ValueError, match="symmetric"):
        lt.trace(distance.squareform, np.triu(np.ones((3, 3))))
    with pytest.raises(ValueError, match="diagonal must be zero"):
        lt.trace(distance.squareform, np.ones((3, 3)))
    with pytest.raises(ValueError, match="binomial coefficient n choose 2"):
        lt.trace(distance.squareform, np.ones(4))
    with pytest.raises(ValueError, match="columns"):
        lt.trace(distance.cdist, X, Y[:, :2])
    with pytest.raises(ValueError, match="2-dimensional array must be passed"):
        lt.trace(distance.pdist, X[0])


def test_a_distance_with_weights_is_a_call_of_scipy():
    weights = np.array([1.0, 2.0, 0.5])
    program = lt.trace(lambda x: letir.scipy.distance.cosine(x[0], x[1], w=weights), X)

    assert_same(distance.cosine(X[0], X[1], w=weights), program(X))


REFUSED = {
    "cdist": (lambda d, x: d.cdist(x, x, out=np.zeros((5, 5))), "leave out `out`"),
    "pdist": (lambda d, x: d.pdist(x, out=np.zeros(10)), "leave out `out`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_argument_that_is_not_recorded_is_named(name):
    call, words = REFUSED[name]

    with pytest.raises(lt.MissingRule, match=f"{name} of traced values is not recorded: {words}"):
        lt.trace(lambda x: call(letir.scipy.distance, x), X)


def test_without_traced_values_the_namespace_gives_scipys_results():
    np.testing.assert_array_equal(letir.scipy.distance.pdist(X), distance.pdist(X))
    np.testing.assert_array_equal(letir.scipy.fft.dct(WAVE), fft.dct(WAVE))
    assert letir.scipy.fft.next_fast_len is fft.next_fast_len


KINDS = {
    "norm of a vector": linalg.norm,
    "norm of another order": lambda x: linalg.norm(x, 1),
    "norm along an axis": lambda x: linalg.norm(x, axis=0),
    "determinant": lambda x: linalg.det(np.outer(x, x) + np.eye(3, dtype=x.dtype)),
    "determinants": lambda x: linalg.det(np.stack([np.outer(x, x)] * 2)),
}


@in_one_test
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_results_have_scipys_class_and_precision(name, dtype):
    f, x = KINDS[name], np.array([1.0, -2.0, 0.5], dtype)

    for found in (lt.trace(f, x)(x), lt.jit(f)(x)):
        assert type(found) is type(f(x))
        assert np.asarray(found).dtype == np.asarray(f(x)).dtype
        np.testing.assert_allclose(found, f(x), rtol=1e-5, atol=1e-6)


def test_a_banded_matrix_that_is_not_positive_definite_is_scipys_error():
    bands, b = np.array([[0.0, 1.0, 1.0], [4.0, 4.0, -4.0]]), np.ones(3)

    for run in (linalg.solveh_banded, lt.jit(linalg.solveh_banded)):
        with pytest.raises(linalg.LinAlgError, match="positive definite"):
            run(bands, b)
    check_grads(lambda a, b: linalg.solveh_banded(a, b), (abs(bands), b))  # noqa: PLW0108


def test_an_unknown_driver_is_scipys_error():
    with pytest.raises(ValueError, match='lapack_driver must be "gesdd" or "gesvd"'):
        lt.trace(lambda x: linalg.svd(x, lapack_driver="other"), X)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("numbers", [[1.0, 2.0], [1e4] + [1.0] * 10000, [3e20, 4e20]])
def test_norms_of_vectors_are_those_of_blas(dtype, numbers):
    x = np.array(numbers, dtype)

    assert_same(lt.trace(linalg.norm, x)(x), linalg.norm(x))


@in_one_test
@pytest.mark.parametrize("order", [1, np.inf, None, 2, -1])
@pytest.mark.parametrize(
    "a",
    [
        *(np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))),
        *(np.arange(16.0).reshape(4, 4)[::2, ::2], np.ones((1, 3)), np.ones((2, 2), "float32")),
        *(np.ones((2, 2), int), np.ones((2, 2)) + 1j),
    ],
)
def test_norms_of_matrices_have_the_class_that_scipy_gives(a, order):
    def f(a):
        return linalg.norm(a, order)

    for result in (lt.trace(f, a)(a), lt.jit(f)(a)):
        assert type(f(a)) is type(result)
        np.testing.assert_allclose(result, f(a), rtol=1e-6)


def test_norms_of_half_precision_are_those_of_numpy():
    x = np.array([1.0, 2.0], "float16")

    assert_same(lt.trace(linalg.norm, x)(x), linalg.norm(x))


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1.0, 0.0])
def test_the_norm_of_a_vector_neither_overflows_nor_vanishes(scale):
    x = np.array([3.0, 4.0])
    program = lt.trace(linalg.norm, x)

    np.testing.assert_allclose(program(scale * x), linalg.norm(scale * x), rtol=1e-15)
    slopes = lt.grad(linalg.norm)(scale * x)
    np.testing.assert_allclose(slopes, [0.6, 0.8] if scale else [0.0, 0.0], rtol=1e-15)


PIXELS = np.array([[3, 2, 5, 1, 4], [7, 6, 9, 3, 5], [5, 8, 3, 7, 1]])
VECTORS = np.array([[[1.0, 0.5, 2.0]], [[3.0, -1.0, 0.25]]])
ARRAYS_OF_OTHER_TYPES = {
    **{
        f"{f.__name__} of {dtype.__name__}": (f, (PIXELS.astype(dtype),))
        for f in (ndimage.sobel, ndimage.prewitt, ndimage.laplace)
        for dtype in (np.uint8, np.uint32, np.uint64, np.int32)
    },
    **{
        f"shift of {dtype.__name__}": (lambda x: ndimage.shift(x, 0.5, order=1), (x,))
        for dtype in (np.uint8, np.int64, np.float32)
        for x in [PIXELS.astype(dtype)]
    },
    "interpolated integers": (
        lambda x: ndimage.map_coordinates(x - 5, np.array([[0.3, 1.7], [3.2, 0.9]]), order=1),
        (PIXELS,),
    ),
    "trapezoid": (lambda y: integrate.trapezoid(y, np.arange(5.0)), (PIXELS.astype("f"),)),
    "simpson": (lambda y: integrate.simpson(y, dx=2.0), (PIXELS[0, :4].astype("f"),)),
    "simpson of rows": (lambda y: integrate.simpson(y[:, :4], dx=2.0), (PIXELS.astype("f"),)),
    "multigammaln": (lambda a: special.multigammaln(a, 2), (np.array([2.5, 10.0], "f"),)),
    "rosen": (optimize.rosen, (PIXELS[0].astype(np.uint8),)),
    "rosen_der": (optimize.rosen_der, (PIXELS[0],)),
    "rosen_hess": (optimize.rosen_hess, (PIXELS[0].astype(np.int8),)),
    "cityblock": (distance.cityblock, tuple(PIXELS[:2])),
    "cosine": (distance.cosine, tuple(PIXELS[:2].astype("f"))),
    "euclidean of floats": (distance.euclidean, tuple(PIXELS[:2].astype("f"))),
    "toeplitz of a stack": (linalg.toeplitz, (VECTORS,)),
    "circulant of a stack": (linalg.circulant, (VECTORS,)),
    "block_diag of stacks": (linalg.block_diag, (VECTORS, VECTORS)),
    "solve_toeplitz": (linalg.solve_toeplitz, tuple(VECTORS[:, 0].astype("f"))),
    "normal of one row": (
        lambda x: stats.multivariate_normal.pdf(x, np.zeros(3), np.eye(3)),
        (VECTORS[:1, 0],),
    ),
    "normal of floats": (
        stats.multivariate_normal.logpdf,
        (*VECTORS[:2, 0].astype("f"), np.eye(3, dtype="f")),
    ),
    "normal of a stack": (
        lambda x: stats.multivariate_normal.logpdf(x, np.zeros(3), np.eye(3)),
        (VECTORS,),
    ),
}


@in_one_test
@pytest.mark.parametrize("name", ARRAYS_OF_OTHER_TYPES)
def test_types_and_shapes_are_scipys(name):
    f, arguments = ARRAYS_OF_OTHER_TYPES[name]
    expected = f(*arguments)

    for found in (lt.trace(f, *arguments)(*arguments), lt.jit(f)(*arguments)):
        assert (np.shape(expected), np.asarray(expected).dtype) == (
            np.shape(found),
            np.asarray(found).dtype,
        )
        assert_close(expected, found, rtol=1e-6)


@in_one_test
@pytest.mark.parametrize(
    "f",
    [
        lambda u, v: distance.cosine(u + 1j, v),
        lambda u, v: distance.euclidean(u[:, None], v),
        lambda u, v: distance.minkowski(u, v, -1),
        lambda u, v: distance.mahalanobis(u[0], v, np.eye(3)),
        lambda u, v: distance.cdist(u[None] * 1j, v[None]),
    ],
)
def test_wrong_arguments_of_distances_raise_scipys_error(f):
    u, v = VECTORS[:, 0]
    with pytest.raises((TypeError, ValueError)) as wanted:
        f(u, v)

    for record in (lambda: lt.trace(f, u, v), lambda: lt.jit(f)(u, v)):
        with pytest.raises(wanted.type):
            record()
