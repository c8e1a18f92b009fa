"""Reading and writing parts of arrays: index, index_set, index_add, assemble.

The attribute ``item`` is the index as the user wrote it, with ``Here`` in place of each array; the
arrays are operands, in that order. The shape that a boolean mask selects depends on data: its
``Here`` holds the number of elements that it selected when it was traced, and a guard checks it.
"""

from typing import Any

import numpy as np

from letir.ast.attrs import Attrs, Here
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.types import PYTHON_NUMBERS, ArrayType, broadcast_shapes
from letir.errors import DTypeError, ShapeError
from letir.ops.as_numpy import arrays as numpy_forms
from letir.ops.define.records import (
    array_dtype,
    cast_cotangent,
    define,
    dtypes_for_result,
    unbroadcast,
)
from letir.ops.elementwise.comparisons_and_where import equal, where
from letir.ops.indexing.index_expressions import (
    fill_item,
    group_parts,
    indexed_shape,
    item_with_places,
    split_sizes,
)
from letir.ops.indexing.indexing_batching import batched_assemble, batched_index, batched_write
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import (
    ones_like,
    runtime_shape,
    shape_operands,
    sum_to_size,
    zeros_like,
)

# ---- calls ----


_at_number = BoundedCache(1 << 10)  # number -> attributes, whose token is then computed once


def index_prepare(x: Any, item: Any, arrays: Any = None) -> tuple[tuple, dict[str, Any]]:
    """``x[item]``. With ``arrays`` given, ``item`` has ``Here`` in their place already."""
    if type(item) is int and arrays is None:
        attrs = _at_number.get(item)
        if attrs is None:
            attrs = _at_number[item] = Attrs(item=item)
        return (x,), attrs
    if arrays is None:
        arrays, item = item_with_places(item)
    return (x, *arrays), {"item": item}


def _write_prepare(x, item, new, arrays=None):
    """``x[item] = new`` and ``x[item] += new``, as functional updates."""
    (x, *arrays), attrs = index_prepare(x, item, arrays)
    return (x, new if type(new) is not list else np.asarray(new), *arrays), attrs


# ---- reading ----


def _index_aval(x, *arrays, item):
    """The operand's dtype in the shape of ``x[item]``."""
    return x.with_shape(indexed_shape(x.shape, item, arrays))


def _keeps_all(item) -> bool:
    """Whether an index only adds axes of length 1: ``x[:, None]``, ``x[...]``."""
    entries = item if type(item) is tuple else (item,)
    return all(entry in (None, ..., slice(None)) for entry in entries if type(entry) is not Here)


def _index_vjp(ct, y, x, *arrays, item):
    """The cotangent at the place that was read, zeros elsewhere."""
    if not arrays and _keeps_all(item):  # every element was read
        return (reshape(ct, x),)
    # assemble, not index_add: the pass combine_sums merges several into one, in one buffer
    return assemble(x, ((item, ct, arrays),)), *[None] * len(arrays)


def _index_impl(xp, x, *arrays, item):
    """``x[item]``, where a Python number is a 0-d array."""
    if type(x) in PYTHON_NUMBERS:
        x = xp.asarray(x)
    return x[fill_item(item, arrays)]


index: Primitive = define(
    "index",
    _index_impl,
    _index_aval,
    vjp=_index_vjp,
    jvp=lambda t, y, x, *arrays, item: index(t[0], item, arrays),
    batch=batched_index,
    prepare=index_prepare,
    source=numpy_forms.index,
    never_fails_alone=True,
    odd_in=(0,),
    only_float_warnings=True,
    memory="view",
    cost="moderate",
    role="index",
    sizes_in=("item",),
    views=lambda x, *places, item: not places,
    write_through=lambda parent, new, *places, item: index_set(parent, item, new, places),
    raises=lambda x, *places, item: bool(places),
    moves_elements=1,
)

# ---- writing ----


def _written_aval(x, new, *arrays, item):
    """The type of ``x``. ``new`` must broadcast to the part that it replaces, and is cast to the
    dtype of ``x``.
    """
    shape = indexed_shape(x.shape, item, arrays)
    lead = new.shape[: max(new.ndim - len(shape), 0)]
    rest = new.shape[len(lead) :]
    is_wide = any(n != 1 for n in lead) and not (0 in rest and _has_index_arrays(x, arrays))
    if is_wide or broadcast_shapes(rest, shape) != shape:
        raise ShapeError(
            f"could not broadcast an array of shape {new.shape} into the indexed shape {shape}\n"
            "  write an array of that shape, or one number"
        )
    if new.dtype.kind == "c" != x.dtype.kind:  # chained comparison: new is complex and x is not
        raise DTypeError(
            f"cannot write {new} into {x}: the imaginary part would be lost; take .real first\n"
            "  or make the array complex: x.astype(complex)"
        )
    return x.with_shape(x.shape)


