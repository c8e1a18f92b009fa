"""Chains of operations on few numbers as calls of one kernel."""

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
    units = unrolled_clusters(fn, has_form)
    found: dict[int, tuple] = {}
    for n, unit in enumerate(units):
        if type(unit) is UnrolledCluster:
            body = unit.body()
            made = unrolled_kernel(body, is_exact)
            if made is not None:
                found[n] = (body, *made)
    if not found:
        return fn
    ufuncs = compiler.ufuncs_of([(kernel, signature) for _, kernel, signature in found.values()])
    calls = dict(zip(found, ufuncs, strict=True))
    binds: list[Bind] = []
    for n, unit in enumerate(units):
        if type(unit) is not UnrolledCluster:
            binds.append(unit)
        elif n not in found:
            binds += unit.binds
        else:
            binders, args = tuple(unit.outputs), tuple(unit.operands)
            source = unit.binds[-1].source
            binds.append(kernel_bind(binders, args, found[n][0], calls[n], source))
            binds += unit.after
    return fn.with_binds(binds)


LATE_BOUND["with_unrolled_kernels"] = with_unrolled_kernels
