"""``ufunc_at``: the method ``at`` of ufuncs, as a functional update.

``ufunc_at(x, new, *arrays; ufunc="mul", item)`` is a copy of ``x`` after np.multiply.at: an element
that is indexed several times is multiplied several times. np.add.at and np.subtract.at are recorded
as ``index_add`` where dtypes agree. Sums, products, quotients and extrema have derivatives (ties
share them equally). A factor of zero has the right first derivative, but lacks the second-order
terms with the other factors of its element.
"""

from collections.abc import Callable

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.errors import MissingRule
from letir.ops.as_numpy.arrays import item_text
from letir.ops.define.batch_rules import (
    batch_first,
    broadcast_batch,
    emit_op,
    first_mapped,
    shape_of,
)
from letir.ops.define.records import add_terms, broadcast_tangent, define, unbroadcast
from letir.ops.elementwise.comparisons_and_where import equal, where
from letir.ops.indexing.basic import (
    added_aval,
    cotangent_of_written,
    index,
    index_add,
    index_prepare,
)
from letir.ops.indexing.index_expressions import fill_item, indexed_shape
from letir.ops.indexing.indexing_batching import BatchedIndex, batched_write
from letir.ops.reductions.ufunc_methods import ufunc_of
from letir.ops.shape.shape_and_creation import broadcast_to, ones_like, zeros_like


def _split_operands(rest: tuple, ufunc: str) -> tuple[tuple, tuple]:
    """(the written operand, none for a unary ufunc; the arrays of the index)."""
    count = ufunc_of(ufunc).nin - 1
    return rest[:count], rest[count:]


def _ufunc_at_impl(xp, x, *rest, ufunc, item):
    """A copy of ``x`` changed in place by the ufunc's own method ``at``."""
    new, arrays = _split_operands(rest, ufunc)
    out = xp.array(x, copy=True)
    getattr(xp, ufunc_of(ufunc).__name__).at(out, fill_item(item, arrays), *new)
    return out


def _ufunc_at_aval(x, *rest, ufunc, item):
    """The type of ``x``, to whose dtype NumPy casts the results."""
    new, arrays = _split_operands(rest, ufunc)
    # raises DTypeError if the ufunc has no loop for these dtypes
    PRIMITIVES[ufunc].aval(*[aval.with_shape(()) if aval.shape else aval for aval in (x, *new)])
    if new:
        return added_aval(x, *new, *arrays, item=item)
    indexed_shape(x.shape, item, arrays)  # the index is checked
    return x.with_shape(x.shape)


# ---- derivatives with respect to x (of its shape) and to new (of the shape of the part) ----


def _product_partials(y, x, new, item, arrays):
    """(product of all factors at each element, product of all other factors for each new one).

    The other factors are the product of the nonzero ones, or 0 if another factor is 0.
    """
    by_x = ufunc_at(ones_like(x), item, new, arrays, ufunc="mul")
    if not _may_repeat(item, arrays):
        return by_x, index(x, item, arrays)
    is_zero = equal(new, 0)
    factor = where(is_zero, 1, new)
    zeros = index_add(zeros_like(x), item, is_zero.astype(x.dtype), arrays)
    product = ufunc_at(x, item, factor, arrays, ufunc="mul")
    other_zeros = index(zeros, item, arrays) - is_zero
    return by_x, where(equal(other_zeros, 0), index(product, item, arrays) / factor, 0)


def _quotient_partials(y, x, new, item, arrays):
    """(1 over all divisors at each element, minus the quotient over this divisor)."""
    by_x = ufunc_at(ones_like(x), item, new, arrays, ufunc="div")
    return by_x, -index(y, item, arrays) / new


def _extremum_partials(y, x, new, item, arrays):
    """1 for the elements that are the extremum, divided equally among ties; else 0."""
    won = equal(index(y, item, arrays), new).astype(x.dtype)
    stayed = equal(x, y).astype(x.dtype)
    winners = index_add(stayed, item, won, arrays)
    share = 1 / where(equal(winners, 0), 1, winners)  # 0 winners: the extremum is nan
    return stayed * share, won * index(share, item, arrays)


def _may_repeat(item, arrays) -> bool:
    """Whether an index may select an element twice."""
    return any(array.dtype.kind != "b" for array in arrays)


