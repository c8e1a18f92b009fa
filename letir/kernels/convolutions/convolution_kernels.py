"""Kernels of convolutions, whose inputs are planes (``window_layout``).

A block of results is computed in registers: some channels, and vectors of neighbouring columns. For
each element of a window, the vectors of the input are loaded once for all channels of the block, as
BLAS does in matrix products (Goto and van de Geijn, Anatomy of high-performance matrix
multiplication, 2008), without the copies of windows that such a product needs.
"""

import numpy as np
from attrs import frozen

from letir.eval.float_warnings import KERNEL
from letir.kernels.convolutions.window_layout import Convolution
from letir.kernels.flat_arrays.matrix_products import groups_of_rows
from letir.kernels.llvm.interleaving import Vectors
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel, Operand, Scalar

_INDEX = np.dtype("int64")
_MAX_CHANNELS = 8  # of the result, in a block
_MIN_CHANNELS_OF_WEIGHTS = 3  # of the result, for which weights of a whole window share a loop
_MAX_CHANNELS_OF_WEIGHTS = 8  # of the result, whose weights share a loop
_FREE_REGISTERS = 4  # for vectors of the input and of cotangents
_ROWS = {16: 2, 32: 4}  # rows of a block, by the number of registers


@frozen
class Block:
    """A block of results: for some ``channels``, ``rows`` of vectors with ``lanes`` elements."""

    channels: int
    rows: int
    lanes: int


