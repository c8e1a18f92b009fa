"""The elements of arrays along an axis: their types, and initial elements that fit them."""

from collections.abc import Sequence
from typing import Any

from optree import PyTreeSpec

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.pytrees import Tree, flatten
from letir.ast.types import PYTHON_NUMBERS, ArrayType, broadcast_shapes
from letir.errors import DTypeError, ShapeError, TraceError
from letir.eval.array_modules import is_array, type_of
from letir.ops.define.records import cast_cotangent
from letir.tracing.control_flow.scans import array_words, as_row, row_type
from letir.tracing.source_locations import at_user


def element_type(aval: ArrayType) -> ArrayType:
    """The type of the elements along the leading axis."""
    return aval.with_shape(aval.shape[1:])


def element_types(tree: Any, axis: int, caller: str) -> tuple[list, PyTreeSpec, list[ArrayType]]:
    """(arrays, their nesting, their types with ``axis`` in front)."""
    leaves, spec = flatten(tree)
    rows = [as_row(x) for x in leaves]
    if not rows:
        raise ShapeError(f"{caller}: xs contains no arrays{at_user()}\n  pass at least one array")
    avals = [row_type(x) for x in rows]
    for i, aval in enumerate(avals):
        if aval is None or not -aval.ndim <= axis < aval.ndim:
            raise ShapeError(
                f"{caller}: {array_words('xs', i, len(rows))} is {aval}, which has no axis {axis}"
                f"{at_user()}\n"
                "  pass arrays with this axis, or another axis="
            )
    avals = [_axis_in_front(aval, axis) for aval in avals]
    if any(aval.shape[0] != avals[0].shape[0] for aval in avals):
        listed = ", ".join(str(aval.shape[0]) for aval in avals)
        raise ShapeError(
            f"{caller}: the arrays have {listed} elements along axis {axis}{at_user()}\n"
            "  make the arrays equally long along the axis"
        )
    return rows, spec, avals


def _axis_in_front(aval: ArrayType, axis: int) -> ArrayType:
    """The type with ``axis`` moved to the front."""
    rest = [n for i, n in enumerate(aval.shape) if i != axis % aval.ndim]
    return aval.with_shape((aval.shape[axis], *rest))


def initial_leaves(
    tree: Any, spec: PyTreeSpec, avals: Sequence[ArrayType], caller: str, role: str
) -> list:
    """The leaves of an initial or neutral element, which nests as the elements of types ``avals``
    and broadcasts to them.
    """
    leaves, nesting = flatten(tree)
    if nesting != spec:
        raise TraceError(
            f"{caller}: {role} nests as {Tree(nesting)}, the elements as {Tree(spec)}{at_user()}\n"
            "  nest it like an element of xs"
        )
    for leaf, aval in zip(leaves, avals, strict=True):
        if not (isinstance(leaf, Value) or is_array(leaf) or type(leaf) in PYTHON_NUMBERS):
            raise DTypeError(
                f"{caller}: {role} has {leaf!r}, which is not an array{at_user()}\n"
                "  pass arrays and numbers only"
            )
        found = type_of(leaf)
        if found is not None and not _broadcasts_to(found.shape, aval.shape):
            raise ShapeError(
                f"{caller}: {role} has the type {found}, and the elements have the type {aval}"
                f"{at_user()}\n  give it the shape of an element of xs"
            )
    return leaves


def _broadcasts_to(shape: tuple, target: tuple) -> bool:
    """Whether an array of this shape broadcasts to ``target``; True if that is not known."""
    try:
        return broadcast_shapes(shape, target) == target
    except ShapeError:
        return False


def as_element(value: Value, aval: ArrayType) -> Value:
    """An initial or neutral element converted to the type of the elements."""
    value = cast_cotangent(value, aval.dtype)
    if value.type.weak:
        value = PRIMITIVES["cast"](value, aval.dtype)
    return PRIMITIVES["broadcast_to"](value, aval.shape) if value.shape != aval.shape else value
