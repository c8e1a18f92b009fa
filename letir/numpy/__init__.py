"""``letir.numpy``: NumPy's namespace, with what its protocols cannot hand to a trace.

Inside a trace the functions that make arrays return traced values, into which traced values can be
written; every other function that is recorded also takes lists that hold traced values. Outside a
trace, and for everything else, it is NumPy.

>>> import letir, numpy as np
>>> import letir.numpy as lnp
>>> def ramp(t):
...     buffer = lnp.zeros(3)
...     buffer[1:] = lnp.array([t, 2 * t])
...     return buffer
>>> letir.trace(ramp, 1.0)(5.0), ramp(5.0)
(array([ 0.,  5., 10.]), array([ 0.,  5., 10.]))
"""

import functools
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType

import numpy as np
from attrs import frozen

from letir.numpy.calling import frompyfunc as frompyfunc
from letir.numpy.calling import ndenumerate as ndenumerate
from letir.numpy.calling import vectorize as vectorize
from letir.numpy.joining import c_ as c_
from letir.numpy.joining import r_ as r_
from letir.numpy.making import arange as arange
from letir.numpy.making import array as array
from letir.numpy.making import asanyarray as asanyarray
from letir.numpy.making import asarray as asarray
from letir.numpy.making import asarray_chkfinite as asarray_chkfinite
from letir.numpy.making import ascontiguousarray as ascontiguousarray
from letir.numpy.making import asfortranarray as asfortranarray
from letir.numpy.making import empty as empty
from letir.numpy.making import empty_like as empty_like
from letir.numpy.making import eye as eye
from letir.numpy.making import fromiter as fromiter
from letir.numpy.making import full as full
from letir.numpy.making import full_like as full_like
from letir.numpy.making import identity as identity
from letir.numpy.making import made_constant
from letir.numpy.making import ones as ones
from letir.numpy.making import ones_like as ones_like
from letir.numpy.making import require as require
from letir.numpy.making import zeros as zeros
from letir.numpy.making import zeros_like as zeros_like
from letir.tracing.dispatch import call_function, recorder_of
from letir.tracing.lists import first_traced, gathered
from letir.tracing.plain import PLAIN

# These take lists of arrays, which may be lists themselves, and differ in shape.
OF_LISTS = frozenset(
    [
        *(np.concatenate, np.stack, np.block, np.hstack, np.vstack, np.dstack, np.column_stack),
        *(np.select, np.ravel_multi_index, np.lexsort),
    ]
)
MAKERS = frozenset([np.tri, np.linspace, np.logspace, np.geomspace, np.fromfunction])
FUNCTIONS = (np.ufunc, type(np.concatenate), FunctionType, BuiltinFunctionType)


@frozen(eq=False)
class Recorded:
    """A NumPy function that also takes lists of traced values where it takes arrays."""

    function: Callable

    def __call__(self, *args, **kwargs):
        traced = first_traced((*args, *kwargs.values()))
        if traced is None:
            found = self.function(*args, **kwargs)
            return made_constant(found) if self.function in MAKERS else found
        if isinstance(self.function, np.ufunc):
            return self.function(*map(gathered, args), **kwargs)
        known = recorder_of(self.function) is not None or self.function in PLAIN
        # only the first argument: lists in others are shapes, axes and sections
        if args and self.function not in OF_LISTS and (known or type(args[0]) is list):
            args = (gathered(args[0]), *args[1:])
        if known:
            return call_function(traced, self.function, args, kwargs)
        return self.function(*args, **kwargs)  # NumPy asks the traced value, which refuses

    def __eq__(self, other):  # tables of NumPy's functions are asked with this one, and the reverse
        return self.function is getattr(other, "function", other)

    def __hash__(self):
        return hash(self.function)

    def __getattr__(self, name):
        # copy and pickle ask before it is there: it would ask itself for ever
        if name == "function":
            raise AttributeError(name)
        return getattr(self.function, name)


_recorded = functools.cache(Recorded)  # one object a function: lnp.sin is lnp.sin


def __getattr__(name: str):
    if name.startswith("__"):  # doctest and copy ask modules for such names
        raise AttributeError(f"module 'letir.numpy' has no attribute {name!r}")
    try:
        found = getattr(np, name)
    except AttributeError:
        raise AttributeError(f"numpy has no {name!r}, and neither has letir.numpy") from None
    return _recorded(found) if isinstance(found, FUNCTIONS) else found


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(np)})
