"""``letir.numpy.fft``: numpy.fft, whose functions also take lists that hold traced values.

>>> import letir, letir.numpy as lnp
>>> letir.trace(lambda t: lnp.fft.fft([t, 2 * t]), 1.0)(3.0)
array([ 9.+0.j, -3.+0.j])
"""

import operator
from typing import Any

import numpy as np

from letir.numpy.wrapped_functions import forward_names


def fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """numpy.fft.fftfreq of a traced spacing too; a traced number of points records a guard."""
    return np.fft.fftfreq(operator.index(n), d, device=device)


def rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """numpy.fft.rfftfreq of a traced spacing too; a traced number of points records a guard."""
    return np.fft.rfftfreq(operator.index(n), d, device=device)


__getattr__, __dir__ = forward_names(np.fft)
