"""The data types of ``row_rules``: split operands, rules, and partial results."""

from collections.abc import Sequence

from attrs import frozen

from letir.ast.attrs import Attrs
from letir.ast.terms import Bind
from letir.ast.types import ArrayType

Axes = tuple[int | None, ...]


@frozen
class SplitOperands:
    """The operands of a bind. ``axes``: the axis along which each is split, or None; ``count``: the
    rows of all blocks together; ``values``: the elements of constants.
    """

    axes: Axes
    count: int
    values: dict


@frozen
class Partial:
    """How partial results are joined: by a ufunc, and then divided, if ``divisor`` is not 0."""

    ufunc: str
    divisor: int = 0


SUM = Partial("add")


@frozen
class RowRule:
    """The rule by which a bind is computed on blocks of rows.

    ``needed``: for each operand the axis along which a block of it is needed, None for the whole
    operand. ``results``: the axis of rows of each result; None for a partial result, which
    ``combine`` joins with the partial results of other blocks. ``attrs``: the attributes.
    ``shape_axis``: where the attribute ``shape`` has the number of rows. ``numbers``: the operands
    that count the rows.
    """

    needed: Axes
    results: tuple[int | None, ...] = ()
    combine: Partial | None = None
    attrs: Attrs | None = None
    shape_axis: int | None = None
    numbers: tuple[int, ...] = ()


def with_row_count(aval: ArrayType, axis: int | None, count: int) -> ArrayType:
    """The type with ``count`` rows."""
    if axis is None:
        return aval
    return aval.with_shape((*aval.shape[:axis], count, *aval.shape[axis + 1 :]))


def attrs_for(attrs: Attrs, shape_axis: int | None, count: int) -> Attrs:
    """The attributes with ``count`` rows in the attribute ``shape``."""
    if shape_axis is None:
        return attrs
    shape = list(attrs["shape"])
    shape[shape_axis] = count
    return Attrs({**attrs, "shape": tuple(shape)})


def broadcast_row_axes(
    avals: Sequence[ArrayType], axes: Axes, count: int
) -> tuple[Axes, int] | None:
    """(the axis along which each operand is needed, the axis of rows counted from the last one)."""
    places = {aval.ndim - axis for aval, axis in zip(avals, axes, strict=True) if axis is not None}
    if len(places) != 1:
        return None
    (place,) = places
    return tuple(
        [
            aval.ndim - place if aval.ndim >= place and aval.shape[-place] == count else None
            for aval in avals
        ]
    ), place


def operand_types(bind: Bind) -> list[ArrayType]:
    """The types of the operands."""
    return [arg.type for arg in bind.args]
