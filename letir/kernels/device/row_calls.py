"""Calls of kernels with reductions with CuPy's arrays: rows, or parts of these, for warps."""

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from attrs import define, field, frozen

from letir.ast.bounded_cache import BoundedCache
from letir.eval.float_warnings import KernelError
from letir.kernels.device.lanes import has_enough_steps
from letir.kernels.device.launches import (
    Argument,
    Launcher,
    PreparedLaunch,
    device_values,
    in_shape,
    layout_of,
    strides_in_order,
)
from letir.kernels.row_interface import RowKernel
from letir.kernels.scalar_lowering import has_c_order

_MOST_ROWS = 64  # the most rows of one part of an array whose columns are reduced
_ENOUGH_PARTS = 1024  # the number of parts that keep a device busy
_FEW_PARTS = 64  # a number of parts that does not keep it busy
_LONG = 1 << 13  # the most columns that one warp computes
_PART = 1 << 10  # the fewest columns of one part of a row


@define(eq=False)
class RowsCall:
    """Calls a kernel with reductions: a warp takes one row, or a part of several.

    If its loops are short, a thread takes it alone. Reductions over all rows are computed for each
    part, and CuPy reduces their results again. ``shapes``: the shapes of the results.
    """

    lowered: RowKernel
    shapes: list[tuple[int, ...]]
    prepared: BoundedCache = field(factory=lambda: BoundedCache(1 << 8))  # by layout

    @cached_property
    def launcher(self) -> Launcher:
        kernel, columns = self.lowered.kernel, self.lowered.space.columns
        return Launcher(kernel, has_enough_steps(kernel, {"m": self.part, "n": columns}))

    @cached_property
    def lead(self) -> tuple[int, ...]:
        """The lengths of the axes along which there is one matrix for each index."""
        return self.lowered.space.shape[: self.lowered.space.lead]

    @cached_property
    def rows(self) -> int:
        """The number of rows of a matrix."""
        return self.lowered.space.rows

    @cached_property
    def part(self) -> int:
        """The number of rows of one part, a divisor of the number of all rows."""
        if "column" not in self.lowered.results:
            return 1
        most = max(1, min(_MOST_ROWS, self.rows * math.prod(self.lead) // _ENOUGH_PARTS))
        return max([n for n in range(1, most + 1) if self.rows % n == 0], default=1)

    @cached_property
    def only_row(self) -> "OnlyRow | None":
        """How the only row is cut into parts."""
        result = self.lowered
        cut = result.row_combines and not any(result.combines) and not result.scratch
        warps = math.prod(self.lead) * self.rows
        return OnlyRow(result, self.launcher) if cut and warps == 1 else None

    def __call__(self, xp: Any, *operands: Any) -> Any:
        values = device_values(
            xp, [operands[n] for n, _, _ in self.lowered.operands], self.lowered.kernel.arrays
        )
        layout = layout_of(values)
        prepared = self.prepared.get(layout)
        if prepared is None:
            prepared = self.prepared[layout] = self.prepare(values)
        if prepared.launch is None:
            return self.results_of_only_row(xp, values)
        values = [
            x if shape is None else x.reshape(shape)
            for x, shape in zip(values, prepared.copied, strict=True)
        ]
        values += [xp.empty(size, dtype) for size, dtype in prepared.scratch]
        outputs = [xp.empty(shape, dtype) for shape, dtype in prepared.outputs]
        prepared.launch(xp, (*values, *outputs))
        result = [
            self.combine_parts(xp, x, name).reshape(shape) if name else x
            for x, name, shape in zip(outputs, self.lowered.combines, self.shapes, strict=True)
        ]
        return result[0] if len(result) == 1 else tuple(result)

    def prepare(self, values: list) -> "PreparedRows":
        """The launch for operands with these layouts. Raises KernelError."""
        if any(len(shape) > 1 for shape in self.shapes) and not all(map(has_c_order, values)):
            raise KernelError("results in another memory order")
        kernel, columns = self.lowered.kernel, self.lowered.space.columns
        axes = (*self.lead, self.rows // self.part)
        if not math.prod(axes) * columns:
            raise KernelError("an empty reduction")
        if columns > _LONG and math.prod(axes) < _FEW_PARTS:
            if self.only_row is None:
                raise KernelError("too few rows")
            return PreparedRows()
        arguments, copied = [], []
        for x, (_, kind, shape) in zip(values, self.lowered.operands, strict=True):
            in_place = isinstance(x, np.generic) or x.shape == shape or x.flags.c_contiguous
            copied.append(None if in_place else shape)
            arguments.append(self.argument(in_shape(x, shape), kind))
        scratch: list[tuple[tuple[int, ...], np.dtype]] = [
            ((*axes, columns), dtype) for dtype in self.lowered.scratch
        ]
        arguments += [self.new_argument(shape, dtype, "part column") for shape, dtype in scratch]
        outputs = []
        for array, kind, shape, name in zip(
            *(kernel.arrays[len(arguments) :], self.lowered.results),
            *(self.shapes, self.lowered.combines),
            strict=True,
        ):
            is_part = kind in ("column", "single")
            rows = axes if is_part else (*self.lead, self.rows)
            whole = (*rows, columns) if kind in ("full", "column") else rows
            arguments.append(
                self.new_argument(whole, array.dtype, f"part {kind}" if is_part else kind)
            )
            outputs.append((whole if name else shape, array.dtype))
        launch = self.launcher.prepare(axes, arguments, {"m": self.part, "n": columns})
        return PreparedRows(launch, copied, scratch, outputs)

    def results_of_only_row(self, xp: Any, values: list) -> Any:
        """The results for a single, long row."""
        pairs = zip(values, self.lowered.operands, strict=True)
        shaped = [in_shape(x, shape) for x, (_, _, shape) in pairs]
        assert self.only_row is not None, "the layout was prepared for it"
        results = self.only_row.results(xp, shaped)
        result = [x.reshape(shape) for x, shape in zip(results, self.shapes, strict=True)]
        return result[0] if len(result) == 1 else tuple(result)

    def new_argument(self, shape: tuple[int, ...], dtype: np.dtype, kind: str) -> Argument:
        """The argument for a new array in C order, see ``argument``."""
        return self.argument(Strides(shape, strides_in_order(shape, dtype.itemsize)), kind)

    def argument(self, x: Any, kind: str) -> Argument:
        """The argument for an array; of kind "part" it has one element or row for each part."""
        if isinstance(x, np.generic):
            return Argument(x)
        n_lead = len(self.lead)
        lead = [0 if n == 1 else s for n, s in zip(x.shape[:n_lead], x.strides, strict=False)]
        own = list(x.strides[n_lead:])
        of_column = (own.pop(),) if kind.endswith(("full", "column")) else ()
        if kind.startswith("part"):
            return Argument(x, (*lead, own[0]), of_column)
        row = own[0] if own else 0
        return Argument(x, (*lead, row * self.part), (*own, *of_column))

    def combine_parts(self, xp: Any, x: Any, name: str) -> Any:
        """The reduction ``name`` of the parts of a result."""
        return getattr(xp, name)(x, axis=len(self.lead)).astype(x.dtype, copy=False)


@frozen(eq=False)
class PreparedRows:
    """The launch for operands with certain layouts; None if the only row is cut into parts.

    ``copied``: the shape of each operand that has to be copied into it, else None; ``scratch`` and
    ``outputs``: the shapes and dtypes of the arrays that the kernel writes.
    """

    launch: PreparedLaunch | None = None
    copied: list = field(factory=list)
    scratch: list = field(factory=list)
    outputs: list = field(factory=list)


class Strides(NamedTuple):
    """An array that does not exist yet, in the place of its ``Argument``."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


@frozen(eq=False)
class OnlyRow:
    """The call of a kernel with one row, which is cut into parts of its columns.

    No value depends on a reduction, so each part gives its own totals, and CuPy reduces these.
    """

    lowered: RowKernel
    launcher: Launcher

    @property
    def width(self) -> int:
        """The columns of a part; the last one takes the rest."""
        parts = min(4 * _ENOUGH_PARTS, self.lowered.space.columns // _PART)
        return self.lowered.space.columns // parts

    def results(self, xp: Any, values: list) -> list:
        """The results for these operands."""
        columns, width = self.lowered.space.columns, self.width
        parts = columns // width
        rest = columns - parts * width
        outputs, arrays = [], self.lowered.kernel.arrays
        for array, kind in zip(arrays[len(values) :], self.lowered.results, strict=True):
            shape = (columns,) if kind in ("full", "column") else (parts + bool(rest),)
            outputs.append(xp.empty(shape, array.dtype))
        kinds = [kind for _, kind, _ in self.lowered.operands]
        for first, count, size in ((0, parts, width), (parts, 1, rest)):
            arguments = [
                _cut_argument(x, kind, first, width) for x, kind in zip(values, kinds, strict=True)
            ]
            for y, kind in zip(outputs, self.lowered.results, strict=True):
                arguments.append(_cut_argument(y, kind, first, width, is_result=True))
            self.launcher.launch(xp, (count if size else 0,), arguments, {"m": 1, "n": size})
        return [
            self.combine_parts(xp, name, y) if name else y if kind in ("full", "column") else y[:1]
            for name, kind, y in zip(
                self.lowered.row_combines, self.lowered.results, outputs, strict=True
            )
        ]

    def combine_parts(self, xp: Any, name: str, parts: Any) -> Any:
        """The reduction of all parts; a mean weighs the last part by its own length."""
        columns, width = self.lowered.space.columns, self.width
        rest = columns % width
        if name != "mean" or not rest:
            return getattr(xp, name)(parts).astype(parts.dtype, copy=False)
        total = parts[:-1].sum() * width + parts[-1] * rest
        return (total / columns).astype(parts.dtype, copy=False)


def _cut_argument(
    x: Any, kind: str, first: int, width: int, *, is_result: bool = False
) -> Argument:
    """An operand or a result from part ``first`` on; a reduced result has one element a part."""
    if isinstance(x, np.generic):
        return Argument(x)
    if kind in ("full", "column"):
        step = x.strides[-1]
        columns = (0, step) if kind == "full" else (step,)
        return Argument(x[..., first * width :], (width * step,), columns)
    inner = (0,) if kind == "row" else ()
    return Argument(x[first:], x.strides, inner) if is_result else Argument(x, (0,), inner)
