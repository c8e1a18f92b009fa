"""``scipy.fftpack``, the older interface of ``scipy.fft``, for traced values."""

from typing import Any

from letir.scipy import fft as new
from letir.scipy.linear_maps import linear_map
from letir.scipy.namespace import drop_in, fallback_getattr

_PART = "fftpack"
__getattr__ = fallback_getattr(_PART)


def _of_one_axis(name: str) -> Any:
    """The transform along one axis with this name."""

    def transform(x: Any, n: Any = None, axis: int = -1, overwrite_x: bool = False) -> Any:
        return getattr(new, name)(x, n, axis)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"``letir.scipy.fft.{name}``."
    return drop_in(_PART)(transform)


def _of_several_axes(name: str, default: tuple[int, ...] | None) -> Any:
    """The transform along several axes with this name."""

    def transform(x: Any, shape: Any = None, axes: Any = default, overwrite_x: bool = False) -> Any:
        return getattr(new, name)(x, shape, axes)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"``letir.scipy.fft.{name}``."
    return drop_in(_PART)(transform)


fft, ifft = _of_one_axis("fft"), _of_one_axis("ifft")
fft2, ifft2 = _of_several_axes("fft2", (-2, -1)), _of_several_axes("ifft2", (-2, -1))
fftn, ifftn = _of_several_axes("fftn", None), _of_several_axes("ifftn", None)
rfft, irfft = linear_map(_PART, "rfft"), linear_map(_PART, "irfft")  # of real numbers alone
dct, idct = linear_map(_PART, "dct"), linear_map(_PART, "idct")
dst, idst = linear_map(_PART, "dst"), linear_map(_PART, "idst")
