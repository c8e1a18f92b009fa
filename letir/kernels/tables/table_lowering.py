"""From binds on small arrays to the rows of a table of instructions."""

from collections import Counter
from typing import Any

import numpy as np
from attrs import define, field, frozen

from letir.ast.process_state import float_errors
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.kernels.flat_arrays.array_moves import moved_runs
from letir.kernels.flat_arrays.flat_memory import c_strides
from letir.kernels.row_passes import reduced_axes
from letir.kernels.scalar_forms import scalar_name
from letir.kernels.scalar_lowering import NoKernel, operand_dtypes
from letir.kernels.tables.table_binds import (
    is_added,
    is_sum_of_parts,
    is_write,
    multiplies_arrays,
    parts_read_after_writes,
)
from letir.kernels.tables.table_kernel import ENTRY, table_operations
from letir.kernels.tables.table_memory import (
    CONSTANTS,
    Root,
    TableMemory,
    TablePlace,
    has_descending_strides,
    index_place,
    is_flat,
    merged_loops,
    view_places,
)
from letir.kernels.tables.table_rows import TableRows

MIXED, ODD = "mixed", "odd"
_MAX_REDUCED = 1 << 10  # the most terms of a sum, which is computed as one block
MAX_ROWS = 500_000  # the most rows of a table


@frozen(eq=False)
class Table:
    """A table and how to call its kernel.

    ``names``: the operations of the kernel; ``rows``: the instructions; ``constants``: (address,
    values), which are stored in memory before the first instruction; ``operands``: the address of
    each operand; ``results``: (address, shape) of each result, at the beginning of the memory;
    ``size``: the number of elements of the memory; ``cost``: an estimate of the time that the
    instructions take, in nanoseconds; ``orders``: the memory order of each result (``order_of``).
    """

    dtype: np.dtype
    names: tuple[str, ...]
    rows: np.ndarray
    constants: tuple[int, np.ndarray]
    operands: tuple[int, ...]
    results: tuple[tuple[int, tuple[int, ...]], ...]
    size: int
    cost: float
    orders: tuple

    @property
    def needs_c_order(self) -> bool:
        """Whether results have NumPy's memory order only if all operands have C order."""
        return MIXED in self.orders


class NotInTable(Exception):
    """Raised for a bind that no table computes. ``position``: its number in the body."""

    def __init__(self, position: int):
        super().__init__(position)
        self.position = position


def lower_to_table(body: Lambda, dtype: np.dtype, is_exact: bool = False) -> Table:
    """The table of a body on arrays of this dtype.

    Raises NotInTable for the first bind that does not fit; with ``is_exact`` also for one whose
    bits could differ from NumPy's.
    """
    lowering = _Lowering(dtype=dtype, is_exact=is_exact, body=body)
    try:
        return lowering.table()
    except (NoKernel, TypeError) as error:
        raise NotInTable(lowering.position) from error


