"""Kernels with reductions that compute the values of several rows together, in vectors.

The logarithm of the sum of a row is one number. If a kernel took one row after the other, it would
compute this number without vectors, and wait for each of its instructions. A kernel of this module
takes a block of rows: it reduces each of them, stores the results in buffers, and a loop over the
rows of the block, which LLVM vectorises, computes the elementary functions. Then it goes on with
the next pass over each row. A row gives the same bits at each place of a block.
"""

from attrs import define, field

from letir.ast.terms import Arg, Bind, Const
from letir.kernels.loop_language import Array, Operand
from letir.kernels.reduction_forms import Parts, flatten_parts, split_like
from letir.kernels.row_groups import Input, RowLowering
from letir.kernels.row_passes import Reduction, RowPasses, is_costly

BLOCK_ROWS = 8  # rows of a block: a vector of float64, or a few
_MAX_COLUMNS = 1 << 10  # of longer rows, the functions of rows are a small part of the work
_MAX_KEPT = 1 << 8  # columns of rows of which a block stays in the cache between two sections
_MIN_BLOCKS = 4  # with fewer blocks, the additional loops save no time
_ROW_KINDS = ("row", "shared row")


@define(eq=False)
class Section:
    """A part of the work on a block of rows, one of several that follow each other.

    ``vector_binds``: the binds that are computed for all rows of the block, in vectors. After them
    the passes ``stages`` go over each row; ``row_binds`` are the binds computed in them for one
    row, by stage.
    """

    vector_binds: list[Bind] = field(factory=list)
    stages: list[int] = field(factory=list)
    row_binds: dict[int, list[Bind]] = field(factory=dict)


def sections_of(passes: RowPasses) -> list[Section] | None:
    """The sections of the work on a block of rows; None if a kernel should not take blocks."""
    space = passes.space
    if space.columns > _MAX_COLUMNS or space.rows < _MIN_BLOCKS * BLOCK_ROWS:
        return None
    stages = _stages_of_rows(passes)
    result = [Section()]
    for stage in range(max([*passes.stages.values(), *stages.values()]) + 1):
        binds = [bind for bind, own in stages.items() if own == stage]
        if any(map(is_costly, binds)):
            result.append(Section(binds, [stage]))
        else:
            result[-1].stages.append(stage)
            result[-1].row_binds[stage] = binds
    if len(result) == 1 or _keeps_rows(passes, result):
        return None
    return None if space.columns > _MAX_KEPT and _reads_again(passes, result) else result


def _reads_again(passes: RowPasses, sections: list[Section]) -> bool:
    """Whether a section after the first one has a pass over the elements of a row."""
    stages = {stage for section in sections[1:] for stage in section.stages}
    return not stages.isdisjoint(passes.loops) and not set(sections[0].stages).isdisjoint(
        passes.loops
    )


def _stages_of_rows(passes: RowPasses) -> dict[Bind, int]:
    """For each bind with one element per row the pass ahead of which it is computed.

    A bind whose result no pass needs is computed with the last functions that a pass needs, or, if
    it depends on a later pass, after all passes.
    """
    stages = {bind: passes.stages[bind.binders[0]] for bind in passes.elementwise}
    end = max(passes.stages.values(), default=0) + 1
    needed_binds: list[Bind] = []
    needed: set[Arg] = set()
    for bind in reversed(stages):
        is_full = passes.kinds[bind.binders[0]] == "full"
        if is_full or bind.binders[0] in needed:
            needed.update(map(passes.source, bind.args))
            needed_binds += [bind] * (not is_full)
    vector_stage = max([stages[bind] for bind in needed_binds if is_costly(bind)], default=-1)
    return {
        bind: stage if bind in needed_binds else vector_stage if stage <= vector_stage else end
        for bind, stage in stages.items()
        if passes.kinds[bind.binders[0]] == "row"
    }


def _keeps_rows(passes: RowPasses, sections: list[Section]) -> bool:
    """Whether a pass needs a buffered full value of an earlier section: there is one buffer."""
    number = {stage: n for n, section in enumerate(sections) for stage in section.stages}
    results = {passes.source(arg) for arg in passes.body.ret.args}
    return any(
        number[stage] != number[first]
        for value, kept in passes.kept.items()
        if value not in results
        for stage in kept
        for first in passes.computed[value]
    )


