"""Reading and writing parts of arrays: index, index_set, index_add, assemble.

The attribute ``item`` is the index as the user wrote it, with ``Here`` in the place of each array;
the arrays are further operands in that order. A boolean mask makes a shape that depends on data:
its ``Here`` says how many elements it selected when it was traced, which a guard checks.
"""

import numpy as np

from letir.ast.attrs import Here
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import PYTHON_NUMBERS, ArrayType, broadcast_shapes
from letir.errors import DTypeError, ShapeError
from letir.ops.as_numpy import arrays as numpy_forms
from letir.ops.define.records import array_dtype, define, in_dtype_of_result, recast, unbroadcast
from letir.ops.elementwise.ufuncs import equal, where
from letir.ops.indexing.index_expressions import (
    fill_item,
    group_parts,
    indexed_shape,
    spelled_item,
    split_sizes,
)
from letir.ops.indexing.indexing_batching import batched_assemble, batched_index, batched_write
from letir.ops.shape.shape_and_creation import (
    ones_like,
    reshape,
    runtime_shape,
    shape_operands,
    sum_to_size,
    zeros_like,
)

# ---- calls ----


def index_prepare(x, item, arrays=None):
    """``x[item]``; with ``arrays`` the item is spelled already."""
    if arrays is None:
        arrays, item = spelled_item(item)
    return (x, *arrays), {"item": item}


def _write_prepare(x, item, new, arrays=None):
    """``x[item] = new`` or ``+= new``."""
    (x, *arrays), attrs = index_prepare(x, item, arrays)
    return (x, new if type(new) is not list else np.asarray(new), *arrays), attrs


# ---- reading ----


def _index_aval(x, *arrays, item):
    """The operand's dtype in the indexed shape."""
    return x.with_shape(indexed_shape(x.shape, item, arrays))


def _keeps_all(item) -> bool:
    """Whether an index only adds axes of length 1: ``x[:, None]``, ``x[...]``."""
    entries = item if type(item) is tuple else (item,)
    return all(entry in (None, ..., slice(None)) for entry in entries if type(entry) is not Here)


def _index_vjp(ct, y, x, *arrays, item):
    """The cotangent in zeros, where it was read."""
    if not arrays and _keeps_all(item):  # no zeros, no writing
        return (reshape(ct, x),)
    # assemble, not index_add: combine_sums (passes) makes one of several, in one buffer
    return assemble(x, ((item, ct, arrays),)), *[None] * len(arrays)


def _index_impl(xp, x, *arrays, item):
    """The item; of a Python number as of the array that it is."""
    if type(x) in PYTHON_NUMBERS:
        x = xp.asarray(x)
    return x[fill_item(item, arrays)]


index = define(
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
    views=lambda x, *places, item: not places,
    write_through=lambda parent, new, *places, item: index_set(parent, item, new, places),
)

# ---- writing ----


def _written_aval(x, new, *arrays, item):
    """The first operand's type; the second must broadcast to what it replaces and is cast to its
    dtype.
    """
    shape = indexed_shape(x.shape, item, arrays)
    lead = new.shape[: max(new.ndim - len(shape), 0)]
    rest = new.shape[len(lead) :]
    is_wide = any(n != 1 for n in lead) and not (0 in rest and _has_index_arrays(x, arrays))
    if is_wide or broadcast_shapes(rest, shape) != shape:
        raise ShapeError(
            f"could not broadcast an array of shape {new.shape} into the indexed shape {shape}"
        )
    if new.dtype.kind == "c" != x.dtype.kind:  # chained: "c", and x is not
        raise DTypeError(
            f"cannot write {new} into {x}: the imaginary part would be lost; take .real first"
        )
    return x.with_shape(x.shape)


