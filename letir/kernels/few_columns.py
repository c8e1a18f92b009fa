"""``row_kernel``: the kernel of a group with reductions, and the lowering for few columns."""

from attrs import define, evolve, field

from letir.ast.terms import Arg, Lambda
from letir.kernels.loop_language import Operand
from letir.kernels.reduction_forms import Parts
from letir.kernels.row_blocks import RowBlocks, sections_of
from letir.kernels.row_groups import RowLowering
from letir.kernels.row_interface import RowKernel
from letir.kernels.row_passes import Reduction, RowPasses, Space
from letir.kernels.row_products import products_as_sums
from letir.kernels.scalar_lowering import NoKernel

_MAX_UNROLLED = 8  # columns that are computed without a loop


def row_kernel(body: Lambda, space: Space, is_exact: bool = False) -> RowKernel | None:
    """The kernel of a group with reductions, from its body; None if NumPy has to compute it."""
    try:
        passes = RowPasses(products_as_sums(body), space, is_exact)
        if space.columns <= _MAX_UNROLLED:
            return _FewColumns(is_exact, passes=passes).kernel()
        sections = sections_of(passes)
        if sections is None:
            lowering = RowLowering(is_exact, passes=passes)
        else:
            lowering = RowBlocks(is_exact, passes=passes, sections=sections)
        result = lowering.kernel()
    except (NoKernel, TypeError):
        return None
    if sections is None and passes.pass_with_prefetch(lowering.rows_ahead) < 0:
        return result

    def on_device() -> RowKernel:
        return RowLowering(is_exact, passes=passes, rows_ahead=0).kernel()

    return evolve(result, on_device=on_device)


@define(eq=False)
class _FewColumns(RowLowering):
    """The lowering of a group with few columns: no loop over them, so that LLVM vectorises rows.

    ``remembered``: the full values of the current row at each column.
    """

    column: int = 0
    remembered: dict[tuple[Arg, int], Operand] = field(factory=dict)

    keeps_in_memory = False

    def kernel(self) -> RowKernel:
        result = super().kernel()
        kernel = evolve(result.kernel, columns=self.passes.space.columns)
        return evolve(result, kernel=kernel)

    def emit_elements(
        self,
        stage: int,
        now: list[Reduction],
        begun: list[Parts],
        block: tuple[Operand, Operand] | None = None,
    ) -> list[Parts]:
        parts = begun
        for column in range(self.passes.space.columns):
            self.column = column
            self.enter_column(self.builder.number(column, "i8"))
            self.compute(stage)
            parts = self.add_element(now, parts)
        return parts

    def compute(self, stage: int) -> None:
        b = self.builder
        for bind in self.passes.elementwise:
            value = bind.binders[0]
            if self.passes.kinds[value] != "full":
                continue
            if stage in self.passes.computed[value]:
                self.add(bind)
                if value in self.stores:
                    b.store(self.stores[value], self.place["full"], self.scalars[value])
                self.remembered[value, self.column] = self.scalars[value]
            elif stage in self.passes.kept[value]:
                self.scalars[value] = self.remembered[value, self.column]