def _results_of(binds: list[Bind]) -> list[Arg]:
    return [bind.binders[0] for bind in binds]


@define(eq=False)
class RowBlocks(RowLowering):
    """The lowering of a group that takes blocks of rows.

    ``row_buffers``: the buffers of values and operands with one element per row. ``block``: the
    first row of the current block, and the number of its rows.
    """

    sections: list[Section] = field(kw_only=True)
    row_buffers: dict[Arg | Input, Array] = field(factory=dict)
    block: tuple[Operand, Operand] = field(init=False)

    def buffers(self) -> tuple[Array, ...]:
        return tuple(self.row_buffers.values())

    def __attrs_post_init__(self):
        if _reads_again(self.passes, self.sections):
            self.rows_ahead = BLOCK_ROWS

    # ---- what sections read and compute ----

    def read_in_vectors(self, section: Section) -> dict[Arg | Input, None]:
        """The values and operands of rows that are read where a section computes vectors."""
        binds = section.vector_binds
        return self.select_row_values(
            [(arg, b.binders[0].type.shape) for b in binds for arg in b.args]
        )

    def read_by_rows(self, section: Section) -> dict[Arg | Input, None]:
        """The values and operands of rows that the passes of a section read or store."""
        passes = self.passes
        binds = [bind for binds in section.row_binds.values() for bind in binds]
        for bind in passes.elementwise:
            if not passes.computed.get(bind.binders[0], set()).isdisjoint(section.stages):
                binds.append(bind)
        read = [(arg, b.binders[0].type.shape) for b in binds for arg in b.args]
        sources = [r.source for r in passes.reductions if self.is_in(r, section)]
        stored = [value for value in _results_of(section.vector_binds) if value in self.stores]
        return self.select_row_values(
            read + [(value, value.type.shape) for value in (*sources, *stored)]
        )

    def select_row_values(self, read: list[tuple[Arg, tuple[int, ...]]]) -> dict[Arg | Input, None]:
        """Those of values and operands that have one element per row.

        ``read``: each with the shape of the result that it is read for.
        """
        result: dict[Arg | Input, None] = {}
        for arg, shape in read:
            value = self.passes.source(arg)
            if value in self.passes.kinds:
                result |= {value: None} if self.passes.kinds[value] == "row" else {}
            elif type(value) is not Const:
                key = self.input_of(value, shape)
                result |= {key: None} if key[1] in _ROW_KINDS else {}
        return result

    def is_in(self, reduction: Reduction, section: Section) -> bool:
        """Whether a section computes a reduction."""
        source = self.passes.source(reduction.source)
        if reduction.operand_kind == "row" and source in self.passes.kinds:
            return source in self.values_of(section)
        return reduction.stage in section.stages

    def values_of(self, section: Section) -> list[Arg]:
        """The values with one element per row that a section computes."""
        return _results_of(section.vector_binds) + self.results_of_rows(section)

    def results_of_rows(self, section: Section) -> list[Arg]:
        """The values with one element per row that the passes of a section compute."""
        row_results = [bind for binds in section.row_binds.values() for bind in binds]
        reduced = [
            reduction.bind
            for reduction in self.passes.reductions
            if reduction.kind == "row" and reduction.stage in section.stages
        ]
        return _results_of([*row_results, *reduced])

    # ---- statements ----

    def emit_rows(self, first: list[Parts], is_parallel: bool) -> list[Parts]:
        b = self.builder
        self.choose_row_buffers()
        bits, most = b.number(BLOCK_ROWS.bit_length() - 1, "i8"), b.number(BLOCK_ROWS, "i8")
        count = b.let("shr", b.add(self.m, b.number(BLOCK_ROWS - 1, "i8")), bits)
        blocks = b.loop(count, *flatten_parts(first), is_parallel=is_parallel)
        with blocks:
            start = b.let("shl", blocks.index, bits)
            remaining = b.sub(self.m, start)
            size = b.select(b.let("lt", remaining, most), remaining, most)
            self.block = start, size
            totals = split_like(blocks.carried, first)
            for section in self.sections:
                if section.vector_binds:
                    self.emit_vector_loop(section)
                totals = self.emit_section(section, totals, is_parallel)
            blocks.next(*flatten_parts(totals))
        return split_like(blocks.results, first)

    def choose_row_buffers(self) -> None:
        """Choose the values and operands that buffers hold: those that cross between loops."""
        for section in self.sections:
            own, row_results = _results_of(section.vector_binds), self.results_of_rows(section)
            needed = [key for key in self.read_in_vectors(section) if key not in own]
            for key in self.read_by_rows(section):
                if not isinstance(key, tuple) and key not in row_results:
                    needed.append(key)
            for key in needed:
                value = key[0] if isinstance(key, tuple) else key
                if key not in self.row_buffers:
                    name = f"r{len(self.row_buffers)}"
                    self.row_buffers[key] = Array(name, value.type.dtype, (str(BLOCK_ROWS),))

    def emit_vector_loop(self, section: Section) -> None:
        """Write the loop that computes values of all rows of the block in vectors."""
        b, (_, size) = self.builder, self.block
        needed = self.read_in_vectors(section)
        own = _results_of(section.vector_binds)
        arrays = [self.row_buffers[key] for key in needed if key not in own]
        # missing rows are copies of the last one, which raise no other flags
        with b.loop(b.sub(b.number(BLOCK_ROWS, "i8"), size)) as missing:
            for array in arrays:
                last = b.load(array, (b.sub(size, b.number(1, "i8")),))
                b.store(array, (b.add(size, missing),), last)
        with b.loop(b.number(BLOCK_ROWS, "i8")) as row:
            for key in needed:
                if key not in own:
                    self.enter_value(key, b.load(self.row_buffers[key], (row,)))
            for bind in section.vector_binds:
                self.add(bind)
            for value in own:
                if value in self.row_buffers:
                    b.store(self.row_buffers[value], (row,), self.scalars[value])

    def enter_value(self, key: Arg | Input, scalar: Operand) -> None:
        """Let statements use this scalar for a value or an operand."""
        if isinstance(key, tuple):
            self.loaded[key] = scalar
        else:
            self.scalars[key] = scalar

    def emit_section(
        self, section: Section, carried: list[Parts], is_parallel: bool
    ) -> list[Parts]:
        """Write the passes of a section over each row; takes and returns the totals so far."""
        b, (start, size) = self.builder, self.block
        totals = [reduction for reduction in self.passes.reductions if reduction.kind == "single"]
        own = [n for n, reduction in enumerate(totals) if self.is_in(reduction, section)]
        first = [carried[n] for n in own]
        rows = b.loop(size, *flatten_parts(first), is_parallel=is_parallel)
        with rows:
            self.enter_row(b.add(start, rows.index))
            self.load_values(section, rows.index)
            for stage in section.stages:
                for bind in section.row_binds.get(stage, ()):
                    self.add(bind)
                self.emit_pass(stage)
            self.store_values(section, rows.index)
            parts = self.with_row([totals[n] for n in own], split_like(rows.carried, first))
            rows.next(*flatten_parts(parts))
        ended = dict(zip(own, split_like(rows.results, first), strict=True))
        return [ended.get(n, parts) for n, parts in enumerate(carried)]

    def load_values(self, section: Section, row: Operand) -> None:
        """Load what the passes of a section over one row read."""
        b, row_results = self.builder, self.results_of_rows(section)
        self.loaded = {key: x for key, x in self.loaded.items() if key[1] not in _ROW_KINDS}
        for key in self.read_by_rows(section):
            if isinstance(key, tuple):
                self.loaded[key] = b.load(self.inputs[key], self.place[key[1]])
            elif key not in row_results:
                self.scalars[key] = b.load(self.row_buffers[key], (row,))

    def store_values(self, section: Section, row: Operand) -> None:
        """Store the values of one row: results, and values that later sections need."""
        b = self.builder
        for value in self.values_of(section):
            if value in self.stores:
                b.store(self.stores[value], self.place["row"], self.scalars[value])
        for value in self.results_of_rows(section):
            if value in self.row_buffers:
                b.store(self.row_buffers[value], (row,), self.scalars[value])
        if section is self.sections[0]:
            for key, array in self.row_buffers.items():
                if isinstance(key, tuple):
                    x = b.load(self.inputs[key], self.place[key[1]])
                    b.store(array, (row,), x)

    def value(self, arg: Arg) -> Operand:
        value = self.passes.source(arg)
        key = None if value in self.passes.kinds else self.input_of(value, self.result)
        assert key is None or key[1] not in _ROW_KINDS or key in self.loaded, (
            "see ``select_row_values``"
        )
        return super().value(arg)