def _has_index_arrays(x, arrays) -> bool:
    """Whether an index has arrays, and not only a mask of all of ``x``: NumPy does not look at how
    often nothing is written there.
    """
    is_whole = len(arrays) == 1 and arrays[0].dtype.kind == "b" and arrays[0].ndim == x.ndim
    return bool(arrays) and not is_whole


def added_aval(x, new, *arrays, item):
    """As for writing, but ``new`` cannot have leading axes that the part has not: NumPy's ``+=``
    refuses them.
    """
    found, shape = _written_aval(x, new, *arrays, item=item), indexed_shape(x.shape, item, arrays)
    if new.ndim > len(shape):
        raise ShapeError(
            f"could not broadcast an array of shape {new.shape} into the indexed shape {shape}"
        )
    return found


def _index_set_impl(xp, x, new, *arrays, item):
    """A copy of ``x`` with the part replaced."""
    out = xp.array(x, copy=True)
    out[fill_item(item, arrays)] = new
    return out


def _index_set_update(xp, x, new, *arrays, item):
    """``x`` itself with the part replaced."""
    x[fill_item(item, arrays)] = new
    return x


def _index_add_impl(xp, x, new, *arrays, item):
    """A copy of ``x`` with ``new`` added to the part, also where an index repeats."""
    out = xp.array(x, copy=True)
    _add_in_place(xp, out, item, new, arrays)
    return out


def _index_add_update(xp, x, new, *arrays, item):
    """``x`` itself with ``new`` added to the part, also where an index repeats."""
    _add_in_place(xp, x, item, new, arrays)
    return x


def _add_in_place(xp, out, item, new, arrays) -> None:
    """Add ``new`` to a part of ``out`` in place, also where an index repeats."""
    place = fill_item(item, arrays)
    # one integer, which may be a Python number, names one place
    if any(a.dtype.kind != "b" for a in arrays if getattr(a, "shape", ())):
        xp.add.at(out, place, new)  # a place may be there twice, where += adds once
        return
    part, new = out[place], xp.asarray(new).astype(out.dtype, copy=False)
    if part.shape and not arrays:  # a view: += on out[place] would copy it onto itself
        xp.add(part, new, out=part)
    else:
        out[place] += new  # of masks, which name no place twice


def _is_last_write(x: Value, read: Value, item, arrays) -> Value:
    """Where what was written stays: of several writes to one place the last wins."""
    # real parts: only the shapes are read
    x, read = (v if v.type is None else v.real for v in (x, read))
    ones = reshape(ones_like(read).astype(np.int64), -1)
    places = reshape(PRIMITIVES["cumsum"](ones, 0), read)  # from 1: no arange of a named size
    nobody = zeros_like(x).astype(np.int64)
    # NumPy itself is asked who is last: each write leaves its number, and reads what is there
    return equal(index(index_set(nobody, item, places, arrays), item, arrays), places)


def cotangent_of_written(ct: Value, new) -> Value | None:
    """The cotangent of what was written, which may have had further leading axes of length 1."""
    if not isinstance(new, Value) or new.type is None or new.ndim <= ct.ndim:
        return unbroadcast(ct, new)
    return unbroadcast(reshape(sum_to_size(ct, new.shape[new.ndim - ct.ndim :]), new), new)


def _index_set_vjp(ct, y, x, new, *arrays, item):
    """Nothing for what was replaced; for the new values the cotangent where they stayed."""
    by_new = None
    if isinstance(new, Value) and new.type is not None and new.type.inexact:
        by_new = index(ct, item, arrays)
        if any(a.dtype.kind != "b" for a in arrays):
            by_new = where(_is_last_write(x, by_new, item, arrays), by_new, 0)
        elif not arrays and by_new.shape:
            # a view would keep the cotangent alive, and so from being updated in its own memory
            by_new = PRIMITIVES["copy"](by_new)
        by_new = cotangent_of_written(by_new, new)
    by_x = None if _covers_all(item, arrays) else unbroadcast(index_set(ct, item, 0, arrays), x)
    return by_x, by_new, *[None] * len(arrays)


