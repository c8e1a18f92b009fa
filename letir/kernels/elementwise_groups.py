"""Groups of elementwise binds as kernels: one loop over the elements of their common shape."""

from attrs import define

from letir.ast.terms import Arg, Lambda
from letir.ast.types import ArrayType
from letir.eval.float_warnings import KERNEL
from letir.kernels.loop_language import Array, Kernel
from letir.kernels.scalar_lowering import MOST_ARRAYS, NoKernel, ScalarLowering, expect_known


def elementwise_kernel(body: Lambda, is_exact: bool = False) -> Kernel | None:
    """The kernel of a group's body; None if a bind has no scalar form.

    ``is_exact``: only of operations that round correctly, so that the bits are NumPy's.
    """
    try:
        return _Lowering(is_exact).kernel(body)
    except (NoKernel, TypeError):
        return None


@define(eq=False)
class _Lowering(ScalarLowering):
    """The lowering of one group."""

    def kernel(self, body: Lambda) -> Kernel:
        b = self.builder
        shape = body.binds[-1].binders[0].type.shape
        inputs = [_input(f"x{n}", p.type, shape) for n, p in enumerate(body.params)]
        outputs = [_output(body, n, arg, shape) for n, arg in enumerate(body.ret.args)]
        if not 0 < len(inputs) + len(outputs) <= MOST_ARRAYS:
            raise NoKernel
        n = b.extent("n")
        with b.loop(n) as i:
            for param, array in zip(body.params, inputs, strict=True):
                self.scalars[param] = b.load(array, (i,))
            for bind in body.binds:
                self.add(bind)
            for array, arg in zip(outputs, body.ret.args, strict=True):
                b.store(array, (i,), self.scalars[arg])
        return Kernel(kernel_name(body), (*inputs, *outputs), (n,), b.taken())


def kernel_name(body: Lambda) -> str:
    """The name of a kernel, which NumPy's messages show."""
    return f"{KERNEL} " + "_".join([bind.op.name for bind in body.binds[:4]])


def _input(name: str, kind: ArrayType | None, shape: tuple) -> Array:
    """The parameter for an operand, whose last axis may be broadcast."""
    expect_known(kind)
    is_full = bool(kind.shape) and kind.shape[-1] == shape[-1] if shape else True
    return Array(name, kind.dtype, ("n" if is_full else "",))


def _output(body: Lambda, n: int, arg: Arg, shape: tuple) -> Array:
    """The parameter for a result."""
    expect_known(arg.type)
    made = [bind for bind in body.binds if arg in bind.binders]
    if not made or arg.type.weak:
        raise NoKernel
    if not shape and getattr(made[0].op.impl, "ufunc", None) is None:
        raise NoKernel  # a ufunc gives a scalar, other functions a 0-d array
    return Array(f"y{n}", arg.type.dtype, ("n",), is_written=True)
