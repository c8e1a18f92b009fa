"""``letir.numpy.vectorize`` and ``ndenumerate``, for traced arrays.

``vectorize`` calls the user's function with each element, a traced number: branches of the function
are guarded, and its operations are recorded once for each element. A function without branches is
better mapped by ``letir.vmap``, which records it once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.numpy.array_creation import array
from letir.tracing.operands import first_traced, traced_or_array
from letir.tracing.stand_ins import stand_in_of


class vectorize(np.vectorize):
    """numpy.vectorize, which also takes traced arrays and lists of traced values."""

    def _call_as_normal(self, *args, **kwargs):
        # the method that np.vectorize.__call__ calls
        return call_vectorized(self, np.vectorize._call_as_normal, args, kwargs)


def call_vectorized(called: np.vectorize, plain: Callable, args: tuple, kwargs: dict) -> Any:
    """The results of a vectorized function; ``plain``: NumPy's method, if nothing is traced."""
    if first_traced((*args, *kwargs.values())) is None:
        return plain(called, *args, **kwargs)
    arguments = {**dict(enumerate(args)), **kwargs}
    names = [name for name in arguments if name not in called.excluded]
    operands = [traced_or_array(arguments[name]) for name in names]
    if called.signature is not None:
        arrays, shape = _with_core_axes(called, operands)
    else:
        arrays = list(np.broadcast_arrays(*operands))
        shape = arrays[0].shape
    if 0 in shape:
        raise ValueError("cannot call `vectorize` of traced values on size 0 inputs")
    results = []
    function = stand_in_of(called.pyfunc) or called.pyfunc
    for place in np.ndindex(*shape):
        arguments.update(zip(names, [x[place] for x in arrays], strict=True))
        result = function(
            *[arguments[i] for i in range(len(args))], **{name: arguments[name] for name in kwargs}
        )
        results.append(result if isinstance(result, tuple) else (result,))
    columns = [_result_column(called, list(c), i) for i, c in enumerate(zip(*results, strict=True))]
    out = tuple([column.reshape(*shape, *column.shape[1:]) for column in columns])
    return out if len(out) > 1 else out[0]


def _with_core_axes(called: Any, operands: list) -> tuple[list, tuple]:
    """(operands broadcast along the axes of the loop, shape of the loop), for a signature."""
    inputs, _ = called._in_and_out_core_dims
    if len(inputs) != len(operands):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(inputs)}, got {len(operands)}"
        )
    sizes: dict[str, int] = {}
    for x, names in zip(operands, inputs, strict=True):
        if x.ndim < len(names):
            raise ValueError(f"{x.ndim}-dimensional argument does not have enough dimensions")
        for name, n in zip(names, x.shape[x.ndim - len(names) :], strict=True):
            if sizes.setdefault(name, n) != n:
                raise ValueError(
                    f"inconsistent size for core dimension {name!r}: {n} vs {sizes[name]}"
                )
    cores = [x.shape[x.ndim - len(names) :] for x, names in zip(operands, inputs, strict=True)]
    shape = np.broadcast_shapes(
        *[x.shape[: x.ndim - len(core)] for x, core in zip(operands, cores, strict=True)]
    )
    broadcast_operands = [
        np.broadcast_to(x, (*shape, *core)) for x, core in zip(operands, cores, strict=True)
    ]
    return broadcast_operands, shape


def _result_column(called: np.vectorize, values: list, place: int) -> Any:
    """Result number ``place`` of all calls, as an array with the dtype of otypes or of call 0."""
    result = array(values)
    if called.otypes is not None:
        return result.astype(called.otypes[place])
    return result.astype(array(values[0]).dtype, copy=False)


def ndenumerate(arr: Any) -> Any:
    """numpy.ndenumerate, of a traced array too: pairs (index, element)."""
    arr = traced_or_array(arr)
    if not isinstance(arr, Value):
        return np.ndenumerate(arr)
    return ((place, arr[place]) for place in np.ndindex(*arr.shape))
