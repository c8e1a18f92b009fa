"""Kernels of a plan on the arrays of a device."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.terms import Lambda
from letir.executor.kernels.loop_kernels import ArrayCall, CountedCall, TestedCall
from letir.executor.kernels.matrix_calls import MatrixCall
from letir.executor.kernels.row_kernels import RowCall
from letir.executor.kernels.threaded_calls import ThreadedCall
from letir.kernels.device.device_calls import ArrayLoopCall, ChainCall, ElementwiseCall
from letir.kernels.device.lanes import shared_loops
from letir.kernels.device.row_calls import RowsCall
from letir.kernels.device.stack_calls import StackCall
from letir.kernels.llvm.machine_code import code_of
from letir.kernels.scalar_lowering import is_complex


def device_call(call: Any, body: Lambda) -> Callable | None:
    """A function (array module, *arrays) that calls a kernel; None if CuPy has to compute.

    ``call``: the call of the same kernel on NumPy's arrays; ``body``: the binds of the kernel. CuPy
    computes chains whose results are Python numbers, and loops on arrays that the lanes of a warp
    cannot share.
    """
    if isinstance(call, CountedCall | TestedCall):
        return partial(_run_loop, call, ChainCall(code_of(call.ufunc).kernel))
    if any(arg.type is None or arg.type.weak for arg in body.ret.args):
        return None
    if any(is_complex(arg.type) for arg in (*body.params, *body.ret.args)):
        return None  # CuPy rounds complex products in its own way
    if isinstance(call, ArrayCall):
        kernel = code_of(call.ufunc).kernel
        # one thread alone would take longer than CuPy
        is_shared = bool(shared_loops(kernel))
        looped = ArrayLoopCall(kernel, call.scratch, call.results, call.avals)
        return looped if is_shared else None
    if isinstance(call, MatrixCall):
        return ElementwiseCall(call.kernel)
    if isinstance(call, RowCall):
        of_rows = StackCall if call.lowered.space.is_stacked else RowsCall
        return of_rows(call.lowered.for_device, call.shapes)
    ufunc = call.ufunc if isinstance(call, ThreadedCall) else call
    if not isinstance(ufunc, np.ufunc) and not hasattr(ufunc, "code"):  # of an InterpretedCall
        return None
    code = code_of(ufunc)
    return (ElementwiseCall if code.signature is None else ChainCall)(code.kernel)


def _run_loop(loop: CountedCall | TestedCall, call: ChainCall, xp: Any, *operands: Any) -> Any:
    """Run a loop on the device; returns its results."""
    return loop.compute_with(xp, partial(call, xp), operands)


LATE_BOUND["device_call"] = device_call
