"""Groups of binds on the items of a batch as calls of kernels, see ``letir.kernels.batches``."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.primitive import Primitive
from letir.ast.terms import NO_TYPE, Bind, Lambda, Local
from letir.ast.types import ArrayType
from letir.errors import LetirError
from letir.eval.float_warnings import KernelError
from letir.executor.kernels.arena import contiguous_copy
from letir.executor.kernels.kernel_binds import LayoutError, kernel_bind
from letir.executor.kernels.threaded_calls import chunk_count, least_size, places_of
from letir.kernels.batches.batch_lowering import BatchKernel, batch_kernel
from letir.kernels.batches.item_binds import bind_kind, is_batch, is_shared
from letir.kernels.llvm.machine_code import ufunc_of
from letir.kernels.machine_costs import machine_costs
from letir.kernels.scalar_lowering import has_c_order
from letir.kernels.threads import run_chunks, threads_of_call
from letir.ops.define.composite_programs import is_computed_by_parts
from letir.ops.define.records import decomposition
from letir.passes.decomposition import CompositeParts
from letir.passes.fusion.batch_clusters import BatchCluster, batch_clusters, batch_sizes
from letir.passes.fusion.fusing import fused_level
from letir.passes.fusion.regrouping import regroup_clusters, without_groups

__warningregistry__ = "see kernel_binds"  # not a dict: warnings.warn fails
_MAX_COPIED = 16  # the most elements per item of a non-contiguous operand, which is copied


def with_batch_kernels(
    fn: Lambda, is_exact: bool = False, min_elements: int | None = None
) -> Lambda:
    """``fn`` with kernels for its groups on items of a batch, not for groups in bodies.

    ``is_exact``: only kernels whose bits are NumPy's. ``min_elements``: the fewest elements for
    which a kernel saves time; by default as ``machine_costs`` says. Kernels are compiled here.
    """
    least = machine_costs().least_elements if min_elements is None else min_elements
    sizes = batch_sizes(fn)
    if not sizes:
        return fn
    result = without_groups(fn)
    for n in sizes:
        result = _with_parts(result, n, is_exact)
        clusters = batch_clusters(result, n, is_exact, least)

        def make(
            cluster: BatchCluster,
            body: Lambda,
            operands: tuple[Local, ...],
            results: tuple[Local, ...],
        ) -> Bind | None:
            kernel = batch_kernel(body, cluster.n, is_exact)
            if kernel is None:
                return None
            source = body.binds[-1].source
            return kernel_bind(results, operands, body, BatchCall(kernel, body), source)

        result = regroup_clusters(result, clusters, make) if clusters else result
    return fused_level(result) if any(b.op.role == "kernel" for b in result.binds) else fn


def _with_parts(fn: Lambda, n: int, is_exact: bool) -> Lambda:
    """``fn`` with composites decomposed whose parts all compute ``n`` items by themselves."""

    def is_wanted(op: Primitive) -> bool:
        return op.decompose is not None and (is_computed_by_parts(op) or not is_exact)

    def has_parts(bind: Bind) -> bool:
        if not all(is_batch(binder.type, n) for binder in bind.binders):
            return False
        if bind_kind(bind, n, is_exact):
            return False
        types = [None if arg.type is NO_TYPE else arg.type for arg in bind.args]
        if any(aval is None for aval in types):
            return False
        try:
            parts = decomposition(bind.op.decompose, tuple(types), bind.attrs)
        except LetirError:
            return False
        # parts without operands are constants
        return bool(parts.binds) and all(
            bind_kind(part, n, is_exact) for part in parts.binds if part.args
        )

    return CompositeParts(is_wanted, has_parts).decompose_level(fn)


class BatchCall:
    """The call of a kernel over a batch, which computes ``body``."""

    new_array: Callable = staticmethod(np.empty)  # makes the arrays of results

    def __init__(self, lowered: BatchKernel, body: Lambda):
        self.lowered, self.ufunc = lowered, ufunc_of(lowered.kernel, lowered.signature)
        self.avals = [param.type for param in body.params]
        self.ordered = [not _is_shared_factor(param, body) for param in body.params]
        self.results = [arg.type for arg in body.ret.args]
        self.sizes = self.sizes_of(0, lowered.n)
        # an ``InterpretedCall`` is not a ufunc; parts are added in the order of the items
        may_split = isinstance(self.ufunc, np.ufunc) and lowered.may_split
        self.cut = True if may_split and lowered.n >= least_size(body) else None
        self.scratch = (np.dtype(np.uint8),)  # its columns are bytes, see ``plan_memory``
        self.columns = sum([size * dtype.itemsize for size, dtype in lowered.scratch])

    def sizes_of(self, first: int, end: int) -> np.ndarray:
        """The kernel's operand that says which items to compute."""
        return np.array([first, end, *self.lowered.lengths], np.int64)

    def __call__(self, *operands: Any) -> Any:
        """The results. Raises LayoutError, and KernelError for an index out of bounds."""
        inputs = [
            self.flatten_operand(x, aval, is_ordered)
            for x, aval, is_ordered in zip(operands, self.avals, self.ordered, strict=True)
        ]
        result = [
            self.new_result(start, aval, operands)
            for start, aval in zip(self.lowered.starts, self.results, strict=True)
        ]
        flat = [y.reshape(-1) for y in result]
        threads = threads_of_call() if self.cut else 1
        outside = (
            self.run_in_chunks(inputs, flat, threads) if threads > 1 else self.run(inputs, flat)
        )
        if outside:
            raise KernelError("an index out of bounds")
        return tuple(result) if len(result) > 1 else result[0]

    def flatten_operand(self, x: Any, aval: ArrayType, is_ordered: bool = True) -> np.ndarray:
        """An operand as the kernel reads it. Raises LayoutError and KernelError.

        ``is_ordered``: the memory order of NumPy's results would be the operand's.
        """
        if is_ordered and not has_c_order(x):
            raise LayoutError
        if np.shape(x) != aval.shape:
            raise KernelError("operands of other sizes")
        if aval.size > _MAX_COPIED * self.lowered.n and not x.flags.c_contiguous:
            raise KernelError("a copy would take longer than the group")
        if isinstance(x, np.ndarray) and not x.flags.c_contiguous:
            return contiguous_copy(x, aval.dtype).reshape(-1)
        try:
            return np.ascontiguousarray(x, aval.dtype).reshape(-1)
        except OverflowError as error:
            raise KernelError("a large Python integer") from error

    def new_result(self, start: int | None, aval: ArrayType, operands: Sequence) -> np.ndarray:
        """The array of a result, before the kernel writes or adds to it."""
        if start is not None and start < 0 and self.new_array is np.empty:
            return np.zeros(aval.shape, aval.dtype)
        result = self.new_array(aval.shape, aval.dtype)
        if start is not None:
            result[...] = 0 if start < 0 else operands[start]
        return result

    def run(self, inputs: list, results: list) -> bool:
        """Compute all items; returns whether an index was out of bounds."""
        outside = np.zeros(1, np.bool_)
        scratch = [np.empty(size, dtype) for size, dtype in self.lowered.scratch]
        self.ufunc(*inputs, self.sizes, *scratch, out=(*results, outside))
        return bool(outside[0])

    def run_in_chunks(self, inputs: list, results: list, threads: int) -> bool:
        """``run`` in several threads."""
        n = self.lowered.n
        places = places_of(n, chunk_count(n, n, threads))
        outside = np.zeros((len(places), 1), np.bool_)

        def compute(chunk: int) -> None:
            sizes = self.sizes_of(places[chunk].start, places[chunk].stop)
            self.ufunc(*inputs, sizes, out=(*results, outside[chunk]))

        run_chunks(compute, len(places), threads)
        return bool(outside.any())


def _is_shared_factor(param: Local, body: Lambda) -> bool:
    """Whether all items are multiplied by an operand, whose memory order then changes nothing."""
    users = [bind for bind in body.binds if param in bind.locals()]
    return is_shared(param.type) and all(bind.op.product == "matrix" for bind in users)


LATE_BOUND["with_batch_kernels"] = with_batch_kernels
