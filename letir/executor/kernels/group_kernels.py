"""Groups of fused binds as calls of compiled kernels, where these save time."""

from collections import defaultdict
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.bodies import all_bodies, map_bodies
from letir.ast.liveness import live_binds
from letir.ast.terms import Bind, Lambda, Local
from letir.executor.kernels.kernel_binds import kernel_bind
from letir.executor.kernels.matrix_calls import body_of_one, matrix_group
from letir.executor.kernels.row_kernels import RowGroup, row_calls, with_row_groups
from letir.executor.kernels.stencil_calls import stencil_bind
from letir.executor.kernels.threaded_calls import least_size, with_threads
from letir.executor.kernels.visible_order import operands_of_mixed_order, visible_orders
from letir.kernels.elementwise_groups import kernel_of
from letir.kernels.llvm import machine_code
from letir.kernels.loop_language import Kernel
from letir.kernels.machine_costs import machine_costs
from letir.kernels.scalar_forms import is_worth_a_kernel
from letir.kernels.scalar_lowering import MAX_ARRAYS, has_scalar_form
from letir.ops.elementwise.fused import fused
from letir.passes.fusion.cluster_fits import Split, joins_group
from letir.passes.fusion.clustering import MAX_COMPILED, work_alone, work_of
from letir.passes.fusion.fusing import with_shared_bodies
from letir.passes.fusion.group_pieces import with_group_pieces
from letir.passes.fusion.residual_copies import recompute_residuals
from letir.passes.fusion.stencil_groups import (
    StencilGroup,
    shifted_binds,
    stencil_groups,
    with_rolled_groups,
)
from letir.passes.fusion.varying_numbers import with_varying_numbers


def with_kernels(
    fn: Lambda, is_exact: bool = False, min_elements: int | None = None, *, on_device: bool = False
) -> Lambda:
    """``fn`` with groups replaced by calls of kernels; ``fn`` itself if no group becomes a kernel.

    ``is_exact``: only kernels whose bits are NumPy's. ``min_elements``: the fewest elements for
    which a kernel saves time; by default as ``machine_costs`` says. ``on_device``: only kernels
    that save launches on a device. Kernels are compiled here.
    """
    least = machine_costs().least_elements if min_elements is None else min_elements
    groups = {id(b.attrs["body"]) for f in all_bodies(fn) for b in f.binds if b.op.role == "fused"}

    def level(body: Lambda) -> Lambda:
        if id(body) in groups:
            return body
        body = body if on_device else with_varying_numbers(body)
        return _level_with_kernels(body, is_exact, least, on_device)

    return map_bodies(fn, level)


def with_device_kernels(fn: Lambda, is_exact: bool = False) -> Lambda:
    """``with_kernels`` for a device, where a launch takes longer than most operations."""
    return with_kernels(fn, is_exact, 1, on_device=True)


def _level_with_kernels(fn: Lambda, is_exact: bool, min_elements: int, on_device: bool) -> Lambda:
    """``fn`` with kernels for its groups, not for groups in bodies."""
    grouped, rows = _with_groups(fn, is_exact, min_elements, on_device)
    fn, repeated = _with_recomputation(grouped, rows, is_exact, min_elements)
    calls = row_calls(fn, rows, is_exact)
    if calls is None:  # recomputation made a group that no kernel computes
        fn, repeated, calls = grouped, {}, row_calls(grouped, rows, is_exact)
    assert calls is not None, "these kernels were made before"
    matrices: dict[int, Any] = {}
    if not on_device:  # these save no launches
        groups = {
            n: matrix_group(bind, is_exact, min_elements)
            for n, bind in enumerate(fn.binds)
            if n not in calls
        }
        matrices = {n: group for n, group in groups.items() if group is not None}
        fn = _with_single_groups(fn, matrices, is_exact, min_elements)
    kernels = _kernels_of(fn.binds, {*calls, *matrices}, is_exact, min_elements)
    stencils = {} if on_device else stencil_groups(fn, kernels, is_exact, least_size)
    ufuncs = machine_code.ufuncs_of(_forms_of(kernels, stencils))
    kernel_calls: dict[int, tuple[Lambda, Callable]] = dict(matrices)
    kernel_calls |= {n: (fn.binds[n].attrs["body"], call) for n, call in calls.items()}
    for _, waiting in kernel_calls.values():
        waiting.finish()  # type: ignore[attr-defined]
    for n, ufunc in zip(kernels, ufuncs, strict=True):
        body = fn.binds[n].attrs["body"]
        kernel_calls[n] = body, ufunc if n in stencils else with_threads(ufunc, body)
    if not kernel_calls:
        return fn
    binds, with_call = list(fn.binds), _bind_maker(fn, {*kernels, *matrices}, repeated)
    for n, (body, call) in kernel_calls.items():
        stencil = stencils.get(n)
        if stencil is None:
            binds[n] = with_call(n, body, call)
            continue
        plain = partial(_plain_bind, with_call, n, kernels[n], body)
        place = n if stencil.write is None else stencil.write.position
        binds[place] = stencil_bind(stencil, call, plain)
    result = fn.with_binds(binds)
    return result.with_binds(live_binds(result)) if stencils else result


def _with_groups(
    fn: Lambda, is_exact: bool, min_elements: int, on_device: bool
) -> tuple[Lambda, dict[Local, RowGroup]]:
    """``fn`` with the groups that may become kernels; those with reductions, by their results."""
    grouped, rows = with_row_groups(fn, is_exact, min_elements, on_device)
    if on_device:
        return with_shared_bodies(grouped, rows), rows
    has_kernel = partial(_has_kernel, is_exact=is_exact)
    grouped = with_group_pieces(grouped, has_kernel, MAX_ARRAYS, min_elements, rows)
    return with_rolled_groups(with_shared_bodies(grouped, rows), rows, is_exact), rows