def _covers_all(item, arrays) -> bool:
    """Whether all is replaced, so that nothing of the operand is left."""
    return not arrays and _keeps_all(item)


def _index_add_vjp(ct, y, x, new, *arrays, item):
    """The cotangent itself, and what is read of it at the index."""
    return (
        unbroadcast(ct, x),
        cotangent_of_written(index(ct, item, arrays), new),
        *[None] * len(arrays),
    )


def _write_jvp(name: str):
    """The same write on the tangents, zeros where there are none."""

    def jvp(tangents, y, x, new, *arrays, item):
        by_x, by_new = tangents[:2]
        if name == "index_set" and _covers_all(item, arrays):
            by_x = None  # nothing of it is left
            if by_new is None:
                return zeros_like(y)
        base = zeros_like(x) if by_x is None else by_x  # a part is written into the whole's tangent
        return PRIMITIVES[name](base, item, 0 if by_new is None else by_new, arrays)

    return jvp


index_set = define(
    "index_set",
    _index_set_impl,
    _written_aval,
    vjp=_index_set_vjp,
    jvp=_write_jvp("index_set"),
    batch=batched_write("index_set"),
    prepare=_write_prepare,
    reusable=True,
    update=_index_set_update,
    source=numpy_forms.index_set,
    only_float_warnings=True,
    casts_operands=True,
    operand_dtypes=in_dtype_of_result,
    order="first",
    cost="moderate",
    no_float_errors=True,
)
index_add = define(
    "index_add",
    _index_add_impl,
    added_aval,
    vjp=_index_add_vjp,
    jvp=_write_jvp("index_add"),
    batch=batched_write("index_add"),
    prepare=_write_prepare,
    reusable=True,
    update=_index_add_update,
    source=numpy_forms.index_add,
    only_float_warnings=True,
    casts_operands=True,
    order="first",
    cost="moderate",
)

# ---- putting parts together ----


def _assemble_impl(xp, *operands, items, shape):
    """Zeros, with each part added in place."""
    sizes, rest = split_sizes(operands, shape)
    parts = group_parts(items, rest)
    out = xp.zeros(runtime_shape(shape, sizes), xp.result_type(*[part for _, part, _ in parts]))
    for item, part, arrays in parts:
        _add_in_place(xp, out, item, part, arrays)
    return out


def _assemble_aval(*operands, items, shape):
    """The parts' dtype in the declared shape; each part has the shape of its item."""
    parts = group_parts(items, split_sizes(operands, shape)[1])
    if shape is None:
        return None
    for item, part, arrays in parts:
        place = indexed_shape(shape, item, arrays)
        if place != part.shape:
            raise ShapeError(f"assemble: a part of shape {part.shape} at a place of {place}")
    return ArrayType(array_dtype(*[part for _, part, _ in parts]), shape)


def _assemble_vjp(ct, y, *operands, items, shape):
    """What is read of the cotangent at each item."""
    sizes, rest = split_sizes(operands, shape)
    found: list = [None] * len(sizes)
    for item, part, arrays in group_parts(items, rest):
        found += [unbroadcast(index(ct, item, arrays), part), *[None] * len(arrays)]
    return tuple(found)


def _assemble_jvp(tangents, y, *operands, items, shape):
    """The tangents of the parts put together."""
    sizes, rest = split_sizes(operands, shape)
    directions = iter(group_parts(items, tangents[len(sizes) :]))
    there = [
        (item, tangent, arrays)
        for item, _, arrays in group_parts(items, rest)
        if (tangent := next(directions)[1]) is not None
    ]
    return recast(assemble(y, there), y.dtype)


def _assemble_prepare(like, parts):
    """Parts ``(item, part, arrays)`` in the shape of the value ``like``."""
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
    prepare=_assemble_prepare,
    source=numpy_forms.assemble,
    order="C",
    cost="moderate",
)
