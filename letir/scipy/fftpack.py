"""``scipy.fftpack``, the older interface of ``scipy.fft``, for traced values."""

from typing import Any

from letir.scipy import fft as new
from letir.scipy.linear_maps import linear_map
from letir.scipy.namespace import drop_in, fallback_getattr

_PART = "fftpack"
__getattr__ = fallback_getattr(_PART)


def _one_axis_transform(name: str) -> Any:
    """The transform along one axis with this name."""

    def transform(x: Any, n: Any = None, axis: int = -1, overwrite_x: bool = False) -> Any:
        return getattr(new, name)(x, n, axis)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"``letir.scipy.fft.{name}``."
    return drop_in(_PART)(transform)


def _several_axes_transform(name: str, default: tuple[int, ...] | None) -> Any:
    """The transform along several axes with this name."""

    def transform(x: Any, shape: Any = None, axes: Any = default, overwrite_x: bool = False) -> Any:
        return getattr(new, name)(x, shape, axes)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"``letir.scipy.fft.{name}``."
    return drop_in(_PART)(transform)


fft, ifft = _one_axis_transform("fft"), _one_axis_transform("ifft")
fft2, ifft2 = _several_axes_transform("fft2", (-2, -1)), _several_axes_transform("ifft2", (-2, -1))
fftn, ifftn = _several_axes_transform("fftn", None), _several_axes_transform("ifftn", None)
rfft, irfft = linear_map(_PART, "rfft"), linear_map(_PART, "irfft")  # of real numbers alone
dct, idct = linear_map(_PART, "dct"), linear_map(_PART, "idct")
dst, idst = linear_map(_PART, "dst"), linear_map(_PART, "idst")
