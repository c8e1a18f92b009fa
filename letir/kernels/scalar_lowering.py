"""The lowering of elementwise binds to scalar instructions, shared by all kinds of kernels."""

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast import LATE_BOUND
from letir.ast.process_state import float_errors
from letir.ast.terms import NO_TYPE, Arg, Bind, Const
from letir.ast.types import ArrayType
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Operand, Scalar
from letir.kernels.scalar_forms import form_of, may_raise_flags, scalar_name, selects
from letir.ops.define.records import promotion_type

DTYPES = frozenset(np.dtype(c) for c in "?bhilqBHILQfd")
MAX_ARRAYS = 30  # NumPy's ufuncs take at least 32 arrays


class NoKernel(Exception):
    """Raised, with the reason, if a group cannot become a kernel."""


def expect_known(aval: ArrayType | None) -> None:
    """Raise NoKernel unless kernels support arrays of this type."""
    if aval is None or aval is NO_TYPE or aval.dtype not in DTYPES:
        raise NoKernel


def is_complex(aval: ArrayType | None) -> bool:
    """Whether this is the type of arrays of complex numbers whose parts are doubles or floats."""
    return aval is not None and aval is not NO_TYPE and aval.dtype.char in "FD"


def has_c_order(x: Any) -> bool:
    """Whether the axes of an array lie in memory in the order of C."""
    if getattr(x, "ndim", 0) < 2 or x.flags.c_contiguous:
        return True
    steps = [step for step, n in zip(x.strides, x.shape, strict=True) if n != 1]
    return all(a >= b > 0 for a, b in pairwise(steps))


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
    """Writes the scalar forms of binds with ``builder``; ``scalars`` has the values written so far.

    ``selected``: the results of selections, and what is computed from them. ``is_exact``: refuse
    operations that are not correctly rounded, whose bits could differ from NumPy's.
    """

    is_exact: bool
    builder: Builder = field(factory=Builder)
    scalars: dict[Arg, Any] = field(factory=dict)
    selected: set[Arg] = field(factory=set)

    takes_complex = False  # whether arrays of complex numbers become pairs of scalars

    def add(self, bind: Bind) -> None:
        """Write the scalar form of a bind."""
        name, (binder,) = scalar_name(bind), bind.binders
        form: Any = form_of(name)
        if form is None or (self.is_exact and not bind.op.exact):
            raise NoKernel
        self.expect_known(binder.type)
        dtypes = operand_dtypes(bind)
        if self.takes_complex and any(dtype.kind == "c" for dtype in dtypes):
            form = LATE_BOUND["complex_form_of"](name, self.is_exact)
            if form is None:
                raise NoKernel
        operands = [self.operand(arg, dtype) for arg, dtype in zip(bind.args, dtypes, strict=True)]
        operands = self.hide_selected(bind, name, operands)
        result = form(self.builder, *operands)
        self.scalars[binder] = self.convert_to(result, binder.type.dtype)

    def hide_selected(self, bind: Bind, name: str, operands: list) -> list:
        """The operands, where LLVM does not see from which selections they come.

        In ``np.where(x > 0, 1 / np.where(x > 0, x, 1), 0)`` it would divide by every x, because the
        conditions are the same and 1 / 1 is known, and raise the flag of a division by zero.
        """
        if not self.selected.isdisjoint(bind.args):
            self.selected.add(bind.binders[0])
            if may_raise_flags(name):
                pairs = zip(bind.args, operands, strict=True)
                return [
                    self.builder.hidden(x) if arg in self.selected and type(x) is Scalar else x
                    for arg, x in pairs
                ]
        elif selects(name):
            self.selected.add(bind.binders[0])
        return operands

    def expect_known(self, aval: ArrayType | None) -> None:
        """Raise NoKernel unless this lowering supports arrays of this type."""
        if not (self.takes_complex and is_complex(aval)):
            expect_known(aval)

    def operand(self, arg: Arg, dtype: np.dtype) -> Any:
        """An operand, converted to the dtype of NumPy's inner loop."""
        if type(arg) is Const:
            with float_errors(all="raise"):
                try:
                    if dtype.kind == "c":
                        return LATE_BOUND["number_pair"](self.builder, arg.value, dtype)
                    return self.builder.number(arg.value, dtype)
                except (ArithmeticError, ValueError):
                    raise NoKernel from None
        self.expect_known(arg.type)
        return self.convert_to(self.value(arg), dtype)

    def value(self, arg: Arg) -> Operand:
        """The scalar of an operand."""
        return self.scalars[arg]

    def convert_to(self, x: Any, dtype: np.dtype) -> Any:
        """``x`` as another dtype. Raises NoKernel if NumPy's result depends on the processor."""
        if dtype.kind == "c":
            return LATE_BOUND["as_pair"](self.builder, x, dtype)
        if x.dtype.kind == "c":
            raise NoKernel  # NumPy warns that it drops the imaginary part
        if x.dtype.kind == "f" and dtype.kind in "iu":
            raise NoKernel  # beyond the range it does
        return self.builder.convert(x, dtype)


@lru_cache(1 << 10)
def _resolved_dtypes(ufunc: np.ufunc, types: tuple, _kinds: tuple) -> tuple[np.dtype, ...]:
    """The dtypes to which a ufunc converts operands of these types, dtypes or Python's.

    ``_kinds``: their classes, for the cache: dtype("int64") == int.
    """
    result: tuple = ufunc.resolve_dtypes((*types, *[None] * ufunc.nout))
    return result[: ufunc.nin]


def operand_dtypes(bind: Bind) -> list[np.dtype]:
    """The dtypes to which NumPy converts the operands of a bind."""
    op, result = bind.op, bind.binders[0].type.dtype
    if op.python_errors:
        return [result] * len(bind.args)
    if op.operand_dtypes is not None:
        return op.operand_dtypes(result, len(bind.args))
    ufunc: Any = getattr(op.impl, "ufunc", None)
    if ufunc is None:
        return [arg.type.dtype for arg in bind.args]
    types = [promotion_type(arg.type) for arg in bind.args]
    dtypes = _resolved_dtypes(ufunc, tuple(types), tuple(map(type, types)))
    # NumPy compares two Python integers as objects
    pairs = zip(dtypes, bind.args, strict=True)
    return [arg.type.dtype if dtype.kind == "O" else dtype for dtype, arg in pairs]
