"""``RowKernel``: how the kernel of a group with reductions is called."""

from collections.abc import Callable

import numpy as np
from attrs import frozen

from letir.kernels.loop_language import Kernel
from letir.kernels.row_passes import Space


@frozen
class RowKernel:
    """A kernel and how to call it.

    ``operands``: for each input its position among the group's operands, its kind and its shape.
    After these inputs come the buffers, one for each dtype of ``scratch``, with one element for
    each column. ``results``: the kinds of the results. ``combines``: for each result the reduction
    over rows, or along the stack, that computes it, or "". ``row_combines``: the same for
    reductions within the only row; empty if another value depends on such a reduction.
    ``on_device``: the lowering that makes the kernel for a device, whose rows are computed side by
    side; None if that is this kernel.
    """

    kernel: Kernel
    space: Space
    operands: tuple[tuple[int, str, tuple[int, ...]], ...]
    scratch: tuple[np.dtype, ...]
    results: tuple[str, ...]
    combines: tuple[str, ...]
    row_combines: tuple[str, ...]
    on_device: Callable[[], "RowKernel"] | None = None

    @property
    def for_device(self) -> "RowKernel":
        """The kernel for a device."""
        return self.on_device() if self.on_device else self

    def shape_of(self, kind: str) -> tuple[int, ...]:
        """The shape of an array of this kind."""
        space = self.space
        return (*space.outer, *[space.sizes[name] for name in space.axes_of(kind)])

    @property
    def signature(self) -> str:
        """The signature of the generalized ufunc."""
        axes = [self.space.axes_of(kind) for _, kind, _ in self.operands] + ["n"] * len(
            self.scratch
        )
        inputs, outputs = [
            ",".join([f"({','.join(names)})" for names in kinds])
            for kinds in (axes, map(self.space.axes_of, self.results))
        ]
        return f"{inputs}->{outputs}"
