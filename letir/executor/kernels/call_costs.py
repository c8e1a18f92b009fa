"""The approximate times of NumPy's calls and of kernels, from sizes alone."""

from collections.abc import Sequence
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.terms import Arg, Bind, Local
from letir.kernels.machine_costs import machine_costs
from letir.passes.fusion.unrolled_clusters import UnrolledCluster


def cost_of_units(units: Sequence[Any]) -> float:
    """The approximate nanoseconds of calls of NumPy and of the kernels of clusters."""
    total, costs = 0.0, machine_costs()
    for unit in units:
        if isinstance(unit, UnrolledCluster):
            arrays = len(unit.operands) + len(unit.outputs)
            total += costs.kernel_call + costs.kernel_array * arrays
            total += costs.kernel_scalar * unit.work
            total += sum(map(cost_of_call, unit.after))
        else:
            bodies = unit.attrs["body"].binds if unit.op.role == "fused" else (unit,)
            total += sum(map(cost_of_call, bodies))
    return total


def cost_of_call(bind: Bind) -> float:
    """The approximate nanoseconds of NumPy's call for a bind."""
    op, costs = bind.op, machine_costs()
    if not bind.args or not bind.binders:
        return 0.0
    size = getattr(bind.binders[0].type, "size", None)
    if type(size) is not int or not all(map(_has_size, bind.args)):
        return costs.call
    if op.memory == "view":
        return costs.index if bind.binders[0].type.shape else costs.number_call
    if not any(arg.type.shape for arg in bind.args if type(arg) is Local):
        return costs.number_call
    if op.elementwise or op.update is not None:
        return costs.call + costs.element * size
    read = [arg.type.size for arg in bind.args if type(arg) is Local]
    return costs.call * max(len(read), 2) + costs.term * max(size, *read)


def _has_size(arg: Arg) -> bool:
    return type(arg) is not Local or type(getattr(arg.type, "size", None)) is int


LATE_BOUND["cost_of_units"] = cost_of_units
