"""The formulas from which calls of SciPy's functions have their derivatives."""

# ruff: noqa: PLW0108  a function must read its name while it is recorded

import numpy as np
import pytest
from scipy import linalg, ndimage, signal

import letir as lt
from letir.ast.terms import Local
from letir.scipy.formulas.programs import formula_program
from letir.testing import assert_close, check_grads

RNG = np.random.default_rng(7)
A, B, V = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 2)), RNG.normal(size=4)
TALL, WIDE = RNG.normal(size=(5, 3)), RNG.normal(size=(3, 5))
Z = A + 1j * RNG.normal(size=(4, 4))
SYMMETRIC = A @ A.T + 4.0 * np.eye(4)
SPREAD = np.diag([1.0, 3.0, 5.0, 9.0]) + 0.3 * A  # real, distinct eigenvalues
BAND = RNG.normal(size=(2, 4)) + np.array([[0.0], [5.0]])
WAVE, ROWS = RNG.normal(size=12), RNG.normal(size=(3, 8))
TOP, BOTTOM = np.array([0.2, 0.3, 0.1]), np.array([1.2, -0.4, 0.3])
IMAGE, KERNEL = RNG.normal(size=(5, 6)), RNG.normal(size=(3, 2))
COMPLEX_IMAGE = IMAGE * (1 + 0.5j)
TURN, OFFSET = np.array([[0.9, 0.2], [-0.1, 1.1]]), np.array([0.21, 0.37])
PLACES = np.stack(np.meshgrid([-0.7, 0.3, 4.4], [0.6, 5.2, 6.1], indexing="ij"))


def half(x):
    return (x + x.T) / 2


