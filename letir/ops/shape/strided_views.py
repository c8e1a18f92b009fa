"""as_strided: a view of an array that steps through its elements in any way; they may repeat."""

import math

import numpy as np

from letir.ast.primitive import Primitive
from letir.ast.symbolic_sizes import is_static_shape
from letir.errors import BoundsError
from letir.ops.define.records import composite
from letir.ops.shape.repeat_and_diagonal import one_or_more
from letir.ops.shape.reshape_and_ravel import reshape


def _view_places(shape: tuple, steps: tuple, start: int) -> np.ndarray:
    """The flat index of each element of the view."""
    result = np.full((1,) * len(shape), start)
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        result = result + (np.arange(n) * step).reshape(-1, *(1,) * (len(shape) - axis - 1))
    return result


def _ends_of(shape: tuple, steps: tuple, start: int) -> tuple[int, int]:
    """The lowest and the highest flat index of the view."""
    moves = [(n - 1) * step for n, step in zip(shape, steps, strict=True)]
    return start + sum(min(m, 0) for m in moves), start + sum(max(m, 0) for m in moves)


def _strided_decompose(x, *, shape, steps, start=0):
    """``x`` flattened, and indexed by the places of the view's elements."""
    if x.type is not None and is_static_shape(x.shape):
        lowest, highest = _ends_of(shape, steps, start)
        if math.prod(shape) and (lowest < 0 or highest >= math.prod(x.shape)):
            raise BoundsError(
                f"as_strided: a view of shape {shape} by steps {steps} from element {start} "
                f"reads outside of an array with {math.prod(x.shape)} elements\n"
                "  shorten the shape or the steps"
            )
    return reshape(x, -1)[_view_places(shape, steps, start)]


def _strided_impl(xp, x, *, shape, steps, start=0):
    """A view of ``x`` if its elements are contiguous, else of a copy."""
    row = xp.ravel(xp.asarray(x))  # contiguous, as reshape(-1) of a reversed array is not
    if not math.prod(shape):
        return xp.empty(shape, row.dtype)
    strides = [row.itemsize * step for step in steps]
    return xp.lib.stride_tricks.as_strided(row[start:], shape, strides)


def _strided_source(write, x, *, shape, steps, start):
    """A call of NumPy's as_strided on the flattened array."""
    row, size = f"np.ravel({x})", f"{x}.itemsize"
    strides = ", ".join(f"{size} * {step}" for step in steps)
    return f"np.lib.stride_tricks.as_strided({row}[{start}:], {shape!r}, [{strides}])"


as_strided: Primitive = composite(
    "as_strided",
    _strided_decompose,
    impl=_strided_impl,
    prepare=lambda x, shape, steps, start=0: (
        (x,),
        {"shape": one_or_more(shape), "steps": one_or_more(steps), "start": start},
    ),
    source=_strided_source,
    memory="may_alias",
    view_needs="contiguous",
    write_through="by_place",
)