@define(eq=False)
class _Lowering(TableRows):
    """The lowering of one body.

    ``numbers``: the places of Python numbers, by their bits; ``last``: the new memory that only the
    last row has written, else None.
    """

    dtype: np.dtype = field(kw_only=True)
    is_exact: bool = field(kw_only=True)
    body: Lambda = field(kw_only=True)
    memory: TableMemory = field(init=False)
    uses: Counter = field(init=False)
    places: dict[Local, TablePlace] = field(factory=dict)
    numbers: dict[bytes, TablePlace] = field(factory=dict)
    constants: list[np.ndarray] = field(factory=list)
    n_constants: int = 0
    position: int = 0  # of the bind that is being lowered
    orders: dict[Arg, Any] = field(factory=dict)  # see ``order_of``
    results: frozenset = field(init=False)
    outliving: set[Local] = field(init=False)

    def table(self) -> Table:
        body, results, end = self.body, [], 0
        self.results, self.outliving = frozenset(body.ret.args), parts_read_after_writes(body)
        for arg in body.ret.args:
            if type(arg) is not Local:
                raise NoKernel
            results.append((end, arg.type.shape))
            end += arg.type.size
        self.memory = TableMemory(end)
        self.uses = Counter([x for bind in body.binds for x in bind.args if type(x) is Local])
        self.uses.update([arg for arg in body.ret.args if type(arg) is Local])
        operands = []
        for n, param in enumerate(body.params):
            place = self.memory.new(param.type.shape)
            operands.append(place.start)
            self.orders[param] = n if len(place.shape) > 1 else "C"
            self.bind(param, place)
        for self.position, bind in enumerate(body.binds):
            self.add(bind)
        for arg, (start, shape) in zip(body.ret.args, results, strict=True):
            target = TablePlace(Root(start, 0), start, shape, c_strides(shape))
            self.emit("copy", target, [self.operand(arg)])
        return self.finish_table(operands, results)

    def finish_table(self, operands: list[int], results: list) -> Table:
        """The table, with constants at the end of the memory."""
        if not self.rows:
            raise NoKernel
        names = table_operations([row[0] for row in self.rows], self.dtype)
        numbers = {name: n for n, name in enumerate(names)}
        rows = np.array([[numbers[row[0]], *row[1:]] for row in self.rows], np.int64)
        end = self.memory.end
        for column in (3, 6, 9):
            part = rows[:, column]
            part[part >= CONSTANTS] += end - CONSTANTS
        values = [*self.constants, np.zeros(0, self.dtype)]
        return Table(
            *(self.dtype, names, rows.astype(ENTRY).ravel(), (end, np.concatenate(values))),
            *(tuple(operands), tuple(results), end + self.n_constants, self.cost),
            tuple([self.orders.get(arg, "C") for arg in self.body.ret.args]),
        )

    # ---- values ----

    def bind(self, local: Local, place: TablePlace) -> None:
        """Give a local its place, and count its uses as uses of the memory."""
        self.places[local] = place
        place.root.uses += self.uses[local]

    def constant(self, values: np.ndarray) -> TablePlace:
        """A place that has these values before the first instruction."""
        start = CONSTANTS + self.n_constants
        self.constants.append(np.ascontiguousarray(values).reshape(-1))
        self.n_constants += values.size
        return TablePlace(Root(start, values.size), start, values.shape, c_strides(values.shape))

    def operand(self, arg: Arg) -> TablePlace:
        if type(arg) is Local:
            return self.places[arg]
        with float_errors(all="raise"):
            try:
                value = np.array(arg.value, self.dtype)  # type: ignore[union-attr]
            except (ArithmeticError, ValueError):
                raise NoKernel from None
        key = value.tobytes()
        if key not in self.numbers:
            self.numbers[key] = self.constant(value)
        return self.numbers[key]

    # ---- binds ----

    def add(self, bind: Bind) -> None:
        """The rows of a bind."""
        for arg in bind.args:
            if type(arg) is Local:
                self.places[arg].root.uses -= 1
        for binder, place in zip(bind.binders, self.values(bind), strict=True):
            if place.shape != binder.type.shape or len(self.rows) > MAX_ROWS:
                raise NoKernel
            self.bind(binder, place)
            order = self.orders[binder] = self.order_of(bind, place)
            if order is ODD and binder in self.results:
                raise NoKernel
        for root in {self.places[x].root for x in (*bind.args, *bind.binders) if type(x) is Local}:
            if not root.uses:
                self.memory.release(root)
                root.uses = -1 << 40  # released once

    def order_of(self, bind: Bind, place: TablePlace) -> Any:
        """The memory order of NumPy's result.

        "C"; the position of an operand of the table that has the same order; MIXED, which is C
        order if all operands of the table have C order; or ODD, any other order.
        """
        op = bind.op
        if len(place.shape) < 2 or multiplies_arrays(bind):
            return "C"
        if op.order == "first" and bind.attrs.get("order", "K") == "K":
            return self.orders.get(bind.args[0], "C")
        read = [x for x in bind.locals() if len(x.type.shape) > 1]
        orders = {self.orders.get(x, "C") for x in read}
        if bind.attrs.get("order") == "F":
            return ODD
        if ODD in orders or (op.memory == "view" and not has_descending_strides(place)):
            return ODD
        is_plain = op.elementwise and all(x.type.shape == place.shape for x in read)
        if orders <= {"C"} or (is_plain and len(orders) == 1):
            return orders.pop() if orders else "C"
        return MIXED

    def values(self, bind: Bind) -> list[TablePlace]:
        """The places of a bind's results."""
        if len(bind.binders) == 1:
            return [self.value(bind)]
        result = view_places(bind, self.operand(bind.args[0]))
        if result is None:
            raise NoKernel
        return result

    def value(self, bind: Bind) -> TablePlace:
        """The place of a bind's only result."""
        op, shape = bind.op, bind.binders[0].type.shape
        if not bind.args:
            result = np.asarray(op.impl(np, **bind.attrs))
            if result.dtype != self.dtype or not result.flags.c_contiguous:
                raise NoKernel
            return self.constant(result)
        operands = [self.operand(arg) for arg in bind.args]
        if op.role == "index":
            part = index_place(operands[0], bind.attrs["item"])
            return self.copied(part) if bind.binders[0] in self.outliving else part
        if is_write(bind):
            return self.write_part(bind, *operands)
        if is_added(bind):
            return self.add_to_part(bind, *operands)
        if is_sum_of_parts(bind):
            return self.sum_parts(bind, operands)
        views = view_places(bind, operands[0]) if op.memory == "view" else None
        if views is not None:
            return views[0]
        target = self.memory.new(shape)
        name = scalar_name(bind)
        if op.moves_elements:
            self.copy_elements(bind, target, operands)
        elif op.reduction is not None:
            self.reduce(bind, target, *operands)
        elif multiplies_arrays(bind):
            self.multiply(op.product, target, *operands)
        else:
            if name is None or any(d != self.dtype for d in operand_dtypes(bind)):
                raise NoKernel
            self.emit(name, target, operands)
        return target

    def write_part(self, bind: Bind, x: TablePlace, new: TablePlace) -> TablePlace:
        """The place of ``x`` with ``new`` written into it: its own if ``x`` has no later use."""
        n = len(self.rows)
        was_last = self.last is new.root and not new.root.uses and x.root is not new.root
        x = self.writable(x)
        part = index_place(x, bind.attrs["item"])
        while len(new.shape) > len(part.shape) and new.shape[0] == 1:
            new = TablePlace(new.root, new.start, new.shape[1:], new.strides[1:])
        if was_last and n == len(self.rows) and self.retarget(x.root, part, new):
            return x
        self.emit("copy", part, [self.without_overlap(new, x)])
        return x

    def writable(self, x: TablePlace) -> TablePlace:
        """``x`` in memory that may be changed: its own if it has no later use, else a copy."""
        is_spread = any(not step and n > 1 for step, n in zip(x.strides, x.shape, strict=True))
        if not x.root.uses and not is_spread:
            return x
        return self.copied(x)

    def copied(self, x: TablePlace) -> TablePlace:
        """``x`` in memory of its own."""
        target = self.memory.new(x.shape)
        self.emit("copy", target, [x])
        return target

    def without_overlap(self, new: TablePlace, x: TablePlace) -> TablePlace:
        """``new``, copied if it lies in the memory of ``x``: NumPy reads all before it writes."""
        if new.root is not x.root or new.size < 2:
            return new
        copied = self.copied(new)
        self.memory.release(copied.root)
        return copied

    def add_to_part(self, bind: Bind, x: TablePlace, new: TablePlace) -> TablePlace:
        """The place of ``x`` with ``new`` added to a part of it."""
        x = self.writable(x)
        part = index_place(x, bind.attrs["item"])
        self.emit("add", part, [part, self.without_overlap(new, x)])
        return x

    def sum_parts(self, bind: Bind, parts: list[TablePlace]) -> TablePlace:
        """The place of the sum of parts, each at an index in zeros."""
        items, zero = bind.attrs["items"], self.operand(Const(0))
        target = self.memory.new(bind.binders[0].type.shape)
        counts = np.zeros(target.shape, int)
        for item in items:
            counts[item] += 1
        is_once = bool((counts == 1).all())
        if not is_once:
            self.emit("copy", target, [zero])
        for item, new in zip(items, parts, strict=True):
            part = index_place(target, item)
            # NumPy adds to zeros, also to -0.0
            self.emit("add", part, [new, zero] if is_once else [part, new])
        return target

    def copy_elements(self, bind: Bind, target: TablePlace, operands: list[TablePlace]) -> None:
        """Rows for an operation that only moves elements: a copy for each run of them."""
        flat = list(operands)
        copies = {n: self.memory.new(x.shape) for n, x in enumerate(operands) if not is_flat(x)}
        for n, place in copies.items():
            self.emit("copy", place, [operands[n]])
            flat[n] = place
        for run in moved_runs(bind, [x.shape for x in operands]):
            x = flat[run.operand]
            source = TablePlace(x.root, x.start + run.start, (run.count,), (run.step,))
            part = TablePlace(target.root, target.start + run.target, (run.count,), (1,))
            self.emit("copy", part, [source])
        for place in copies.values():
            self.memory.release(place.root)
        self.last = None

    # ---- sums and products ----

    def reduce(self, bind: Bind, target: TablePlace, x: TablePlace) -> None:
        """The rows of a sum, as products with the number 1."""
        axes = reduced_axes(bind)
        if 0 in x.shape:
            raise NoKernel
        remaining = [n for n in range(len(x.shape)) if n not in axes]
        parts = []
        for group in (remaining, axes):
            shape = tuple([x.shape[n] for n in group])
            lengths, (steps,) = merged_loops(shape, [tuple([x.strides[n] for n in group])])
            if len(lengths) > 1:
                raise NoKernel
            parts.append((lengths or [1], steps or [0]))
        ((count,), (outer,)), ((terms,), (inner,)) = parts
        if self.is_exact or terms > _MAX_REDUCED or count != target.size:
            raise NoKernel
        unit = self.operand(Const(1))
        row = ["dot", count, terms, target.start, 1, 0, x.start, outer, inner, unit.start]
        self.append(row)
        self.last = target.root if count == 1 else None

    def multiply(
        self, product: str | None, target: TablePlace, x: TablePlace, y: TablePlace
    ) -> None:
        """A product of vectors or matrices, with a row of the table for each row of the result."""
        if product == "outer":
            rows = (x.size,)
            if len(x.shape) != 1 or len(y.shape) != 1:
                raise NoKernel
            column = TablePlace(x.root, x.start, (*rows, 1), (*x.strides, 0))
            self.emit("mul", target, [column, y])
            return
        if self.is_exact or {len(x.shape), len(y.shape)} - {1, 2}:
            raise NoKernel
        inner, first = x.shape[-1], (x.shape[0] if len(x.shape) == 2 else 1)
        columns = y.shape[1] if len(y.shape) == 2 else 1
        if inner > _MAX_REDUCED or inner != y.shape[0]:
            raise NoKernel
        x0, x1 = (0, *x.strides)[-2:]
        y0, y1 = (*y.strides, 0)[:2]
        zero = self.operand(Const(0))
        if columns == 1:
            sums = (x.start, x0, x1), (y.start, 0, y0)
            self.emit_sums(first, inner, target.start, *sums, zero)
        else:
            for n in range(first):
                sums = (x.start + n * x0, 0, x1), (y.start, y1, y0)
                self.emit_sums(columns, inner, target.start + n * columns, *sums, zero)
        self.last = target.root if first == columns == 1 else None