# name -> (function, arguments)
MATRICES = {
    "tanm": (lambda a: linalg.tanm(a), (0.3 * A,)),
    "coshm": (lambda a: linalg.coshm(a), (0.3 * A,)),
    "sinhm": (lambda a: linalg.sinhm(a), (0.3 * A,)),
    "tanhm": (lambda a: linalg.tanhm(a), (0.3 * A,)),
    "tanm of complex": (lambda *xs: linalg.tanm(*xs), (0.3 * Z,)),
    "expm_frechet": (lambda *xs: linalg.expm_frechet(*xs), (0.3 * A, SYMMETRIC)),
    "lu": (lambda *xs: linalg.lu(*xs), (A,)),
    "lu, one number": (lambda *xs: linalg.lu(*xs), (np.array([[2.0]]),)),
    "lu, tall": (lambda *xs: linalg.lu(*xs), (TALL,)),
    "lu, wide": (lambda *xs: linalg.lu(*xs), (WIDE,)),
    "lu, complex": (lambda *xs: linalg.lu(*xs), (Z,)),
    "lu, permuted": (lambda a: linalg.lu(a, permute_l=True), (TALL,)),
    "lu, indices": (lambda a: linalg.lu(a, p_indices=True)[1:], (A,)),
    "lu, stack": (lambda *xs: linalg.lu(*xs), (np.stack([A, SYMMETRIC]),)),
    "lu_factor": (lambda a: linalg.lu_factor(a)[0], (A,)),
    "lu_factor, tall": (lambda a: linalg.lu_factor(a)[0], (TALL,)),
    "lu_factor, wide": (lambda a: linalg.lu_factor(a)[0], (WIDE,)),
    "lu_solve": (lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b), (A, V)),
    "lu_solve, T": (lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, trans=1), (A, B)),
    "lu_solve, H": (lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, trans=2), (Z, B)),
    "lstsq": (lambda a, b: linalg.lstsq(a, b)[::3], (TALL, RNG.normal(size=5))),
    "lstsq, residuals": (lambda a, b: linalg.lstsq(a, b)[:2], (TALL, RNG.normal(size=(5, 2)))),
    "lstsq, wide": (lambda a, b: linalg.lstsq(a, b)[0], (WIDE, RNG.normal(size=3))),
    "lstsq, gelsy": (
        lambda a, b: linalg.lstsq(a, b, lapack_driver="gelsy")[0],
        (TALL, RNG.normal(size=5)),
    ),
    "qr, pivoting": (lambda a: linalg.qr(a, pivoting=True)[:2], (A,)),
    "qr, r": (lambda a: linalg.qr(a, mode="r"), (A,)),
    "rq": (lambda *xs: linalg.rq(*xs), (A,)),
    "schur": (lambda *xs: linalg.schur(*xs), (SPREAD,)),
    "eigh_tridiagonal": (lambda *xs: linalg.eigh_tridiagonal(*xs), (np.arange(4) * 2.0, V[1:])),
    "eig_banded": (lambda *xs: linalg.eig_banded(*xs), (BAND * [1.0, 2.0, 3.0, 4.0],)),
    "eigvals_banded, lower": (
        lambda a: linalg.eigvals_banded(a, lower=True),
        (BAND[::-1] * [1.0, 2.0, 3.0, 4.0],),
    ),
    "cholesky_banded": (lambda a: linalg.cholesky_banded(a)[1], (BAND,)),
    "solve_continuous_are": (
        lambda a, b, q, r: linalg.solve_continuous_are(a, b, half(q), half(r)),
        (A, B, SYMMETRIC, np.eye(2)),
    ),
    "solve_discrete_are": (
        lambda a, b, q, r: linalg.solve_discrete_are(a, b, half(q), half(r)),
        (0.5 * A, B, SYMMETRIC, np.eye(2)),
    ),
    "khatri_rao": (lambda *xs: linalg.khatri_rao(*xs), (TALL, TALL[:2])),
    "companion": (lambda *xs: linalg.companion(*xs), (V + 5.0,)),
    "leslie": (lambda *xs: linalg.leslie(*xs), (V, V[1:])),
    "convolution_matrix": (lambda a: linalg.convolution_matrix(a, 5, "same"), (V,)),
    "matmul_toeplitz": (lambda *xs: linalg.matmul_toeplitz(*xs), (V + 4.0, B)),
    "diagsvd": (lambda s: linalg.diagsvd(s, 4, 5), (V,)),
    "orthogonal_procrustes": (lambda *xs: linalg.orthogonal_procrustes(*xs), (A, SYMMETRIC)),
}
SIGNALS = {
    "lfilter": (lambda *xs: signal.lfilter(*xs), (TOP, BOTTOM, WAVE)),
    "lfilter, rows": (lambda b, a, x: signal.lfilter(b, a, x, axis=0), (TOP, BOTTOM, ROWS)),
    "lfilter, one coefficient": (lambda b, x: signal.lfilter(b, [2.0], x), (TOP, WAVE)),
    "lfilter, state": (
        lambda b, a, x, zi: signal.lfilter(b, a, x, zi=zi),
        (TOP, BOTTOM, WAVE, np.array([0.3, 0.4])),
    ),
    "lfilter, short": (
        lambda b, a, x, zi: signal.lfilter(b, a, x, zi=zi),
        (TOP, BOTTOM, WAVE[:1], np.array([0.3, 0.4])),
    ),
    "lfilter, complex": (
        lambda *xs: signal.lfilter(*xs),
        (TOP * (1 + 0.5j), BOTTOM * (1 - 0.2j), WAVE),
    ),
    "lfilter of numbers": (lambda k, x: signal.lfilter([k], [1, k - 1], x), (0.3, WAVE)),
    "lfilter_zi": (lambda *xs: signal.lfilter_zi(*xs), (TOP, BOTTOM)),
    "filtfilt": (lambda b, a, x: signal.filtfilt(b, a, x, padlen=5), (TOP, BOTTOM, WAVE)),
    "sosfilt": (
        lambda b, x: signal.sosfilt(np.concatenate([b, np.array([1.0, -0.4, 0.3])])[None], x),
        (TOP, WAVE),
    ),
    "sosfilt, state": (
        lambda b, x, zi: signal.sosfilt(
            np.concatenate([b, np.array([1.0, -0.4, 0.3])])[None].repeat(2, 0), x, axis=0, zi=zi
        ),
        (TOP, ROWS, RNG.normal(size=(2, 2, 8))),
    ),
    "upfirdn": (lambda h, x: signal.upfirdn(h, x, 2, 3), (TOP, ROWS)),
    "freqz": (lambda b, a: signal.freqz(b, a, worN=5)[1], (TOP, BOTTOM)),
    "freqs": (lambda b, a: signal.freqs(b, a, worN=np.arange(1.0, 5.0))[1], (TOP, BOTTOM)),
    **{
        f"{name}, {mode}, {boundary}": (
            lambda x, y, name=name, mode=mode, boundary=boundary: getattr(signal, name)(
                x, y, mode, boundary, 0.5
            ),
            (IMAGE, KERNEL),
        )
        for name in ("convolve2d", "correlate2d")
        for mode in ("full", "same", "valid")
        for boundary in ("fill", "wrap", "symm")
    },
    "convolve2d, swapped": (lambda x, y: signal.convolve2d(y, x, "valid"), (IMAGE, KERNEL)),
    "correlate2d, swapped": (lambda x, y: signal.correlate2d(y, x, "valid"), (IMAGE, KERNEL)),
    "correlate2d, complex": (
        lambda *xs: signal.correlate2d(*xs),
        (COMPLEX_IMAGE, KERNEL * (1 - 0.5j)),
    ),
    "correlate, swapped": (lambda x, y: signal.correlate(y, x, "valid"), (WAVE, TOP)),
}
MODES = ("constant", "nearest", "reflect", "mirror", "wrap", "grid-wrap", "grid-constant")


