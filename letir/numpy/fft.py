"""``letir.numpy.fft``: numpy.fft, whose functions also take lists that hold traced values.

>>> import letir, letir.numpy as lnp
>>> letir.trace(lambda t: lnp.fft.fft([t, 2 * t]), 1.0)(3.0)
array([ 9.+0.j, -3.+0.j])
"""

import operator

import numpy as np

from letir.numpy.recorded import recorded


def fftfreq(n, d=1.0, device=None):
    """numpy.fft.fftfreq of a traced spacing too; a traced number of points records a guard."""
    return np.fft.fftfreq(operator.index(n), d, device=device)


def rfftfreq(n, d=1.0, device=None):
    """numpy.fft.rfftfreq of a traced spacing too; a traced number of points records a guard."""
    return np.fft.rfftfreq(operator.index(n), d, device=device)


def __getattr__(name: str):
    if name.startswith("__"):  # doctest and copy ask modules for such names
        raise AttributeError(f"module 'letir.numpy.fft' has no attribute {name!r}")
    try:
        return recorded(getattr(np.fft, name))
    except AttributeError:
        raise AttributeError(
            f"numpy.fft has no {name!r}, and neither has letir.numpy.fft"
        ) from None


def __dir__() -> list[str]:
    return dir(np.fft)
