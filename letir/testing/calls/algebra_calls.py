"""Calls of matrix products, of numpy.linalg and of numpy.fft."""

import numpy as np

from letir.testing.calls.call import BLOCK, SQUARE, NumpyCall, V, W, X, Y, call_of, calls_of_names

_SYMMETRIC = SQUARE @ SQUARE.T
# its eigenvalues keep their order under small changes
_APART = np.diag([1.0, 2.0 + 1.0j, 5.0]) + 0.1 * SQUARE.T
_TENSOR = np.random.default_rng(0).normal(size=(2, 3, 6))


def _linalg(name: str, *args, **attrs) -> NumpyCall:
    """A call of a function of numpy.linalg, with named tuples converted to tuples."""

    def f(np, *args):
        result = getattr(np.linalg, name)(*args, **attrs)
        return tuple(result) if isinstance(result, tuple) else result

    return call_of(f, *args)


def _symmetrized_call(name: str, choose=lambda matrix: matrix) -> NumpyCall:
    """A call of a function of Hermitian matrices, made symmetric for finite differences."""

    def f(np, x):
        return choose(getattr(np.linalg, name)(x + np.conj(np.swapaxes(x, -1, -2))))

    return call_of(f, _SYMMETRIC)


def _fourier(name: str, *args, **attrs) -> NumpyCall:
    """A call of a function of numpy.fft; transforms of real arrays take no complex arrays."""
    takes_real = name in ("rfft", "rfft2", "rfftn", "ihfft")
    f = lambda np, x: getattr(np.fft, name)(x, *args, **attrs)  # noqa: E731
    return NumpyCall(f, (BLOCK,), complexes=() if takes_real else None)


PRODUCTS = {
    "matmul": call_of(lambda np, x, y: np.matmul(x, y.T), X, Y),
    "dot": call_of(lambda np, x, y: np.dot(x, y), X, V),
    "inner": call_of(lambda np, x, y: np.inner(x, y), X, Y),
    "outer": call_of(lambda np, x, y: np.outer(x, y), V, W),
    "vdot": call_of(lambda np, x, y: np.vdot(x, y), X, Y),
    "vecdot": call_of(lambda np, x, y: np.vecdot(x, y), X, Y),
    "matvec": call_of(lambda np, x, y: np.matvec(x, y), X, V),
    "vecmat": call_of(lambda np, x, y: np.vecmat(x, y), V, SQUARE),
    "tensordot": call_of(lambda np, x, y: np.tensordot(x, y, axes=([1], [1])), X, Y),
    "einsum": call_of(lambda np, x, y: np.einsum("ij,kj->ik", x, y), X, Y),
    "einsum_path": call_of(lambda np, x: x * len(np.einsum_path("ij,j->i", x, V)), X),
}
LINALG = {
    **calls_of_names("inv det slogdet matrix_rank cond", lambda name: _linalg(name, SQUARE)),
    **calls_of_names("trace diagonal matrix_transpose", lambda name: _linalg(name, SQUARE)),
    **calls_of_names("norm matrix_norm vector_norm pinv", lambda name: _linalg(name, X)),
    "matmul": _linalg("matmul", X, SQUARE),
    "outer": _linalg("outer", V, W),
    "cross": _linalg("cross", X, Y),
    "vecdot": _linalg("vecdot", X, Y),
    "tensordot": _linalg("tensordot", X, SQUARE, axes=1),
    "multi_dot": call_of(lambda np, x, y: np.linalg.multi_dot([x, y, y]), X, SQUARE),
    "matrix_power": _linalg("matrix_power", SQUARE, n=3),
    "solve": _linalg("solve", SQUARE, X.T),
    "lstsq": call_of(lambda np, a, b: np.linalg.lstsq(a, b)[0], X.T, V),
    "cholesky": _symmetrized_call("cholesky"),
    "qr": call_of(lambda np, x: tuple(np.linalg.qr(x)), SQUARE),
    "svd": call_of(lambda np, x: np.linalg.svd(x, full_matrices=False)[1], X),
    "svdvals": _linalg("svdvals", X),
    "eig": NumpyCall(lambda np, x: np.linalg.eig(x)[0], (SQUARE,), complexes=(_APART,)),
    "eigvals": NumpyCall(lambda np, x: np.linalg.eigvals(x), (SQUARE,), complexes=(_APART,)),
    "eigh": _symmetrized_call("eigh", lambda found: found[0]),
    "eigvalsh": _symmetrized_call("eigvalsh"),
    "tensorinv": _linalg("tensorinv", _TENSOR, ind=2),
    "tensorsolve": call_of(
        lambda np, a, b: np.linalg.tensorsolve(a.reshape(2, 3, 6), b), _TENSOR.reshape(6, 6), X
    ),
}
FFT = {
    **calls_of_names("fft ifft rfft ihfft", lambda name: _fourier(name, axis=1, norm="ortho")),
    **calls_of_names("irfft hfft", lambda name: _fourier(name, n=4, axis=1)),
    **calls_of_names("fft2 ifft2 rfft2 irfft2", lambda name: _fourier(name, axes=(0, 1))),
    **calls_of_names("fftn ifftn rfftn irfftn", lambda name: _fourier(name, axes=(0, 1))),
    "fftshift": _fourier("fftshift"),
    "ifftshift": _fourier("ifftshift", axes=1),
    "fftfreq": call_of(lambda np, x: np.fft.fftfreq(3) * x, X),
    "rfftfreq": call_of(lambda np, x: np.fft.rfftfreq(4) * x, X),
}