def _has_index_arrays(x, arrays) -> bool:
    """Whether an index has arrays other than one mask of all of ``x``. With these NumPy accepts
    leading axes of any length in front of an empty part.
    """
    is_whole = len(arrays) == 1 and arrays[0].dtype.kind == "b" and arrays[0].ndim == x.ndim
    return bool(arrays) and not is_whole


def added_aval(x: ArrayType, new: ArrayType, *arrays: ArrayType, item: Any) -> ArrayType:
    """The type rule of ``x[item] += new``, in which ``new`` cannot have more axes than the part."""
    result, shape = _written_aval(x, new, *arrays, item=item), indexed_shape(x.shape, item, arrays)
    if new.ndim > len(shape):
        raise ShapeError(
            f"could not broadcast an array of shape {new.shape} into the indexed shape {shape}\n"
            "  write an array of that shape, or one number"
        )
    return result


def _index_set_impl(xp, x, new, *arrays, item):
    """A copy of ``x`` with the part ``x[item]`` replaced by ``new``."""
    return _index_set_update(xp, xp.array(x, copy=True), new, *arrays, item=item)


def _index_set_update(xp, x, new, *arrays, item):
    """``x`` itself, with the part ``x[item]`` replaced by ``new`` in place."""
    place = fill_item(item, arrays)
    # only arrays of a device have it; the look-up in NumPy, which lacks it, takes microseconds
    write_in_order = getattr(xp, "write_in_order", None) if _may_repeat(arrays) else None
    if write_in_order is not None:
        write_in_order(x, place, new)
    else:
        x[place] = new
    return x


def _index_add_impl(xp, x, new, *arrays, item):
    """A copy of ``x`` with ``new`` added to the part ``x[item]``; repeated indices add up."""
    out = xp.array(x, copy=True)
    _add_in_place(xp, out, item, new, arrays)
    return out


def _index_add_update(xp, x, new, *arrays, item):
    """``x`` itself, with ``new`` added to the part ``x[item]`` in place; repeated indices add
    up.
    """
    _add_in_place(xp, x, item, new, arrays)
    return x


def _may_repeat(arrays) -> bool:
    """Whether index arrays may select an element twice: not a mask, nor a single integer, which
    may be a Python number.
    """
    return any(a.dtype.kind != "b" for a in arrays if getattr(a, "shape", ()))


def _add_in_place(xp, out, item, new, arrays) -> None:
    """Add ``new`` to the part ``out[item]`` in place; repeated indices add up."""
    place = fill_item(item, arrays)
    if _may_repeat(arrays):
        xp.add.at(out, place, new)  # += would add once to an element that is indexed twice
        return
    part, new = out[place], xp.asarray(new).astype(out.dtype, copy=False)
    if part.shape and not arrays:  # a view: += on out[place] would copy it onto itself
        xp.add(part, new, out=part)
    else:
        out[place] += new  # a mask selects no element twice


def _is_last_write(x: Value, read: Value, item, arrays) -> Value:
    """Where a written element remains: the last of several writes to one place wins."""
    # real parts suffice, because only the shapes are read
    x, read = (v if v.type is None else v.real for v in (x, read))
    ones = reshape(ones_like(read).astype(np.int64), -1)
    # writes numbered from 1 by a cumulative sum, since arange needs a size that is not symbolic
    numbers = reshape(PRIMITIVES["cumsum"](ones, 0), read)
    unwritten = zeros_like(x).astype(np.int64)
    # write the numbers with the same index and read them back: the last write's number remains
    return equal(index(index_set(unwritten, item, numbers, arrays), item, arrays), numbers)


def cotangent_of_written(ct: Value, new: Any) -> Value | None:
    """``ct`` summed to the shape of the written operand ``new``, which may have leading axes of
    length 1 that the part lacks.
    """
    if not isinstance(new, Value) or new.type is None or new.ndim <= ct.ndim:
        return unbroadcast(ct, new)
    return unbroadcast(reshape(sum_to_size(ct, new.shape[new.ndim - ct.ndim :]), new), new)


def _index_set_vjp(ct, y, x, new, *arrays, item):
    """(cotangent of x: zero at the replaced part, cotangent of new: zero where it was
    overwritten).
    """
    by_new = None
    if isinstance(new, Value) and new.type is not None and new.type.inexact:
        by_new = index(ct, item, arrays)
        if any(a.dtype.kind != "b" for a in arrays):
            by_new = where(_is_last_write(x, by_new, item, arrays), by_new, 0)
        elif not arrays and by_new.shape:
            # a view would keep the cotangent alive and prevent its update in place
            by_new = PRIMITIVES["copy"](by_new)
        by_new = cotangent_of_written(by_new, new)
    by_x = None if _covers_all(item, arrays) else unbroadcast(index_set(ct, item, 0, arrays), x)
    return by_x, by_new, *[None] * len(arrays)


