"""``scipy.signal`` for traced values: convolution and correlation."""

from typing import Any

import numpy as np

from letir.ops.shape.transpose import normalize_axes
from letir.scipy.linear_maps import linear_map
from letir.scipy.namespace import drop_in, fallback_getattr, refusal_error
from letir.tracing.operands import strong_element, traced_or_array

__getattr__ = fallback_getattr("signal")

lfilter, filtfilt = linear_map("signal", "lfilter"), linear_map("signal", "filtfilt")
sosfilt, sosfiltfilt = linear_map("signal", "sosfilt"), linear_map("signal", "sosfiltfilt")
savgol_filter, detrend = (
    linear_map("signal", "savgol_filter"),
    linear_map("signal", "detrend", "data"),
)
hilbert, resample = linear_map("signal", "hilbert"), linear_map("signal", "resample")


@drop_in("signal")
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The convolution of arrays of any rank.

    Arrays with more than one axis are convolved by the Fourier transform, whatever ``method`` is,
    and with its rounding errors.
    """
    first, second = traced_or_array(in1), traced_or_array(in2)
    if first.ndim != second.ndim:
        raise ValueError("volume and kernel should have the same dimensionality")
    if first.ndim == 0:  # numbers become NumPy's
        return strong_element(first) * strong_element(second)
    if method not in ("auto", "direct", "fft"):
        raise ValueError("Acceptable method flags are 'auto', 'direct', or 'fft'.")
    if first.ndim == 1 and method != "fft":
        return _crop_to_mode(np.convolve(first, second), first.shape, second.shape, mode, (0,))
    result = fftconvolve(first, second, mode)
    aval = np.result_type(first.dtype, second.dtype)
    return np.rint(result).astype(aval) if aval.kind in "iu" else result


@drop_in("signal")
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution by the Fourier transform along ``axes``, by default all."""
    first, second = traced_or_array(in1), traced_or_array(in2)
    axes = tuple(range(first.ndim)) if axes is None else _positive_axes(axes, first.ndim)
    if any(0 in x.shape for x in (first, second)):
        return np.array([])
    sizes = tuple([first.shape[a] + second.shape[a] - 1 for a in axes])
    if any(x.dtype.kind == "c" for x in (first, second)):
        spectrum = np.fft.fftn(first, sizes, axes=axes) * np.fft.fftn(second, sizes, axes=axes)
        full: Any = np.fft.ifftn(spectrum, sizes, axes=axes)
    else:
        spectrum = np.fft.rfftn(first, sizes, axes=axes) * np.fft.rfftn(second, sizes, axes=axes)
        full = np.fft.irfftn(spectrum, sizes, axes=axes)
    return _crop_to_mode(full, first.shape, second.shape, mode, axes)


def _positive_axes(axes, ndim: int) -> tuple:
    """``axes``, counted from the front."""
    return normalize_axes(axes if np.ndim(axes) == 0 else tuple(axes), ndim)


def _crop_to_mode(full, first: tuple, second: tuple, mode: str, axes: tuple):
    """The slice of a full convolution that is the result of ``mode``."""
    if mode == "full":
        return full
    if mode not in ("same", "valid"):
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    if mode == "same":
        sizes = {a: first[a] for a in axes}
    else:
        if not (
            all(first[a] >= second[a] for a in axes) or all(second[a] >= first[a] for a in axes)
        ):
            raise ValueError(
                "For 'valid' mode, one must be at least as large as the other in every dimension"
            )
        sizes = {a: abs(first[a] - second[a]) + 1 for a in axes}
    starts = {a: (full.shape[a] - n) // 2 for a, n in sizes.items()}
    item = [
        slice(starts[a], starts[a] + sizes[a]) if a in sizes else slice(None)
        for a in range(full.ndim)
    ]
    return full[tuple(item)]


@drop_in("signal")
def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """As ``fftconvolve``: overlap-add is another algorithm for the same result."""
    return fftconvolve(in1, in2, mode, axes)


@drop_in("signal")
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The correlation: the convolution with the second array reversed and conjugated."""
    second = traced_or_array(in2)
    if mode == "valid" and any(
        n < m for n, m in zip(traced_or_array(in1).shape, second.shape, strict=True)
    ):
        raise refusal_error("correlate", "in mode 'valid', the first array must be the larger one")
    turned = second[(slice(None, None, -1),) * second.ndim].conjugate()
    return convolve(in1, turned, mode, method)
