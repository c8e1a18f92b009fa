"""numpy.fft: every function is recorded, and its derivatives agree with differences."""

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.testing import assert_same, check_grads

X = np.array([[0.5, -1.25, 2.0, 0.25], [1.5, 0.75, -0.625, 1.0], [0.3, -0.7, 0.1, 0.9]])
Z = X + 1j * X[::-1]
ONE = "fft ifft rfft irfft hfft ihfft"
SEVERAL = "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn"
REAL = {"rfft", "rfft2", "rfftn", "ihfft"}


def operands(name: str) -> list:
    """Operands that the function accepts, the most usual one first."""
    return [X, X.astype(np.float32)] if name in REAL else [Z, X, Z.astype(np.complex64)]


def agrees(f, *args):
    """Raise unless ``f`` is recorded and replayed with bitwise the same results."""
    assert_same(f(*args), lt.trace(f, *args)(*args))


@pytest.mark.parametrize("name", ONE.split())
def test_transforms_along_one_axis_are_recorded_with_derivatives(name):
    f = getattr(np.fft, name)

    for x in operands(name):
        agrees(lambda x: (f(x), f(x[0], 3), f(x, 6, 0), f(x, norm="ortho")), x)
        agrees(lambda x: (f(x, axis=-2, norm="forward"), f(x, n=5, norm="backward")), x)
    check_grads(f, operands(name)[:1], order=2)
    check_grads(lambda x: f(x, 5, 0, "ortho"), operands(name)[:1], order=1)


@pytest.mark.parametrize("name", SEVERAL.split())
def test_transforms_along_several_axes_are_recorded_with_derivatives(name):
    f = getattr(np.fft, name)

    for x in operands(name):
        agrees(lambda x: (f(x), f(x[None], axes=(0, -1)), f(x, (4, 2), (0, 1))), x)
        agrees(lambda x: (f(x, axes=(1,), norm="forward"), f(x, (2, -1), axes=[1, 0])), x)
    check_grads(f, operands(name)[:1], order=2)
    check_grads(lambda x: f(x, (2, 5), (1, 0), "ortho"), operands(name)[:1], order=1)


def test_lists_and_out_arguments_are_accepted():
    agrees(lambda x: lnp.fft.fft([x[0, 0], 1.0, x[0, 1]]), X)
    agrees(lambda z: np.fft.fft(z, out=z.copy()), Z)


def test_shifts_and_frequencies_agree_with_numpy():
    agrees(lambda x: (np.fft.fftshift(x), np.fft.ifftshift(x), np.fft.fftshift(x, 0)), X)
    agrees(lambda x: (np.fft.ifftshift(x, axes=(0,)), np.fft.fftshift(x[0])), X)
    agrees(lambda d: (lnp.fft.fftfreq(5, d), lnp.fft.rfftfreq(4, d), np.fft.fftfreq(4, d)), 0.25)
    check_grads(lambda d: np.fft.fftfreq(5, d), (0.25,))


def test_a_transform_can_be_vmapped():
    found = lt.vmap(lambda x: np.fft.irfft(np.fft.rfft(x, 6)))(X)

    assert_same(np.fft.irfft(np.fft.rfft(X, 6)), found)


def test_calls_that_numpy_refuses_are_refused():
    with pytest.raises(lt.ShapeError, match="invalid number of data points"):
        lt.trace(lambda x: np.fft.fft(x, 0), X)
    with pytest.raises(lt.ShapeError, match="norm must be 'backward'"):
        lt.trace(lambda x: np.fft.hfft(x, norm="unitary"), X)
    with pytest.raises(lt.DTypeError, match="takes real arrays"):
        lt.trace(np.fft.rfft, Z)
    with pytest.raises(lt.BoundsError):
        lt.trace(lambda x: np.fft.fft(x, axis=2), X)
