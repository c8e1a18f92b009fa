"""Arithmetic on operands of the loop language, written with Python's operators."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import numpy as np
from attrs import frozen

from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Operand


@frozen
class Format:
    """A format of floating-point numbers: IEEE 754 binary64 or binary32."""

    dtype: np.dtype
    integer: np.dtype  # signed, of the same size
    mantissa: int  # bits stored
    bias: int  # the bias of the exponent
    infinity: int  # the bits of infinity

    def bits_of(self, value: float) -> int:
        """The bits of a number of this format."""
        return int(self.dtype.type(value).view(self.integer))


@cache
def format_of(dtype: np.dtype) -> Format:
    """The format of a dtype, float64 or float32."""
    limits = np.finfo(dtype)
    integer = np.dtype(f"i{dtype.itemsize}")
    infinity = int(dtype.type(np.inf).view(integer))
    return Format(dtype, integer, limits.nmant, limits.maxexp - 1, infinity)


def _binary(name: str) -> tuple[Callable, Callable]:
    def forward(self, other):
        return self.let(name, self, other)

    def backward(self, other):
        return self.let(name, other, self)

    return forward, backward


def _comparison(name: str) -> Callable:
    return lambda self, other: self.let(name, self, other)


@frozen(eq=False)
class Expression:
    """An operand with arithmetic: each operation appends one instruction to the builder.

    Python numbers are constants of the other operand's dtype.
    """

    builder: Builder
    operand: Operand

    @property
    def dtype(self) -> np.dtype:
        return self.operand.dtype

    @property
    def format(self) -> Format:
        return format_of(self.dtype)

    def number(self, value: Any) -> "Expression":
        """A constant of this dtype."""
        return Expression(self.builder, self.builder.number(value, self.dtype))

    def let(self, name: str, *operands: Any, dtype: np.dtype | None = None) -> "Expression":
        """The result of an instruction."""
        forms = [(x if isinstance(x, Expression) else self.number(x)).operand for x in operands]
        return Expression(self.builder, self.builder.let(name, *forms, dtype=dtype))

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("div")
    __and__, __rand__ = _binary("and")
    __or__, __ror__ = _binary("or")
    __xor__, __rxor__ = _binary("xor")
    __lshift__, _ = _binary("shl")
    __rshift__, _ = _binary("lshr")  # with zeros, of signed integers too
    __lt__, __le__ = _comparison("lt"), _comparison("le")
    __gt__, __ge__ = _comparison("gt"), _comparison("ge")
    __eq__, __ne__ = _comparison("eq"), _comparison("ne")  # type: ignore[assignment]

    def __neg__(self):
        return self.let("neg", self)

    def __abs__(self):
        return self.let("abs", self)

    def __invert__(self):
        """The opposite of a condition."""
        return self.let("xor", self, np.True_)

    def times_plus(self, y: Any, z: Any) -> "Expression":
        """``self * y + z`` with one rounding."""
        return self.let("fma", self, y, z)

    def sqrt(self) -> "Expression":
        return self.let("sqrt", self)

    def with_sign_of(self, other: "Expression") -> "Expression":
        return self.let("copysign", self, other)

    def bits(self) -> "Expression":
        """The bits of a float as a signed integer, or the float of these bits."""
        other = "i" if self.dtype.kind == "f" else "f"
        return self.let("bits", self, dtype=np.dtype(f"{other}{self.dtype.itemsize}"))

    def cast(self, dtype: np.dtype) -> "Expression":
        """The number as another dtype."""
        return Expression(self.builder, self.builder.convert(self.operand, dtype))

    def magnitude_bits(self) -> "Expression":
        """The bits of the absolute value as an integer, ordered like the numbers, nan above inf.

        Unlike comparisons of floats, comparisons of these integers raise no flag for nan.
        """
        return self.bits() & self.bits_mask()

    def bits_mask(self) -> int:
        """All bits but the sign."""
        return (1 << (8 * self.dtype.itemsize - 1)) - 1

    def replaced_rarely(
        self, name: str, test: Callable, function: Callable, *operands: "Expression"
    ) -> "Expression":
        """``function(*operands)`` where ``test(*operands)`` is true, else this number.

        The test is rarely true, and the function takes long: see ``Builder.call_rarely``.
        ``name``: of the function.
        """

        def form_of(function: Callable) -> Callable:
            return lambda b, *xs: function(*[Expression(b, x) for x in xs]).operand

        values = [x.operand for x in operands]
        forms = form_of(test), form_of(function)
        result = self.builder.call_rarely(name, *forms, self.operand, *values)
        return Expression(self.builder, result)

    def is_below(self, bound: float) -> "Expression":
        """Whether the absolute value is below a bound; False for nan."""
        return self.magnitude_bits() < self.format.bits_of(bound)

    def is_finite(self) -> "Expression":
        return self.magnitude_bits() < self.format.infinity

    def is_positive_finite(self) -> "Expression":
        """Whether a number is neither 0, negative, infinite nor nan."""
        # LLVM would merge two comparisons of the bits to bits - 1 < infinity - 1; the instruction
        # that makes -1 in all lanes reads its own old register, so that iterations would wait for
        # each other
        bits = self.bits()
        return (self != 0.0) & (bits >= 0) & (bits < self.format.infinity)

    def is_nan(self) -> "Expression":
        return self.let("ne", self, self)

    def is_positive_special(self) -> "Expression":
        """Whether a number is inf, or a nan without sign."""
        return self.bits() >= self.format.infinity

    def is_negative(self) -> "Expression":
        """Whether the sign bit is set."""
        return self.bits() < 0


def select(condition: Expression, x: Any, y: Any) -> Expression:
    """``x`` where the condition is true, else ``y``; at least one is an ``Expression``."""
    like = x if isinstance(x, Expression) else y
    x, y = (e if isinstance(e, Expression) else like.number(e) for e in (x, y))
    return condition.let("select", condition, x, y)


def elementary(function: Callable) -> Callable:
    """A function of a builder and operands, made from a function of ``Expression`` arguments.

    Raises TypeError unless the operands are of float64 or float32.
    """

    @wraps(function)
    def on_operands(b: Builder, *operands: Operand) -> Operand:
        if any(x.dtype.char not in "df" for x in operands):
            raise TypeError(f"{function.__name__} takes float64 or float32")
        return function(*[Expression(b, x) for x in operands]).operand

    return on_operands
