"""``letir.scipy``: versions of SciPy's functions that also take traced values.

The ufuncs of ``scipy.special`` take traced values already. The functions here
(``special.logsumexp``, ``stats.norm.logpdf``, ``linalg.expm``, ``signal.convolve``,
``integrate.odeint`` ...) call SciPy's if no argument is traced. Any other name in these namespaces
is SciPy's. Needs the extra ``scipy``.

>>> import letir, numpy as np
>>> from letir.scipy import stats
>>> f = letir.trace(lambda x, s: stats.norm.logpdf(x, scale=s).sum(), np.zeros(2), 1.0)
>>> print(f.listing(), end="")
%2 = norm_logpdf %0, 0.0, %1
%3 = sum %2, None, None, False, None
return %3
"""

from typing import Any

from letir.ast import LATE_BOUND
from letir.scipy import (
    distance,
    fft,
    fftpack,
    integrate,
    interpolate,
    linalg,
    ndimage,
    optimize,
    signal,
    special,
    stats,
)

__all__ = ["distance", "fft", "fftpack", "integrate", "interpolate", "linalg", "ndimage"]
__all__ += ["optimize", "signal", "special", "stats"]


def _recorded_version(part: str, name: str) -> Any:
    """The object ``letir.scipy.part.name``."""
    return getattr(globals()[part.rpartition(".")[2]], name)


LATE_BOUND["scipy_recorded"] = _recorded_version
