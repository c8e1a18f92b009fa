"""Chains of operations on few numbers as calls of one kernel."""

from collections import Counter
from functools import partial

from letir.ast import LATE_BOUND
from letir.ast.terms import Bind, Lambda, Local
from letir.executor.kernels.call_costs import cost_of_units
from letir.executor.kernels.visible_order import operands_that_decide_orders, visible_orders
from letir.kernels.machine_costs import machine_costs
from letir.kernels.unrolled_groups import has_form, unrolled_kernel
from letir.passes.fusion.fusing import fused_level
from letir.passes.fusion.regrouping import without_groups
from letir.passes.fusion.unrolled_clusters import (
    UnrolledCluster,
    has_long_group,
    unrolled_clusters,
)

_MIN_UNITS = 8  # the fewest binds and clusters of a program for which tables are tried
_MUCH_WORK = 2_500  # scalars in different kernels; for more, LLVM takes over half a second

# scalars of a kernel for each nanosecond that it saves in a call: LLVM takes 100 us for a scalar,
# and a kernel that pays after more than ten thousand calls is not compiled
_MAX_EACH = 0.1


def with_unrolled_kernels(fn: Lambda, is_exact: bool = False) -> Lambda:
    """``fn`` with chains of operations on few numbers replaced by kernels, compiled here.

    ``is_exact``: only kernels whose bits are NumPy's.
    """
    is_flat = has_long_group(fn)
    original, fn = fn, without_groups(fn) if is_flat else fn
    # the memory order of other values shows in results of two or more axes only
    shows_order = any(type(arg) is Local and len(arg.type.shape or ()) > 1 for arg in fn.ret.args)
    kernel_of = partial(unrolled_kernel, is_exact=is_exact, keeps_order=shows_order)
    units = _without_costly_kernels(unrolled_clusters(fn, has_form, kernel_of, _may_pay))
    clusters = [unit for unit in units if type(unit) is UnrolledCluster]
    if not clusters:
        return original
    # equal clusters share a kernel
    kernels = {id(cluster.kernel): cluster.kernel for cluster in clusters}
    work = sum({id(cluster.kernel): cluster.work for cluster in clusters}.values())
    if len(units) >= _MIN_UNITS or work > _MUCH_WORK:
        # tables have no code to compile, so they may take a little longer than large kernels
        most = cost_of_units(units) * (2 if work > _MUCH_WORK else 1)
        tabled = LATE_BOUND["with_faster_tables"](original, most, is_exact)
        if tabled is not original:
            return tabled
    shown = visible_orders(fn)
    ufuncs = dict(zip(kernels, LATE_BOUND["ufuncs_of"]([*kernels.values()]), strict=True))
    by_body: dict[tuple, Bind] = {}
    binds: list[Bind] = []
    make_bind = LATE_BOUND["kernel_bind"]
    for unit in units:
        if type(unit) is not UnrolledCluster:
            binds.append(unit)
            continue
        binders, args = tuple(unit.outputs), tuple(unit.operands)
        body, source = unit.shared, unit.binds[-1].source
        places = operands_that_decide_orders(body, binders, shown)
        like = by_body.get((id(body), places))
        if like is None:
            parts = binders, args, body, ufuncs[id(unit.kernel)], source
            like = make_bind(*parts, keeps_order=is_exact, deciding=places)
            by_body[id(body), places] = like
        binds.append(Bind(binders, like.op, args, like.attrs, source))
        binds += unit.after
    result = fn.with_binds(binds)
    return fused_level(result) if is_flat else result


def _gain_of(cluster: UnrolledCluster) -> float:
    """The approximate nanoseconds that the kernel of a cluster saves in a call.

    The time of its scalar instructions is left out, because LLVM vectorises large clusters.
    """
    costs, arrays = machine_costs(), len(cluster.operands) + len(cluster.outputs)
    own = costs.kernel_call + costs.kernel_array * arrays
    return cost_of_units(cluster.binds) - own


def _may_pay(cluster: UnrolledCluster, most: int) -> bool:
    """Whether a kernel that at most ``most`` equal clusters share may be worth compiling."""
    return cluster.work <= _MAX_EACH * most * _gain_of(cluster)


def _without_costly_kernels(units: list) -> list:
    """The units, with the binds of a cluster in its place where its kernel is not worth compiling.

    A kernel of many scalars in few operations, such as products of matrices, takes LLVM a second
    and saves a few calls of NumPy.
    """
    clusters = [unit for unit in units if type(unit) is UnrolledCluster]
    counts = Counter([id(cluster.kernel) for cluster in clusters])
    result = []
    for unit in units:
        if type(unit) is UnrolledCluster and not _may_pay(unit, counts[id(unit.kernel)]):
            result += unit.binds
        else:
            result.append(unit)
    return result


LATE_BOUND["with_unrolled_kernels"] = with_unrolled_kernels
