"""Results that are ordinary arrays in one memory: ``return table, table[1:]``.

A program has its own copy of an array from outside. If several results share memory, a caller who
writes into one of them sees the change in the others; so the program makes one array and returns
views of it.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from letir.ast import LATE_BOUND
from letir.ast.primitive import PRIMITIVES
from letir.eval.memory_checks import memory_owner
from letir.tracing.mutation.buffers import Buffer

if TYPE_CHECKING:
    from letir.tracing.trace_state import Trace

_SMALL = 1 << 16  # bytes of an array that is copied whole
_RATIO = 4  # a larger one may have this many times the bytes of the results


def with_returned_views(trace: "Trace", leaves: list) -> list:
    """The results ``leaves``; arrays that overlap, or whose steps a copy would not keep, are
    replaced by traced views of one array.
    """
    groups: dict[int, dict[int, np.ndarray]] = {}
    for leaf in leaves:
        array = leaf.held_value if type(leaf) is Buffer else leaf
        is_array = type(array) is np.ndarray and array.dtype.kind in "biufc"
        if is_array and array.size and array.flags.writeable:
            groups.setdefault(id(memory_owner(array)), {})[id(leaf)] = array
    views: dict[int, Any] = {}
    for group in groups.values():
        arrays = list(group.values())
        if _overlap(arrays) or (len(arrays) == 1 and not _is_kept_by_a_copy(arrays[0])):
            views.update(zip(group, _views_of_one_array(trace, arrays), strict=False))
    return [views.get(id(leaf), leaf) for leaf in leaves] if views else leaves


def _is_kept_by_a_copy(array: np.ndarray) -> bool:
    """Whether a copy has the steps of ``array``."""
    return array.flags.forc or np.empty_like(array).strides == array.strides


def _overlap(arrays: Iterable[np.ndarray]) -> bool:
    """Whether two of the arrays may share memory."""
    end = 0
    for first, last in sorted(map(byte_bounds, arrays)):
        if first < end:
            return True
        end = last
    return False


def _views_of_one_array(trace: "Trace", arrays: Sequence[np.ndarray]) -> Iterable:
    """A traced view for each of the arrays; none if one array would be too large, or if they are
    not made of the same elements.
    """
    bounds = [byte_bounds(array) for array in arrays]
    low, high = min(b[0] for b in bounds), max(b[1] for b in bounds)
    dtype, size = arrays[0].dtype, arrays[0].dtype.itemsize
    steps = [step for array in arrays for step in array.strides]
    starts = [array.__array_interface__["data"][0] - low for array in arrays]
    is_whole = all(n % size == 0 for n in (*steps, *starts, high - low))
    has_one_dtype = all(array.dtype == dtype for array in arrays)
    limit = max(_SMALL, _RATIO * sum(array.nbytes for array in arrays))
    if not (is_whole and has_one_dtype and high - low <= limit):
        return
    row = np.zeros((high - low) // size, dtype)
    for array, start in zip(arrays, starts, strict=True):
        np.ndarray(array.shape, dtype, row, start, array.strides)[...] = array
    own = PRIMITIVES["copy"](trace.make_tracer(trace, trace.constant(row), row))
    for array, start in zip(arrays, starts, strict=True):
        units = tuple(step // size for step in array.strides)
        yield PRIMITIVES["as_strided"](own, array.shape, units, start // size)


LATE_BOUND.update(with_returned_views=with_returned_views)