def _covers_all(item, arrays) -> bool:
    """Whether every element of the operand is replaced."""
    return not arrays and _keeps_all(item)


def _index_add_vjp(ct, y, x, new, *arrays, item):
    """The cotangent for x, and its part at the index for new."""
    return (
        unbroadcast(ct, x),
        cotangent_of_written(index(ct, item, arrays), new),
        *[None] * len(arrays),
    )


def _write_jvp(name: str):
    """The JVP of index_set or index_add: the same write on the tangents, zeros for missing ones."""

    def jvp(tangents, y, x, new, *arrays, item):
        by_x, by_new = tangents[:2]
        if name == "index_set" and _covers_all(item, arrays):
            by_x = None  # all of x is replaced
            if by_new is None:
                return zeros_like(y)
        base = zeros_like(x) if by_x is None else by_x
        return PRIMITIVES[name](base, item, 0 if by_new is None else by_new, arrays)

    return jvp


index_set: Primitive = define(
    "index_set",
    _index_set_impl,
    _written_aval,
    vjp=_index_set_vjp,
    jvp=_write_jvp("index_set"),
    batch=batched_write("index_set"),
    sizes_in=("item",),
    prepare=_write_prepare,
    reusable=True,
    update=_index_set_update,
    updates_from_view=True,
    source=numpy_forms.index_set,
    only_float_warnings=True,
    casts_operands=True,
    operand_dtypes=dtypes_for_result,
    order="first",
    cost="moderate",
    no_float_errors=True,
    for_scripts=False,
    raises=lambda x, new, *places, item: bool(places),
    moves_elements=2,
    role="index_set",
)
index_add = define(
    "index_add",
    _index_add_impl,
    added_aval,
    vjp=_index_add_vjp,
    jvp=_write_jvp("index_add"),
    batch=batched_write("index_add"),
    sizes_in=("item",),
    prepare=_write_prepare,
    reusable=True,
    update=_index_add_update,
    updates_from_view=True,
    source=numpy_forms.index_add,
    only_float_warnings=True,
    casts_operands=True,
    order="first",
    cost="moderate",
    for_scripts=False,
    raises=lambda x, new, *places, item: bool(places),
    scalar="index_add",
    adds_parts="operand",
)

# ---- assemble: the sum of parts in zeros ----


def _assemble_impl(xp, *operands, items, shape):
    """Zeros with each part added at its item."""
    sizes, rest = split_sizes(operands, shape)
    parts = group_parts(items, rest)
    out = xp.zeros(runtime_shape(shape, sizes), xp.result_type(*[part for _, part, _ in parts]))
    for item, part, arrays in parts:
        _add_in_place(xp, out, item, part, arrays)
    return out


def _assemble_aval(*operands, items, shape):
    """The dtype of the parts in the given shape. Each part must have the shape of its item."""
    parts = group_parts(items, split_sizes(operands, shape)[1])
    if shape is None:
        return None
    for item, part, arrays in parts:
        place = indexed_shape(shape, item, arrays)
        if place != part.shape:
            raise ShapeError(
                f"assemble: a part of shape {part.shape} for an index that selects {place}\n"
                "  pass parts of the shapes that their indices select"
            )
    return ArrayType(array_dtype(*[part for _, part, _ in parts]), shape)


def _assemble_vjp(ct, y, *operands, items, shape):
    """The part of the cotangent at each item."""
    sizes, rest = split_sizes(operands, shape)
    result: list = [None] * len(sizes)
    for item, part, arrays in group_parts(items, rest):
        result += [unbroadcast(index(ct, item, arrays), part), *[None] * len(arrays)]
    return tuple(result)


def _assemble_jvp(tangents, y, *operands, items, shape):
    """The tangents of the parts, assembled."""
    sizes, rest = split_sizes(operands, shape)
    directions = iter(group_parts(items, tangents[len(sizes) :]))
    moving_parts = [
        (item, tangent, arrays)
        for item, _, arrays in group_parts(items, rest)
        if (tangent := next(directions)[1]) is not None
    ]
    return cast_cotangent(assemble(y, moving_parts), y.dtype)


def _assemble_prepare(like, parts):
    """The operands for parts ``(item, part, arrays)`` in zeros of the shape of ``like``."""
    sizes, shape = shape_operands(like)
    rest = [operand for _, part, arrays in parts for operand in (part, *arrays)]
    return (*sizes, *rest), {"items": tuple([item for item, _, _ in parts]), "shape": shape}


assemble = define(
    "assemble",
    _assemble_impl,
    _assemble_aval,
    vjp=_assemble_vjp,
    jvp=_assemble_jvp,
    batch=batched_assemble,
    sizes_in=("items",),
    prepare=_assemble_prepare,
    source=numpy_forms.assemble,
    order="C",
    cost="moderate",
    scalar="assemble",
    adds_parts="zeros",
)
