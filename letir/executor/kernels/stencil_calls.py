"""Calls of kernels that read parts of arrays, or write their result into a part of an array."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from letir.ast.primitive import Primitive
from letir.ast.record_fields import never
from letir.ast.terms import Bind, Lambda
from letir.eval.float_warnings import KERNEL_STATES, SETTING_FILES, current_state
from letir.executor.kernels.arena import contiguous_copy
from letir.executor.kernels.kernel_binds import LayoutError, result_of_forms
from letir.executor.kernels.kernel_kinds import try_to_compile
from letir.executor.kernels.threaded_calls import chunk_count, least_size, places_of
from letir.kernels.scalar_lowering import has_c_order
from letir.kernels.stencils.stencil_places import View
from letir.kernels.threads import run_chunks, threads_of_call
from letir.passes.fusion.regrouping import without_groups
from letir.passes.fusion.stencil_groups import StencilGroup
from letir.plan.plan import plan_of

__warningregistry__ = "see kernel_binds"  # not a dict: warnings.warn fails
SETTING_FILES.add(__file__)
_NO_RULE = never("kernels are made after derivatives are taken")
_MIN_COPIED = 1 << 14  # elements of results for which strided arrays are copied


class StencilCall:
    """The call of a kernel on whole arrays.

    ``in_order``: the arrays with several axes, which must have C order for the results to have it.
    """

    new_array: Callable = staticmethod(np.empty)  # makes the arrays of results

    def __init__(self, ufunc: Any, group: StencilGroup):
        self.ufunc, self.lowered, self.target = ufunc, group.lowered, group.target
        self.is_one = len(self.lowered.dtypes) == 1
        self.in_order = tuple([n for n, x in enumerate(group.arrays) if len(x.type.shape) > 1])
        is_large = prod(self.lowered.loops) >= least_size(group.bind.attrs["body"])
        self.axes = _cut_axes(group) if is_large and isinstance(ufunc, np.ufunc) else None

    @property
    def is_direct(self) -> bool:
        """Whether a plan may call the ufunc itself, so that small arrays take less time."""
        is_small = self.axes is None and prod(self.lowered.loops) < _MIN_COPIED
        return type(self.ufunc) is np.ufunc and is_small and not self.copies_rows

    @property
    def copies_rows(self) -> bool:
        """Whether NumPy has to copy the rows around the part that the kernel computes."""
        target = self.target
        return target is not None and target.around is not None and not target.copies_rows

    def __call__(self, *arrays: Any) -> Any:
        """The results. Raises LayoutError for arrays in an order that shows in the results."""
        if len(self.lowered.shape) > 1 and not all(has_c_order(arrays[n]) for n in self.in_order):
            raise LayoutError
        results = tuple(
            [self.new_array(self.lowered.shape, dtype) for dtype in self.lowered.dtypes]
        )
        self.run(arrays, results)
        if self.copies_rows:
            self.copy_rows(arrays, results[0])
        return results[0] if self.is_one else results

    def copy_rows(self, arrays: tuple, result: np.ndarray) -> None:
        """Copy the rows before and after the part that the kernel computes."""
        assert self.target is not None and self.target.around is not None, "see ``copies_rows``"
        source, start = arrays[self.target.around], self.target.view.places[0].start
        for rows in (slice(start), slice(start + self.lowered.loops[0], None)):
            result[rows] = source[rows]

    def write(self, target: np.ndarray, *arrays: Any) -> np.ndarray:
        """``target``, into a part of which the kernel has written its result."""
        self.run(arrays, (target,))
        return target

    def run(self, arrays: tuple, results: tuple) -> None:
        """Write the results, in several threads if that pays."""
        arrays = tuple(map(_with_unit_steps, arrays))
        threads = threads_of_call() if self.axes is not None else 1
        if threads == 1:
            self.ufunc(*arrays, out=results)
            return
        rows, n_out = self.lowered.loops[0], len(results)
        assert self.axes is not None, "calls in one thread are not cut"
        places = places_of(rows, chunk_count(rows, prod(self.lowered.loops), threads))
        pairs = list(zip((*arrays, *results), self.axes, strict=True))

        def compute(chunk: int) -> None:
            parts = [_rows_of(x, cut, places[chunk], rows) for x, cut in pairs]
            self.ufunc(*parts[:-n_out], out=tuple(parts[-n_out:]))

        run_chunks(compute, len(places), threads)


def _with_unit_steps(x: Any) -> Any:
    """An array whose elements along the last axis lie side by side, as vectorised loops need it.

    A number stays as it is.
    """
    if not isinstance(x, np.ndarray) or x.size < 2 or x.strides[-1] == x.itemsize:
        return x
    return contiguous_copy(x)


def _rows_of(x: np.ndarray, cut: tuple[int, int] | None, rows: slice, count: int) -> np.ndarray:
    """The part of an array that a kernel reads, or writes, for these rows of ``count``."""
    if cut is None:
        return x
    axis, step = cut
    # behind the last row come elements that the last one reads
    stop = x.shape[axis] - step * (count - rows.stop)
    return x[(*[slice(None)] * axis, slice(step * rows.start, stop))]


def _cut_axes(group: StencilGroup) -> tuple | None:
    """For each array and result the (axis, step) along which rows of the result are read from it,
    None if it is read whole; None if rows cannot be computed apart.
    """
    loops, target = group.lowered.loops, group.target
    views: list[list[View]] = [[] for _ in group.arrays]
    for read in group.reads.values():
        views[read.array].append(read.view)
    if target is not None and target.around is not None:
        views[target.around].append(target.view)
    if any(_wraps_rows(view, loops) for parts in views for view in parts):
        return None
    cuts = [{_cut_of(view, loops) for view in parts} for parts in views]
    if any(len(different) > 1 for different in cuts):
        return None
    written = _cut_of(View.whole(loops) if target is None else target.view, loops)
    return (*[cut for (cut,) in cuts], *[written] * len(group.lowered.dtypes))


def _wraps_rows(view: View, loops: tuple[int, ...]) -> bool:
    """Whether the rows of a view wrap around the end of the array."""
    return any(place.loop == 0 and place.wraps for place in view.in_loops(loops))


def _cut_of(view: View, loops: tuple[int, ...]) -> tuple[int, int] | None:
    """(axis, step) along which rows are read; None if the view is the same for all rows."""
    for axis, place in enumerate(view.in_loops(loops)):
        if place.loop == 0:
            return axis, place.step
    return None


# ---- binds ----


def stencil_bind(group: StencilGroup, ufunc: Any, plain: Callable[[], Bind]) -> Bind:
    """The bind that calls the kernel of a group.

    After a floating-point error, and for arrays in other memory orders, ``plain()`` computes the
    group: a bind with an elementwise kernel, or NumPy's operations.
    """
    call = StencilCall(ufunc, group)
    binders, args, update = group.binders, group.arrays, None
    facts: Any = _computing(group, call, plain)
    is_one, order = len(binders) == 1, None
    if group.write is not None and not group.write.is_read:
        written, order = group.write.bind, "first"
        update = _updating(group, call, plain, written.attrs["item"])
        facts = _updating_a_copy(update)
        args = (written.args[0], *args)  # type: ignore[arg-type]
    facts.body, facts.call = without_groups(group.body(group.bind)), call
    facts.least_state = 1
    facts.stencil = (ufunc, group.lowered.shape, group.lowered.dtypes) if call.is_direct else None
    op = Primitive(
        "kernel",
        facts,
        lambda *types: tuple([binder.type for binder in binders]),
        _NO_RULE,
        _NO_RULE,
        results=None if is_one else lambda: len(binders),
        update=update,
        order=order,
        no_float_errors=True,  # the call itself handles them
        role="kernel",
    )
    return Bind(binders, op, args, op.default_attrs, group.bind.source)


def _run_kernel(xp: Any, run: Callable, operands: tuple) -> Any:
    """What ``run(*operands)`` returns; None if another program has to compute the group."""
    is_usable = xp is np and KERNEL_STATES[current_state()]
    return result_of_forms([run], operands) if is_usable else None


def _other_program(group: StencilGroup, plain: Callable[[], Bind]) -> Callable:
    """The function (operands, array module) that computes a group without its kernel."""
    made: list[Lambda] = []  # when it is needed first

    def compute(operands: tuple, xp: Any) -> tuple:
        if not made:
            made.append(group.body(try_to_compile(plain, group.bind)))
        return plan_of(made[0]).run(list(operands), xp)

    return compute


def _computing(group: StencilGroup, call: StencilCall, plain: Callable) -> Callable:
    """The ``impl`` of a kernel that returns new arrays."""
    otherwise = _other_program(group, plain)

    def compute(xp, *operands):
        result = _run_kernel(xp, call, operands)
        if result is not None:
            return result
        results = otherwise(operands, xp)
        return results[0] if call.is_one else results

    return compute


def _updating(group: StencilGroup, call: StencilCall, plain: Callable, item: Any) -> Callable:
    """The ``update`` of a kernel that writes into a part of its first operand."""
    otherwise = _other_program(group, plain)

    def update(xp, x, *operands):
        if _run_kernel(xp, call.write, (x, *operands)) is None:
            # an array that is updated in place shares no memory with the others: they are unchanged
            (x[item],) = otherwise(operands, xp)
        return x

    return update


def _updating_a_copy(update: Callable) -> Callable:
    """The ``impl`` of an operation with this ``update``."""

    def copy_and_update(xp, x, *operands):
        return update(xp, xp.array(x, copy=True), *operands)

    return copy_and_update
