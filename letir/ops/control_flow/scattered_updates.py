"""``scatter`` and ``reduce_by_index``: writes to, and reductions at, the places in an index array.

Elements whose index is negative or beyond the destination are ignored. Both are composites, as
``map`` is.
"""

from collections.abc import Sequence

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError
from letir.ops.autodiff.checkpoint_and_custom_jvp import fit_body
from letir.ops.control_flow.binary_bodies import PairwiseBody, compute_prefixes, known_ufunc
from letir.ops.control_flow.map_reduce import (
    check_element,
    define_combinator,
    element_count,
    element_type,
    is_number,
)
from letir.ops.control_flow.scan_vjp import emit_scan
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.ufuncs import minimum
from letir.ops.indexing.basic import index_add, index_set
from letir.ops.shape.concatenate_stack_split import concatenate
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import Sizes, broadcast_to, zeros


def _clip_indices(indices: Value, count) -> Value:
    """The indices, with ``count`` in the place of all that are outside of 0, ..., count - 1."""
    count = count if is_number(count) else count.astype("uint64")
    # a negative index becomes a large unsigned one: three passes, where two comparisons take five
    return minimum(indices.astype("uint64"), count).astype("int64")


def _append_element(dest: Value, more: Value) -> Value:
    """``dest`` with one more element at its end."""
    return concatenate([dest, reshape(more, (1, *dest.shape[1:]))])


def _check_places(name: str, dests, indices, values) -> None:
    """Raise unless there is one index for each element, and elements fit the destinations."""
    if indices.dtype.kind not in "iu" or len(indices.shape) != 1:
        raise DTypeError(
            f"{name}: indices must be a 1-d array of integers, found {indices}\n"
            "  convert them with .astype(int).ravel()"
        )
    n = element_count(values, name)
    if n != indices.shape[0]:
        raise ShapeError(
            f"{name}: {indices.shape[0]} indices for {n} values\n  pass one value for each index"
        )
    element_count(dests, name)
    for dest, value in zip(dests, values, strict=True):
        if element_type(dest) is not element_type(value):
            error = DTypeError if dest.dtype != value.dtype else ShapeError
            raise error(f"{name}: elements of {value} do not fit into the destination {dest}")


# ---- scatter ----


def _scatter_decompose(*args: Value, n_xs):
    """A write into copies with one more element, for writes outside of the destination."""
    dests, indices, values = args[:n_xs], args[n_xs], args[n_xs + 1 :]
    place = _clip_indices(indices, Sizes.from_value(dests[0])[0])
    result = []
    for dest, value in zip(dests, values, strict=True):
        rest = dest.emitter.apply(zeros, (), _zeros_attrs((), dest, zeros))
        whole = _append_element(dest, broadcast_to(rest, dest.shape[1:]))
        result.append(index_set(whole, place, value)[:-1])
    return tuple(result)


def _zeros_attrs(shape: tuple, like: Value, op):
    """The attributes of a ``zeros`` bind with this shape, in the dtype of ``like``."""
    return op.complete({"shape": shape, "dtype": like.dtype})


def _scatter_aval(*types, n_xs):
    """The types of the destinations."""
    dests = types[:n_xs]
    _check_places("scatter", dests, types[n_xs], types[n_xs + 1 :])
    return tuple([aval.with_shape(aval.shape) for aval in dests])


scatter = define_combinator(
    "scatter", _scatter_decompose, _scatter_aval, lambda *, n_xs: n_xs, memory="new"
)

# ---- reduce_by_index ----


def _histogram_decompose(*args: Value, body, n_xs, batched):
    """``at`` of a ufunc such as np.add; else a sort and a segmented scan; else a ``scan``."""
    dests, neutral = args[:n_xs], args[n_xs : 2 * n_xs]
    indices, rest = args[2 * n_xs], args[2 * n_xs + 1 :]
    values, captured = list(rest[:n_xs]), rest[n_xs:]
    if 0 in (dests[0].shape[0], values[0].shape[0]):
        return dests
    avals = [element_type(x.type) for x in values]
    body = fit_body(body, [*avals, *avals, *[arg.type for arg in captured]])
    place = _clip_indices(indices, Sizes.from_value(dests[0])[0])
    whole = [_append_element(*pair) for pair in zip(dests, neutral, strict=True)]
    at = _AT.get(known_ufunc(body, n_xs))
    if at is not None and _can_at(at, values[0]):
        return (_apply_ufunc_at(at, whole[0], place, values[0])[:-1],)
    if batched and is_number(values[0].shape[0]):
        combine = PairwiseBody(body, n_xs, captured)
        totals = _combine_segments(combine, whole, neutral, place, values)
        return tuple(combine([d[:-1] for d in whole], [x[:-1] for x in totals]))
    return tuple([x[:-1] for x in _one_at_a_time(body, whole, place, values, captured)])


