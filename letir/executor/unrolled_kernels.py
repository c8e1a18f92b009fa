"""Chains of operations on few numbers as calls of one kernel."""

from functools import partial

from letir.ast import LATE_BOUND
from letir.ast.terms import Bind, Lambda
from letir.executor.kernel_binds import kernel_bind
from letir.kernels import compiler
from letir.kernels.unrolled_groups import has_form, unrolled_kernel
from letir.passes.fusion.unrolled_clusters import UnrolledCluster, unrolled_clusters


def with_unrolled_kernels(fn: Lambda, is_exact: bool = False) -> Lambda:
    """``fn`` with kernels for chains of operations on small arrays and numbers, compiled here.

    ``is_exact``: only kernels that compute the bits that NumPy computes.
    """
    units = unrolled_clusters(fn, has_form, partial(unrolled_kernel, is_exact=is_exact))
    clusters = [unit for unit in units if type(unit) is UnrolledCluster]
    if not clusters:
        return fn
    ufuncs = iter(compiler.ufuncs_of([cluster.kernel for cluster in clusters]))
    binds: list[Bind] = []
    for unit in units:
        if type(unit) is not UnrolledCluster:
            binds.append(unit)
            continue
        binders, args = tuple(unit.outputs), tuple(unit.operands)
        source = unit.binds[-1].source
        binds.append(kernel_bind(binders, args, unit.body(), next(ufuncs), source))
        binds += unit.after
    return fn.with_binds(binds)


LATE_BOUND["with_unrolled_kernels"] = with_unrolled_kernels
