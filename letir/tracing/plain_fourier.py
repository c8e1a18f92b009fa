"""NumPy's functions of numpy.fft that are other spellings, for ``plain``."""

import numpy as np


def other_norm(norm):
    """The norm of the transform in the other direction that scales as this one."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


def hfft(a, n=None, axis=-1, norm=None, out=None):
    """np.fft.hfft, as NumPy computes it."""
    n = 2 * (a.shape[axis] - 1) if n is None else n
    return np.fft.irfft(np.conjugate(a), n, axis, other_norm(norm), out=out)


def ihfft(a, n=None, axis=-1, norm=None, out=None):
    """np.fft.ihfft, as NumPy computes it."""
    found = np.conjugate(np.fft.rfft(a, n, axis, other_norm(norm)))
    return found if out is None else out.assign(found)


def shifted(sign: int):
    """np.fft.fftshift (1), or ifftshift (-1)."""

    def shift(x, axes=None):
        axes = tuple(range(x.ndim)) if axes is None else axes
        axes = (axes,) if np.ndim(axes) == 0 else tuple(axes)
        halves = [x.shape[a] // 2 if sign > 0 else -(x.shape[a] // 2) for a in axes]
        return np.roll(x, halves, axes)

    return shift


FOURIER = {
    np.fft.hfft: hfft,
    np.fft.ihfft: ihfft,
    np.fft.fftshift: shifted(1),
    np.fft.ifftshift: shifted(-1),
}