# records whose ufunc has a method ``at`` with derivatives of all orders
_AT = {"add": "add", "mul": "mul", "maximum": "maximum", "minimum": "minimum"}


def _can_at(ufunc: str, values: Value) -> bool:
    """Whether the second derivatives of ``ufunc.at`` are right: not for floating products."""
    return ufunc != "mul" or values.dtype.kind in "biu"


def _apply_ufunc_at(ufunc: str, dest: Value, place: Value, values: Value) -> Value:
    """``np.add.at(dest, place, values)`` on a copy."""
    if ufunc == "add":
        return index_add(dest, place, values)
    return PRIMITIVES["ufunc_at"](dest, place, values, ufunc=ufunc)


def _combine_segments(
    combine: PairwiseBody, whole: Sequence, neutral: Sequence, place: Value, values: list[Value]
) -> list[Value]:
    """For each place its elements combined in their order; the neutral element if it has none."""
    order = PRIMITIVES["argsort"](place, kind="stable")
    place, values = place[order], [x[order] for x in values]
    differs = place[1:] != place[:-1]
    is_kept = place[:1] >= 0
    begins, ends = concatenate([is_kept, differs]), concatenate([differs, is_kept])
    prefixes = compute_prefixes(_SegmentedBody(combine, neutral), [begins, *values])[1:]
    # the last prefix of a segment combines all of it; the others go to the extra element
    target = where(ends, place, Sizes.from_value(whole[0])[0] - 1)
    return [
        index_set(broadcast_to(start, dest), target, x)
        for start, dest, x in zip(neutral, whole, prefixes, strict=True)
    ]


class _SegmentedBody(PairwiseBody):
    """A binary operation that starts afresh at the first element of each segment.

    There the first operand is replaced by the neutral element, so that no derivative flows through
    the combination of elements of two segments.
    """

    def __init__(self, combine: PairwiseBody, neutral: Sequence):
        self.combine, self.neutral = combine, neutral

    def __call__(self, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        """The results for pairs of tuples (is first of its segment, *element)."""
        first, first_operands = b[0], []
        for start, x in zip(self.neutral, a[1:], strict=True):
            mask = reshape(first, (*first.shape, *(1,) * (x.ndim - 1)))
            first_operands.append(where(mask, broadcast_to(start, x.shape), x))
        return [a[0] | first, *self.combine(first_operands, b[1:])]


def _one_at_a_time(
    body: Lambda, whole: Sequence, place: Value, values: Sequence, captured: Sequence
) -> tuple:
    """A ``scan`` over the elements that updates one place at a time."""
    builder = LetBuilder()
    dests = [builder.param(dest.type) for dest in whole]
    at = builder.param(place.type.with_shape(()))
    elements = [builder.param(x.type.with_shape(x.shape[1:])) for x in values]
    more = [builder.param(arg.type) for arg in captured]
    combined = builder.call(body, [*[dest[at] for dest in dests], *elements, *more])
    step = builder.build([index_set(d, at, x) for d, x in zip(dests, combined, strict=True)])
    n = place.shape[0]
    attrs = {"body": step, "n_carry": len(dests), "n_xs": 1 + len(elements), "reverse": False}
    operands = [*whole, place, *values, *captured]
    return emit_scan(operands, length=n if is_number(n) else None, **attrs)


def _histogram_aval(*types, body, n_xs, batched):
    """The types of the destinations."""
    dests, neutral = types[:n_xs], types[n_xs : 2 * n_xs]
    indices, rest = types[2 * n_xs], types[2 * n_xs + 1 :]
    _check_places("reduce_by_index", dests, indices, rest[:n_xs])
    avals = [element_type(aval) for aval in dests]
    for aval, start in zip(avals, neutral, strict=True):
        if ArrayType(start.dtype, start.shape) is not aval:
            raise DTypeError(
                f"reduce_by_index: the neutral element has type {start}, the values have {aval}\n"
                "  pass a neutral element of the type of the values"
            )
    check_element("reduce_by_index", body, avals, rest[n_xs:])
    return tuple([aval.with_shape(aval.shape) for aval in dests])


reduce_by_index = define_combinator(
    "reduce_by_index", _histogram_decompose, _histogram_aval, lambda *, n_xs, **_: n_xs
)