def image_calls(mode, order):
    """{name: (function of an image and further arguments, arguments)}."""
    options = {"order": order, "mode": mode, "cval": 0.5}
    return {
        "map_coordinates": (
            lambda x, c: ndimage.map_coordinates(x, c, **options),
            (IMAGE, PLACES * 1.3),
        ),
        "zoom": (lambda x: ndimage.zoom(x, (1.5, 0.8), **options), (IMAGE,)),
        "rotate": (lambda x: ndimage.rotate(x, 25.0, **options), (IMAGE,)),
        "rotate by a traced angle": (
            lambda x, t: ndimage.rotate(x, t, reshape=False, **options),
            (IMAGE, 25.3),
        ),
        "affine_transform": (
            lambda x, m, o: ndimage.affine_transform(x, m, o, **options),
            (IMAGE, TURN, OFFSET),
        ),
        "affine_transform, diagonal": (
            lambda x: ndimage.affine_transform(x, [0.7, 0.8], OFFSET, **options),
            (IMAGE,),
        ),
        "shift": (lambda x, s: ndimage.shift(x, s, **options), (IMAGE, np.array([0.31, 1.27]))),
    }


IMAGES = {
    **{f"{name}, {mode}": call for mode in MODES for name, call in image_calls(mode, 3).items()},
    "zoom, grid_mode": (
        lambda x: ndimage.zoom(x, 1.5, mode="grid-constant", grid_mode=True),
        (IMAGE,),
    ),
    "zoom of a vector": (lambda x: ndimage.zoom(x, 2.0, order=2), (WAVE,)),
    "rotate in space": (lambda x: ndimage.rotate(x, 30.0, (0, 2)), (RNG.normal(size=(3, 2, 4)),)),
    "homogeneous matrix": (
        lambda x: ndimage.affine_transform(x, np.array([[0.9, 0.1, 0.2], [0.0, 1.1, 0.3]])),
        (IMAGE,),
    ),
    "complex image": (lambda x: ndimage.zoom(x, 1.5, order=2), (COMPLEX_IMAGE,)),
    "spline_filter": (lambda *xs: ndimage.spline_filter(*xs), (IMAGE,)),
    "spline_filter1d": (lambda x: ndimage.spline_filter1d(x, 4, 0, mode="wrap"), (IMAGE,)),
}
CALLS = {**MATRICES, **SIGNALS, **IMAGES}


def compare_formulas(function, args):
    """Compare the formula of each call of SciPy in ``function`` with what SciPy has found."""
    program, known, count = lt.trace(function, *args), {}, 0

    def compare(bind, results):
        nonlocal count
        operands = [known[x] if type(x) is Local else x.value for x in bind.args]
        known.update(zip(bind.binders, results, strict=True))
        if bind.op.name == "scipy_call":
            types = tuple([x.type for x in bind.args])
            found = formula_program(
                bind.attrs["function"], bind.attrs["arguments"], bind.attrs["results"], types
            )
            values = lt.run_forward(found.fn, *operands, *results, *operands)
            for place, value in zip(found.places, values, strict=True):
                assert_close(np.asarray(value), np.asarray(results[place]))
            count += len(found.places)

    known.update(zip(program.params, args, strict=True))
    lt.run_forward(program, *args, observe=compare)
    return count


@pytest.mark.parametrize("name", CALLS)
def test_a_formula_is_what_scipy_computes_and_has_its_derivatives(name):
    function, args = CALLS[name]

    compare_formulas(function, args)
    order = 2 if name in {**MATRICES, **SIGNALS} else 1
    check_grads(function, args, order=order, rtol=1e-4)


@pytest.mark.parametrize("order", [0, 1, 2, 4, 5])
@pytest.mark.parametrize("mode", MODES)
def test_splines_of_all_degrees_are_those_of_scipy(mode, order):
    for function, args in image_calls(mode, order).values():
        compare_formulas(function, args)


def test_what_has_no_derivative_says_why():
    cases = {
        "phases": (lambda a: linalg.schur(a, "complex")[0].real, A),
        "worN": (lambda b: abs(signal.freqz(b, 1, worN=[0.1, 0.2])[1]), TOP),
        "SciPy computes its values only": (lambda a: linalg.hessenberg(a), A),
        "complex eigenvalues": (
            lambda a: linalg.schur(a)[0],
            np.array([[0.0, 2.0], [-1.0, 0.0]]),
        ),
    }
    for reason, (function, x) in cases.items():
        with pytest.raises(lt.MissingRule, match=reason):
            lt.grad(lambda x, function=function: function(x).sum())(x)


def test_the_derivative_by_one_argument_does_not_need_the_others():
    """Only the wanted operands of a call are differentiated."""
    slope = lt.grad(lambda x: signal.freqz(x, np.array([1, 2]), worN=4)[1].real.sum())(TOP)

    assert slope.shape == TOP.shape


def test_gradients_of_images_compile():
    step = lt.jit(lt.grad(lambda x: (ndimage.rotate(x, 10.0, reshape=False) ** 2).sum()))

    assert_close(
        step(IMAGE), lt.grad(lambda x: (ndimage.rotate(x, 10.0, reshape=False) ** 2).sum())(IMAGE)
    )
