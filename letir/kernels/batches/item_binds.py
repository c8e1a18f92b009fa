"""Which binds compute each item of a batch separately, and the same binds for one item.

The items of a batch are the parts of arrays along their first axis, all of one length. A bind is
*itemwise* if each item of its results depends on the same item of its operands and on small shared
operands only. ``resize_bind`` gives such a bind for a batch of another length.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast.attrs import Attrs, Here
from letir.ast.bounded_cache import BoundedCache
from letir.ast.primitive import PRIMITIVES
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Local
from letir.ast.types import ArrayType
from letir.kernels.array_forms import array_form_of
from letir.kernels.reduction_forms import is_sum
from letir.kernels.row_passes import reduced_axes
from letir.kernels.scalar_forms import scalar_name
from letir.kernels.scalar_lowering import DTYPES, has_scalar_form
from letir.ops.indexing.index_expressions import expand_item

_MAX_SHARED = 64  # the most elements of an operand that all items read
_MAX_OF_ITEM = 16  # the most elements of an item: each is a scalar of the kernel
_TRIED = 11  # the number of items with which ``_is_itemwise`` tries an operation
_MAX_COPIED = 16  # the most elements per item of an array to which parts are added
_INDICES = "iu"

_tried = BoundedCache(1 << 10)  # operation, attributes and types -> whether it is itemwise


def bind_kind(bind: Bind, n: int, is_exact: bool) -> str:
    """How a kernel over ``n`` items may compute a bind; "" if it cannot.

    "item": each item by itself; "gather": by reading elements at the indices in other operands;
    "scatter": by adding elements at such indices.
    """
    op = bind.op
    # most binds of most programs: no items, and no sum into another array
    if op.adds_parts is None and not all(is_batch(binder.type, n) for binder in bind.binders):
        return ""
    if op.effect or op.random or op.holds_lambdas or op.is_user_defined or not bind.args:
        return ""
    if not all(map(_is_known, (*bind.args, *bind.binders))):
        return ""
    if len(bind.binders) == 1:
        if gathered_item(bind, n) is not None:
            return "gather"
        parts = scattered_parts(bind, n)
        if parts:
            return "scatter" if not is_exact or len(parts) == 1 else ""
    if not all(is_batch(binder.type, n) for binder in bind.binders):
        return ""
    for arg in bind.args:
        if type(arg) is Local and not (is_batch(arg.type, n) or is_shared(arg.type)):
            return ""
    if op.elementwise:
        axes = {len(x.type.shape) for x in (*bind.args, *bind.binders) if is_batch(x.type, n)}
        return "item" if len(axes) == 1 and has_scalar_form(bind, is_exact) else ""
    return "item" if _may_be_item(bind, is_exact) and _is_itemwise(bind, n) else ""


def _is_known(arg: Arg) -> bool:
    """Whether a value has a type that kernels support, and a static shape."""
    if type(arg) is Const:
        return True
    aval = arg.type
    if aval is None or aval is NO_TYPE or aval.dtype not in DTYPES:
        return False
    return has_static_shape(aval)


def is_batch(aval: ArrayType | None, n: int) -> bool:
    """Whether values of this type consist of ``n`` small items."""
    shape: tuple = getattr(aval, "shape", ())
    return bool(shape) and shape[0] == n and 0 < math.prod(shape[1:]) <= _MAX_OF_ITEM


def is_shared(aval: ArrayType) -> bool:
    """Whether a kernel may load all elements of an operand before its loop."""
    return 0 < math.prod(aval.shape) <= _MAX_SHARED


def _may_be_item(bind: Bind, is_exact: bool) -> bool:
    """Whether there is a form for a bind that is not elementwise."""
    op = bind.op
    if op.moves_elements:
        return len(bind.args) <= op.moves_elements
    if is_exact and not op.exact:
        return False
    if is_sum_to_shape(bind):
        return len(bind.args) == 1
    return len(bind.binders) == 1 and array_form_of(scalar_name(bind)) is not None


def is_sum_to_shape(bind: Bind) -> bool:
    """Whether a bind sums its operand to a shape that broadcasts to the operand's."""
    return is_sum(bind.op) and "axis" not in bind.attrs and "shape" in bind.attrs


def axes_sum_of(bind: Bind) -> Bind:
    """The sum along axes, which stay with length 1, that ``is_sum_to_shape`` describes."""
    total = PRIMITIVES["sum"]
    attrs = total.complete({"axis": reduced_axes(bind), "keepdims": True})
    return bind.replace(op=total, args=bind.args[:1], attrs=attrs)


def resize_bind(bind: Bind, n: int, length: int) -> tuple[Attrs, tuple[ArrayType, ...]]:
    """(attributes, types of the results) of a bind for a batch of ``length`` instead of ``n``."""
    attrs, shape = bind.attrs, bind.attrs.get("shape")
    if type(shape) is tuple and shape and shape[0] == n:
        attrs = Attrs({**attrs, "shape": (length, *shape[1:])})
    return attrs, tuple([_resized_type(binder.type, n, length) for binder in bind.binders])


