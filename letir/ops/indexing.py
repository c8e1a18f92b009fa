"""Reading and writing parts of arrays: index, index_set, index_add, assemble.

The attribute ``item`` is the index as the user wrote it, with ``Here`` in the place of each array;
the arrays are further operands in that order. A boolean mask makes a shape that depends on data:
its ``Here`` says how many elements it selected when it was traced, which a guard checks.
"""

import itertools

import numpy as np

from letir.ast.attrs import Here
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import ArrayType, broadcast_shapes
from letir.errors import BoundsError, DTypeError, ShapeError
from letir.ops.batched_indexing import batched_assemble, batched_index, batched_write
from letir.ops.elementwise import equal, where
from letir.ops.makers import array_dtype, match, op, recast
from letir.ops.sizes import (
    arange,
    as_size,
    declared,
    is_known,
    reshape,
    spelled,
    sum_to_size,
    zeros_like,
)

# ---- the index as an attribute ----


def spelled_item(item) -> tuple[tuple, object]:
    """(arrays, item with ``Here`` in their places) of an index as users write it."""
    arrays: list = []
    if type(item) is tuple:
        spelled = tuple([spelled_entry(entry, arrays) for entry in item])
    else:
        spelled = spelled_entry(item, arrays)
    return tuple(arrays), spelled


def spelled_entry(entry, arrays: list):
    """One entry of an index as an attribute; an array is added to ``arrays``."""
    if entry is None or entry is Ellipsis or type(entry) is int:
        return entry
    if isinstance(entry, slice):
        ends = entry.start, entry.stop, entry.step
        return slice(*[None if n is None else as_size(n) for n in ends])
    if isinstance(entry, np.integer):
        return int(entry)
    if isinstance(entry, list):
        entry = np.asarray(entry) if entry else np.zeros(0, np.intp)
    if isinstance(entry, bool | np.bool_):
        entry = np.asarray(entry)
    if not isinstance(entry, np.ndarray | Value) or entry.dtype.kind not in "biu":
        raise BoundsError(
            "an index is made of integers, slices, None, ... and integer or boolean arrays, "
            f"found {entry!r}\n"
            "  cast it with .astype(int) if its values are integers"
        )
    arrays.append(entry)
    # asking a traced mask for its count records a guard
    return Here(entry.sum().__index__() if entry.dtype.kind == "b" else None)


def filled(item, arrays: tuple):
    """The index with the arrays in their places."""
    rest = iter(arrays)
    if type(item) is tuple:
        return tuple([next(rest) if type(entry) is Here else entry for entry in item])
    return next(rest) if type(item) is Here else item


def indexed_shape(shape: tuple, item, arrays: tuple[ArrayType, ...]) -> tuple:
    """The shape of ``x[item]`` by NumPy's rules for basic and advanced indices.

    https://numpy.org/doc/stable/user/basics.indexing.html#combining-advanced-and-basic-indexing
    """
    entries = expanded(shape, item, arrays)
    kinds, axis = iter(arrays), 0
    kept: list = []  # sizes of the axes that slices and None leave
    together: list[tuple] = []  # shapes of the advanced indices
    places: list[tuple[int, int]] = []  # (entry, number of kept axes before it) of each of those
    for position, entry in enumerate(entries):
        if entry is None:
            kept.append(1)
            continue
        if type(entry) is slice:
            kept.append(sliced(shape[axis], entry))
            axis += 1
            continue
        places.append((position, len(kept)))
        kind = next(kinds) if type(entry) is Here else None
        if kind is None:
            check_bounds(entry, shape[axis], axis)
            axis += 1
        elif kind.dtype.kind == "b":
            if broadcast_shapes(kind.shape) != tuple(shape[axis : axis + kind.ndim]):
                raise BoundsError(
                    f"a mask of shape {kind.shape} does not fit {shape} from axis {axis}"
                )
            together.append((entry.count,))
            axis += kind.ndim
        else:
            together.append(kind.shape)
            axis += 1
    adjacent = all(b[0] - a[0] == 1 for a, b in itertools.pairwise(places))
    start = places[0][1] if places and adjacent else 0
    try:
        return (*kept[:start], *broadcast_shapes(*together), *kept[start:])
    except ShapeError as error:
        raise BoundsError(f"the arrays of an index do not broadcast: {error}") from None


def expanded(shape: tuple, item, arrays: tuple[ArrayType, ...]) -> list:
    """The entries of an index, one for each axis: ``...`` and missing ones as full slices."""
    entries = list(item) if type(item) is tuple else [item]
    masks = iter(arrays)
    taken = 0
    for entry in entries:
        kind = next(masks) if type(entry) is Here else None
        taken += (
            kind.ndim
            if kind is not None and kind.dtype.kind == "b"
            else entry is not None and entry is not ...
        )
    missing = len(shape) - taken
    if missing < 0:
        raise BoundsError(f"too many indices: {taken} for an array of shape {shape}")
    at = next((i for i, entry in enumerate(entries) if entry is ...), len(entries))
    entries[at : at + 1] = [slice(None)] * missing
    if any(entry is ... for entry in entries):
        raise BoundsError("an index can only have one ellipsis")
    return entries


