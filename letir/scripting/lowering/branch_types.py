"""Patterns: the common types of values at the ends of branches and across the steps of loops.

A pattern states which parts of a value are arrays, with their types, and which parts are known and
constant. Numbers join arrays by NumPy's promotion; nothing else changes its type.
"""

from collections.abc import Iterable, Iterator
from typing import Any, final

import numpy as np
from attrs import field, frozen

from letir.ast.attrs import token
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import PYTHON_NUMBERS, WEAK, ArrayType
from letir.ops.define.records import cast_cotangent
from letir.ops.shape.shape_and_creation import Sizes
from letir.scripting.value_leaves import is_static, plain_result


class NoCommonPatternError(Exception):
    """Two values have no pattern in common."""


@final
@frozen
class BranchLeaf:
    """An array of this type, None if unknown; ``is_shape``: it represents a shape."""

    kind: ArrayType | None
    is_shape: bool = False


@final
@frozen
class Fixed:
    """A known value that is the same on every path."""

    value: object = field(eq=token)  # compared by token: 1, 1.0 and True differ


Pattern = BranchLeaf | Fixed | tuple


def pattern_of(value: Any) -> Pattern:
    """The pattern of a value that may change: numbers become arrays, other constants stay."""
    if type(value) in PYTHON_NUMBERS or not isinstance(value, tuple):
        return leaf_of(value) or Fixed(value)
    return Fixed(value) if is_static(value) else tuple(map(pattern_of, value))


def leaf_of(value: Any) -> BranchLeaf | None:
    """The leaf pattern of an array or a number, None for other values."""
    if type(value) is Sizes:
        return BranchLeaf(value.array.type, True)
    if isinstance(value, Value):
        return BranchLeaf(value.type)
    return BranchLeaf(WEAK[type(value)]) if type(value) in PYTHON_NUMBERS else None


def common_pattern(pattern: Pattern, value: Any) -> Pattern:
    """The least pattern that covers ``pattern`` and ``value``.

    Raises NoCommonPatternError if there is none.
    """
    if type(pattern) is Fixed:
        if is_static(value) and pattern == Fixed(value):
            return pattern
        fixed = pattern.value
        pattern = tuple(map(Fixed, fixed)) if isinstance(fixed, tuple) else leaf_of(fixed)
    if isinstance(pattern, tuple) and isinstance(value, tuple) and len(pattern) == len(value):
        return tuple(map(common_pattern, pattern, value))
    leaf = None if isinstance(value, tuple) else leaf_of(value)
    if type(pattern) is not BranchLeaf or leaf is None:
        raise NoCommonPatternError
    return BranchLeaf(_joined_kind(pattern.kind, leaf.kind), pattern.is_shape and leaf.is_shape)


def _joined_kind(one: ArrayType | None, other: ArrayType | None) -> ArrayType | None:
    """The common type of two arrays; None if one is unknown."""
    if one is None or other is None:
        return None
    if one is other:
        return one
    if one.shape != other.shape or not (one.weak or other.weak):
        raise NoCommonPatternError
    if one.weak and other.weak:
        return max(one, other, key=lambda aval: "iufc".index(aval.dtype.kind))
    strong, weak = (other, one) if one.weak else (one, other)
    # a number joins an array whose dtype it would not change
    if np.result_type(strong.dtype, type(np.zeros((), weak.dtype).item())(0)) != strong.dtype:
        raise NoCommonPatternError
    if strong.dtype.kind == "b":
        raise NoCommonPatternError
    return strong


def description_of(value: Any) -> str:
    """A description of a value or a pattern, for messages."""
    if isinstance(value, tuple):
        return f"({', '.join(map(description_of, value))}{',' * (len(value) == 1)})"
    if type(value) is Fixed:
        return description_of(value.value)
    leaf = value if type(value) is BranchLeaf else leaf_of(value)
    if leaf is None:
        return repr(value)
    return "of unknown type" if leaf.kind is None else str(leaf.kind)


# ---- values of a pattern ----


def leaves_of_pattern(pattern: Pattern) -> list[BranchLeaf]:
    """The arrays in a pattern."""
    if type(pattern) is BranchLeaf:
        return [pattern]
    return (
        []
        if type(pattern) is Fixed
        else [leaf for part in pattern for leaf in leaves_of_pattern(part)]
    )


def flatten_values(patterns: Iterable[Pattern], values: Iterable) -> list:
    """The arrays of values, converted to their patterns."""
    result: list = []
    for pattern, value in zip(patterns, values, strict=True):
        if type(pattern) is BranchLeaf:
            result.append(_convert_to_kind(plain_result(value), pattern.kind))
        elif type(pattern) is tuple:
            result += flatten_values(pattern, value)
    return result


def _rebuild_value(pattern: Pattern, values: Iterator[Value]):
    """The value of this pattern with these arrays."""
    if type(pattern) is Fixed:
        return pattern.value
    if isinstance(pattern, tuple):
        return tuple([_rebuild_value(part, values) for part in pattern])
    value = next(values)
    return Sizes(value) if pattern.is_shape else value


def all_rebuilt(patterns: Iterable[Pattern], values: Iterable[Value]) -> list:
    """A value for each pattern."""
    rest = iter(values)
    return [_rebuild_value(pattern, rest) for pattern in patterns]


def _convert_to_kind(value, aval: ArrayType | None):
    """An array or a number converted to a type that covers its own."""
    if aval is None or (isinstance(value, Value) and value.type in (None, aval)):
        return value
    if not isinstance(value, Value):
        number = aval.dtype.type(value)
        return number.item() if aval is WEAK[type(number.item())] else number
    if aval.weak:
        return PRIMITIVES["weaken"](cast_cotangent(value, aval.dtype))
    return PRIMITIVES["cast"](value, aval.dtype)  # also turns a number into an array
