"""Groups with reductions as calls of compiled kernels, see ``letir.kernels.row_passes``.

A kernel is a generalized ufunc on matrices: operands are reshaped to matrices, to one element a
row, or to one a column, and results from these.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from letir.ast.source import Source
from letir.ast.terms import Bind, Lambda, Local
from letir.kernels.machine_code import ufunc_of
from letir.kernels.row_groups import RowKernel, row_kernel
from letir.kernels.row_passes import Space, may_reduce
from letir.kernels.scalar_lowering import has_scalar_form
from letir.passes.fusion.early_gathers import with_early_gathers
from letir.passes.fusion.fusing import fused_level
from letir.passes.fusion.reduction_parts import with_parts
from letir.passes.fusion.regrouping import regrouped, without_groups
from letir.passes.fusion.row_clusters import RowCluster, row_clusters

__warningregistry__ = "see kernel_binds"  # not a dict: Python raises instead of warning here
KernelBind = Callable[[tuple, tuple, Lambda, Callable, Source | None], Bind]


def with_row_kernels(fn: Lambda, kernel_bind: KernelBind, is_exact: bool, worth: int) -> Lambda:
    """``fn`` with kernels for its own groups with reductions; ``fn`` itself if there are none.

    ``kernel_bind(results, operands, body, call, source)`` is the bind of a kernel.
    """
    if not any(bind.op.reduction is not None for bind in fn.binds):
        return fn
    flat = without_groups(fn)
    flat = with_early_gathers(flat if is_exact else with_parts(flat))
    clusters = row_clusters(flat, partial(_may_join, is_exact=is_exact), worth)

    def make(
        cluster: RowCluster, body: Lambda, operands: tuple[Local, ...], results: tuple[Local, ...]
    ) -> Bind | None:
        space = Space(cluster.shape, *cluster.split)
        kernel = row_kernel(body, space, is_exact)
        if kernel is None:
            return None
        call = _RowCall(kernel, [result.type.shape for result in results])
        return kernel_bind(results, operands, body, call, body.binds[-1].source)

    found = regrouped(flat, clusters, make)
    return fused_level(found) if any(b.op.role == "kernel" for b in found.binds) else fn


def _may_join(bind: Bind, is_exact: bool) -> bool:
    """Whether a kernel may compute a bind."""
    if bind.op.elementwise:
        return has_scalar_form(bind, is_exact)
    return may_reduce(bind, is_exact)


class LayoutError(Exception):
    """Raised for operands with which NumPy's results have another order of memory."""


class _RowCall:
    """The call of a kernel with operands of any shape."""

    def __init__(self, made: RowKernel, shapes: list[tuple[int, ...]]):
        self.ufunc = ufunc_of(made.kernel, made.signature)
        self.operands, self.shapes = made.operands, shapes
        self.columns, self.scratch = made.space.columns, made.scratch
        self.is_one = len(shapes) == 1
        # reductions give arrays in the order of C, other results in that of the operands
        self.keeps_order = any(len(shape) > 1 for shape in shapes)

    def __call__(self, *operands: Any) -> Any:
        """The results for these operands. Raises LayoutError."""
        if self.keeps_order and not all(map(_has_c_order, operands)):
            raise LayoutError
        given = []
        for n, kind, shape in self.operands:
            x = operands[n]
            x = x if np.shape(x) == shape else np.reshape(x, shape)
            if kind in ("full", "column") and x.strides[-1] != x.itemsize:
                x = np.ascontiguousarray(x)
            given.append(x)
        given += [np.empty(self.columns, dtype) for dtype in self.scratch]
        found = self.ufunc(*given)
        shaped = [
            y if y.shape == shape and shape else y.reshape(shape)[()]  # [()]: NumPy's scalar
            for y, shape in zip((found,) if self.is_one else found, self.shapes, strict=True)
        ]
        return shaped[0] if self.is_one else tuple(shaped)


def _has_c_order(x: Any) -> bool:
    """Whether the axes of an array lie in memory in the order of C."""
    if np.ndim(x) < 2 or x.flags.c_contiguous:
        return True
    steps = [step for step, n in zip(x.strides, x.shape, strict=True) if n != 1]
    return all(a >= b > 0 for a, b in pairwise(steps))
