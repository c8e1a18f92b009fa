"""``PlanKernel``: one kernel of a plan, with its binds, its bytes and its texts.

The texts are the kernel in the loop language, in LLVM's language, and as assembly for this computer
and for NVIDIA's GPUs.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.bodies import all_bodies
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Bind, Lambda
from letir.ast.types import ArrayType
from letir.executor.kernels.threaded_calls import uses_threads
from letir.kernels.device.ptx import ptx_text
from letir.kernels.llvm.machine_code import MachineCode, code_of
from letir.kernels.machine_costs import machine_costs
from letir.kernels.row_interface import RowKernel
from letir.kernels.threads import get_num_threads
from letir.plan.plan import Plan

_MAX_NAMES = 6  # the most names of operations in a line
_MAX_LINES = 8  # the most lines in a list of kernels


@frozen(eq=False, repr=False)
class PlanKernel:
    """A kernel of a plan: a group of binds that one call of machine code computes.

    ``body``: the group as a program, which NumPy computes if the kernel cannot. ``code``: the
    machine code, and the texts from which it was made. ``uses_threads``: whether calls may run in
    threads. ``rows``: how the kernel is called if it has reductions.

    >>> import numpy as np
    >>> from letir import compile, trace
    >>> plan = compile(trace(lambda x: np.sqrt(x * x + 1.0), np.ones(20_000)))
    >>> for kernel in plan.kernels:  # none without llvmlite
    ...     print(kernel.source)  # doctest: +SKIP
    kernel letir kernel mul_add_sqrt(x0: float64[n], out y0: float64[n]) {
      for %0 < n {
        %1: float64 = x0[%0]
        %2: float64 = mul %1, %1
        %3: float64 = add %2, 1.0
        %4: float64 = sqrt %3
        y0[%0] = %4
      }
    }
    """

    body: Lambda
    code: MachineCode
    uses_threads: bool = False
    rows: RowKernel | None = None

    @property
    def threads(self) -> int:
        """The most threads in which a call runs now, see ``set_num_threads``."""
        return get_num_threads() if self.uses_threads else 1

    @property
    def name(self) -> str:
        """The name that NumPy's messages show."""
        return self.code.kernel.name

    @property
    def binds(self) -> tuple[Bind, ...]:
        """The binds that the kernel computes, including binds in bodies of loops and groups."""
        binds = [bind for body in all_bodies(self.body) for bind in body.binds]
        return tuple([bind for bind in binds if bind.op.role != "fused"])

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the user's code that the kernel computes, such as ``model.py:12``."""
        return tuple(dict.fromkeys([b.source.short for b in self.binds if b.source]))

    @property
    def operands(self) -> tuple[ArrayType | None, ...]:
        """The types of the operands; None where a type is not known."""
        return tuple([param.type for param in self.body.params])

    @property
    def results(self) -> tuple[ArrayType | None, ...]:
        """The types of the results; None where a type is not known."""
        return tuple([arg.type for arg in self.body.ret.args])

    @property
    def bytes(self) -> int | None:
        """The bytes of all operands and results, which a call reads and writes at least once.

        None if a size is symbolic.
        """
        avals = (*self.operands, *self.results)
        if not all(map(has_static_shape, avals)):
            return None
        return sum([aval.size * aval.dtype.itemsize for aval in avals if aval is not None])

    @property
    def source(self) -> str:
        """The kernel in the loop language."""
        return str(self.code.kernel)

    @property
    def llvm(self) -> str:
        """The kernel in LLVM's language, before LLVM optimises it."""
        return self.code.llvm

    @property
    def asm(self) -> str:
        """The assembly for this computer; each read compiles the kernel again."""
        return self.code.assembly()

    @property
    def ptx(self) -> str:
        """The PTX assembly for NVIDIA's GPUs, for contiguous arrays without broadcast axes."""
        return ptx_text(self.rows.for_device.kernel if self.rows else self.code.kernel)

    def __str__(self):
        names = [bind.op.name for bind in self.binds]
        shown = ", ".join(names[:_MAX_NAMES]) + (", ..." if len(names) > _MAX_NAMES else "")
        n_bytes = "" if self.bytes is None else f"; {self.bytes:,} bytes"
        is_large = self.bytes is not None and self.threads > 1
        n_threads = f"; up to {self.threads} threads" if is_large else ""
        group = shown if len(names) == 1 else f"{len(names)} operations: {shown}"
        return f"kernel of {group}{n_bytes}{n_threads}"

    def __repr__(self):
        return f"<{self}>"


def plan_kernels(plan: Plan) -> tuple[PlanKernel, ...]:
    """The kernels of a plan and of its bodies, in the order of the binds."""
    binds = [bind for body in all_bodies(plan.program()) for bind in body.binds]
    return tuple([_kernel_of(bind) for bind in binds if bind.op.role == "kernel"])


def _kernel_of(bind: Bind) -> PlanKernel:
    """The kernel that a bind calls."""
    impl: Any = bind.op.impl
    lowered = getattr(impl.call, "lowered", None)
    rows = lowered if isinstance(lowered, RowKernel) else None
    return PlanKernel(impl.body, code_of(_ufunc_of(impl.call)), uses_threads(impl.call), rows)


def _ufunc_of(call: Callable) -> np.ufunc:
    """The ufunc that a kernel's call runs, after preparing its operands."""
    result: Any = call
    while hasattr(result, "ufunc"):
        result = result.ufunc
    return result


def kernel_lines(kernels: Sequence[PlanKernel]) -> Iterator[str]:
    """A line for each kernel, at most ``_MAX_LINES``, and one for the costs that decided."""
    yield from map(str, kernels[:_MAX_LINES])
    omitted = len(kernels) - _MAX_LINES
    if omitted > 0:
        yield f"{omitted} more kernels"
    yield f"groups become kernels by the costs of {machine_costs().origin}"


LATE_BOUND.update(kernel_lines=kernel_lines, plan_kernels=plan_kernels)
