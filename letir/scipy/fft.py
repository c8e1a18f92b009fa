"""``scipy.fft`` for traced values: NumPy's transforms, and cosine and sine transforms."""

from typing import Any

import numpy as np

from letir.ops.shape.transpose import normalize_axes
from letir.scipy.linear_maps import linear_map
from letir.scipy.namespace import drop_in, fallback_getattr
from letir.tracing.operands import traced_or_array

__getattr__ = fallback_getattr("fft")


def _numpy_transform(name: str) -> Any:
    """The transform with this name, computed by NumPy's; SciPy's options for speed are ignored."""
    last = "axis" if name.endswith("fft") else "axes"

    def transform(x: Any, s: Any = None, axes: Any = None, norm: Any = None, **kwargs: Any) -> Any:
        size, place = ("n", "axis") if last == "axis" else ("s", "axes")
        options = {size: kwargs.get(size, s), place: kwargs.get(place, axes), "norm": norm}
        options = {key: value for key, value in options.items() if value is not None}
        x = traced_or_array(x)
        if "axes" in options:  # one axis or several, each of them once
            given = options["axes"]
            options["axes"] = normalize_axes(given if np.ndim(given) == 0 else tuple(given), x.ndim)
        return getattr(np.fft, name)(x, **options)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"``numpy.fft.{name}``."
    return drop_in("fft")(transform)


fft, ifft, rfft, irfft = [_numpy_transform(name) for name in ("fft", "ifft", "rfft", "irfft")]
fft2, ifft2, rfft2, irfft2 = [
    _numpy_transform(name) for name in ("fft2", "ifft2", "rfft2", "irfft2")
]
fftn, ifftn, rfftn, irfftn = [
    _numpy_transform(name) for name in ("fftn", "ifftn", "rfftn", "irfftn")
]
dct, idct = linear_map("fft", "dct"), linear_map("fft", "idct")
dst, idst = linear_map("fft", "dst"), linear_map("fft", "idst")


@drop_in("fft")
def fftshift(x: Any, axes: Any = None) -> Any:
    """The spectrum with frequency 0 in the middle."""
    return np.fft.fftshift(traced_or_array(x), axes)


@drop_in("fft")
def ifftshift(x: Any, axes: Any = None) -> Any:
    """The spectrum with frequency 0 in front."""
    return np.fft.ifftshift(traced_or_array(x), axes)
