"""Reduction forms: how a reduction starts, takes an element, and ends, as loop language.

A record names its form in the field ``reduction``. Floating sums are taken in blocks, within which
LLVM may change the order; the totals of blocks are added with compensation (Knuth's two-sum), so
that the error stays below that of pairwise summation.
"""

import numpy as np
from attrs import frozen

from letir.kernels.instructions import BOOL
from letir.kernels.loop_language import Builder, Operand

F8 = np.dtype("f8")
PARTS = "parts"  # of records whose decomposition reduces
Parts = tuple[Operand, ...]


@frozen
class ReductionForm:
    """A reduction to accumulators of one dtype, that of the result.

    ``combine`` is an instruction. ``takes_truth``: an element counts as True or False.
    ``is_divided``: by the number of elements. ``has_nan``: a nan makes the result nan.
    """

    combine: str
    start: object = 0
    takes_truth: bool = False
    is_divided: bool = False
    has_nan: bool = False

    def element(self, b: Builder, x: Operand, dtype: np.dtype) -> Operand:
        """An element as the accumulators take it."""
        if self.takes_truth:
            return x if x.dtype == BOOL else b.let("ne", x, b.number(0, x.dtype))
        if x.dtype.kind == "f" and dtype.kind != "f":
            raise TypeError("the sum of floats as integers")
        return b.convert(x, dtype)

    def accumulator(self, dtype: np.dtype) -> "Accumulator":
        """How elements are accumulated in this dtype."""
        if self.combine == "add" and dtype.kind == "f":
            return (Compensated if dtype == F8 else Widened)(dtype, "add", 0.0)
        combine = self.combine
        if dtype == BOOL:
            # of booleans the larger is "or"; their sum and product are integers
            combine = {"max": "or", "min": "and"}.get(combine, combine)
        kind = WithNan if self.has_nan and dtype.kind == "f" else Accumulator
        return kind(dtype, combine, _start(self.start, dtype))

    def divided(self, b: Builder, total: Operand, count: Operand) -> Operand:
        """The result for the total of ``count`` elements."""
        if not self.is_divided:
            return total
        # NumPy divides by a 64-bit integer, in double precision
        quotient = b.div(b.convert(total, F8), b.convert(count, F8))
        return b.convert(quotient, total.dtype)

    def is_exact(self, dtype: np.dtype) -> bool:
        """Whether the bits do not depend on the order of elements."""
        return dtype.kind in "biu"  # the sign of a zero extremum does


def _start(value: object, dtype: np.dtype) -> object:
    """The first value of accumulators; "least" and "greatest" depend on the dtype."""
    if value not in ("least", "greatest"):
        return value
    if dtype.kind == "b":
        return value == "greatest"
    if dtype.kind == "f":
        return -np.inf if value == "least" else np.inf
    limits = np.iinfo(dtype)
    return limits.min if value == "least" else limits.max


@frozen
class Accumulator:
    """Accumulates elements by one instruction, in their order.

    ``parts`` are carried from block to block and from row to row, ``block`` from element to element
    of a block; ``step`` takes an element into them, and ``merged`` a block into parts.
    """

    dtype: np.dtype
    combine: str
    start: object

    needs_blocks = False

    def first(self, b: Builder) -> Parts:
        return (b.number(self.start, self.dtype),)

    def block(self, b: Builder, parts: Parts) -> Parts:
        return parts

    def step(self, b: Builder, block: Parts, x: Operand) -> Parts:
        return (b.let(self.combine, *block, x),)

    def merged(self, b: Builder, parts: Parts, block: Parts) -> Parts:
        return block

    def value(self, b: Builder, parts: Parts) -> Operand:
        """The total."""
        return parts[0]

    def taken(self, b: Builder, parts: Parts, x: Operand) -> Parts:
        """``parts`` after one more value, such as the total of a row."""
        return self.merged(b, parts, self.step(b, self.block(b, parts), x))

    def updated(self, b: Builder, old: Operand, x: Operand) -> Operand:
        """An element of an array of totals after one more value."""
        return b.let(self.combine, old, x)


@frozen
class WithNan(Accumulator):
    """The extremum of floats: the second part is whether there was a nan."""

    def first(self, b: Builder) -> Parts:
        return b.number(self.start, self.dtype), b.number(False, BOOL)

    def step(self, b: Builder, block: Parts, x: Operand) -> Parts:
        extremum, was_nan = block
        return b.let(self.combine, extremum, x), b.let("or", was_nan, b.let("ne", x, x))

    def value(self, b: Builder, parts: Parts) -> Operand:
        extremum, was_nan = parts
        return b.select(was_nan, b.number(np.nan, self.dtype), extremum)

    def updated(self, b: Builder, old: Operand, x: Operand) -> Operand:
        is_old = b.let("ge" if self.combine == "max" else "le", old, x)
        return b.select(b.let("or", is_old, b.let("ne", old, old)), old, x)


@frozen
class _Sum(Accumulator):
    """A sum of floats in blocks."""

    needs_blocks = True

    def block(self, b: Builder, parts: Parts) -> Parts:
        return (b.number(0.0, self.dtype),)

    def step(self, b: Builder, block: Parts, x: Operand) -> Parts:
        return (b.let("add", *block, x, reassociates=True),)


@frozen
class Compensated(_Sum):
    """A sum of float64: the second part is the sum of the rounding errors."""

    def first(self, b: Builder) -> Parts:
        return b.number(0.0, F8), b.number(0.0, F8)

    def merged(self, b: Builder, parts: Parts, block: Parts) -> Parts:
        (total, error), (x,) = parts, block
        found = b.add(total, x)
        taken = b.sub(found, total)
        lost = b.add(b.sub(total, b.sub(found, taken)), b.sub(x, taken))
        return found, b.add(error, lost)

    def value(self, b: Builder, parts: Parts) -> Operand:
        total, error = parts  # an error of an infinite total is nan
        return b.select(b.let("eq", error, error), b.add(total, error), total)


@frozen
class Widened(_Sum):
    """A sum of float32, whose blocks are added in float64."""

    def first(self, b: Builder) -> Parts:
        return (b.number(0.0, F8),)

    def merged(self, b: Builder, parts: Parts, block: Parts) -> Parts:
        return (b.add(parts[0], b.convert(block[0], F8)),)

    def value(self, b: Builder, parts: Parts) -> Operand:
        return b.convert(parts[0], self.dtype)


REDUCTIONS: dict[str, ReductionForm] = {
    "sum": ReductionForm("add"),
    "prod": ReductionForm("mul", 1),
    "mean": ReductionForm("add", is_divided=True),
    "max": ReductionForm("max", "least", has_nan=True),
    "min": ReductionForm("min", "greatest", has_nan=True),
    "any": ReductionForm("or", False, takes_truth=True),
    "all": ReductionForm("and", True, takes_truth=True),
}
