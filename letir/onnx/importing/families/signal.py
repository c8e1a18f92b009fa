"""Fourier transforms, and the matrix of mel frequencies."""

from typing import Any

import numpy as np

from letir.onnx.importing.tensors import dtype_of
from letir.onnx.importing.values import axis_of, check_elements, known_array, known_int


def _complex_of(x: Any) -> Any:
    """Numbers from their parts along the last axis: complex for two parts, real for one."""
    return x[..., 0] if x.shape[-1] == 1 else x[..., 0] + x[..., 1] * np.complex64(1j)


def _parts_of(z: Any, dtype: np.dtype) -> Any:
    """Real and imaginary parts along a new last axis."""
    return np.stack([z.real, z.imag], axis=-1).astype(dtype)


def _dft(
    x: Any,
    length: Any = None,
    axis_input: Any = None,
    *,
    opset: int,
    axis: int | None = None,
    inverse: int = 0,
    onesided: int = 0,
) -> Any:
    """DFT: the discrete Fourier transform along an axis, an attribute before version 20."""
    if axis_input is not None:
        axis = known_int(axis_input, "DFT: the axis")
    elif axis is None:
        axis = 1 if opset < 20 else -2
    axis = axis_of(axis, x.ndim)
    n = None if length is None else known_int(length, "DFT: the length")
    if n is not None:
        check_elements([n], "DFT")
    z = _complex_of(x)
    if inverse and onesided:
        return np.fft.irfft(z, n, axis=axis)[..., None].astype(x.dtype)
    if inverse:
        return _parts_of(np.fft.ifft(z, n, axis=axis), x.dtype)
    if onesided and x.shape[-1] == 1:
        return _parts_of(np.fft.rfft(z, n, axis=axis), x.dtype)
    result = np.fft.fft(z, n, axis=axis)
    if onesided:
        result = result[(*[slice(None)] * axis, slice(0, result.shape[axis] // 2 + 1))]
    return _parts_of(result, x.dtype)


def _stft(
    x: Any, frame_step: Any, window: Any = None, frame_length: Any = None, onesided: int = 1
) -> Any:
    """STFT: Fourier transforms of frames, which may be multiplied by a window."""
    step = known_int(frame_step, "STFT: the step")
    if frame_length is not None:
        length = known_int(frame_length, "STFT: the length of a frame")
    else:
        length = x.shape[1] if window is None else window.shape[0]
    z = _complex_of(x)
    count = 1 + (z.shape[1] - length) // step
    check_elements([z.shape[0], count, length], "STFT")
    places = np.arange(count)[:, None] * step + np.arange(length)
    frames = z[:, places]
    frames = frames if window is None else frames * window
    is_real = x.shape[-1] == 1
    result = np.fft.rfft(frames) if onesided and is_real else np.fft.fft(frames)
    if onesided and not is_real:
        result = result[..., : length // 2 + 1]
    return _parts_of(result, x.dtype)


def _mel_weights(
    bins: Any, length: Any, rate: Any, low: Any, high: Any, output_datatype: int = 1
) -> Any:
    """MelWeightMatrix: triangles that sum the frequencies of a spectrum into mel bins."""
    count, n = known_int(bins, "the number of bins"), known_int(length, "the DFT's length")
    limits = [known_array(v, "MelWeightMatrix: a frequency").item() for v in (low, high, rate)]
    check_elements([n // 2 + 1, count], "MelWeightMatrix")
    first, last = [2595 * np.log10(1 + f / 700) for f in limits[:2]]
    mel = first + np.arange(count + 2) * (last - first) / (count + 2)
    hertz = 700 * (10 ** (mel / 2595) - 1)
    edges = np.floor((n + 1) * hertz / limits[2]).astype(np.int64)
    places = np.arange(n // 2 + 1)[:, None]
    left, center, right = edges[:-2], edges[1:-1], edges[2:]
    rise = (places - left) / np.where(center == left, 1, center - left)
    fall = (right - places) / np.where(right == center, 1, right - center)
    result = np.where((places >= left) & (places <= center), rise, 0.0)
    result = np.where((places == center) & (center == left), 1.0, result)
    result = np.where((places >= center) & (places < right) & (right > center), fall, result)
    return result.astype(dtype_of(output_datatype))


OPERATORS: dict[str, Any] = {"DFT": _dft, "STFT": _stft, "MelWeightMatrix": _mel_weights}
