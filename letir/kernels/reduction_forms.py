"""Reduction forms: the start, the step and the end of a reduction, in the loop language.

An operation's record names its form in the field ``reduction``. Sums of floats are computed in
blocks, within which LLVM may reorder additions; the totals of the blocks are added with
compensation (Knuth's two-sum), so that the error stays below the bound of pairwise summation.
"""

import numpy as np
from attrs import frozen

from letir.ast.primitive import Primitive
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Operand
from letir.kernels.scalar_instructions import BOOL

F8 = np.dtype("f8")
PARTS = "parts"  # the form of an operation whose decomposition contains the reductions
Parts = tuple[Operand, ...]


def flatten_parts(parts: list[Parts]) -> Parts:
    """The parts of all groups in one tuple."""
    return tuple([x for own in parts for x in own])


def split_like(flat: Parts, like: list[Parts]) -> list[Parts]:
    """``flat`` split into parts that are as long as the parts of ``like``."""
    result, at = [], 0
    for parts in like:
        result.append(tuple(flat[at : at + len(parts)]))
        at += len(parts)
    return result


@frozen
class ReductionForm:
    """A reduction whose accumulators have the dtype of the result.

    ``combine``: the instruction that adds an element. ``takes_truth``: elements are converted to
    booleans first. ``is_divided``: the total is divided by the number of elements. ``has_nan``: the
    result is nan if an element is nan.
    """

    combine: str
    start: object = 0
    takes_truth: bool = False
    is_divided: bool = False
    has_nan: bool = False

    def element(self, b: Builder, x: Operand, dtype: np.dtype) -> Operand:
        """An element, converted to the dtype of the accumulators."""
        if self.takes_truth:
            return x if x.dtype == BOOL else b.let("ne", x, b.number(0, x.dtype))
        if x.dtype.kind == "f" and dtype.kind != "f":
            raise TypeError("the sum of floats as integers")
        return b.convert(x, dtype)

    def accumulator(self, dtype: np.dtype) -> "Accumulator":
        """The accumulator for this dtype."""
        if self.combine == "add" and dtype.kind == "f":
            return (Compensated if dtype == F8 else Widened)(dtype, "add", 0.0)
        combine = self.combine
        if dtype == BOOL:
            # the maximum of booleans is "or"; their sum and product are integers
            combine = {"max": "or", "min": "and"}.get(combine, combine)
        kind = WithNan if self.has_nan and dtype.kind == "f" else Accumulator
        return kind(dtype, combine, _initial_value(self.start, dtype))

    def divided(self, b: Builder, total: Operand, count: Operand) -> Operand:
        """The mean of ``count`` elements, from their total."""
        if not self.is_divided:
            return total
        # NumPy divides by a 64-bit integer, in double precision
        quotient = b.div(b.convert(total, F8), b.convert(count, F8))
        return b.convert(quotient, total.dtype)

    def is_exact(self, dtype: np.dtype) -> bool:
        """Whether the bits do not depend on the order of elements."""
        return dtype.kind in "biu"  # of -0.0 and 0.0 the extremum is the first


def _initial_value(value: object, dtype: np.dtype) -> object:
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
    """Accumulates elements by one instruction, in order.

    The scalars ``parts`` are carried from block to block and from row to row, the scalars ``block``
    from element to element within a block. ``step`` adds an element to ``block``; ``with_block``
    adds ``block`` to ``parts``.
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

    def with_block(self, b: Builder, parts: Parts, block: Parts) -> Parts:
        return block

    def of_block(self, b: Builder, block: Parts) -> Parts:
        """The parts after a single block."""
        return self.with_block(b, self.first(b), block)

    def value(self, b: Builder, parts: Parts) -> Operand:
        """The total."""
        return parts[0]

    def with_value(self, b: Builder, parts: Parts, x: Operand) -> Parts:
        """``parts`` with one more value added, such as the total of a row."""
        return self.with_block(b, parts, self.step(b, self.block(b, parts), x))

    def update_element(self, b: Builder, old: Operand, x: Operand) -> Operand:
        """An element of an array of totals, with one more value added."""
        return b.let(self.combine, old, x)


@frozen
class WithNan(Accumulator):
    """The extremum of floats; its second part says whether an element was nan."""

    def first(self, b: Builder) -> Parts:
        return b.number(self.start, self.dtype), b.number(False, BOOL)

    def step(self, b: Builder, block: Parts, x: Operand) -> Parts:
        extremum, was_nan = block
        return b.let(self.combine, extremum, x), b.let("or", was_nan, b.let("ne", x, x))

    def value(self, b: Builder, parts: Parts) -> Operand:
        extremum, was_nan = parts
        return b.select(was_nan, b.number(np.nan, self.dtype), extremum)

    def update_element(self, b: Builder, old: Operand, x: Operand) -> Operand:
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
    """A sum of float64; its second part is the sum of the rounding errors."""

    def first(self, b: Builder) -> Parts:
        return b.number(0.0, F8), b.number(0.0, F8)

    def with_block(self, b: Builder, parts: Parts, block: Parts) -> Parts:
        (total, error), (x,) = parts, block
        result = b.add(total, x)
        added = b.sub(result, total)
        lost = b.add(b.sub(total, b.sub(result, added)), b.sub(x, added))
        return result, b.add(error, lost)

    def of_block(self, b: Builder, block: Parts) -> Parts:
        return *block, b.number(0.0, F8)

    def value(self, b: Builder, parts: Parts) -> Operand:
        total, error = parts  # the error is nan if the total is infinite
        return b.select(b.let("eq", error, error), b.add(total, error), total)


@frozen
class Widened(_Sum):
    """A sum of float32, whose blocks are added in float64."""

    def first(self, b: Builder) -> Parts:
        return (b.number(0.0, F8),)

    def with_block(self, b: Builder, parts: Parts, block: Parts) -> Parts:
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


def is_sum(op: Primitive) -> bool:
    """Whether an operation adds elements."""
    form = REDUCTIONS.get(op.reduction or "")
    return form is not None and form.combine == "add" and not form.is_divided


def is_mean(op: Primitive) -> bool:
    """Whether an operation is a mean of elements."""
    form = REDUCTIONS.get(op.reduction or "")
    return form is not None and form.is_divided
