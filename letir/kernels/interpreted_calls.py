"""``InterpretedCall``: called like the ufunc of a kernel, but computed by the interpreter.

With ``LETIR_CHECK_KERNELS=1`` all kernels run this way: slowly, and with every index tested against
the extents of the array.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from letir.ast import LATE_BOUND
from letir.eval.memory_checks import empty_like_ufunc
from letir.kernels.interpreter import interpret
from letir.kernels.llvm.machine_code import MachineCode
from letir.kernels.loop_language import Kernel

# the names under which NumPy calls handlers, and the keywords of np.errstate
_ERRORS = {"divide by zero": "divide", "overflow": "over", "invalid value": "invalid"}


@frozen(eq=False)
class InterpretedCall:
    """A kernel that is called like its ufunc (see ``ufunc_of``), without machine code."""

    kernel: Kernel
    signature: str | None = None
    code: MachineCode = field(init=False)  # only for its texts: it does not run

    @code.default
    def _code(self) -> MachineCode:
        return MachineCode(self.kernel, self.signature)

    def __call__(self, *operands: Any, out: Sequence = ()) -> Any:
        """The results that the ufunc would return.

        Raises FloatingPointError for an error that ``np.errstate`` does not ignore, and
        InternalError for an index outside of an array.
        """
        inputs = [a for a in self.kernel.arrays if not a.is_written]
        converted = [np.asarray(x, a.dtype) for x, a in zip(operands, inputs, strict=True)]
        # the axes before the core axes of the signature are one axis of the kernel
        own = [x.ndim + 1 - len(a.extents) for x, a in zip(converted, inputs, strict=True)]
        outer = np.broadcast_shapes(*[x.shape[:n] for x, n in zip(converted, own, strict=True)])
        arrays = []
        for x, n in zip(converted, own, strict=True):
            full = np.array(np.broadcast_to(x, outer + x.shape[n:]))  # may be written: scratch
            arrays.append(full.reshape(math.prod(outer), *x.shape[n:]))
        computed = self.compute_results(arrays, [None if y is None else y[None] for y in out])
        results = [
            _reshape_array(y, outer + y.shape[1:]) if given is None else given
            for y, given in zip(computed, out or [None] * len(computed), strict=True)
        ]
        if self.signature is None and not out and len(outer) > 1:
            results = [_copy_in_order_of(y, converted) for y in results]
        shaped = [y if y.shape else y[()] for y in results]
        return shaped[0] if len(shaped) == 1 else tuple(shaped)

    def compute_results(self, arrays: list, outs: list) -> list:
        """The results of the kernel; ``outs``: existing arrays for them, None for a new array."""
        written = [a for a in self.kernel.arrays if a.is_written]
        outs = outs or [None] * len(written)
        extents = {n: int(n) for a in self.kernel.arrays for n in a.extents if n.isdigit()}
        extents[self.kernel.extents[0].name] = len(arrays[0]) if arrays else 1
        for x, a in zip([*arrays, *outs], self.kernel.arrays, strict=True):
            if x is not None:
                extents |= dict(zip(a.extents[1:], x.shape[1:], strict=True))
        for n, a in enumerate(written):
            shape = [extents[name] if name else 1 for name in a.extents]
            outs[n] = np.empty(shape, a.dtype) if outs[n] is None else outs[n]
        self.run([*arrays, *outs], extents)
        return outs

    def run(self, arrays: list, extents: dict[str, int]) -> None:
        """Run the kernel, with floating-point errors handled as in ``np.errstate``."""
        errors: list[str] = []
        modes = {name: mode for name, mode in np.geterr().items() if name != "under"}
        calls: Any = dict.fromkeys(modes, "call")
        with np.errstate(**calls, under="ignore", call=lambda name, _: errors.append(name)):
            interpret(self.kernel, arrays, extents)
        raised = [name for name in errors if modes[_ERRORS[name]] != "ignore"]
        if raised:
            raise FloatingPointError(f"{raised[0]} encountered in {self.kernel.name}")


def _reshape_array(result: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The same array in another shape: it owns its memory, as results of ufuncs do."""
    result.resize(shape, refcheck=False)
    return result


def _copy_in_order_of(result: np.ndarray, operands: list) -> np.ndarray:
    """A copy of a result in the memory order in which a ufunc of these operands makes it."""
    [copy] = empty_like_ufunc(operands, [result.dtype], result.shape)
    copy[...] = result
    return copy


LATE_BOUND["interpreted_call"] = InterpretedCall
