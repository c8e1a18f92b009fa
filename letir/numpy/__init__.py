"""``letir.numpy``: NumPy's namespace, for calls that NumPy's protocols do not pass to a trace.

Inside a trace, functions that make arrays return traced arrays, into which traced values can be
written, and other recorded functions also take lists that hold traced values. Outside a trace, and
for all other names, the namespace is NumPy's own.

>>> import letir, numpy as np
>>> import letir.numpy as lnp
>>> def ramp(t):
...     buffer = lnp.zeros(3)
...     buffer[1:] = lnp.array([t, 2 * t])
...     return buffer
>>> letir.trace(ramp, 1.0)(5.0), ramp(5.0)
(array([ 0.,  5., 10.]), array([ 0.,  5., 10.]))
"""

from typing import Any

import numpy as np

from letir.numpy import emath as emath
from letir.numpy import fft as fft
from letir.numpy import linalg as linalg
from letir.numpy.array_creation import arange as arange
from letir.numpy.array_creation import array as array
from letir.numpy.array_creation import as_traced_constant as as_traced_constant
from letir.numpy.array_creation import asanyarray as asanyarray
from letir.numpy.array_creation import asarray as asarray
from letir.numpy.array_creation import asarray_chkfinite as asarray_chkfinite
from letir.numpy.array_creation import ascontiguousarray as ascontiguousarray
from letir.numpy.array_creation import asfortranarray as asfortranarray
from letir.numpy.array_creation import empty as empty
from letir.numpy.array_creation import empty_like as empty_like
from letir.numpy.array_creation import eye as eye
from letir.numpy.array_creation import full as full
from letir.numpy.array_creation import full_like as full_like
from letir.numpy.array_creation import identity as identity
from letir.numpy.array_creation import ones as ones
from letir.numpy.array_creation import ones_like as ones_like
from letir.numpy.array_creation import require as require
from letir.numpy.array_creation import zeros as zeros
from letir.numpy.array_creation import zeros_like as zeros_like
from letir.numpy.array_iterators import broadcast as broadcast
from letir.numpy.array_iterators import fromiter as fromiter
from letir.numpy.array_iterators import nditer as nditer
from letir.numpy.index_tricks import c_ as c_
from letir.numpy.index_tricks import r_ as r_
from letir.numpy.vectorized_calls import call_vectorized as call_vectorized
from letir.numpy.vectorized_calls import ndenumerate as ndenumerate
from letir.numpy.vectorized_calls import vectorize as vectorize
from letir.numpy.wrapped_functions import wrap_function as wrap_function


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # doctest and copy ask modules for such names
        raise AttributeError(f"module 'letir.numpy' has no attribute {name!r}")
    try:
        result = getattr(np, name)
    except AttributeError:
        raise AttributeError(f"numpy has no {name!r}, and neither has letir.numpy") from None
    return wrap_function(result)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(np)})
