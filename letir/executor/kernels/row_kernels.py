"""Groups with reductions as calls of compiled kernels, see ``letir.kernels.row_passes``.

A kernel is a generalized ufunc on matrices. Operands are reshaped to matrices, to vectors with one
element per row, or to vectors with one element per column; results are reshaped back.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast.attrs import Attrs
from letir.ast.terms import Bind, Lambda, Local
from letir.executor.kernels.kernel_binds import LayoutError
from letir.executor.kernels.row_cuts import RowCut
from letir.kernels.few_columns import row_kernel
from letir.kernels.llvm.machine_code import begin_ufunc
from letir.kernels.reduction_forms import is_sum
from letir.kernels.row_interface import RowKernel
from letir.kernels.row_passes import Space, may_reduce
from letir.kernels.row_products import is_product
from letir.kernels.scalar_lowering import has_c_order, has_scalar_form
from letir.kernels.threads import threads_of_call
from letir.ops.elementwise.fused import fused
from letir.passes.dead_code_elimination import dead_code
from letir.passes.fusion.early_gathers import with_early_gathers
from letir.passes.fusion.fusing import fused_level
from letir.passes.fusion.reduction_parts import with_numbers, with_parts, with_products
from letir.passes.fusion.regrouping import regroup_clusters, without_groups
from letir.passes.fusion.row_clusters import RowCluster, row_clusters
from letir.passes.fusion.varying_numbers import with_varying_numbers
from letir.passes.peephole_rules.implicit_broadcast import remove_implicit_expands

__warningregistry__ = "see kernel_binds"  # not a dict: warnings.warn fails
_TRANSPOSITION, _FUNCTION = 5, 8  # the work of a transposed copy, and of an elementary function


@frozen
class RowGroup:
    """A group with reductions: the ``space`` of its values, and the ``kernel`` of its ``body``."""

    space: Space
    body: Lambda
    kernel: RowKernel


def with_row_groups(
    fn: Lambda, is_exact: bool, min_elements: int, on_device: bool = False
) -> tuple[Lambda, dict[Local, RowGroup]]:
    """``fn`` with a ``fused`` bind for each group with reductions, not for groups in bodies; the
    groups, by each of their results. ``on_device``: kernels save launches.
    """
    groups: dict[Local, RowGroup] = {}
    if not any(b.op.reduction is not None or is_product(b) for b in fn.binds):
        return fn, groups
    flat = without_groups(fn)
    # derivatives contain broadcasts of operands that the operations would broadcast anyway
    numbered = with_numbers(flat)
    shorter = remove_implicit_expands(numbered)
    flat = shorter if numbered is flat else dead_code(shorter)
    flat = with_early_gathers(flat if is_exact else with_products(with_parts(flat)))
    flat = with_varying_numbers(flat)  # such as the lengths of rows of which means are taken
    may_join = partial(_may_join, is_exact=is_exact)
    counts = () if on_device else _counts_of_stored_masks(flat, may_join)
    if counts:
        may_join = partial(_may_join, is_exact=is_exact, outside=counts)
    clusters = row_clusters(flat, may_join, min_elements, with_products=not is_exact)

    def make(
        cluster: RowCluster, body: Lambda, operands: tuple[Local, ...], results: tuple[Local, ...]
    ) -> Bind | None:
        space = Space(cluster.shape, *cluster.split)
        kernel = row_kernel(body, space, is_exact)
        if kernel is None:
            return None
        groups.update(dict.fromkeys(results, RowGroup(space, body, kernel)))
        return Bind(results, fused, operands, Attrs(body=body), body.binds[-1].source)

    regrouped = regroup_clusters(flat, clusters, make)
    return fused_level(regrouped) if groups else fn, groups


def row_calls(
    fn: Lambda, groups: dict[Local, RowGroup], is_exact: bool
) -> dict[int, "RowCall"] | None:
    """The calls of a program's groups with reductions, by position; None if one has no kernel.

    The kernels are being compiled when this returns: ``finish`` of each call waits.
    """
    kernels = {}
    for n, bind in enumerate(fn.binds):
        group = groups.get(bind.binders[0]) if bind.op.role == "fused" else None
        if group is not None:
            body = bind.attrs["body"]
            is_same = body is group.body
            kernels[n] = group.kernel if is_same else row_kernel(body, group.space, is_exact)
    if None in kernels.values():
        return None
    calls = {}
    for n, kernel in kernels.items():
        body = fn.binds[n].attrs["body"]
        shapes = [x.type.shape for x in fn.binds[n].binders]
        calls[n] = RowCall(kernel, shapes, RowCut.from_kernel(kernel, body))
        is_alone = len(body.binds) == 1
        calls[n].copies = not is_alone and not any(map(is_product, body.binds))
        calls[n].copies_rows = not is_alone
        costs = [1 if b.op.cost in ("free", "cheap", "moderate") else _FUNCTION for b in body.binds]
        calls[n].copies_columns = sum(costs) > _TRANSPOSITION
    return calls


def _counts_of_stored_masks(fn: Lambda, may_join: Callable[[Bind], bool]) -> frozenset[Local]:
    """The numbers of true elements of masks that binds outside of kernels read.

    Such a mask must be stored anyway, and NumPy counts in a tenth of the time of a kernel's sum.
    """
    counts = [bind for bind in fn.binds if _is_count(bind)]
    if not counts:
        return frozenset()
    stored = set(fn.ret.args)
    for bind in fn.binds:
        if not (bind.args and len(bind.binders) == 1 and may_join(bind)):
            stored.update(bind.args)
    return frozenset([bind.binders[0] for bind in counts if bind.args[0] in stored])


def _is_count(bind: Bind) -> bool:
    """Whether a bind adds up all elements of a mask."""
    if not is_sum(bind.op) or len(bind.args) != 1:
        return False
    mask, total = bind.args[0].type, bind.binders[0].type
    return mask is not None and total is not None and mask.dtype == bool and not total.shape


def _may_join(bind: Bind, is_exact: bool, outside: frozenset[Local] = frozenset()) -> bool:
    """Whether a kernel may compute a bind, none of the ``outside`` ones."""
    if not outside.isdisjoint(bind.binders):
        return False
    if bind.op.elementwise:
        return has_scalar_form(bind, is_exact)
    return may_reduce(bind, is_exact)


class RowCall:
    """The call of a kernel with operands of any shape.

    The compilation of the kernel begins here; calls are allowed after ``finish``.
    """

    ufunc: Any
    copies = True  # operands with gaps between the elements of a row
    copies_rows = True  # operands with gaps between rows, where these have to lie side by side
    copies_columns = True  # operands whose columns lie side by side, not their rows
    new_array: Callable = staticmethod(np.empty)  # makes the arrays of results

    def __init__(
        self, lowered: RowKernel, shapes: list[tuple[int, ...]], cut: RowCut | None = None
    ):
        self.lowered, self.cut = lowered, cut
        self.begun: Callable | None = begin_ufunc(lowered.kernel, lowered.signature)
        self.operands, self.shapes = lowered.operands, shapes
        self.columns, self.scratch = lowered.space.columns, lowered.scratch
        self.is_one = len(shapes) == 1
        self.has_rows_in_line = lowered.kernel.columns > 0
        # reductions return arrays in C order, other operations in the order of their operands
        self.keeps_order = any(len(shape) > 1 for shape in shapes)

    def finish(self) -> None:
        """Wait for the machine code."""
        if self.begun is not None:
            self.ufunc, self.begun = self.begun(), None
            self.cut = self.cut if isinstance(self.ufunc, np.ufunc) else None

    def __call__(self, *operands: Any) -> Any:
        """The results for these operands. Raises LayoutError."""
        if self.keeps_order and not all(map(has_c_order, operands)):
            raise LayoutError
        inputs = []
        for n, kind, shape in self.operands:
            x = operands[n]
            # methods: NumPy's functions on a number take as long as a small kernel
            x = x if type(x) is np.ndarray else np.array(x)
            x = x if x.shape == shape else x.reshape(shape)
            has_gaps = kind.endswith(("full", "column")) and x.strides[-1] != x.itemsize
            lies_apart = self.has_rows_in_line and not _lies_in_line(x, kind)
            if (has_gaps and not self.copies) or (lies_apart and not self.copies_rows):
                raise LayoutError  # a copy takes longer than NumPy's own calls
            if (
                has_gaps
                and not self.copies_columns
                and x.ndim > 1
                and x.strides[-1] > x.strides[-2]
            ):
                raise LayoutError
            if has_gaps or lies_apart:
                x = np.ascontiguousarray(x)
            inputs.append(x)
        threads = 1 if self.cut is None else self.cut.max_threads or threads_of_call()
        if self.cut is not None and (self.cut.blocks or threads > 1):
            results: Any = self.cut.run(self.ufunc, inputs, threads, self.new_array)
        else:
            inputs += [np.empty(self.columns, dtype) for dtype in self.scratch]
            results = self.ufunc(*inputs, **self.out())
            results = (results,) if self.is_one else results
        shaped = list(map(_reshape_result, results, self.shapes))
        return shaped[0] if self.is_one else tuple(shaped)

    def out(self) -> dict[str, tuple]:
        """The keywords of the ufunc: arrays for the results, unless NumPy makes them."""
        if self.new_array is np.empty:
            return {}
        lowered = self.lowered
        arrays = [array for array in lowered.kernel.arrays if array.is_written]
        pairs = zip(lowered.results, arrays, strict=True)
        return {"out": tuple([self.new_array(lowered.shape_of(k), a.dtype) for k, a in pairs])}


def _reshape_result(y: np.ndarray, shape: tuple[int, ...]) -> Any:
    """A result in its shape; NumPy's scalar if it has no axes."""
    if not shape:
        return y[(0,) * y.ndim]
    if y.shape == shape:
        return y
    if type(y) is not np.ndarray or y.base is not None or not y.flags.c_contiguous:
        return y.reshape(shape)  # also a NumPy scalar
    y.resize(shape, refcheck=False)  # a view would not own its memory, as NumPy's results do
    return y


def _lies_in_line(x: np.ndarray, kind: str) -> bool:
    """Whether the rows of an operand of this kind are adjacent in memory."""
    if kind.endswith("full"):
        return x.strides[-2] == x.shape[-1] * x.itemsize
    return not kind.endswith("row") or x.strides[-1] == x.itemsize
