"""Symbolic sizes as numbers of a program: the operation ``length``, and the number of any size,
computed from the axes of operands or parameters that determine its names.

``sized`` is another operation with attributes that are symbolic sizes; its last operand is a 1-d
array of their numbers.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.sizes.size import Quotient, Size
from letir.ast.types import WEAK
from letir.errors import ShapeError
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import emit_op
from letir.ops.define.records import DISCRETE, define


def _length_aval(x, *, axis):
    """The type of a Python integer. Raises ShapeError if ``x`` has no such axis."""
    if not 0 <= axis < x.ndim:
        raise ShapeError(
            f"length: an array of shape {x.shape} has no axis {axis}\n"
            f"  pass an axis from 0 to {x.ndim - 1}"
        )
    return WEAK[int]


length = define(
    "length",
    lambda xp, x, *, axis: int(x.shape[axis]),
    _length_aval,
    vjp=DISCRETE,
    jvp=DISCRETE,
    batch=lambda args, axes, *, axis: (
        emit_op("length", args, axis=axis + (axes[0] % (args[0].ndim) <= axis)),
        None,
    ),
    source=arrays.length,
    reads_sizes_only=True,
    never_fails="biufc",
    no_float_errors=True,
    only_float_warnings=True,
    cost="free",
    for_scripts=False,
)


# ---- numbers of sizes ----


def number_from(size: Any, values: Iterable[Value], emitter: Any = None) -> Any:
    """``size`` as a Python integer of the program, from the axes of ``values`` and of the
    parameters of ``emitter``; None if they do not determine it.
    """
    if type(size) is not Size:
        return size
    values = list(values)
    values += [] if emitter is None else emitter.sized_values()
    direct = _axis_of(size, values)
    if direct is not None:
        return direct
    total: Any = 0
    for names, factor in size.terms:
        product: Any = factor
        for name in names:
            number = _number_of_name(name, values)
            if number is None:
                return None
            # no bind is recorded for a factor of one
            product = number if type(product) is int and product == 1 else number * product
        total = product if type(total) is int and total == 0 else total + product
    return total


def _axis_of(size: Size, values: list[Value]) -> Value | None:
    """The length of an axis of this size."""
    for value in values:
        shape = () if value.type is None else value.type.shape
        for axis, n in enumerate(shape):
            if type(n) is Size and n.terms == size.terms:
                return emit_op("length", (value,), axis=axis)
    return None


def _number_of_name(name: str, values: list[Value]) -> Any:
    """The number of one name: an axis, or solved from an axis such as ``2*n+1``."""
    if isinstance(name, Quotient):
        of = number_from(name.of, values)
        return None if of is None else of // name.by
    result = _axis_of(Size.named(name), values)
    if result is not None:
        return result
    for value in values:
        for axis, n in enumerate(() if value.type is None else value.type.shape):
            match n.terms if type(n) is Size else ():
                case (((only,), factor),) | (((only,), factor), ((), _)) if only == name:
                    number = emit_op("length", (value,), axis=axis) - dict(n.terms).get((), 0)
                    return number if factor == 1 else number // factor
    return None


def number_array(numbers: Sequence[Any], values: Sequence = ()) -> Any:
    """Integers, some of them symbolic sizes, as a 1-d integer array of the program.

    Symbolic sizes are read from the axes of ``values`` and from the parameters of the program.
    """
    values = [v for v in values if isinstance(v, Value)]
    emitter = next((v.emitter for v in values), None)
    parts = []
    for n in numbers:
        number = None if emitter is None else number_from(n, values, emitter)
        if number is None and emitter is not None:
            raise ShapeError(f"the size {n} is not known from these operands")
        if number is None:
            number = n.number() if type(n) is Size else n
        parts.append(_one_element(number))
    if not any(isinstance(part, Value) for part in parts):
        return np.concatenate(parts)
    return parts[0] if len(parts) == 1 else emit_op("concatenate", parts, axis=0, dtype=None)


def _one_element(number: Any) -> Any:
    """An int64 array of shape (1,) that holds ``number``."""
    if not isinstance(number, Value):
        return np.array([number], dtype=np.int64)
    return emit_op("reshape", (number,), shape=(1,), order="C")


# ---- operations with attributes that are symbolic sizes ----


def sizes_in(attr: Any) -> list[Size]:
    """The symbolic sizes in an attribute, in their order."""
    kind = type(attr)
    if kind is slice:
        attr = attr.start, attr.stop, attr.step
    elif kind is not tuple:
        return [attr] if kind is Size else []
    return [size for item in attr for size in sizes_in(item)]


def _fill_sizes(attr: Any, numbers: Iterator) -> Any:
    """An attribute with its symbolic sizes replaced by the next of ``numbers``."""
    kind = type(attr)
    if kind is Size:
        return next(numbers)
    if kind is slice:
        return slice(*[_fill_sizes(n, numbers) for n in (attr.start, attr.stop, attr.step)])
    return tuple([_fill_sizes(item, numbers) for item in attr]) if kind is tuple else attr


def sized_call(op: Primitive, operands: Sequence, attrs: Attrs, like: Sequence = ()) -> Any:
    """``op`` with symbolic sizes in its attributes, recorded as the operation ``sized``; a
    composite as its decomposition.

    The sizes are read from the axes of operands, of ``like``, and of parameters.
    """
    if op.decompose is not None:
        return op.decompose(*operands, **attrs)
    sizes = [size for name in op.sizes_in for size in sizes_in(attrs[name])]
    numbers = number_array(sizes, (*operands, *like))
    settings = Attrs(operation=op.name, names=tuple(attrs), settings=tuple(attrs.values()))
    return numbers.emitter.apply(sized, (*operands, numbers), settings)


def _inner_operation(
    operation: str, names: tuple, settings: tuple
) -> tuple[Primitive, dict[str, Any]]:
    """The operation, and its attributes."""
    return PRIMITIVES[operation], dict(zip(names, settings, strict=True))


def filled_attrs(op: Primitive, attrs: dict[str, Any], numbers: Iterable) -> dict[str, Any]:
    """The attributes with ``numbers`` in place of the symbolic sizes."""
    rest = iter(numbers)
    # a shape with unknown sizes would be another operand of the operation
    filled = {name: _fill_sizes(attrs[name], rest) for name in op.sizes_in}
    return {name: filled.get(name, value) for name, value in attrs.items()}


def _sized_impl(xp, *operands, operation, names, settings):
    """Run the operation with the numbers as its attributes."""
    op, attrs = _inner_operation(operation, names, settings)
    return op.impl(xp, *operands[:-1], **filled_attrs(op, attrs, map(int, operands[-1])))


def _sized_aval(*types, operation, names, settings):
    """The result type of the operation."""
    op, attrs = _inner_operation(operation, names, settings)
    return op.aval(*types[:-1], **attrs)


def _sized_vjp(ct, y, *operands, operation, names, settings):
    """The cotangents that the operation gives, and none for the numbers."""
    op, attrs = _inner_operation(operation, names, settings)
    return *op.rule("vjp")(ct, y, *operands[:-1], **attrs), None


def _sized_jvp(tangents, y, *operands, operation, names, settings):
    """The tangent that the operation gives."""
    op, attrs = _inner_operation(operation, names, settings)
    return op.rule("jvp")(tangents[:-1], y, *operands[:-1], **attrs)


def _sized_batch(args, axes, *, operation, names, settings):
    """The batching rule of the operation."""
    op, attrs = _inner_operation(operation, names, settings)
    return op.rule("batch")(args[:-1], axes[:-1], **attrs)


def _sized_views(kind, *others, operation, names, settings):
    """Whether the operation gives views."""
    op, attrs = _inner_operation(operation, names, settings)
    if op.memory != "view":
        return False
    return op.views is None or op.views(kind, *others[:-1], **attrs)


def _sized_write(parent, new, *others, operation, names, settings):
    """The first operand after ``new`` was written into its view."""
    op, attrs = _inner_operation(operation, names, settings)
    return op.write_through(parent, new, *others[:-1], **attrs)


sized = define(
    "sized",
    _sized_impl,
    _sized_aval,
    vjp=_sized_vjp,
    jvp=_sized_jvp,
    batch=_sized_batch,
    role="sized",
    memory="view",
    views=_sized_views,
    write_through=_sized_write,
    only_float_warnings=True,
    cost="moderate",
    for_scripts=False,
)


LATE_BOUND["number_array"] = number_array
LATE_BOUND["sized_call"] = sized_call
