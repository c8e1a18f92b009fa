"""The lowering of elementwise binds to scalar instructions, shared by all kinds of kernels."""

from typing import Any

import numpy as np
from attrs import define, field

from letir.ast.terms import NO_TYPE, Arg, Bind, Const
from letir.ast.types import ArrayType
from letir.kernels.loop_language import Builder, Operand
from letir.kernels.scalar_forms import form_of, scalar_name
from letir.ops.define.records import promotion_type

DTYPES = frozenset(np.dtype(c) for c in "?bhilqBHILQfd")
MOST_ARRAYS = 30  # NumPy's ufuncs take at least 32 arrays


class NoKernel(Exception):
    """Raised for a group that NumPy has to compute, with the reason."""


def expect_known(kind: ArrayType | None) -> None:
    """Raise NoKernel unless arrays of this type are known to kernels."""
    if kind is None or kind is NO_TYPE or kind.dtype not in DTYPES:
        raise NoKernel


def has_scalar_form(bind: Bind, is_exact: bool) -> bool:
    """Whether a kernel may compute an elementwise bind; see ``ScalarLowering``."""
    lowering = ScalarLowering(is_exact)
    for arg in bind.args:
        if type(arg) is not Const and arg.type is not None and arg.type is not NO_TYPE:
            lowering.scalars[arg] = lowering.builder.scalar(arg.type.dtype)
    try:
        lowering.add(bind)
    except (NoKernel, TypeError):
        return False
    return True


@define(eq=False)
class ScalarLowering:
    """Writes the scalar forms of binds with ``builder``; ``scalars`` are the values so far.

    ``is_exact``: only operations that round correctly, so that the bits are NumPy's.
    """

    is_exact: bool
    builder: Builder = field(factory=Builder)
    scalars: dict[Arg, Operand] = field(factory=dict)

    def add(self, bind: Bind) -> None:
        """The scalar form of a bind."""
        form = form_of(scalar_name(bind))
        (binder,) = bind.binders
        if form is None or (self.is_exact and not bind.op.exact):
            raise NoKernel
        expect_known(binder.type)
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
        expect_known(arg.type)
        return self.converted(self.value(arg), dtype)

    def value(self, arg: Arg) -> Operand:
        """The scalar of an operand."""
        return self.scalars[arg]

    def converted(self, x: Operand, dtype: np.dtype) -> Operand:
        """``x`` as another dtype, if NumPy's result does not depend on the machine."""
        if x.dtype.kind == "f" and dtype.kind in "iu":
            raise NoKernel  # beyond the range it does
        return self.builder.convert(x, dtype)


def operand_dtypes(bind: Bind) -> list[np.dtype]:
    """The dtypes to which NumPy converts the operands of a bind."""
    op, made = bind.op, bind.binders[0].type.dtype
    if op.python_errors:
        return [made] * len(bind.args)
    if op.operand_dtypes is not None:
        return op.operand_dtypes(made, len(bind.args))
    ufunc: Any = getattr(op.impl, "ufunc", None)
    if ufunc is None:
        return [arg.type.dtype for arg in bind.args]
    types = [promotion_type(arg.type) for arg in bind.args]
    found = ufunc.resolve_dtypes((*types, *[None] * ufunc.nout))[: ufunc.nin]
    # comparisons of Python's numbers alone take them as objects
    pairs = zip(found, bind.args, strict=True)
    return [arg.type.dtype if dtype.kind == "O" else dtype for dtype, arg in pairs]
