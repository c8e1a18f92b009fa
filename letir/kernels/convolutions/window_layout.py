"""Where the windows of a convolution over two axes lie in memory.

A convolution reads its input at the places of the windows, moved by a distance that depends on the
element of the window only, if the input is padded, and if rows and columns that are read with the
same remainder by the stride lie together, as planes. Then neighbouring results along a row read
neighbouring elements for each element of the window.
"""

import math
from itertools import product

import numpy as np
from attrs import frozen

_Pair = tuple[int, int]


@frozen
class WindowLayout:
    """The planes of an input whose rows and columns have these ``sizes``.

    ``window``: the rows and columns of a window. ``places``: the rows and columns of the result.
    ``low``: the rows and columns of zeros before the input; negative where the first ones are not
    read. ``stride`` and ``dilation``: the distances between windows, and between elements of one.
    """

    sizes: _Pair
    window: _Pair
    places: _Pair
    low: _Pair
    stride: _Pair = (1, 1)
    dilation: _Pair = (1, 1)

    @property
    def read(self) -> _Pair:
        """The rows and columns that windows reach, of zeros and of the input."""
        rows, columns = [
            (n - 1) * s + (k - 1) * d + 1
            for n, s, k, d in zip(self.places, self.stride, self.window, self.dilation, strict=True)
        ]
        return rows, columns

    @property
    def is_plain(self) -> bool:
        """Whether the input itself is the only plane."""
        return self.stride == (1, 1) and self.low == (0, 0) and self.read == self.sizes

    @property
    def plane(self) -> _Pair:
        """The rows and columns of each plane."""
        rows, columns = [-(-n // s) for n, s in zip(self.read, self.stride, strict=True)]
        return rows, columns

    @property
    def size(self) -> int:
        """The elements of all planes of one channel."""
        return math.prod(self.plane) * math.prod(self.stride)

    @property
    def offsets(self) -> list[int]:
        """For each element of a window, the distance from the place of its result in a plane."""
        rows, columns = self.plane
        result = []
        for i, j in product(*map(range, self.window)):
            (row, a), (column, b) = [
                divmod(n * d, s) for n, d, s in zip((i, j), self.dilation, self.stride, strict=True)
            ]
            result.append(((a * self.stride[1] + b) * rows + row) * columns + column)
        return result

    @property
    def elements(self) -> int:
        """The elements of a window."""
        return math.prod(self.window)

    def copy_planes(self, x: np.ndarray, out: np.ndarray) -> None:
        """Write the planes of ``x``, of shape (..., *sizes), into ``out``, of shape (..., size)."""
        planes = out.reshape(*x.shape[:-2], *self.stride, *self.plane)
        if not self.is_plain:
            planes[...] = 0
        for a, b in product(*map(range, self.stride)):
            pairs = [self._part(axis, first) for axis, first in enumerate((a, b))]
            (read_rows, rows), (read_columns, columns) = pairs
            planes[..., a, b, rows, columns] = x[..., read_rows, read_columns]

    def _part(self, axis: int, first: int) -> tuple[slice, slice]:
        """(the elements of the input along an axis, their places in the planes at ``first``)."""
        step, low, size = self.stride[axis], self.low[axis], self.sizes[axis]
        place = max(0, -(-(low - first) // step))  # the first one that is not padding
        start = place * step + first - low
        count = min(self.plane[axis] - place, max(0, -(-(size - start) // step)))
        stop = start + max(0, count - 1) * step + min(1, count)
        return slice(start, stop, step), slice(place, place + count)


@frozen
class Convolution:
    """A convolution with windows of this ``layout``, of arrays of this dtype.

    ``channels`` and ``outputs``: the channels of the input, and of the result, in each group.
    """

    layout: WindowLayout
    dtype: np.dtype
    examples: int
    groups: int
    channels: int
    outputs: int

    @property
    def places(self) -> int:
        """The elements of a channel of the result."""
        return math.prod(self.layout.places)

    @property
    def products(self) -> int:
        """The number of multiplications."""
        each = self.channels * self.outputs * self.layout.elements * self.places
        return self.examples * self.groups * each
