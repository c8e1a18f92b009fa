"""``TableRows``: the rows of a table, written for elementwise operations on places in memory."""

from collections.abc import Sequence

from attrs import define, field

from letir.kernels.tables.table_memory import Root, TablePlace, broadcast_strides, merged_loops

_COST_OF = {"copy": 0.8, "add": 1.0, "sub": 1.0, "mul": 1.0, "dot": 1.0, "div": 2.0, "sqrt": 4.0}


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
