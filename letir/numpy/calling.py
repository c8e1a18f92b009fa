"""``letir.numpy.vectorize`` and ``ndenumerate``, for traced arrays.

``vectorize`` calls the user's function with each element, a traced number: branches of the function
are guarded, and its operations are recorded once for each element. A function without branches is
better mapped by ``letir.vmap``, which records it once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.errors import TraceError
from letir.numpy.making import array
from letir.tracing.operands import first_traced, traced_or_array
from letir.tracing.source_locations import at_user


class vectorize(np.vectorize):
    """numpy.vectorize, which also takes traced arrays, and lists of traced values."""

    def _call_as_normal(self, *args, **kwargs):
        # the method that np.vectorize.__call__ calls
        return call_vectorized(self, np.vectorize._call_as_normal, args, kwargs)


def call_vectorized(called: np.vectorize, plain: Callable, args: tuple, kwargs: dict) -> Any:
    """The results of a vectorized function; ``plain`` is NumPy's way to call it."""
    if first_traced((*args, *kwargs.values())) is None:
        return plain(called, *args, **kwargs)
    if called.signature is not None:
        raise TraceError(
            f"vectorize of traced values with a signature is not recorded{at_user()}\n"
            "  map it with letir.vmap, or loop over the rows"
        )
    given = {**dict(enumerate(args)), **kwargs}
    names = [name for name in given if name not in called.excluded]
    arrays = np.broadcast_arrays(*[traced_or_array(given[name]) for name in names])
    shape = arrays[0].shape
    if 0 in shape:
        raise ValueError("cannot call `vectorize` of traced values on size 0 inputs")
    results = []
    for place in np.ndindex(*shape):
        given.update(zip(names, [x[place] for x in arrays], strict=True))
        found = called.pyfunc(
            *[given[i] for i in range(len(args))], **{name: given[name] for name in kwargs}
        )
        results.append(found if isinstance(found, tuple) else (found,))
    columns = zip(*results, strict=True)
    out = tuple([_column(called, list(c), i).reshape(shape) for i, c in enumerate(columns)])
    return out if len(out) > 1 else out[0]


def _column(called: np.vectorize, values: list, place: int) -> Any:
    """One result of all calls as an array, in the dtype from otypes, or that of the first."""
    made = array(values)
    if called.otypes is not None:
        return made.astype(called.otypes[place])
    return made.astype(array(values[0]).dtype, copy=False)


def ndenumerate(arr: Any) -> Any:
    """numpy.ndenumerate, of a traced array too: pairs (index, element)."""
    arr = traced_or_array(arr)
    if not isinstance(arr, Value):
        return np.ndenumerate(arr)
    return ((place, arr[place]) for place in np.ndindex(*arr.shape))