def sliced(n, part: slice):
    """The size that a slice leaves of an axis of size ``n``."""
    if type(n) is int:
        return len(range(*part.indices(n)))
    if part in (slice(None), slice(0, None), slice(None, None, 1)):
        return n
    raise ShapeError(
        f"the slice {part} of an axis of size {n} needs the size: trace with concrete arrays"
    )


def check_bounds(i: int, n, axis: int) -> None:
    """Raise BoundsError if ``i`` is no index of an axis of size ``n``."""
    if type(n) is int and not -n <= i < n:
        raise BoundsError(f"index {i} is out of bounds for axis {axis} with size {n}")


def index_prepare(x, item, arrays=None):
    """``x[item]``; with ``arrays`` the item is spelled already."""
    if arrays is None:
        arrays, item = spelled_item(item)
    return (x, *arrays), {"item": item}


def write_prepare(x, item, new, arrays=None):
    """``x[item] = new`` or ``+= new``."""
    (x, *arrays), attrs = index_prepare(x, item, arrays)
    return (x, new if type(new) is not list else np.asarray(new), *arrays), attrs


# ---- reading ----


def index_aval(x, *arrays, item):
    """The operand's dtype in the indexed shape."""
    return x.with_shape(indexed_shape(x.shape, item, arrays))


def keeps_all(item) -> bool:
    """Whether an index only adds axes of length 1: ``x[:, None]``, ``x[...]``."""
    entries = item if type(item) is tuple else (item,)
    return all(entry in (None, ..., slice(None)) for entry in entries if type(entry) is not Here)


def index_vjp(ct, y, x, *arrays, item):
    """The cotangent in zeros, where it was read."""
    if not arrays and keeps_all(item):
        return (reshape(ct, x),)
    return assemble(x, ((item, ct, arrays),)), *[None] * len(arrays)


index = op(
    "index",
    lambda xp, x, *arrays, item: x[filled(item, arrays)],
    index_aval,
    vjp=index_vjp,
    jvp=lambda t, y, x, *arrays, item: index(t[0], item, arrays),
    batch=batched_index(expanded),
    prepare=index_prepare,
)

# ---- writing ----


def written_aval(x, new, *arrays, item):
    """The first operand's type; the second must broadcast to what it replaces and is cast to its
    dtype.
    """
    shape = indexed_shape(x.shape, item, arrays)
    lead = new.shape[: max(new.ndim - len(shape), 0)]
    if any(n != 1 for n in lead) or broadcast_shapes(new.shape[len(lead) :], shape) != shape:
        raise ShapeError(
            f"could not broadcast an array of shape {new.shape} into the indexed shape {shape}"
        )
    if new.dtype.kind == "c" != x.dtype.kind:
        raise DTypeError(
            f"cannot write {new} into {x}: the imaginary part would be lost; take .real first"
        )
    return x.with_shape(x.shape)


def added_aval(x, new, *arrays, item):
    """As for writing, but ``new`` cannot have leading axes that the part has not: NumPy's ``+=``
    refuses them.
    """
    found, shape = written_aval(x, new, *arrays, item=item), indexed_shape(x.shape, item, arrays)
    if new.ndim > len(shape):
        raise ShapeError(
            f"could not broadcast an array of shape {new.shape} into the indexed shape {shape}"
        )
    return found


def index_set_impl(xp, x, new, *arrays, item):
    """A copy of ``x`` with the part replaced."""
    out = xp.array(x, copy=True)
    out[filled(item, arrays)] = new
    return out


def index_add_impl(xp, x, new, *arrays, item):
    """A copy of ``x`` with ``new`` added to the part, also where an index repeats."""
    out = xp.array(x, copy=True)
    add_at(xp, out, item, new, arrays)
    return out


def add_at(xp, out, item, new, arrays) -> None:
    """Add ``new`` to a part of ``out`` in place, also where an index repeats."""
    place = filled(item, arrays)
    if any(a.dtype.kind != "b" for a in arrays):
        xp.add.at(out, place, new)
        return
    part, new = out[place], xp.asarray(new).astype(out.dtype, copy=False)
    if part.shape and not arrays:  # a view: += on out[place] would copy it onto itself
        xp.add(part, new, out=part)
    else:
        out[place] += new


def wins(x: Value, read: Value, item, arrays) -> Value:
    """Where what was written stays: of several writes to one place the last wins."""
    attrs = {"start": 0, "stop": read.size, "step": 1, "dtype": np.dtype(np.int64)}
    places = reshape(x.emitter.apply(arange, (), arange.complete(attrs)), read.shape)
    nobody = zeros_like(x).astype(np.int64) - 1
    return equal(index(index_set(nobody, item, places, arrays), item, arrays), places)


