"""``letir.scipy``: SciPy's functions that do not hand over traced values by themselves.

The ufuncs of ``scipy.special`` record as they are. The functions here (``special.logsumexp``,
``stats.norm.logpdf``, ``linalg.expm``, ``signal.convolve``, ``integrate.odeint`` ...) are SciPy's
own where nothing is traced; any other name in these namespaces is SciPy's too. Needs the extra
``scipy``.

>>> import letir, numpy as np
>>> from letir.scipy import stats
>>> f = letir.trace(lambda x, s: stats.norm.logpdf(x, scale=s).sum(), np.zeros(2), 1.0)
>>> print(f.listing(), end="")
%2 = norm_logpdf %0, 0.0, %1
%3 = sum %2, None, None, False, None
return %3
"""

from letir.scipy import integrate, linalg, signal, special, stats

__all__ = ["integrate", "linalg", "signal", "special", "stats"]
