"""Kernels that convolve planes of examples, see ``window_layout``.

A block of results is computed in registers: some channels, and vectors of neighbouring places. For
each element of a window, the vectors of the input are loaded once for all channels of the block, as
in products of matrices by BLAS (Goto and van de Geijn, Anatomy of high-performance matrix
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
_MAX_CHANNELS = 8  # of a block
_MIN_OUTPUTS, _MAX_OUTPUTS = 3, 8  # for which the weights of a whole window are computed together
_FREE_REGISTERS = 4  # for vectors of the input and of cotangents
_ROWS = {16: 2, 32: 4}  # rows of a block, by the number of registers


@frozen
class Block:
    """A block of results: ``rows`` of vectors of ``lanes`` elements, for some ``channels``."""

    channels: int
    rows: int
    lanes: int


def choose_block(vectors: Vectors, dtype: np.dtype, channels: int, rows: int) -> Block:
    """The block that fits into the registers, for results of so many channels and rows."""
    most_rows = _ROWS[vectors.registers]
    fitting = [n for n in range(most_rows, 1, -1) if rows % n == 0]
    own = min(rows, fitting[0] if fitting else most_rows)
    # registers also hold a vector of each row, and a weight
    most = min(_MAX_CHANNELS, (vectors.registers - 1) // own - 1, channels)
    dividing = [n for n in range(most, most // 2, -1) if channels % n == 0]
    return Block(dividing[0] if dividing else most, own, vectors.lanes_of(dtype))


def convolution_kernel(convolution: Convolution, vectors: Vectors) -> Kernel:
    """The kernel (planes, weights) -> result for one group; its outer loop is over examples.

    Planes have the shape (channels, size), weights (outputs, channels, *window) and results
    (outputs, *places); each array is flat.
    """
    layout, channels, outputs = convolution.layout, convolution.channels, convolution.outputs
    block = choose_block(vectors, convolution.dtype, outputs, layout.places[0])
    n_weights = outputs * channels * layout.elements
    sizes = channels * layout.size, n_weights, outputs * convolution.places
    arrays = _arrays(convolution.dtype, *sizes)
    writer = _Results(convolution, block.lanes, Builder(), *arrays)
    b = writer.b
    examples = b.extent("n")
    with b.loop(examples, is_parallel=False) as example:
        axes = [(outputs, block.channels), (layout.places[0], block.rows)]
        # the inner loop reads all weights, or all of the input, again and again
        is_by_row = outputs * layout.elements < layout.size
        for outer in groups_of_rows(*axes[is_by_row]):
            with b.loop(b.number(outer[1], _INDEX), is_parallel=False) as i:
                for inner in groups_of_rows(*axes[not is_by_row]):
                    with b.loop(b.number(inner[1], _INDEX), is_parallel=False) as j:
                        places = [_part(b, i, outer), _part(b, j, inner)]
                        writer.write(example, *(places[::-1] if is_by_row else places))
    rows, columns = layout.window
    return _kernel(f"{KERNEL} of a convolution by {rows} x {columns}", b, examples, arrays)


def weight_kernel(convolution: Convolution, parts: int, vectors: Vectors) -> Kernel:
    """The kernel (planes, cotangents) -> weights for one group: the cotangents of the weights.

    Its outer loop is over so many ``parts`` of the channels. Planes have the shape (channels,
    examples, size), cotangents of results (examples, outputs, *places) and weights (channels,
    outputs, *window); each array is flat.
    """
    layout, outputs = convolution.layout, convolution.outputs
    channels = convolution.channels // parts
    most = vectors.registers - _FREE_REGISTERS
    elements, columns = layout.elements, layout.window[1]
    together = elements if elements * _MIN_OUTPUTS <= most else columns
    most_outputs = max(1, min(most // together, outputs, _MAX_OUTPUTS))
    n_inputs = channels * convolution.examples * layout.size
    n_results = convolution.examples * outputs * convolution.places
    arrays = _arrays(convolution.dtype, n_inputs, n_results, channels * outputs * elements)
    writer = _Weights(convolution, vectors.lanes_of(convolution.dtype), Builder(), *arrays)
    b, steps = writer.b, writer.b.extent("n")
    with b.loop(steps, is_parallel=False) as part:
        # the cotangents of a group of outputs stay in the cache for all channels
        for group in groups_of_rows(outputs, most_outputs):
            with b.loop(b.number(group[1], _INDEX), is_parallel=False) as i:
                own = _part(b, i, group)
                with b.loop(b.number(channels, _INDEX), is_parallel=False) as channel:
                    for start in range(0, elements, together):
                        writer.write(part, channel, own, range(start, start + together))
    rows, columns = layout.window
    return _kernel(f"{KERNEL} of the weights of {rows} x {columns}", b, steps, arrays)


def _arrays(dtype: np.dtype, *sizes: int) -> tuple[Array, Array, Array]:
    """Two operands and a result, which have so many elements for each step of the outer loop."""
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


def _part(b: Builder, place: Operand, group: tuple[int, int, int]) -> tuple[Operand, int]:
    """The first position of the group's block number ``place``, and the block's size."""
    first, _, size = group
    return _sum(b, _times(b, place, size), first), size


def _times(b: Builder, x: Operand, n: int) -> Operand:
    return b.let("mul", x, b.number(n, _INDEX))


def _sum(b: Builder, x: Operand, n: int) -> Operand:
    return b.add(x, b.number(n, _INDEX)) if n else x


@frozen(eq=False)
class _Results:
    """Writes results as sums over channels and elements of windows."""

    convolution: Convolution
    lanes: int
    b: Builder
    x: Array
    w: Array
    y: Array

    def write(
        self, example: Operand, outputs: tuple[Operand, int], rows: tuple[Operand, int]
    ) -> None:
        """Compute and store blocks from one side of the result to the other.

        ``outputs`` and ``rows``: the first one of the blocks, and their number.
        """
        b, layout = self.b, self.convolution.layout
        columns = layout.places[1]
        with b.loop(b.number(columns, _INDEX), lanes=self.lanes) as column:
            totals = self.sum_channels(example, outputs, rows, column)
            start = b.add(_times(b, rows[0], columns), column)
            start = b.add(_times(b, outputs[0], self.convolution.places), start)
            for k, total in enumerate(totals):
                output, row = divmod(k, rows[1])
                place = _sum(b, start, output * self.convolution.places + row * columns)
                b.store(self.y, (example, place), total)

    def sum_channels(
        self,
        example: Operand,
        outputs: tuple[Operand, int],
        rows: tuple[Operand, int],
        column: Operand,
    ) -> tuple[Operand, ...]:
        """The results for each output and row, at this column."""
        b, layout, channels = self.b, self.convolution.layout, self.convolution.channels
        n_weights, width = channels * layout.elements, layout.plane[1]
        first = b.add(_times(b, rows[0], width), column)
        weights = _times(b, outputs[0], n_weights)
        zeros = [b.number(0, self.x.dtype)] * (outputs[1] * rows[1])
        with b.loop(b.number(channels, _INDEX), *zeros, is_parallel=False) as loop:
            x_start = b.add(_times(b, loop.index, layout.size), first)
            w_start = b.add(weights, _times(b, loop.index, layout.elements))
            totals: list[Operand] = list(loop.carried)
            for n, offset in enumerate(layout.offsets):
                values = [
                    b.load(self.x, (example, _sum(b, x_start, offset + row * width)))
                    for row in range(rows[1])
                ]
                for output in range(outputs[1]):
                    weight = b.load(self.w, (example, _sum(b, w_start, output * n_weights + n)))
                    for row, value in enumerate(values):
                        k = output * rows[1] + row
                        totals[k] = b.fma(value, weight, totals[k])
            loop.next(*totals)
        return loop.results


@frozen(eq=False)
class _Weights:
    """Writes weights of some outputs: sums of products over examples and places."""

    convolution: Convolution
    lanes: int
    b: Builder
    x: Array
    ct: Array
    y: Array

    def write(
        self, part: Operand, channel: Operand, outputs: tuple[Operand, int], elements: range
    ) -> None:
        """``outputs``: the first output, and their number; ``elements``: those of a window."""
        b, layout = self.b, self.convolution.layout
        zeros = [b.number(0, self.x.dtype)] * (outputs[1] * len(elements))
        columns = b.number(layout.places[1], _INDEX)
        with b.loop(columns, *zeros, lanes=self.lanes) as loop:
            offsets = [layout.offsets[n] for n in elements]
            totals = self.sum_rows((part, channel, loop.index), outputs, offsets)
            pairs = zip(loop.carried, totals, strict=True)
            loop.next(*[b.let("add", x, y, reassociates=True) for x, y in pairs])
        first = b.add(_times(b, channel, self.convolution.outputs), outputs[0])
        start = _times(b, first, layout.elements)
        for k, total in enumerate(loop.results):
            output, n = divmod(k, len(elements))
            place = _sum(b, start, output * layout.elements + elements[n])
            b.store(self.y, (part, place), total)

    def sum_rows(
        self,
        position: tuple[Operand, Operand, Operand],
        outputs: tuple[Operand, int],
        offsets: list[int],
    ) -> tuple[Operand, ...]:
        """The sums over examples and rows, for each output and offset.

        ``position``: the part, the channel and the column.
        """
        b, layout, (rows, columns) = self.b, self.convolution.layout, self.convolution.layout.places
        (part, channel, column), (first, count) = position, outputs
        n_examples = self.convolution.examples
        zeros = [b.number(0, self.x.dtype)] * (count * len(offsets))
        with b.loop(b.number(n_examples, _INDEX), *zeros, is_parallel=False) as examples:
            own = b.add(_times(b, channel, n_examples), examples.index)
            x_start = b.add(_times(b, own, layout.size), column)
            own = b.add(_times(b, examples.index, self.convolution.outputs), first)
            ct_start = b.add(_times(b, own, rows * columns), column)
            with b.loop(b.number(rows, _INDEX), *examples.carried, is_parallel=False) as loop:
                x_row = b.add(x_start, _times(b, loop.index, layout.plane[1]))
                ct_row = b.add(ct_start, _times(b, loop.index, columns))
                ct_places = [_sum(b, ct_row, n * rows * columns) for n in range(count)]
                cts = [b.load(self.ct, (part, place)) for place in ct_places]
                totals: list[Operand] = list(loop.carried)
                for n, offset in enumerate(offsets):
                    value = b.load(self.x, (part, _sum(b, x_row, offset)))
                    for output, ct in enumerate(cts):
                        k = output * len(offsets) + n
                        totals[k] = b.fma(ct, value, totals[k])
                loop.next(*totals)
            examples.next(*loop.results)
        return examples.results