_PARTIALS: dict[str, Callable] = {
    "add": lambda y, x, new, item, arrays: (ones_like(x), ones_like(index(x, item, arrays))),
    "sub": lambda y, x, new, item, arrays: (ones_like(x), -ones_like(index(x, item, arrays))),
    "mul": _product_partials,
    "div": _quotient_partials,
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), _extremum_partials),
}


def _derivatives_at(y, x, rest, ufunc: str, item) -> tuple[Value, Value, tuple]:
    """(derivative with respect to x, to new, arrays of the index). Raises MissingRule if the ufunc
    has no derivative here.
    """
    if ufunc not in _PARTIALS:
        raise MissingRule(
            f"{ufunc_of(ufunc).__name__}.at has no derivative\n"
            "  write x[i] = f(x[i], new), if no element is indexed twice"
        )
    (new,), arrays = _split_operands(rest, ufunc)
    return *_PARTIALS[ufunc](y, x, new, item, arrays), arrays


def _ufunc_at_vjp(ct, y, x, *rest, ufunc, item):
    """The cotangent times the derivatives; for ``new`` the cotangent is read at the index."""
    by_x, by_new, arrays = _derivatives_at(y, x, rest, ufunc, item)
    result = cotangent_of_written(index(ct, item, arrays) * by_new, rest[0])
    return unbroadcast(ct * by_x, x), result, *[None] * len(arrays)


def _ufunc_at_jvp(tangents, y, x, *rest, ufunc, item):
    """The tangents times the derivatives, added up at each element."""
    by_x, by_new, arrays = _derivatives_at(y, x, rest, ufunc, item)
    t_x, t_new = tangents[:2]
    pushed = None
    if t_new is not None:
        pushed = index_add(zeros_like(y), item, broadcast_to(t_new * by_new, by_new), arrays)
    return broadcast_tangent(add_terms((None if t_x is None else t_x * by_x, pushed)), y)


# ---- batches, sources, the record ----

_write_batch = batched_write("ufunc_at")


@batch_first
def _change_batch(args, mapped, *, ufunc, item):
    """The batching rule for a unary ufunc, which has no written operand."""
    (x, *arrays), (by_x, *by_arrays) = args, mapped
    like = first_mapped(args, mapped)
    x = broadcast_batch(x, by_x, like)
    batched = BatchedIndex(like, shape_of(x, True), item, arrays, by_arrays)
    is_plain = not batched.mapped and not batched.layout.is_separated
    item, arrays = batched.with_full_slice() if is_plain else batched.with_arange()
    return emit_op("ufunc_at", (x, *arrays), ufunc=ufunc, item=item)


def _ufunc_at_batch(args, axes, *, ufunc, item):
    """The batching rule: one update for all examples, each at its own indices."""
    rule = _write_batch if ufunc_of(ufunc).nin == 2 else _change_batch
    return rule(args, axes, ufunc=ufunc, item=item)


def _ufunc_at_source(write, x, *rest, ufunc, item):
    """A copy of x, then a call of the method."""
    new, arrays = _split_operands(rest, ufunc)
    out, place = write.result(), item_text(write, item, arrays)
    entries = item if type(item) is tuple else (item,)
    if any(type(entry) is slice for entry in entries):
        place = f"np.s_[{place}]"
    elif type(item) is tuple:
        place = f"({place})" if len(item) != 1 else f"({place},)"
    write.line(f"{out} = np.array({x})")
    write.line(f"np.{ufunc_of(ufunc).__name__}.at({', '.join((out, place, *new))})")


def _ufunc_at_prepare(x, item, new=None, arrays=None, *, ufunc):
    """``np.<ufunc>.at(x, item, new)``. With ``arrays`` given, ``item`` has ``Here`` in their
    place.
    """
    (x, *arrays), attrs = index_prepare(x, item, arrays)
    return (x, *(() if new is None else (new,)), *arrays), attrs | {"ufunc": ufunc}


ufunc_at = define(
    "ufunc_at",
    _ufunc_at_impl,
    _ufunc_at_aval,
    vjp=_ufunc_at_vjp,
    jvp=_ufunc_at_jvp,
    batch=_ufunc_at_batch,
    prepare=_ufunc_at_prepare,
    source=_ufunc_at_source,
    reusable=True,
    linear_in=(0,),
    raises=True,
)
