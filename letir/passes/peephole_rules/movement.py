"""Peephole rules that merge consecutive transposes, reshapes, casts, copies and writes.

A reshape is a view if possible, else a copy; two may be merged only if the result is a view or a
copy in the same cases.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.primitive import Primitive
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Arg, Bind, Local
from letir.ops.effects.writes_to_arguments import write_back
from letir.ops.elementwise.casting import cast, copy
from letir.ops.elementwise.rounding_sign_parts import real
from letir.ops.shape.reshape_and_ravel import ravel, reshape
from letir.ops.shape.shape_and_creation import broadcast_to, sum_to_size
from letir.ops.shape.transpose import normalize_axes, transpose
from letir.ops.shape.unit_axes_and_flip import expand_dims, flip, squeeze
from letir.passes.peephole_rules.value_facts import ValueFacts

# the bits of integers that each float type represents exactly
MANTISSA = {2: 11, 4: 24, 8: 53}


def replace_attrs(bind: Bind, args: tuple[Arg, ...], **attrs: Any) -> Bind:
    """The operation of ``bind`` with other operands and attributes."""
    return bind.replace(args=args, attrs=Attrs({**bind.attrs, **attrs}))


def _producer_of_first(bind: Bind, op: Primitive, facts: ValueFacts) -> Bind | None:
    """The bind that makes the first operand, if it is this operation, with a known type and an
    operand.
    """
    x = bind.args[0]
    result = facts.producers.get(x) if type(x) is Local and x.type is not None else None
    if result is None or result.op is not op or type(result.args[0]) is not Local:
        return None
    return result if result.args[0].type is not None else None


# ---- transpose, flip, axes of length 1 ----


def transpose_order(bind: Bind) -> tuple[int, ...]:
    """All axes of a transpose, as non-negative numbers."""
    axes, ndim = bind.attrs["axes"], bind.binders[0].type.ndim
    return tuple(range(ndim))[::-1] if axes is None else normalize_axes(axes, ndim)


def _merge_transposes(bind: Bind, facts: ValueFacts) -> Bind | Arg | None:
    """Drop an identity transpose, merge two transposes."""
    (y,), (x,) = bind.binders, bind.args
    order, base = transpose_order(bind), x
    inner = _producer_of_first(bind, transpose, facts)
    if inner is not None:
        (base,), first = inner.args, transpose_order(inner)
        order = tuple([first[i] for i in order])
    if order == tuple(range(len(order))) and facts.view_may_be_replaced(y, base):
        return base
    return None if inner is None else replace_attrs(bind, (base,), axes=order)


def _merge_flips(bind: Bind, facts: ValueFacts) -> Arg | None:
    """Two flips along the same axes cancel."""
    inner = _producer_of_first(bind, flip, facts)
    if inner is None or _axes_as_set(bind.attrs["axis"], bind) != _axes_as_set(
        inner.attrs["axis"], bind
    ):
        return None
    x = inner.args[0]
    return x if facts.view_may_be_replaced(bind.binders[0], x) else None


def _axes_as_set(axis: Any, bind: Bind) -> frozenset[int]:
    """The axes as a set; None means all axes."""
    ndim = bind.binders[0].type.ndim
    return frozenset(range(ndim) if axis is None else normalize_axes(axis, ndim))


def _undo_expand_dims(bind: Bind, facts: ValueFacts) -> Arg | None:
    """``squeeze`` of the axes that ``expand_dims`` has just added."""
    inner = _producer_of_first(bind, expand_dims, facts)
    if inner is None or bind.attrs["axis"] is None:
        return None
    ndim = bind.args[0].type.ndim
    added, removed = (normalize_axes(b.attrs["axis"], ndim) for b in (inner, bind))
    x = inner.args[0]
    return (
        x if set(added) == set(removed) and facts.view_may_be_replaced(bind.binders[0], x) else None
    )


def _undo_squeeze(bind: Bind, facts: ValueFacts) -> Arg | None:
    """``expand_dims`` of the axes that ``squeeze`` has just removed, for a C-contiguous array: in
    other views, axes of length 1 may have any stride.
    """
    inner = _producer_of_first(bind, squeeze, facts)
    if inner is None:
        return None
    x = inner.args[0]
    return (
        x if facts.is_c_contiguous(x) and facts.view_may_be_replaced(bind.binders[0], x) else None
    )


# ---- reshape, broadcast_to, sum_to_size ----


def _without_sizes(bind: Bind, facts: ValueFacts) -> Bind | None:
    """A known shape as an attribute instead of an operand."""
    aval = bind.binders[0].type
    if len(bind.args) == 1 or not is_static_shape(aval.shape):
        return None
    return replace_attrs(bind, bind.args[:1], shape=aval.shape)


def _same_shape(bind: Bind) -> bool:
    """Whether the operand has this shape for all values of symbolic sizes."""
    x, (y,) = bind.args[0].type, bind.binders
    # a name with an underscore may mean another number elsewhere
    return x is not None and x.shape == y.type.shape and not has_private_names(x.shape)


def has_private_names(shape: tuple) -> bool:
    """Whether the name of a size begins with an underscore (unknown until run time)."""
    return any(type(n) is not int and any(m.startswith("_") for m in n.names) for n in shape)


def _merge_reshapes(bind: Bind, facts: ValueFacts) -> Bind | Arg | None:
    """Drop a reshape to the same shape, merge two reshapes."""
    (y,), x = bind.binders, bind.args[0]
    if bind.attrs["order"] != "C" or type(x) is not Local:
        return None
    if _same_shape(bind):
        return x if facts.view_may_be_replaced(y, x) else None
    inner = _producer_of_first(bind, reshape, facts)
    if inner is None or inner.attrs["order"] != "C" or len(bind.args) > 1 or not y.type.shape:
        return None
    base, shape = inner.args[0], y.type.shape
    if not is_static_shape(shape) or not is_static_shape(x.type.shape) or not base.type.shape:
        return None
    # if the first reshape copies, two results may be views of the same copy
    is_view = only_splits_axes(shape, x.type.shape) and not facts.may_be_result(y)
    return (
        replace_attrs(bind, (base,), shape=shape)
        if is_view or facts.is_c_contiguous(base)
        else None
    )


def _ravel_as_reshape(bind: Bind, facts: ValueFacts) -> Bind | None:
    """``ravel`` of a contiguous array as a reshape, which other rules know."""
    (y,), x = bind.binders, bind.args[0]
    if bind.attrs["order"] != "C" or type(x) is not Local or not facts.is_c_contiguous(x):
        return None
    # a NumPy scalar has no memory to view; a symbolic size may have any value
    if y.type is None or not x.type.shape or not is_static_shape(y.type.shape):
        return None
    attrs = Attrs(shape=y.type.shape, order="C")
    return bind.replace(op=reshape, args=(x,), attrs=attrs)


def only_splits_axes(shape: tuple, finer: tuple) -> bool:
    """Whether ``finer`` only splits axes of ``shape``; such a reshape needs no further copy."""
    if 0 in shape:
        return False
    rest = iter(finer)
    for n in shape:
        product = 1
        while product < n:
            product *= next(rest, n + 1)
        if product != n:
            return False
    return all(n == 1 for n in rest)


def _merge_broadcasts(bind: Bind, facts: ValueFacts) -> Bind | Arg | None:
    """Drop a ``broadcast_to`` to the same shape, merge two."""
    (y,), x = bind.binders, bind.args[0]
    # NumPy's broadcast views are read-only: a result that is such a view has to stay one
    if type(x) is Local and _same_shape(bind) and not facts.may_be_result(y):
        return x if facts.view_may_be_replaced(y, x) else None
    inner = _producer_of_first(bind, broadcast_to, facts)
    if inner is None or (not inner.args[0].type.shape and facts.may_be_result(y)):
        return None  # NumPy allocates new memory for each view of a scalar
    return replace_attrs(bind, (inner.args[0], *bind.args[1:]))


def _drop_sum_to_size(bind: Bind, facts: ValueFacts) -> Bind | Arg | None:
    """Drop a ``sum_to_size`` to the same shape; merge two for integers, with exact sums."""
    (y,), x = bind.binders, bind.args[0]
    if type(x) is Local and _same_shape(bind):
        return x if facts.identity_may_be_replaced(y, x) else None
    return merge_sums_to_size(bind, facts) if y.type.dtype.kind in "biu" else None


def _only_element(bind: Bind, facts: ValueFacts) -> Arg | None:
    """``any`` and ``all`` of a single boolean, with which draws test the sign of a scale."""
    (y,), x = bind.binders, bind.args[0]
    is_one = type(x) is Local and not y.type.shape and x.type is y.type
    return x if is_one and len(bind.args) == 1 and not facts.may_be_result(y) else None


def merge_sums_to_size(bind: Bind, facts: ValueFacts) -> Bind | None:
    """Merge two ``sum_to_size``, with another order of summation."""
    inner = _producer_of_first(bind, sum_to_size, facts)
    if inner is None or not facts.has_order_of_copy(inner.args[0]):
        return None
    return replace_attrs(bind, (inner.args[0], *bind.args[1:]))


# ---- casts and copies ----


def _cast_again(bind: Bind, facts: ValueFacts) -> Bind | Arg | None:
    """Drop a cast to the same dtype, merge two casts."""
    (y,), (x,) = bind.binders, bind.args
    if type(x) is Local and x.type is y.type and y.type.shape and facts.may_be_replaced(y, x):
        return x
    inner = _producer_of_first(bind, cast, facts)
    if inner is None or inner.args[0].type.weak:
        return None
    first, second, third = inner.args[0].type.dtype, x.type.dtype, y.type.dtype
    return replace_attrs(bind, inner.args) if is_direct(first, second, third) else None


def is_direct(first: np.dtype, second: np.dtype, third: np.dtype) -> bool:
    """Whether a cast through ``second`` equals the direct cast."""
    if {first.kind, second.kind, third.kind} <= set("iu"):
        # modulo the width, which must not shrink in between
        return second.itemsize >= third.itemsize or _is_lossless(first, second)
    if first.kind == "c" != third.kind or not _is_lossless(first, second):
        return False
    if third == np.float16 and first.kind in "iu" and first.itemsize > 2:
        return False  # NumPy rounds them twice, first to float32
    # the result for a float out of the integer's range depends on the processor
    return third.kind in "fcb" or first == third or first.kind == "b"


def _is_lossless(first: np.dtype, second: np.dtype) -> bool:
    """Whether ``second`` represents every number of ``first`` exactly."""
    if first == second or first.kind == "b":
        return True
    if second.kind in "fc" and first.kind in "iu":
        part = second.itemsize // (1 + (second.kind == "c"))
        return 8 * first.itemsize <= MANTISSA[part]
    # among integers and among floats NumPy's answer is exact
    return second.kind != "b" and np.can_cast(first, second, "safe")


def _drop_copy(bind: Bind, facts: ValueFacts) -> Arg | None:
    """Drop a copy of a new array, or of an argument, that has the requested order.

    If the array or its copy is updated while the other one is needed, ``in_place_check`` copies.
    """
    (y,), (x,) = bind.binders, bind.args
    if type(x) is not Local or not y.type.shape or x.type is not y.type:
        return None
    has_order = bind.attrs["order"] == "K" or (
        bind.attrs["order"] == "C" and facts.is_c_contiguous(x)
    )
    return (
        x
        if has_order and (facts.may_be_replaced(y, x) or facts.copy_may_be_replaced(y, x))
        else None
    )


def _real_already(bind: Bind, facts: ValueFacts) -> Arg | None:
    """The real part of a real array is the array itself."""
    (y,), (x,) = bind.binders, bind.args
    if type(x) is not Local or y.type.dtype.kind == "c" or y.type.weak:
        return None
    return x if facts.identity_may_be_replaced(y, x) else None


_ALL = slice(None)


def _write_directly(bind: Bind, facts: ValueFacts) -> Bind | None:
    """Write new values into all elements of an argument, without a copy of it in between."""
    x, new = bind.args
    inner = facts.producers.get(new)
    if inner is None or inner.op.name != "index_set":
        return None
    entries = inner.attrs["item"]
    entries = entries if type(entries) is tuple else (entries,)
    values, aval = inner.args[1], x.type
    if not all(entry is ... or (type(entry) is slice and entry == _ALL) for entry in entries):
        return None
    if type(values) is not Local or values.type is None or aval is None or aval.shape == ():
        return None
    # other values may be views of an array that is written to before
    is_own = facts.is_new(values)
    is_same = (values.type.dtype, values.type.shape) == (aval.dtype, aval.shape)
    return bind.replace(args=(x, values)) if is_own and is_same and not values.type.weak else None


RULES: dict[Primitive | str, tuple[Callable, ...]] = {
    transpose: (_merge_transposes,),
    flip: (_merge_flips,),
    squeeze: (_undo_expand_dims,),
    expand_dims: (_undo_squeeze,),
    reshape: (_without_sizes, _merge_reshapes),
    ravel: (_ravel_as_reshape,),
    broadcast_to: (_without_sizes, _merge_broadcasts),
    sum_to_size: (_without_sizes, _drop_sum_to_size),
    "any": (_only_element,),
    "all": (_only_element,),
    cast: (_cast_again,),
    copy: (_drop_copy,),
    real: (_real_already,),
    write_back: (_write_directly,),
}
