"""The memory layout of the input of a convolution over two axes.

The input is padded, and its rows and columns are grouped by their remainder by the stride: one
*plane* for each pair of remainders. Then each element of the window lies at a fixed distance from
the position of the result, and neighbouring results of a row read neighbouring elements.
"""

import math
from itertools import product

import numpy as np
from attrs import frozen

_Pair = tuple[int, int]


@frozen
class WindowLayout:
    """The planes of the input of a convolution; each field has a number for rows and for columns.

    ``padding``: the zeros before the input; negative if its first rows or columns are not read.
    ``stride`` and ``dilation``: the distances between windows, and between elements of a window.
    """

    input_sizes: _Pair
    window: _Pair
    output_sizes: _Pair
    padding: _Pair
    stride: _Pair = (1, 1)
    dilation: _Pair = (1, 1)

    @property
    def padded_sizes(self) -> _Pair:
        """The rows and columns that windows read, zeros included."""
        rows, columns = [
            (n - 1) * s + (k - 1) * d + 1
            for n, s, k, d in zip(
                self.output_sizes, self.stride, self.window, self.dilation, strict=True
            )
        ]
        return rows, columns

    @property
    def is_plain(self) -> bool:
        """Whether the input itself is the only plane."""
        return (
            self.stride == (1, 1)
            and self.padding == (0, 0)
            and (self.padded_sizes == self.input_sizes)
        )

    @property
    def plane_sizes(self) -> _Pair:
        """The rows and columns of each plane."""
        rows, columns = [-(-n // s) for n, s in zip(self.padded_sizes, self.stride, strict=True)]
        return rows, columns

    @property
    def channel_size(self) -> int:
        """The number of elements in all planes of one channel."""
        return math.prod(self.plane_sizes) * math.prod(self.stride)

    @property
    def offsets(self) -> list[int]:
        """For each element of a window, its distance from the position of the result in a plane."""
        rows, columns = self.plane_sizes
        result = []
        for i, j in product(*map(range, self.window)):
            (row, a), (column, b) = [
                divmod(n * d, s) for n, d, s in zip((i, j), self.dilation, self.stride, strict=True)
            ]
            result.append(((a * self.stride[1] + b) * rows + row) * columns + column)
        return result

    @property
    def window_size(self) -> int:
        """The number of elements in a window."""
        return math.prod(self.window)

    def copy_planes(self, x: np.ndarray, out: np.ndarray) -> None:
        """Write the planes of ``x`` into ``out``.

        Shapes: (..., *input_sizes) and (..., channel_size).
        """
        planes = out.reshape(*x.shape[:-2], *self.stride, *self.plane_sizes)
        if not self.is_plain:
            planes[...] = 0
        for a, b in product(*map(range, self.stride)):
            pairs = [self._slices(axis, remainder) for axis, remainder in enumerate((a, b))]
            (read_rows, rows), (read_columns, columns) = pairs
            planes[..., a, b, rows, columns] = x[..., read_rows, read_columns]

    def _slices(self, axis: int, remainder: int) -> tuple[slice, slice]:
        """(slice of the input, slice of the planes) along an axis, for a remainder."""
        step, padding, size = self.stride[axis], self.padding[axis], self.input_sizes[axis]
        first = max(0, -(-(padding - remainder) // step))  # in the plane, after the padding
        start = first * step + remainder - padding
        count = min(self.plane_sizes[axis] - first, max(0, -(-(size - start) // step)))
        stop = start + max(0, count - 1) * step + min(1, count)
        return slice(start, stop, step), slice(first, first + count)


@frozen
class Convolution:
    """A convolution; ``in_channels`` and ``out_channels``: the channels of one group."""

    layout: WindowLayout
    dtype: np.dtype
    examples: int
    groups: int
    in_channels: int
    out_channels: int

    @property
    def output_size(self) -> int:
        """The number of elements in a channel of the result."""
        return math.prod(self.layout.output_sizes)

    @property
    def multiplications(self) -> int:
        """The number of multiplications."""
        of_group = self.in_channels * self.out_channels * self.layout.window_size * self.output_size
        return self.examples * self.groups * of_group
