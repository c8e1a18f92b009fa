"""Groups of elementwise binds as kernels: one loop over the elements of their common shape."""

from typing import Any

import numpy as np
from attrs import define, field

from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Lambda
from letir.ast.types import ArrayType
from letir.eval.float_warnings import KERNEL
from letir.kernels.loop_language import Array, Builder, Kernel, Operand
from letir.kernels.scalar_forms import form_of
from letir.ops.define.records import promotion_type

DTYPES = frozenset(np.dtype(c) for c in "?bhilqBHILQfd")
_MOST_ARRAYS = 30  # NumPy's ufuncs take at least 32 arrays


class NoKernel(Exception):
    """Raised for a group that NumPy has to compute, with the reason."""


def elementwise_kernel(body: Lambda, is_exact: bool = False) -> Kernel | None:
    """The kernel of a group's body; None if a bind has no scalar form.

    ``is_exact``: only of operations that round correctly, so that the bits are NumPy's.
    """
    try:
        return _Lowering(body, is_exact).kernel()
    except (NoKernel, TypeError):
        return None


@define(eq=False)
class _Lowering:
    """The lowering of one group."""

    body: Lambda
    is_exact: bool
    builder: Builder = field(factory=Builder)
    scalars: dict[Arg, Operand] = field(factory=dict)

    def kernel(self) -> Kernel:
        body, b = self.body, self.builder
        shape = body.binds[-1].binders[0].type.shape
        inputs = [self.array(f"x{n}", p.type, shape) for n, p in enumerate(body.params)]
        outputs = [self.output(n, arg, shape) for n, arg in enumerate(body.ret.args)]
        if not 0 < len(inputs) + len(outputs) <= _MOST_ARRAYS:
            raise NoKernel
        n = b.extent("n")
        with b.loop(n) as i:
            for param, array in zip(body.params, inputs, strict=True):
                self.scalars[param] = b.load(array, (i,))
            for bind in body.binds:
                self.add(bind)
            for array, arg in zip(outputs, body.ret.args, strict=True):
                b.store(array, (i,), self.scalars[arg])
        name = f"{KERNEL} " + "_".join([bind.op.name for bind in body.binds[:4]])
        return Kernel(name, (*inputs, *outputs), (n,), b.taken())

    def array(self, name: str, kind: ArrayType | None, shape: tuple) -> Array:
        """The parameter for an operand, whose last axis may be broadcast."""
        self.expect_known(kind)
        is_full = bool(kind.shape) and kind.shape[-1] == shape[-1] if shape else True
        return Array(name, kind.dtype, ("n" if is_full else "",))

    def output(self, n: int, arg: Arg, shape: tuple) -> Array:
        """The parameter for a result."""
        self.expect_known(arg.type)
        made = [bind for bind in self.body.binds if arg in bind.binders]
        if not made or arg.type.weak:
            raise NoKernel
        if not shape and getattr(made[0].op.impl, "ufunc", None) is None:
            raise NoKernel  # a ufunc gives a scalar, other functions a 0-d array
        return Array(f"y{n}", arg.type.dtype, ("n",), is_written=True)

    def expect_known(self, kind: ArrayType | None) -> None:
        if kind is None or kind is NO_TYPE or kind.dtype not in DTYPES:
            raise NoKernel

    def add(self, bind: Bind) -> None:
        """The scalar form of a bind."""
        form = form_of(bind.op.scalar)
        (binder,) = bind.binders
        if form is None or (self.is_exact and not bind.op.exact):
            raise NoKernel
        self.expect_known(binder.type)
        dtypes = operand_dtypes(bind)
        operands = [self.operand(arg, dtype) for arg, dtype in zip(bind.args, dtypes, strict=True)]
        found = form(self.builder, *operands)
        self.scalars[binder] = self.converted(found, binder.type.dtype)

    def operand(self, arg: Arg, dtype: np.dtype) -> Operand:
        """An operand in the dtype in which NumPy's loop takes it."""
        if type(arg) is Const:
            with np.errstate(all="raise"):
                try:
                    return self.builder.number(arg.value, dtype)
                except (ArithmeticError, ValueError):
                    raise NoKernel from None
        self.expect_known(arg.type)
        return self.converted(self.scalars[arg], dtype)

    def converted(self, x: Operand, dtype: np.dtype) -> Operand:
        if x.dtype.kind == "f" and dtype.kind in "iu":
            raise NoKernel  # NumPy's result depends on the machine beyond the range
        return self.builder.convert(x, dtype)


def operand_dtypes(bind: Bind) -> list[np.dtype]:
    """The dtypes to which NumPy converts the operands of a bind."""
    op, made = bind.op, bind.binders[0].type.dtype
    if op.operand_dtypes is not None:
        return op.operand_dtypes(made, len(bind.args))
    ufunc: Any = getattr(op.impl, "ufunc", None)
    if ufunc is None:
        return [arg.type.dtype for arg in bind.args]
    types = [promotion_type(arg.type) for arg in bind.args]
    return list(ufunc.resolve_dtypes((*types, *[None] * ufunc.nout))[: ufunc.nin])
