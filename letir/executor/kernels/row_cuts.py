"""``RowCut``: how a large kernel with reductions is cut into chunks, for several threads.

Rows do not depend on each other, so they may be cut anywhere. Totals over all rows, or within a
single row, are computed in blocks whose number depends on sizes alone, and the totals of blocks are
combined in a fixed order: the bits do not depend on the number of threads.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from attrs import evolve, frozen

from letir.ast.terms import Lambda
from letir.eval.float_warnings import run_raising
from letir.executor.kernels.threaded_calls import chunk_count, least_size, places_of, run_in_chunks
from letir.kernels.reduction_forms import REDUCTIONS
from letir.kernels.row_groups import MAX_SHORT_ROW
from letir.kernels.row_interface import RowKernel

_MAX_BLOCKS = 32
_BLOCK = 1 << 16  # the fewest elements of a block
_BLOCK_ROWS = 64  # the fewest rows of a block: the totals of its columns are one more row
_COMBINE = {  # by the instruction of the form of a reduction
    **{"max": np.maximum, "min": np.minimum, "mul": np.multiply},
    **{"or": np.logical_or, "and": np.logical_and},
}

_Arrays = tuple[tuple[tuple[int, ...], np.dtype], ...]  # shapes and dtypes


@frozen
class RowCut:
    """The ``axes`` along which operands and results are cut, of this ``length``, see
    ``run_in_chunks``.

    ``blocks``: the number of blocks, 0 if chunks may have any size. ``combines``: for each result
    the reduction that combines its blocks, or "". ``results`` and ``scratch``: the shapes and
    dtypes of the kernel's results and scratch arrays. ``max_threads``: None if any number pays.
    """

    axes: tuple[int | None, ...]
    length: int
    blocks: int
    combines: tuple[str, ...]
    results: _Arrays
    scratch: _Arrays
    max_threads: int | None = None

    @classmethod
    def from_kernel(cls, lowered: RowKernel, body: Lambda) -> "RowCut | None":
        """The cut of the kernel of ``body``; None if it is small, or cannot be cut.

        Blocks depend on sizes alone, not on how many operations the kernel has.
        """
        result = cls._from_sizes(lowered)
        is_small = math.prod(lowered.space.shape) < least_size(body)
        if result is None or not is_small:
            return result
        return evolve(result, max_threads=1) if result.blocks else None

    @classmethod
    def _from_sizes(cls, lowered: RowKernel) -> "RowCut | None":
        space, size = lowered.space, math.prod(lowered.space.shape)
        most = min(_MAX_BLOCKS, size // _BLOCK)
        if space.is_stacked:
            return cls._from_stack(lowered, min(most, space.stack // _BLOCK_ROWS))
        lengths = [*space.outer, 1 if any(lowered.combines) else space.rows]
        axis = max(range(len(lengths)), key=lengths.__getitem__)
        if lengths[axis] > 1:
            names = ("m" if axis == space.lead else "", axis - space.lead)
            return cls.cut_along(lowered, names, lengths[axis], 0, ("",) * len(lowered.results))
        if space.rows > 1:
            blocks = min(most, space.rows // _BLOCK_ROWS)
            result = cls.cut_along(lowered, ("m", 0), space.rows, blocks, lowered.combines)
        elif space.columns <= MAX_SHORT_ROW:  # the kernel's code fixes the number of columns
            return None
        elif lowered.row_combines and not any(lowered.combines) and not lowered.scratch:
            result = cls.cut_along(lowered, ("n", 0), space.columns, most, lowered.row_combines)
        else:
            return None
        return result if result.blocks > 1 else None

    @classmethod
    def _from_stack(cls, lowered: RowKernel, blocks: int) -> "RowCut | None":
        """The cut along the stack, or, if it has few matrices, along their rows."""
        space = lowered.space
        if blocks > 1:
            return cls.cut_along(lowered, ("l", 0), space.stack, blocks, lowered.combines)
        if space.rows == 1 or not {"column", "shared column"}.isdisjoint(lowered.results):
            return None
        return cls.cut_along(lowered, ("m", 0), space.rows, 0, ("",) * len(lowered.results))

    @classmethod
    def cut_along(
        cls,
        lowered: RowKernel,
        axis: tuple[str, int],
        length: int,
        blocks: int,
        combines: tuple[str, ...],
    ) -> "RowCut":
        """The cut along ``axis``: the name of an axis of the kernel's matrices, or the position of
        a lead axis, which is counted backwards from the matrices.
        """
        space = lowered.space
        dtypes = [array.dtype for array in lowered.kernel.arrays if array.is_written]
        shapes = [lowered.shape_of(kind) for kind in lowered.results]
        operands = [
            _axis_of(space.axes_of(kind), shape, axis) for _, kind, shape in lowered.operands
        ]
        results = [
            0 if name else _axis_of(space.axes_of(kind), shape, axis)
            for kind, shape, name in zip(lowered.results, shapes, combines, strict=True)
        ]
        return cls(
            (*operands, *results),
            length,
            blocks,
            combines,
            tuple(zip(shapes, dtypes, strict=True)),
            tuple([((space.columns,), dtype) for dtype in lowered.scratch]),
        )

    def run(
        self, ufunc: np.ufunc, operands: Sequence, threads: int, new_array: Callable = np.empty
    ) -> list[np.ndarray]:
        """The results of a kernel for these operands. Raises FloatingPointError.

        ``new_array(shape, dtype)`` makes the arrays of results.
        """
        elements = max(map(np.size, operands))
        places = places_of(self.length, self.blocks or chunk_count(self.length, elements, threads))
        results = [
            new_array((len(places), *shape) if name else shape, dtype)
            for (shape, dtype), name in zip(self.results, self.combines, strict=True)
        ]
        run_in_chunks(ufunc, operands, results, self.axes, places, threads, self.scratch)
        if not self.blocks:
            return results
        return run_raising(self._combine, results, places)

    def _combine(self, results: Sequence[np.ndarray], places: Sequence[slice]) -> list[np.ndarray]:
        """The results of the kernel, from the results of its blocks."""
        return [
            _combine_blocks(name, y, places) if name else y
            for name, y in zip(self.combines, results, strict=True)
        ]


def _axis_of(core: str, shape: tuple[int, ...], axis: tuple[str, int]) -> int | None:
    """The position of ``axis`` in an array, from its end; None if it is missing or broadcast.

    ``core``: the names of the array's last axes.
    """
    name, before = axis
    if name:
        return core.index(name) - len(core) if name in core else None
    place = before - len(core)
    return place if shape[place] > 1 else None


def _combine_blocks(reduction: str, parts: np.ndarray, places: Sequence[slice]) -> np.ndarray:
    """The results of all blocks combined pairwise, in a fixed order."""
    form = REDUCTIONS[reduction]
    if form.combine != "add":
        return _COMBINE[form.combine].reduce(parts, axis=0)
    dtype = parts.dtype
    partial = parts.astype("f8") if dtype.kind == "f" else parts
    lengths = np.array([place.stop - place.start for place in places], "f8")
    if form.is_divided:
        partial = partial * lengths.reshape(-1, *[1] * (partial.ndim - 1))
    while len(partial) > 1:
        even = len(partial) // 2 * 2
        partial = np.concatenate([partial[0:even:2] + partial[1:even:2], partial[even:]])
    total = partial[0] / lengths.sum() if form.is_divided else partial[0]
    return total.astype(dtype)
