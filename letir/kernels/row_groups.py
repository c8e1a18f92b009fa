"""Kernels of groups with reductions: several passes over each row of a matrix while it is in cache.

``row_passes`` decides what each pass computes. Reductions along columns, along a stack of matrices,
and of all elements are carried from row to row.
"""

import contextlib
from collections.abc import Callable, Mapping

from attrs import define, field

from letir.ast.terms import Arg, Bind, Const
from letir.kernels.elementwise_groups import kernel_name
from letir.kernels.loop_language import Array, Kernel, Operand
from letir.kernels.reduction_forms import Parts, flatten_parts, split_like
from letir.kernels.row_interface import RowKernel
from letir.kernels.row_passes import Reduction, RowPasses
from letir.kernels.scalar_lowering import MAX_ARRAYS, NoKernel, ScalarLowering, expect_known

Input = tuple[Arg, str, tuple[int, ...]]  # a value, its kind, and the shape of the argument
MAX_SHORT_ROW = 64  # columns of a row whose length is part of the kernel
_BLOCK = 8  # a block of a sum has 2 ** 8 elements
_IN_MEMORY = ("column", "shared column", "shared full")  # totals that are carried in memory


@define(eq=False)
class RowLowering(ScalarLowering):
    """The lowering of one group with reductions."""

    passes: RowPasses = field(kw_only=True)
    inputs: dict[Input, Array] = field(factory=dict)
    outputs: list[Array] = field(factory=list)
    stores: dict[Arg, Array] = field(factory=dict)  # full value -> the array that holds it
    scratch: list[Array] = field(factory=list)
    place: dict[str, tuple[Operand, ...]] = field(factory=dict)  # the current one, by kind
    result: tuple[int, ...] = ()  # the shape of the value that is being computed
    m: Operand = field(init=False)  # the number of rows
    n: Operand = field(init=False)  # the number of columns
    loaded: dict[Input, Operand] = field(factory=dict)
    rows_ahead: int = 1  # from a row to the one that is read ahead of its turn; 0 for none

    keeps_in_memory = True  # values for later passes

    def kernel(self) -> RowKernel:
        """The kernel."""
        self.declare_arrays()
        arrays = (*self.inputs.values(), *self.scratch, *self.outputs)
        if len(arrays) > MAX_ARRAYS:
            raise NoKernel
        b = self.builder
        letters = "olmn" if self.passes.space.is_stacked else "omn"
        extents = {letter: b.extent(letter) for letter in letters}
        columns = self.passes.space.columns
        # a length that is known: LLVM chooses vectors that fit the row
        self.n = b.number(columns, "i8") if columns <= MAX_SHORT_ROW else extents["n"]
        self.m = extents["m"]
        self.emit(extents)
        # NumPy gives the lengths of axes in the order in which the signature names them
        order = dict.fromkeys(["o", *[name for array in arrays for name in array.extents]])
        input_extents = {name for array in arrays if not array.is_written for name in array.extents}
        if len(order) != len(extents) or not order.keys() <= {"o", *input_extents}:
            raise NoKernel  # NumPy finds the lengths in the operands alone
        lengths = tuple([extents[name] for name in order])
        results = [self.passes.source(arg) for arg in self.passes.body.ret.args]
        is_stacked = self.passes.space.is_stacked
        over_rows = ("shared full", "shared column") if is_stacked else ("single", "column")
        names = [self.reduction_names(over_rows), self.reduction_names(("row",))]
        params: dict[Arg, int] = {param: n for n, param in enumerate(self.passes.body.params)}
        return RowKernel(
            Kernel(
                kernel_name(self.passes.body),
                arrays,
                lengths,
                b.statements(),
                takes_contiguous=True,
                buffers=self.buffers(),
            ),
            self.passes.space,
            tuple([(params[arg], kind, shape) for arg, kind, shape in self.inputs]),
            tuple([array.dtype for array in self.scratch]),
            tuple([self.passes.kinds[value] for value in results]),
            tuple([names[0].get(value, "") for value in results]),
            tuple([names[1].get(value, "") for value in results if self.passes.is_single]),
        )

    def buffers(self) -> tuple[Array, ...]:
        """The small arrays of the kernel itself."""
        return ()

    def reduction_names(self, kinds: tuple[str, ...]) -> dict[Arg, str]:
        """The reductions whose results have one of these kinds, by result."""
        binds = [reduction.bind for reduction in self.passes.reductions if reduction.kind in kinds]
        return {bind.binders[0]: bind.op.reduction or "" for bind in binds}

    # ---- arrays ----

    def declare_arrays(self) -> None:
        """The parameters of the kernel: operands by kind, results, and rows kept in memory."""
        for bind in self.passes.elementwise:
            for arg in bind.args:
                self.declare_input(arg, bind.binders[0].type.shape)
        for reduction in self.passes.reductions:
            self.declare_input(reduction.source, reduction.source.type.shape)
        for n, arg in enumerate(self.passes.body.ret.args):
            value = self.passes.source(arg)
            if arg.type.weak or value not in self.passes.kinds:
                raise NoKernel
            extents = self.extents_of(self.passes.kinds[value])
            array = Array(f"y{n}", arg.type.dtype, extents, is_written=True)
            self.outputs.append(array)
            self.stores[value] = array
        for value, passes in self.passes.kept.items():
            if passes and value not in self.stores and self.keeps_in_memory:
                array = Array(f"z{len(self.scratch)}", value.type.dtype, ("o", "n"))
                self.scratch.append(array)
                self.stores[value] = array

    def declare_input(self, arg: Arg, result: tuple[int, ...]) -> None:
        """The parameter for an operand that a value of the shape ``result`` reads."""
        value = self.passes.source(arg)
        if type(value) is Const or value in self.passes.kinds:
            return
        key = self.input_of(value, result)
        if key not in self.inputs:
            expect_known(value.type)
            extents = self.extents_of(key[1])
            self.inputs[key] = Array(f"x{len(self.inputs)}", value.type.dtype, extents)

    def extents_of(self, kind: str) -> tuple[str, ...]:
        return ("o", *self.passes.space.axes_of(kind))

    def input_of(self, value: Arg, result: tuple[int, ...]) -> Input:
        space, shape = self.passes.space, value.type.shape
        if result == space.shape:
            return value, *space.place_of(shape)
        return value, *space.row_place_of(shape, result)

    # ---- statements ----

    def add(self, bind: Bind) -> None:
        self.result = bind.binders[0].type.shape
        super().add(bind)

    def value(self, arg: Arg) -> Operand:
        value = self.passes.source(arg)
        if value in self.passes.kinds:
            return self.scalars[value]
        key = self.input_of(value, self.result)
        if key not in self.loaded:
            self.loaded[key] = self.builder.load(self.inputs[key], self.place[key[1]])
        return self.loaded[key]

    def load_inputs(self, kind: str) -> None:
        """Load the operands of a kind before the inner loops, in which they do not change."""
        for key, array in self.inputs.items():
            if key[1] == kind:
                self.loaded[key] = self.builder.load(array, self.place[kind])

    def emit(self, extents: Mapping[str, Operand]) -> None:
        """The body of the kernel."""
        b = self.builder
        outer = b.loop(extents["o"])
        with outer:
            self.place["shared single"] = (outer.index,)
            if not self.passes.space.is_stacked:
                self.emit_matrix((outer.index,))
                return
            self.load_inputs("shared single")
            totals = [
                reduction
                for reduction in self.passes.reductions
                if reduction.kind.startswith("shared")
            ]
            self.start_totals(totals)
            # totals are carried from matrix to matrix in memory
            stack = b.loop(extents["l"], is_parallel=not totals)
            with stack:
                self.emit_matrix((outer.index, stack.index))
            for reduction in totals:
                is_full = reduction.kind == "shared full"
                count = extents["l"] if is_full else b.let("mul", extents["l"], self.m)
                self.finish_total(reduction, count)

    def emit_matrix(self, place: tuple[Operand, ...]) -> None:
        """Write the passes over the rows of the matrix at ``place``."""
        b = self.builder
        totals = [reduction for reduction in self.passes.reductions if reduction.kind == "single"]
        columns = [reduction for reduction in self.passes.reductions if reduction.kind == "column"]
        is_parallel = not columns and not self.reduction_names(("shared column",))
        self.place["single"] = place
        self.load_inputs("single")
        self.start_totals(columns)
        first = [reduction.accumulator.first(b) for reduction in totals]
        # totals of columns are carried from row to row in memory
        ended = self.emit_rows(first, is_parallel)
        for reduction in columns:
            self.finish_total(reduction, self.m)
        for reduction, parts in zip(totals, ended, strict=True):
            total = reduction.accumulator.value(b, parts)
            count = self.m if reduction.operand_kind == "row" else b.let("mul", self.m, self.n)
            self.scalars[reduction.bind.binders[0]] = reduction.form.divided(b, total, count)
        self.store_results("single")

    def emit_rows(self, first: list[Parts], is_parallel: bool) -> list[Parts]:
        """Write the loop over rows; the results are the totals over all of them."""
        rows = self.builder.loop(self.m, *flatten_parts(first), is_parallel=is_parallel)
        with rows:
            rows.next(*flatten_parts(self.row(rows.index, split_like(rows.carried, first))))
        return split_like(rows.results, first)

    def enter_row(self, index: Operand) -> None:
        """Begin with the row at this index."""
        self.place["row"] = (*self.place["single"], index)
        self.place["shared row"] = (*self.place["shared single"], index)

    def row(self, index: Operand, carried: list[Parts]) -> list[Parts]:
        """Write the passes over one row; takes and returns the totals over all rows so far."""
        self.enter_row(index)
        self.load_inputs("row")
        self.load_inputs("shared row")
        for stage in range(max(self.passes.stages.values(), default=0) + 1):
            for bind in self.passes.elementwise:
                value = bind.binders[0]
                if self.passes.kinds[value] == "row" and self.passes.stages[value] == stage:
                    self.add(bind)
            self.emit_pass(stage)
        self.store_results("row")
        totals = [reduction for reduction in self.passes.reductions if reduction.kind == "single"]
        return self.with_row(totals, carried)

    def with_row(self, totals: list[Reduction], carried: list[Parts]) -> list[Parts]:
        """The totals of all elements, with those of the current row added."""
        b, result = self.builder, []
        for reduction, parts in zip(totals, carried, strict=True):
            if reduction.operand_kind == "row":
                dtype = reduction.bind.binders[0].type.dtype
                self.result = reduction.source.type.shape
                element = reduction.form.element(b, self.value(reduction.source), dtype)
            else:
                element = reduction.accumulator.value(b, reduction.partial)
            result.append(reduction.accumulator.with_value(b, parts, element))
        return result

    def emit_pass(self, stage: int) -> None:
        """Write one pass over a row: its full values, and their reductions."""
        b = self.builder
        now = [
            reduction
            for reduction in self.passes.reductions
            if reduction.stage == stage and reduction.operand_kind == "full"
        ]
        inside = [reduction for reduction in now if reduction.kind not in _IN_MEMORY]
        if not now and not any(stage in passes for passes in self.passes.computed.values()):
            return
        first = [reduction.accumulator.first(b) for reduction in inside]
        if any(reduction.accumulator.needs_blocks for reduction in inside):
            totals = self.emit_blocks(stage, now, first)
        else:
            totals = self.emit_elements(stage, now, first)
        for reduction, parts in zip(inside, totals, strict=True):
            reduction.partial = parts
            if reduction.kind == "row":
                total = reduction.form.divided(b, reduction.accumulator.value(b, parts), self.n)
                self.scalars[reduction.bind.binders[0]] = total

    def emit_blocks(self, stage: int, now: list[Reduction], first: list[Parts]) -> list[Parts]:
        """Write the pass in blocks of elements; returns the totals of its reductions."""
        b = self.builder
        kinds = [reduction.accumulator for reduction in now if reduction.kind not in _IN_MEMORY]
        if self.passes.space.columns <= MAX_SHORT_ROW:  # a single block
            begun = [kind.block(b, own) for kind, own in zip(kinds, first, strict=True)]
            ended = self.emit_elements(stage, now, begun)
            return [kind.of_block(b, own) for kind, own in zip(kinds, ended, strict=True)]
        bits, most = b.number(_BLOCK, "i8"), b.number(1 << _BLOCK, "i8")
        count = b.let("shr", b.add(self.n, b.number((1 << _BLOCK) - 1, "i8")), bits)
        loop = b.loop(count, *flatten_parts(first))
        with loop:
            start = b.let("shl", loop.index, bits)
            remaining = b.sub(self.n, start)
            size = b.select(b.let("lt", remaining, most), remaining, most)
            parts = split_like(loop.carried, first)
            begun = [kind.block(b, own) for kind, own in zip(kinds, parts, strict=True)]
            self.prefetch(stage, start, size)
            ended = self.emit_elements(stage, now, begun, (start, size))
            merged = [
                kind.with_block(b, own, block)
                for kind, own, block in zip(kinds, parts, ended, strict=True)
            ]
            loop.next(*flatten_parts(merged))
        return split_like(loop.results, first)

    def emit_elements(
        self,
        stage: int,
        now: list[Reduction],
        begun: list[Parts],
        block: tuple[Operand, Operand] | None = None,
    ) -> list[Parts]:
        """Write the innermost loop, over a row or over a ``block`` (its start and its size)."""
        b = self.builder
        if not block:
            self.prefetch(stage, b.number(0, "i8"), self.n)
        loop = b.loop(block[1] if block else self.n, *flatten_parts(begun))
        with loop:
            index = b.add(block[0], loop.index) if block else loop.index
            self.enter_column(index)
            self.compute(stage)
            parts = self.add_element(now, split_like(loop.carried, begun))
            loop.next(*flatten_parts(parts))
        return split_like(loop.results, begun)

    def prefetch(self, stage: int, start: Operand, size: Operand) -> None:
        """Let the processor read these columns of a later row, while it computes this pass."""
        if self.passes.pass_with_prefetch(self.rows_ahead) != stage:
            return
        b, (*outer, row) = self.builder, self.place["row"]
        arrays = [array for (_, kind, _), array in self.inputs.items() if kind == "full"]
        later = b.add(row, b.number(self.rows_ahead, "i8"))
        b.prefetch_columns(arrays, (*outer, later), start, size)

    def add_element(self, now: list[Reduction], parts: list[Parts]) -> list[Parts]:
        """The new ``parts`` of the reductions ``now`` with the element; totals have none."""
        b, remaining, result = self.builder, iter(parts), list[Parts]()
        self.result = self.passes.space.shape
        for reduction in now:
            dtype = reduction.bind.binders[0].type.dtype
            element = reduction.form.element(b, self.value(reduction.source), dtype)
            if reduction.kind in _IN_MEMORY:
                self.update_total(reduction, element)
            else:
                result.append(reduction.accumulator.step(b, next(remaining), element))
        return result

    def enter_column(self, index: Operand) -> None:
        """Begin with the element of a row at this index."""
        for scope in ("", "shared "):
            self.place[f"{scope}full"] = (*self.place[f"{scope}row"], index)
            self.place[f"{scope}column"] = (*self.place[f"{scope}single"], index)
        row_kinds = ("row", "single", "shared row", "shared single")
        self.loaded = {key: x for key, x in self.loaded.items() if key[1] in row_kinds}

    def compute(self, stage: int) -> None:
        """Write the full values of a pass at one element, and store the values that are kept."""
        b = self.builder
        for bind in self.passes.elementwise:
            value = bind.binders[0]
            if self.passes.kinds[value] != "full":
                continue
            array = self.stores.get(value)
            place = self.place["full" if array in self.outputs else "shared column"]
            if stage in self.passes.computed[value]:
                self.add(bind)
                if array is not None:
                    b.store(array, place, self.scalars[value])
            elif stage in self.passes.kept[value]:
                self.scalars[value] = b.load(array, place)

    def store_results(self, kind: str) -> None:
        """Store the results of a kind."""
        for value, array in self.stores.items():
            if self.passes.kinds[value] == kind:
                self.builder.store(array, self.place[kind], self.scalars[value])

    # ---- totals in memory ----

    def start_totals(self, totals: list[Reduction]) -> None:
        """Set totals to their initial values."""
        for reduction in totals:
            first = self.builder.number(reduction.accumulator.start, reduction.accumulator.dtype)

            def start(load: Callable, first: Operand = first) -> Operand:
                return first

            self.update_each_total(reduction, start)

    def update_total(self, reduction: Reduction, element: Operand) -> None:
        # in the order of rows, as NumPy adds them
        b, array, place = self.builder, self.total_of(reduction), self.place[reduction.kind]
        old = b.load(array, place)
        b.store(array, place, reduction.accumulator.update_element(b, old, element))

    def finish_total(self, reduction: Reduction, count: Operand) -> None:
        """Divide the totals of means of ``count`` elements."""
        b = self.builder
        if reduction.form.is_divided:
            self.update_each_total(reduction, lambda load: reduction.form.divided(b, load(), count))

    def update_each_total(self, reduction: Reduction, new: Callable[[Callable], Operand]) -> None:
        """Write a loop that sets each element of a reduction's result to ``new(load)``."""
        b, array = self.builder, self.total_of(reduction)
        start = self.place["single" if reduction.kind == "column" else "shared single"]
        with contextlib.ExitStack() as loops:
            rows = [loops.enter_context(b.loop(self.m))] if reduction.kind == "shared full" else []
            place = (*start, *rows, loops.enter_context(b.loop(self.n)))
            b.store(array, place, new(lambda: b.load(array, place)))

    def total_of(self, reduction: Reduction) -> Array:
        return self.stores[reduction.bind.binders[0]]
