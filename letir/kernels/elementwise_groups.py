"""Groups of elementwise binds as kernels: one loop over the elements of their common shape."""

from typing import Any

from attrs import define

from letir.ast import LATE_BOUND
from letir.ast.terms import Arg, Lambda
from letir.ast.types import ArrayType
from letir.eval.float_warnings import KERNEL
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel, Operand
from letir.kernels.scalar_lowering import (
    MAX_ARRAYS,
    NoKernel,
    ScalarLowering,
    expect_known,
    is_complex,
)


def kernel_of(body: Lambda, is_exact: bool = False) -> Kernel | None:
    """The kernel of a group's body; None if NumPy has to compute the group.

    ``is_exact``: also None if the bits of the results could differ from NumPy's.
    """
    key = _exact_kernel if is_exact else elementwise_kernel
    return body.memo(key)


def _exact_kernel(body: Lambda) -> Kernel | None:
    return elementwise_kernel(body, is_exact=True)


def elementwise_kernel(
    body: Lambda, is_exact: bool = False, is_quiet: bool = False
) -> Kernel | None:
    """The kernel of a group's body; None if a bind has no scalar form, or a result of unknown type.

    ``is_exact``: also None if an operation is not correctly rounded, because its bits could then
    differ from NumPy's. ``is_quiet``: comparisons with nan raise no floating-point flag.
    """
    if any(bind.binders[0].type is None for bind in body.binds):
        return None
    try:
        return _Lowering(is_exact, Builder(is_quiet=is_quiet)).kernel(body)
    except (NoKernel, TypeError):
        return None


@define(eq=False)
class _Lowering(ScalarLowering):
    """The lowering of one group."""

    takes_complex = True

    def kernel(self, body: Lambda) -> Kernel:
        b = self.builder
        shape = body.binds[-1].binders[0].type.shape
        inputs = [_input_array(f"x{n}", p.type, shape) for n, p in enumerate(body.params)]
        outputs = [_output_array(body, n, arg, shape) for n, arg in enumerate(body.ret.args)]
        if not 0 < len(inputs) + len(outputs) <= MAX_ARRAYS:
            raise NoKernel
        n = b.extent("n")
        with b.loop(n) as i:
            for param, array in zip(body.params, inputs, strict=True):
                self.scalars[param] = self.load(array, i)
            for bind in body.binds:
                self.add(bind)
            for array, arg in zip(outputs, body.ret.args, strict=True):
                self.store(array, i, self.scalars[arg])
        return Kernel(kernel_name(body), (*inputs, *outputs), (n,), b.statements())

    def load(self, array: Array, index: Operand) -> Any:
        """An element of an array."""
        if array.dtype.kind != "c":
            return self.builder.load(array, (index,))
        parts = [self.builder.load(array, (index,), part) for part in ("real", "imag")]
        return LATE_BOUND["as_pair"](self.builder, parts, array.dtype)

    def store(self, array: Array, index: Operand, value: Any) -> None:
        """Write an element of an array."""
        if array.dtype.kind != "c":
            self.builder.store(array, (index,), value)
            return
        self.builder.store(array, (index,), value.real, "real")
        self.builder.store(array, (index,), value.imag, "imag")


def kernel_name(body: Lambda) -> str:
    """The name of the kernel of a body, as NumPy's messages show it."""
    return f"{KERNEL} " + "_".join([bind.op.name for bind in body.binds[:4]])


def _input_array(name: str, aval: ArrayType | None, shape: tuple) -> Array:
    """The kernel's parameter for an operand, whose last axis may be broadcast."""
    if not is_complex(aval):
        expect_known(aval)
    is_full = bool(aval.shape) and aval.shape[-1] == shape[-1] if shape else True
    return Array(name, aval.dtype, ("n" if is_full else "",))


def _output_array(body: Lambda, n: int, arg: Arg, shape: tuple) -> Array:
    """The parameter for a result."""
    if not is_complex(arg.type):
        expect_known(arg.type)
    if not shape and any(map(is_complex, [x.type for x in (*body.params, arg)])):
        raise NoKernel  # of a single number, NumPy rounds products otherwise
    makers = [bind for bind in body.binds if arg in bind.binders]
    if not makers or arg.type.weak:
        raise NoKernel
    if not shape and getattr(makers[0].op.impl, "ufunc", None) is None:
        raise NoKernel  # a ufunc gives a scalar, other functions a 0-d array
    return Array(f"y{n}", arg.type.dtype, ("n",), is_written=True)
