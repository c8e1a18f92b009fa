"""Elementwise groups whose operands are broadcast along short axes, as calls on matrices.

NumPy calls the loop of a ufunc once for each run of elements that all operands have in common: for
``x[:, None, :] - centres`` a run is one row, and a call takes longer than ten differences.
A generalized ufunc on matrices contains the loop over the rows.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.ast.types import ArrayType
from letir.eval.float_warnings import KernelError
from letir.executor.kernels.kernel_binds import LayoutError
from letir.executor.kernels.kernel_kinds import try_to_compile
from letir.executor.kernels.row_cuts import RowCut
from letir.executor.kernels.row_kernels import RowCall
from letir.kernels.elementwise_groups import kernel_of
from letir.kernels.few_columns import row_kernel
from letir.kernels.llvm.machine_code import ufunc_of
from letir.kernels.loop_language import Kernel
from letir.kernels.row_interface import RowKernel
from letir.kernels.row_passes import Space
from letir.kernels.scalar_lowering import has_scalar_form
from letir.passes.fusion.cluster_fits import all_splits, fit_into_cluster, least_split
from letir.passes.fusion.clustering import MAX_COMPILED

_MAX_RUN = 64  # elements: longer runs take longer to compute than to call
_WORTH_OF_ONE = 8  # a single operation needs this many times the work of a group


def matrix_group(
    bind: Bind, is_exact: bool, min_elements: int
) -> tuple[Lambda, "MatrixCall"] | None:
    """(the body, the call) of a bind that runs as a kernel on matrices; None for other binds.

    ``min_elements``: the fewest elements that a group has to compute. The compilation begins here.
    """
    is_group = bind.op.role == "fused"
    if not (is_group or bind.op.elementwise):
        return None
    size = getattr(bind.binders[0].type, "size", 0)
    binds = len(bind.attrs["body"].binds) if is_group else 1
    # first the tests that take no time: this runs for every bind
    if type(size) is not int or size * binds < min_elements * (1 if is_group else _WORTH_OF_ONE):
        return None
    body = _body_of(bind, is_exact)
    if body is None:
        return None
    space = _space_of(body)
    lowered = row_kernel(body, space, is_exact) if space else None
    kernel = kernel_of(body, is_exact) if lowered else None
    return (body, MatrixCall(lowered, body, kernel)) if lowered and kernel else None


def _body_of(bind: Bind, is_exact: bool) -> Lambda | None:
    """The program of a group or of a single elementwise bind."""
    if bind.op.role == "fused":
        body = bind.attrs["body"]
        pairs = zip(body.params, bind.args, strict=False)
        is_same = len(body.params) == len(bind.args) and all(p.type == a.type for p, a in pairs)
        return body if is_same and len(body.binds) <= MAX_COMPILED else None
    if len(bind.args) < 2 or not has_scalar_form(bind, is_exact):
        return None
    if any(type(arg) is not Local for arg in bind.args) or len({*bind.args}) < len(bind.args):
        return None
    return body_of_one(bind)


def body_of_one(bind: Bind) -> Lambda:
    """A single bind as the program of a group."""
    names = {arg: Local(arg.type, arg.name) for arg in bind.locals()}
    binders = tuple([Local(binder.type, binder.name) for binder in bind.binders])
    return Lambda(
        tuple(names.values()), (bind.substitute(names).replace(binders=binders),), Ret(binders)
    )


def _space_of(body: Lambda) -> Space | None:
    """The matrix of a group whose operands have only short runs of elements in common."""
    avals = [param.type for param in body.params]
    results: list[Arg] = [binder for bind in body.binds for binder in bind.binders]
    values = [binder.type for binder in results]
    for aval in (*avals, *values):
        if type(aval) is not ArrayType or aval.weak or type(aval.size) is not int:
            return None
    shape = values[0].shape
    if any(aval.shape != shape for aval in values) or _run_of(shape, avals) > _MAX_RUN:
        return None
    splits = all_splits(shape)
    for bind in body.binds:
        _, splits = fit_into_cluster(bind, shape, splits, dict.fromkeys(results, "full"))
    return Space(shape, *least_split(shape, splits)) if splits else None


def _run_of(shape: tuple[int, ...], avals: list) -> int:
    """The number of elements for which NumPy's iterator calls the loop of a ufunc once.

    All of them if no operand is broadcast along some axes only.
    """
    partial = [aval.shape for aval in avals if aval.size > 1 and aval.shape != shape]
    padded = [(1,) * (len(shape) - len(operand)) + operand for operand in partial]
    run, pattern = 1, None
    for axis in reversed(range(len(shape))):
        if shape[axis] == 1:
            continue
        broadcast_axes = [operand[axis] == 1 for operand in padded]
        if pattern is not None and broadcast_axes != pattern:
            return run
        run, pattern = run * shape[axis], broadcast_axes
    return math.prod(shape)


class MatrixCall(RowCall):
    """The call of an elementwise kernel on matrices.

    ``kernel``: the same group in the form of a ufunc, for operands in other memory orders.
    """

    def __init__(self, lowered: RowKernel, body: Lambda, kernel: Kernel):
        shapes = [arg.type.shape for arg in body.ret.args]
        super().__init__(lowered, shapes, RowCut.from_kernel(lowered, body))
        self.copies, self.kernel = False, kernel
        self.whole: Callable | None = None

    def __call__(self, *operands: Any) -> Any:
        try:
            return super().__call__(*operands)
        except LayoutError:
            if self.whole is None:
                self.whole = try_to_compile(partial(ufunc_of, self.kernel), _call_without_code)
            return self.whole(*operands)


def _call_without_code(*operands: Any) -> Any:
    """Stands in for a kernel that LLVM could not compile."""
    raise KernelError("not compiled")