def _resized_type(aval: ArrayType, n: int, length: int) -> ArrayType:
    return aval.with_shape((length, *aval.shape[1:])) if is_batch(aval, n) else aval


def _is_itemwise(bind: Bind, n: int) -> bool:
    """Whether a bind is itemwise: tried on distinct elements, with few items."""
    attrs, kinds = resize_bind(bind, n, _TRIED)
    types = tuple([_resized_type(arg.type, n, _TRIED) for arg in bind.args])
    places = tuple([is_batch(arg.type, n) for arg in bind.args])
    values = tuple([arg.value if type(arg) is Const else None for arg in bind.args])
    key = (bind.op.name, attrs.token, types, kinds, places, repr(values))
    result = _tried.get(key)
    if result is None:
        result = _tried[key] = _agrees(bind, n, attrs, types)
    return result


def _agrees(bind: Bind, n: int, attrs: Attrs, kinds: tuple) -> bool:
    """Whether a bind gives the same results for all items at once and for each alone."""
    rng = np.random.default_rng(0)
    operands: list[Any] = []
    for arg, aval in zip(bind.args, kinds, strict=True):
        elements = rng.permutation(101)[: math.prod(aval.shape)]
        if len(elements) < math.prod(aval.shape):
            elements = rng.permutation(math.prod(aval.shape))
        own = elements.astype("i8" if bind.op.moves_elements else aval.dtype)
        operands.append(arg.value if type(arg) is Const else own.reshape(aval.shape))
    own_attrs, _ = resize_bind(bind, n, 1)
    try:
        whole = _as_list(bind.op.impl(np, *operands, **attrs))
        for item in range(_TRIED):
            examples = [
                x[item : item + 1] if is_batch(arg.type, n) else x
                for arg, x in zip(bind.args, operands, strict=True)
            ]
            of_item = _as_list(bind.op.impl(np, *examples, **own_attrs))
            for x, y in zip(whole, of_item, strict=True):
                if x.shape[0] != _TRIED or not np.array_equal(x[item : item + 1], y):
                    return False
    except (ValueError, IndexError, TypeError):
        return False
    return True


def _as_list(results: Any) -> list[np.ndarray]:
    return (
        [np.asarray(x) for x in results]
        if type(results) in (tuple, list)
        else [np.asarray(results)]
    )


# ---- indices ----


def gathered_item(bind: Bind, n: int) -> list | None:
    """The entries of an index that reads items at arrays of indices; None for other binds.

    The first entry is an array, and all arrays have an index for each item.
    """
    if bind.op.role != "index" or len(bind.args) < 2 or not is_batch(bind.binders[0].type, n):
        return None
    table, *arrays = bind.args
    return _indexed_entries(table.type, bind.attrs["item"], arrays, n)


def adds_to_operand(bind: Bind) -> bool:
    """Whether a bind adds to its first operand at an index."""
    return bind.op.adds_parts == "operand"


def scattered_parts(bind: Bind, n: int) -> list[tuple[list, Arg, tuple[Arg, ...]]]:
    """(entries of the index, part, arrays of indices) of each part that a bind adds at indices.

    Empty for other binds.
    """
    op, aval = bind.op, bind.binders[0].type
    if aval.dtype.kind not in "iuf" or not aval.size:
        return []
    if adds_to_operand(bind):
        _, part, *arrays = bind.args
        if aval.size > _MAX_COPIED * n:
            return []  # NumPy adds in place
        writes = [(bind.attrs["item"], part, tuple(arrays))]
    elif op.adds_parts == "zeros" and bind.attrs["shape"] is not None:
        rest, writes = list(bind.args), []
        for item in bind.attrs["items"]:
            count = sum(
                [type(entry) is Here for entry in (item if type(item) is tuple else (item,))]
            )
            writes.append((item, rest[0], tuple(rest[1 : count + 1])))
            rest = rest[count + 1 :]
    else:
        return []
    parts: list[tuple[list, Arg, tuple[Arg, ...]]] = []
    for item, part, places in writes:
        entries = _indexed_entries(aval, item, places, n) if places else None
        if entries is None or type(part) is not Local or not is_batch(part.type, n):
            return []
        if part.type.dtype != aval.dtype or part.type.weak:
            return []
        parts.append((entries, part, places))
    return parts


def _indexed_entries(aval: ArrayType, item: Any, arrays: Sequence[Arg], n: int) -> list | None:
    """The entries of an index, one for each axis; None unless its arrays index items."""
    axes = {len(arg.type.shape) for arg in arrays}
    if len(axes) != 1 or not aval.size:
        return None
    for arg in arrays:
        dtype = getattr(arg.type, "dtype", None)
        if type(arg) is not Local or dtype is None or dtype.kind not in _INDICES:
            return None
        if dtype == np.dtype("u8") or not is_batch(arg.type, n):
            return None
    entries = expand_item(aval.shape, item, tuple([arg.type for arg in arrays]))
    if (
        not all(type(entry) in (Here, slice, int) for entry in entries)
        or type(entries[0]) is not Here
    ):
        return None
    return entries if len(entries) == len(aval.shape) else None
