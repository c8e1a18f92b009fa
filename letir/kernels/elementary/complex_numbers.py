"""Complex numbers in the loop language: pairs of scalars, with the arithmetic of NumPy's loops.

A complex operation's form ``f(b, *operands)`` takes pairs; booleans and real numbers stay scalars.
It raises TypeError for operands that it does not support. Products and quotients have NumPy's bits,
for infinities, nan and zeros too.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.kernels.elementary import ELEMENTARY
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Operand
from letir.kernels.scalar_instructions import INSTRUCTIONS


@frozen
class Pair:
    """A complex number: its real and its imaginary part, of the same dtype."""

    real: Operand
    imag: Operand

    @property
    def dtype(self) -> np.dtype:
        """The complex dtype."""
        return np.dtype(f"c{2 * self.real.dtype.itemsize}")


Value = Operand | Pair
Form = Callable[..., Value]


def _part_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex number."""
    return np.dtype(f"f{dtype.itemsize // 2}")


def complex_form_of(name: str | None, is_exact: bool) -> Form | None:
    """The form of this name for complex operands; None if there is none.

    ``is_exact``: also None if the bits of the result could differ from NumPy's.
    """
    return None if is_exact and name in _INEXACT else _FORMS.get(name or "")


def as_pair(b: Builder, x: Value | list[Operand], dtype: np.dtype) -> Pair:
    """A number, or the real and the imaginary part, as a complex number of this dtype."""
    part = _part_dtype(dtype)
    x = Pair(*x) if isinstance(x, list) else x
    if isinstance(x, Pair):
        return Pair(b.convert(x.real, part), b.convert(x.imag, part))
    return Pair(b.convert(x, part), b.number(0, part))


def number_pair(b: Builder, value: object, dtype: np.dtype) -> Pair:
    """A constant as a complex number of this dtype."""
    part, number = _part_dtype(dtype), dtype.type(value)
    return Pair(b.number(number.real, part), b.number(number.imag, part))


def _form_by_part(name: str) -> Form:
    """An instruction on the real parts, and on the imaginary parts."""

    def form(b: Builder, *operands: Pair) -> Pair:
        parts = [[x.real for x in operands], [x.imag for x in operands]]
        return Pair(*[b.let(name, *part) for part in parts])

    return form


def _mul(b: Builder, x: Pair, y: Pair) -> Pair:
    real, imag = b.mul(x.imag, y.imag), b.mul(x.imag, y.real)
    if fuses_products(x.real.dtype):
        real = b.fma(x.real, y.real, b.let("neg", real))
        return Pair(real, b.fma(x.real, y.imag, imag))
    return Pair(b.sub(b.mul(x.real, y.real), real), b.add(b.mul(x.real, y.imag), imag))


@cache
def fuses_products(dtype: np.dtype) -> bool:
    """Whether NumPy rounds a complex product once less, by fused multiplications and additions.

    It does on processors that have such instructions. Raises TypeError for other roundings, and for
    complex64, whose products NumPy rounds otherwise in arrays that are reversed.
    """
    if dtype.itemsize < 8:
        raise TypeError("the bits depend on the memory layout")
    numbers = np.random.default_rng(0).normal(size=(4, 64)).astype(dtype)
    a, b, c, d = numbers
    product = (a + 1j * b).astype(f"c{2 * dtype.itemsize}") * (c + 1j * d)
    fma = INSTRUCTIONS["fma"].compute
    fused, plain = (fma(a, c, -(b * d)), fma(a, d, b * c)), (a * c - b * d, a * d + b * c)
    for answer, (real, imag) in ((True, fused), (False, plain)):
        if np.array_equal(product.real, real) and np.array_equal(product.imag, imag):
            return answer
    raise TypeError("complex products that are rounded otherwise")


def _div(b: Builder, x: Pair, y: Pair) -> Pair:
    """The quotient by Smith's algorithm (1962): by the larger part of the divisor first."""
    zero, one = b.number(0, y.real.dtype), b.number(1, y.real.dtype)
    sizes = b.let("abs", y.real), b.let("abs", y.imag)
    is_wide = b.let("ge", *sizes)
    is_zero = b.let("and", b.let("eq", y.real, zero), b.let("eq", y.imag, zero))
    large, small = b.select(is_wide, y.real, y.imag), b.select(is_wide, y.imag, y.real)
    large = b.select(is_zero, one, large)
    ratio = b.div(small, large)
    scale = b.div(one, b.add(large, b.mul(small, ratio)))
    first, second = b.select(is_wide, x.real, x.imag), b.select(is_wide, x.imag, x.real)
    real = b.mul(b.add(first, b.mul(second, ratio)), scale)
    turned = b.mul(first, ratio)
    difference = b.sub(b.select(is_wide, x.imag, turned), b.select(is_wide, turned, x.real))
    imag = b.mul(difference, scale)
    divisor = b.select(is_zero, sizes[0], one)  # a quotient by zero is infinite or nan
    by_zero = b.div(x.real, divisor), b.div(x.imag, divisor)
    return Pair(b.select(is_zero, by_zero[0], real), b.select(is_zero, by_zero[1], imag))


def _where(b: Builder, condition: Value, x: Pair, y: Pair) -> Pair:
    if isinstance(condition, Pair):
        condition = _not_equal(b, condition, number_pair(b, 0, condition.dtype))
    elif condition.dtype.kind != "b":
        condition = b.let("ne", condition, b.number(0, condition.dtype))
    return Pair(b.select(condition, x.real, y.real), b.select(condition, x.imag, y.imag))


def _not_equal(b: Builder, x: Pair, y: Pair) -> Operand:
    return b.let("or", b.let("ne", x.real, y.real), b.let("ne", x.imag, y.imag))


def _test_of_parts(combine: str, comparison: str) -> Form:
    """Whether the absolute values of both parts, or of one, compare so with infinity."""

    def form(b: Builder, x: Pair) -> Operand:
        infinity = b.number(np.inf, x.real.dtype)
        parts = [b.let(comparison, b.let("abs", part), infinity) for part in (x.real, x.imag)]
        return b.let(combine, *parts)

    return form


_INEXACT = frozenset(["abs"])
_FORMS: dict[str, Form] = {
    "add": _form_by_part("add"),
    "sub": _form_by_part("sub"),
    "neg": _form_by_part("neg"),
    "mul": _mul,
    "square": lambda b, x: _mul(b, x, x),
    "div": _div,
    "conj": lambda b, x: Pair(x.real, b.let("neg", x.imag)),
    "abs": lambda b, x: ELEMENTARY["hypot"](b, x.real, x.imag),
    "positive": lambda b, x: x,
    "stop_gradient": lambda b, x: x,
    "cast": lambda b, x: x,
    "where": _where,
    "equal": lambda b, x, y: b.let("and", b.let("eq", x.real, y.real), b.let("eq", x.imag, y.imag)),
    "not_equal": _not_equal,
    "isnan": lambda b, x: _not_equal(b, x, x),
    "isinf": _test_of_parts("or", "eq"),
    "isfinite": _test_of_parts("and", "lt"),
}

LATE_BOUND.update(complex_form_of=complex_form_of, number_pair=number_pair, as_pair=as_pair)
