"""``letir.numpy.r_`` and ``c_``, which also join traced values."""

from typing import Any

import numpy as np
from attrs import frozen

from letir.ast.builder import Value
from letir.errors import TraceError
from letir.numpy.array_creation import arange, as_traced_constant
from letir.tracing.mutation.buffers import unwrap_buffers
from letir.tracing.operands import first_traced, traced_or_array
from letir.tracing.source_locations import at_user

NUMBERS = (bool, int, float, complex)


@frozen
class Joining:
    """``joining[a, b, 1:3]`` concatenates along ``axis``, after adding axes up to ``ndmin``.

    ``place``: the position among ``ndmin`` axes at which the axes of a smaller array start; -1: at
    the end. ``numpy_one``: NumPy's object, used if nothing is traced.
    """

    numpy_one: Any
    axis: int = 0
    ndmin: int = 1
    place: int = -1

    def __getitem__(self, key: Any) -> Any:
        parts = key if type(key) is tuple else (key,)
        ends = [(p.start, p.stop, p.step) if type(p) is slice else p for p in parts]
        if first_traced(ends) is None:
            return as_traced_constant(self.numpy_one[unwrap_buffers(key)])
        if type(parts[0]) is str:
            return self.directed(parts[0])[parts[1:]]
        items = [_slice_to_range(p) if type(p) is slice else p for p in parts]
        kinds = [
            p if type(p) in NUMBERS or isinstance(p, Value) else traced_or_array(p) for p in items
        ]
        dtype = np.result_type(*kinds)
        return np.concatenate([self.raised(traced_or_array(p), dtype) for p in items], self.axis)

    def directed(self, directive: str) -> "Joining":
        """The object for a directive such as ``r_['axis,ndmin,place', ...]``."""
        try:
            return Joining(self.numpy_one, *[int(word) for word in directive.split(",")])
        except (ValueError, TypeError):
            raise TraceError(
                f"the directive {directive!r} of traced values is not recorded{at_user()}\n"
                "  write 'axis,ndmin,place' with numbers, or join with letir.numpy.concatenate"
            ) from None

    def raised(self, x: Any, dtype: Any) -> Any:
        """``x`` in ``dtype``, with axes added up to ``ndmin``."""
        more = max(self.ndmin - x.ndim, 0)
        x = x.astype(dtype)
        before = more if self.place < 0 else min(self.place, more)
        if self.place < -1:
            before = self.place + more + 1
        shape = (1,) * before + x.shape + (1,) * (more - before)
        return x.reshape(shape) if shape != x.shape else x

    def __len__(self) -> int:
        return 0


def _slice_to_range(part: slice):
    """A slice as an array: a range, or for an imaginary step ``nj``, n evenly spaced numbers."""
    start, step = part.start or 0, 1 if part.step is None else part.step
    if isinstance(step, complex):
        return np.linspace(start, part.stop, int(abs(step)))
    return arange(start, part.stop, step)


r_ = Joining(np.r_)
c_ = Joining(np.c_, axis=-1, ndmin=2, place=0)