def choose_block(vectors: Vectors, dtype: np.dtype, channels: int, rows: int) -> Block:
    """The block that fits into the registers, for results with these channels and rows."""
    max_rows = _ROWS[vectors.registers]
    dividing_rows = [n for n in range(max_rows, 1, -1) if rows % n == 0]
    block_rows = min(rows, dividing_rows[0] if dividing_rows else max_rows)
    # registers also hold a vector of each row, and a weight
    most = min(_MAX_CHANNELS, (vectors.registers - 1) // block_rows - 1, channels)
    dividing = [n for n in range(most, most // 2, -1) if channels % n == 0]
    return Block(dividing[0] if dividing else most, block_rows, vectors.lanes_of(dtype))


def convolution_kernel(convolution: Convolution, vectors: Vectors) -> Kernel:
    """The kernel (planes, weights) -> result for one group; its outer loop is over examples.

    The arrays are flat. Their elements are those of planes of the shape (in_channels,
    channel_size), weights (out_channels, in_channels, *window) and results (out_channels,
    *output_sizes).
    """
    layout, in_channels = convolution.layout, convolution.in_channels
    out_channels = convolution.out_channels
    block = choose_block(vectors, convolution.dtype, out_channels, layout.output_sizes[0])
    n_weights = out_channels * in_channels * layout.window_size
    n_results = out_channels * convolution.output_size
    arrays = _arrays(convolution.dtype, in_channels * layout.channel_size, n_weights, n_results)
    writer = _ResultWriter(convolution, block.lanes, Builder(), *arrays)
    b = writer.b
    examples = b.extent("n")
    with b.loop(examples, is_parallel=False) as example:
        axes = [(out_channels, block.channels), (layout.output_sizes[0], block.rows)]
        # each turn of the outer loop reads the whole input, or all weights: the smaller of them
        is_by_row = out_channels * layout.window_size < layout.channel_size
        for outer in groups_of_rows(*axes[is_by_row]):
            with b.loop(b.number(outer[1], _INDEX), is_parallel=False) as i:
                for inner in groups_of_rows(*axes[not is_by_row]):
                    with b.loop(b.number(inner[1], _INDEX), is_parallel=False) as j:
                        ranges = [_range_of(b, i, outer), _range_of(b, j, inner)]
                        writer.write(example, *(ranges[::-1] if is_by_row else ranges))
    rows, columns = layout.window
    return _kernel(f"{KERNEL} of a convolution by {rows} x {columns}", b, examples, arrays)


def weight_kernel(convolution: Convolution, parts: int, vectors: Vectors) -> Kernel:
    """The kernel (planes, cotangents of results) -> cotangents of the weights, for one group.

    Its outer loop is over ``parts`` of the input's channels. The arrays are flat. Their elements
    are those of planes of the shape (in_channels / parts, examples, channel_size), cotangents
    (examples, out_channels, *output_sizes) and weights (in_channels / parts, out_channels,
    *window).
    """
    layout, out_channels = convolution.layout, convolution.out_channels
    in_channels = convolution.in_channels // parts
    max_totals = vectors.registers - _FREE_REGISTERS
    window_size, columns = layout.window_size, layout.window[1]
    is_whole = window_size * _MIN_CHANNELS_OF_WEIGHTS <= max_totals
    together = window_size if is_whole else columns  # the elements of a window that share a loop
    most = max(1, min(max_totals // together, out_channels, _MAX_CHANNELS_OF_WEIGHTS))
    n_inputs = in_channels * convolution.examples * layout.channel_size
    n_results = convolution.examples * out_channels * convolution.output_size
    n_weights = in_channels * out_channels * window_size
    arrays = _arrays(convolution.dtype, n_inputs, n_results, n_weights)
    writer = _WeightWriter(convolution, vectors.lanes_of(convolution.dtype), Builder(), *arrays)
    b, steps = writer.b, writer.b.extent("n")
    with b.loop(steps, is_parallel=False) as part:
        # the cotangents of a group of channels stay in the cache for all channels of the input
        for group in groups_of_rows(out_channels, most):
            with b.loop(b.number(group[1], _INDEX), is_parallel=False) as i:
                channels = _range_of(b, i, group)
                with b.loop(b.number(in_channels, _INDEX), is_parallel=False) as in_channel:
                    for start in range(0, window_size, together):
                        elements = range(start, start + together)
                        writer.write(part, in_channel, channels, elements)
    rows, columns = layout.window
    return _kernel(f"{KERNEL} of the weights of {rows} x {columns}", b, steps, arrays)


def _arrays(dtype: np.dtype, *sizes: int) -> tuple[Array, Array, Array]:
    """Two operands and a result; ``sizes``: their elements for each step of the outer loop."""
    a, b, c = [
        Array(name, dtype, ("n", str(size)), is_written=name == "y")
        for name, size in zip("xwy", sizes, strict=True)
    ]
    return a, b, c


def _kernel(name: str, b: Builder, steps: Scalar, arrays: tuple[Array, ...]) -> Kernel:
    return Kernel(name, arrays, (steps,), b.statements(), takes_contiguous=True, is_flat=True)


def signature(kernel: Kernel) -> str:
    """The signature of the kernel's generalized ufunc."""
    x, w, y = [array.extents[1] for array in kernel.arrays]
    return f"({x}),({w})->({y})"


def _range_of(b: Builder, number: Operand, group: tuple[int, int, int]) -> tuple[Operand, int]:
    """(first index, length) of the range with this number in a group, see ``groups_of_rows``."""
    first, _, length = group
    return _plus(b, _times(b, number, length), first), length


def _times(b: Builder, x: Operand, n: int) -> Operand:
    return b.let("mul", x, b.number(n, _INDEX))


def _plus(b: Builder, x: Operand, n: int) -> Operand:
    return b.add(x, b.number(n, _INDEX)) if n else x


@frozen(eq=False)
class _ResultWriter:
    """Writes blocks of results, which are sums over channels and over elements of windows."""

    convolution: Convolution
    lanes: int
    b: Builder
    x: Array
    w: Array
    y: Array

    def write(
        self, example: Operand, channels: tuple[Operand, int], rows: tuple[Operand, int]
    ) -> None:
        """Compute and store all columns of some rows, for some channels of the result.

        ``channels`` and ``rows``: the first one, and their number.
        """
        b, layout = self.b, self.convolution.layout
        columns, output_size = layout.output_sizes[1], self.convolution.output_size
        with b.loop(b.number(columns, _INDEX), lanes=self.lanes) as column:
            totals = self.sum_channels(example, channels, rows, column)
            start = b.add(_times(b, rows[0], columns), column)
            start = b.add(_times(b, channels[0], output_size), start)
            for k, total in enumerate(totals):
                channel, row = divmod(k, rows[1])
                place = _plus(b, start, channel * output_size + row * columns)
                b.store(self.y, (example, place), total)

    def sum_channels(
        self,
        example: Operand,
        channels: tuple[Operand, int],
        rows: tuple[Operand, int],
        column: Operand,
    ) -> tuple[Operand, ...]:
        """The results for each of these channels and rows, at one column."""
        b, layout, in_channels = self.b, self.convolution.layout, self.convolution.in_channels
        n_weights, width = in_channels * layout.window_size, layout.plane_sizes[1]
        first = b.add(_times(b, rows[0], width), column)
        weights = _times(b, channels[0], n_weights)
        zeros = [b.number(0, self.x.dtype)] * (channels[1] * rows[1])
        with b.loop(b.number(in_channels, _INDEX), *zeros, is_parallel=False) as loop:
            x_start = b.add(_times(b, loop.index, layout.channel_size), first)
            w_start = b.add(weights, _times(b, loop.index, layout.window_size))
            totals: list[Operand] = list(loop.carried)
            for n, offset in enumerate(layout.offsets):
                values = [
                    b.load(self.x, (example, _plus(b, x_start, offset + row * width)))
                    for row in range(rows[1])
                ]
                for channel in range(channels[1]):
                    weight = b.load(self.w, (example, _plus(b, w_start, channel * n_weights + n)))
                    for row, value in enumerate(values):
                        k = channel * rows[1] + row
                        totals[k] = b.fma(value, weight, totals[k])
            loop.next(*totals)
        return loop.results


@frozen(eq=False)
class _WeightWriter:
    """Writes cotangents of weights, which are sums of products over examples and results."""

    convolution: Convolution
    lanes: int
    b: Builder
    x: Array
    ct: Array
    y: Array

    def write(
        self, part: Operand, in_channel: Operand, channels: tuple[Operand, int], elements: range
    ) -> None:
        """Compute and store the cotangents of some weights.

        ``channels``: of the result, the first one and their number. ``elements``: of the window.
        """
        b, layout = self.b, self.convolution.layout
        zeros = [b.number(0, self.x.dtype)] * (channels[1] * len(elements))
        columns = b.number(layout.output_sizes[1], _INDEX)
        with b.loop(columns, *zeros, lanes=self.lanes) as loop:
            offsets = [layout.offsets[n] for n in elements]
            totals = self.sum_rows((part, in_channel, loop.index), channels, offsets)
            pairs = zip(loop.carried, totals, strict=True)
            loop.next(*[b.let("add", x, y, reassociates=True) for x, y in pairs])
        first = b.add(_times(b, in_channel, self.convolution.out_channels), channels[0])
        start = _times(b, first, layout.window_size)
        for k, total in enumerate(loop.results):
            channel, n = divmod(k, len(elements))
            place = _plus(b, start, channel * layout.window_size + elements[n])
            b.store(self.y, (part, place), total)

    def sum_rows(
        self,
        position: tuple[Operand, Operand, Operand],
        channels: tuple[Operand, int],
        offsets: list[int],
    ) -> tuple[Operand, ...]:
        """The sums over examples and rows, for each of these channels and offsets.

        ``position``: the part, the channel of the input, and the column.
        """
        b, layout, n_examples = self.b, self.convolution.layout, self.convolution.examples
        (part, in_channel, column), (first, count) = position, channels
        rows, columns = layout.output_sizes
        zeros = [b.number(0, self.x.dtype)] * (count * len(offsets))
        with b.loop(b.number(n_examples, _INDEX), *zeros, is_parallel=False) as examples:
            plane = b.add(_times(b, in_channel, n_examples), examples.index)
            x_start = b.add(_times(b, plane, layout.channel_size), column)
            channel = b.add(_times(b, examples.index, self.convolution.out_channels), first)
            ct_start = b.add(_times(b, channel, rows * columns), column)
            with b.loop(b.number(rows, _INDEX), *examples.carried, is_parallel=False) as loop:
                x_row = b.add(x_start, _times(b, loop.index, layout.plane_sizes[1]))
                ct_row = b.add(ct_start, _times(b, loop.index, columns))
                ct_places = [_plus(b, ct_row, n * rows * columns) for n in range(count)]
                cts = [b.load(self.ct, (part, place)) for place in ct_places]
                totals: list[Operand] = list(loop.carried)
                for n, offset in enumerate(offsets):
                    value = b.load(self.x, (part, _plus(b, x_row, offset)))
                    for number, ct in enumerate(cts):
                        k = number * len(offsets) + n
                        totals[k] = b.fma(ct, value, totals[k])
                loop.next(*totals)
            examples.next(*loop.results)
        return examples.results