def _has_kernel(body: Lambda, is_exact: bool) -> bool:
    return kernel_of(body, is_exact) is not None


def _forms_of(
    kernels: Mapping[int, Kernel], stencils: Mapping[int, StencilGroup]
) -> list[tuple[Kernel, str | None]]:
    """(kernel, signature) of the function to compile for each group, None for a plain ufunc."""
    forms: dict[int, tuple[Kernel, str | None]]
    forms = {n: (kernel, None) for n, kernel in kernels.items()}
    forms |= {n: (group.lowered.kernel, group.lowered.signature) for n, group in stencils.items()}
    return [*forms.values()]


def _bind_maker(fn: Lambda, elementwise: Container[int], repeated: dict[Local, int]) -> Callable:
    """The function of (position, body, call) that makes the bind of a program's group.

    ``elementwise``: the positions of groups with elementwise kernels.
    """
    shown = visible_orders(fn)

    def with_call(n: int, body: Lambda, call: Callable) -> Bind:
        bind = fn.binds[n]
        places, in_c_order = operands_of_mixed_order(body, bind.binders, shown)
        return kernel_bind(
            *(bind.binders, bind.args, body, call, bind.source),
            in_one_order=places if n in elementwise else (),
            in_c_order=in_c_order,
            repeated=repeated.get(bind.binders[0], 0),
        )

    return with_call


def _plain_bind(with_call: Callable, n: int, kernel: Kernel, body: Lambda) -> Bind:
    """The bind of a group at position ``n`` with its elementwise kernel, compiled now."""
    return with_call(n, body, with_threads(machine_code.ufunc_of(kernel), body))


def _with_single_groups(
    fn: Lambda, others: Container[int], is_exact: bool, min_elements: int
) -> Lambda:
    """``fn`` with a group for each function that is worth a kernel alone, except at ``others``."""
    groups, shifted = {}, frozenset(shifted_binds(fn, is_exact))
    for n, bind in enumerate(fn.binds):
        work = bind.binders[0].type.size if n in shifted else work_alone(bind)
        is_large = work >= min_elements and n not in others
        is_worth = n in shifted or is_worth_a_kernel(bind)
        if is_large and is_worth and has_scalar_form(bind, is_exact):
            operands, attrs = tuple(dict.fromkeys(bind.locals())), Attrs(body=body_of_one(bind))
            groups[n] = Bind(bind.binders, fused, operands, attrs, bind.source)
    if not groups:
        return fn
    return fn.with_binds([groups.get(n, bind) for n, bind in enumerate(fn.binds)])


def _with_recomputation(
    fn: Lambda, rows: dict[Local, RowGroup], is_exact: bool, min_elements: int
) -> tuple[Lambda, dict[Local, int]]:
    """``recompute_residuals`` of a program with the groups ``rows``."""

    def is_kernel(group: Bind) -> bool:
        if group.binders[0] in rows:
            return True
        body = group.attrs["body"]
        return work_of(body) >= min_elements and _kernel_for(group, is_exact) is not None

    def fits(group: Bind, bind: Bind, copied: set) -> bool:
        if not has_scalar_form(bind, is_exact):
            return False
        row = rows.get(group.binders[0])
        if row is None:
            return bind.binders[0].type.shape == group.binders[0].type.shape
        space = row.space
        split = Split(space.lead, space.split, space.is_stacked)
        return joins_group(bind, space.shape, split, copied)

    return recompute_residuals(fn, is_kernel, fits)


def _kernels_of(
    binds: tuple[Bind, ...], others: Container[int], is_exact: bool, min_elements: int
) -> dict[int, Kernel]:
    """The kernels that save time, by the position of their group, except at ``others``.

    Equal groups, such as those of the steps of an unrolled loop, share one kernel, which saves time
    if together they compute enough elements.
    """
    work, operations = {}, {}
    for n, bind in enumerate(binds):
        if bind.op.role == "fused" and n not in others:
            body = bind.attrs["body"]
            work[n] = work_of(body)
            operations[n] = tuple([(inner.op, inner.binders[0].type) for inner in body.binds])
    likely = _worth_together(work, operations, min_elements)
    kernels = {n: k for n in likely if (k := _kernel_for(binds[n], is_exact)) is not None}
    # groups of the same operations may still differ in their operands
    texts = {n: n if work[n] >= min_elements else str(kernel) for n, kernel in kernels.items()}
    return {n: kernels[n] for n in _worth_together(work, texts, min_elements)}


def _worth_together(work: dict[int, float], keys: dict[int, Any], min_elements: int) -> list[int]:
    """The positions of groups that compute enough elements, together with groups of equal keys."""
    totals: dict[Any, float] = defaultdict(float)
    for n, key in keys.items():
        totals[key] += work[n]
    return [n for n, key in keys.items() if totals[key] >= min_elements]


def _kernel_for(bind: Bind, is_exact: bool) -> Kernel | None:
    """The kernel of a group; None if NumPy has to compute it."""
    body = bind.attrs["body"]
    if len(body.params) != len(bind.args) or len(body.binds) > MAX_COMPILED:
        return None
    if any(p.type != a.type for p, a in zip(body.params, bind.args, strict=True)):
        return None
    return kernel_of(body, is_exact)


LATE_BOUND.update(with_kernels=with_kernels, with_device_kernels=with_device_kernels)
