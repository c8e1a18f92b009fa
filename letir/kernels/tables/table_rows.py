"""``TableRows``: the rows of a table, written for elementwise operations on places in memory."""

from collections.abc import Sequence

from attrs import define, field

from letir.kernels.tables.table_memory import Root, TablePlace, broadcast_strides, merged_loops

_MIN_SUMS = 8  # sums that are computed side by side
_COST_OF = {
    **{"copy": 0.8, "add": 1.0, "sub": 1.0, "mul": 1.0, "dot": 1.0, "muladd": 0.2},
    **{"div": 2.0, "sqrt": 4.0},
}


@define(eq=False)
class TableRows:
    """The rows of a table.

    ``last``: the memory that the last row alone has written, if it is new. ``cost``: approximate
    nanoseconds that the rows take.
    """

    rows: list[list] = field(factory=list)
    last: Root | None = None
    cost: float = 0.0

    def emit(self, name: str, target: TablePlace, operands: Sequence[TablePlace]) -> None:
        """The rows of an elementwise operation, with its operands broadcast."""
        shape = target.shape
        if 0 in shape:
            return
        strides = [target.strides, *[broadcast_strides(x, shape) for x in operands]]
        lengths, steps = merged_loops(shape, strides)
        starts = [target.start, *[x.start for x in operands]]
        self.emit_loops(name, lengths, starts, steps)
        is_whole = len(lengths) < 2 and target.size == target.root.size
        self.last = target.root if is_whole else None

    def emit_loops(self, name: str, lengths: list[int], starts: list[int], steps: list) -> None:
        """Rows for loops of these lengths, two in each row."""
        if len(lengths) > 2:
            for n in range(lengths[0]):
                first = [start + n * own[0] for start, own in zip(starts, steps, strict=True)]
                self.emit_loops(name, lengths[1:], first, [own[1:] for own in steps])
            return
        pad = [0] * (2 - len(lengths))
        row: list = [name, *[1] * len(pad), *lengths]
        for start, own in zip(starts, steps, strict=True):
            row += [start, *pad, *own]
        self.append(row)

    def emit_sums(
        self, count: int, terms: int, target: int, x: tuple, y: tuple, zero: TablePlace
    ) -> None:
        """Rows for ``count`` sums of products of ``terms`` elements of x and y, which are written
        to elements from ``target`` on.

        ``x`` and ``y``: the first element, and the steps between sums and between terms. Sums whose
        terms lie apart, but side by side with those of the next sum, are computed side by side.
        """
        x, y = (y, x) if x[1] else (x, y)
        (a, a0, a1), (b, b0, b1) = x, y
        if (a0, b0) == (0, 1) and {a1, b1} - {0, 1} and count >= _MIN_SUMS:
            self.append(["copy", 1, count, target, 0, 1, zero.start])
            self.append(["muladd", terms, count, target, 0, 1, a, a1, 0, b, b1, 1])
        else:
            self.append(["dot", count, terms, target, 1, 0, a, a0, a1, b, b0, b1])

    def append(self, row: list) -> None:
        row += [0] * (12 - len(row))
        self.rows.append(row)
        self.cost += 15 + row[1] * (3 + row[2] * _COST_OF.get(row[0], 8.0))

    def retarget(self, root: Root, part: TablePlace, new: TablePlace) -> bool:
        """Let the last row write directly to a part of an array; False if that is not possible."""
        row = self.rows[-1]
        is_whole = new.size == new.root.size and new.strides in ((), (1,))  # and not reversed
        if part.shape != new.shape or not is_whole or row[1] != 1:
            return False
        step = part.strides[0] if part.shape else 0
        if row[0] != "dot":
            for start, _, stride in (row[6:9], row[9:12]):
                inside = root.start <= start < root.start + root.size
                if inside and new.size > 1 and (start, stride) != (part.start, step):
                    return False
        row[3], row[4], row[5] = part.start, 0, step
        self.last = None
        return True