def to_new(ct: Value, new) -> Value | None:
    """The cotangent of what was written, which may have had further leading axes of length 1."""
    if not isinstance(new, Value) or new.type is None or new.ndim <= ct.ndim:
        return match(ct, new)
    return match(reshape(sum_to_size(ct, new.shape[new.ndim - ct.ndim :]), new), new)


def index_set_vjp(ct, y, x, new, *arrays, item):
    """Nothing for what was replaced; for the new values the cotangent where they stayed."""
    by_new = index(ct, item, arrays)
    if any(a.dtype.kind != "b" for a in arrays):
        by_new = where(wins(x, by_new, item, arrays), by_new, 0)
    return match(index_set(ct, item, 0, arrays), x), to_new(by_new, new), *[None] * len(arrays)


def index_add_vjp(ct, y, x, new, *arrays, item):
    """The cotangent itself, and what is read of it at the index."""
    return match(ct, x), to_new(index(ct, item, arrays), new), *[None] * len(arrays)


def write_jvp(name: str):
    """The same write on the tangents, zeros where there are none."""

    def jvp(tangents, y, x, new, *arrays, item):
        by_x, by_new = tangents[:2]
        base = zeros_like(x) if by_x is None else by_x
        return PRIMITIVES[name](base, item, 0 if by_new is None else by_new, arrays)

    return jvp


index_set = op(
    "index_set",
    index_set_impl,
    written_aval,
    vjp=index_set_vjp,
    jvp=write_jvp("index_set"),
    batch=batched_write("index_set", expanded),
    prepare=write_prepare,
    reusable=True,
)
index_add = op(
    "index_add",
    index_add_impl,
    added_aval,
    vjp=index_add_vjp,
    jvp=write_jvp("index_add"),
    batch=batched_write("index_add", expanded),
    prepare=write_prepare,
    reusable=True,
)

# ---- putting parts together ----


def parts_of(items: tuple, operands: tuple) -> list[tuple]:
    """(item, part, arrays of the item) for each item; ``operands`` are parts and arrays in a
    row.
    """
    rest = iter(operands)
    return [
        (item, next(rest), tuple([next(rest) for _ in range(arrays_in(item))])) for item in items
    ]


def arrays_in(item) -> int:
    """How many arrays an index has."""
    return sum(type(entry) is Here for entry in (item if type(item) is tuple else (item,)))


def sizes_in(operands: tuple, shape) -> tuple[tuple, tuple]:
    """(the operand that says the shape, if there is one, the parts and arrays)."""
    count = 0 if is_known(shape) else 1
    return operands[:count], operands[count:]


def assemble_impl(xp, *operands, items, shape):
    """Zeros, with each part added in place."""
    sizes, rest = sizes_in(operands, shape)
    parts = parts_of(items, rest)
    out = xp.zeros(declared(shape, sizes), xp.result_type(*[part for _, part, _ in parts]))
    for item, part, arrays in parts:
        add_at(xp, out, item, part, arrays)
    return out


def assemble_aval(*operands, items, shape):
    """The parts' dtype in the declared shape; each part has the shape of its item."""
    parts = parts_of(items, sizes_in(operands, shape)[1])
    if shape is None:
        return None
    for item, part, arrays in parts:
        place = indexed_shape(shape, item, arrays)
        if place != part.shape:
            raise ShapeError(f"assemble: a part of shape {part.shape} at a place of {place}")
    return ArrayType(array_dtype(*[part for _, part, _ in parts]), shape)


def assemble_vjp(ct, y, *operands, items, shape):
    """What is read of the cotangent at each item."""
    sizes, rest = sizes_in(operands, shape)
    found: list = [None] * len(sizes)
    for item, part, arrays in parts_of(items, rest):
        found += [match(index(ct, item, arrays), part), *[None] * len(arrays)]
    return tuple(found)


def assemble_jvp(tangents, y, *operands, items, shape):
    """The tangents of the parts put together."""
    sizes, rest = sizes_in(operands, shape)
    directions = iter(parts_of(items, tangents[len(sizes) :]))
    there = [
        (item, tangent, arrays)
        for item, _, arrays in parts_of(items, rest)
        if (tangent := next(directions)[1]) is not None
    ]
    return recast(assemble(y, there), y.dtype)


def assemble_prepare(like, parts):
    """Parts ``(item, part, arrays)`` in the shape of the value ``like``."""
    sizes, shape = spelled(like)
    rest = [operand for _, part, arrays in parts for operand in (part, *arrays)]
    return (*sizes, *rest), {"items": tuple([item for item, _, _ in parts]), "shape": shape}


assemble = op(
    "assemble",
    assemble_impl,
    assemble_aval,
    vjp=assemble_vjp,
    jvp=assemble_jvp,
    batch=batched_assemble(expanded, parts_of, sizes_in),
    prepare=assemble_prepare,
)
