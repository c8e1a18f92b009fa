"""``letir.numpy.vectorize`` and ``ndenumerate``: a function of the user's on each element of traced
arrays.

The function is called for each element with a traced number, as NumPy calls it with an ordinary
one: what it decides is guarded, and the program has its operations once for each element. A
function without decisions is better mapped by ``letir.vmap``, which records it once.
"""

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
        # NumPy's hook for a call, of which it knows the function and what is excluded
        if first_traced((*args, *kwargs.values())) is None:
            return super()._call_as_normal(*args, **kwargs)
        if self.signature is not None:
            raise TraceError(
                f"vectorize of traced values with a signature is not recorded{at_user()}\n"
                "  map it with letir.vmap, or loop over the rows"
            )
        return self.on_elements(args, kwargs)

    def on_elements(self, args: tuple, kwargs: dict) -> Any:
        """The function called for each element, and the results in arrays."""
        given = {**dict(enumerate(args)), **kwargs}
        names = [name for name in given if name not in self.excluded]
        arrays = np.broadcast_arrays(*[traced_or_array(given[name]) for name in names])
        shape = arrays[0].shape
        if 0 in shape:
            raise ValueError("cannot call `vectorize` of traced values on size 0 inputs")
        results = []
        for place in np.ndindex(*shape):
            given.update(zip(names, [x[place] for x in arrays], strict=True))
            found = self.pyfunc(
                *[given[i] for i in range(len(args))], **{name: given[name] for name in kwargs}
            )
            results.append(found if isinstance(found, tuple) else (found,))
        columns = zip(*results, strict=True)
        out = tuple([self.column(list(c), i).reshape(shape) for i, c in enumerate(columns)])
        return out if len(out) > 1 else out[0]

    def column(self, values: list, place: int) -> Any:
        """One result for all elements, in the dtype that is asked for, or that of the first."""
        made = array(values)
        if self.otypes is not None:
            return made.astype(self.otypes[place])
        return made.astype(array(values[0]).dtype, copy=False)


def ndenumerate(arr: Any) -> Any:
    """numpy.ndenumerate: pairs of place and element, of a traced array too."""
    arr = traced_or_array(arr)
    if not isinstance(arr, Value):
        return np.ndenumerate(arr)
    return ((place, arr[place]) for place in np.ndindex(*arr.shape))
