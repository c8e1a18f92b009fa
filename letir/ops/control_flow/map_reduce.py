"""``map``, ``reduce`` and ``associative_scan``: a body applied to the elements of arrays.

They are composites: each decomposes into array operations. If all operations of the body have a
batching rule the body is batched; else a ``scan`` handles one element after the other. Elements lie
along axis 0. The decomposition depends on the shapes, and derivatives are taken of it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.record_fields import BodyLayout
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError
from letir.ops.autodiff.checkpoint_and_custom_jvp import fit_body
from letir.ops.control_flow.binary_bodies import (
    PairwiseBody,
    batch_body,
    compute_prefixes,
    known_ufunc,
    reduce_by_halves,
)
from letir.ops.control_flow.scan_vjp import emit_scan
from letir.ops.define.batch_rules import composite_batch
from letir.ops.define.composite_programs import composite_numerics, composite_rules
from letir.ops.define.records import decomposition, define
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.reductions.cumulative import cumsum
from letir.ops.reductions.product import prod
from letir.ops.reductions.reductions import max_, min_, sum_
from letir.ops.reductions.ufunc_methods import ufunc_accumulate, ufunc_reduce
from letir.ops.shape.shape_and_creation import constant, zeros_like
from letir.ops.shape.unit_axes_and_flip import flip

# ---- records ----


def _element_types(first: int, copies: int) -> Callable:
    """The function that computes the types of a body's operands: elements, then captured values.

    The ``n_xs`` arrays of elements start at operand ``first * n_xs``; the body takes ``copies``
    elements of each.
    """

    def given_types(types: Sequence[ArrayType], attrs) -> list[ArrayType]:
        start, n_xs = first * attrs["n_xs"], attrs["n_xs"]
        arrays = types[start : start + n_xs]
        elements = [aval.with_shape(aval.shape[1:]) for aval in arrays]
        return [*elements * copies, *types[start + n_xs :]]

    return given_types


def define_combinator(
    name: str, decompose: Callable, aval: Callable, results: Callable, **fields: Any
) -> Primitive:
    """Register a composite that holds a body; transforms replace it by its decomposition."""

    def source(write, *args, **attrs):
        types = tuple([arg.type for arg in write.bind.args])
        return write.body(decomposition(decompose, types, attrs), args)

    impl, _ = composite_numerics(decompose, several=True)
    vjp, jvp = composite_rules(decompose, several=True)
    return define(
        name,
        impl,
        aval,
        vjp=vjp,
        jvp=jvp,
        batch=composite_batch(partial(decomposition, decompose), several=True),
        decompose=decompose,
        attributes=decompose,
        results=results,
        source=source,
        holds_lambdas=True,
        inlined=True,
        **{"memory": "may_alias", **fields},
    )


def element_type(aval: ArrayType | None) -> ArrayType | None:
    """The type of the elements of an array along axis 0."""
    if aval is None:
        return None
    if not aval.shape:
        raise ShapeError(
            f"elements lie along the first axis, and {aval} has none\n"
            "  pass arrays with at least one axis"
        )
    return aval.with_shape(aval.shape[1:])


def element_count(types: Sequence[ArrayType], role: str) -> Any:
    """The number of elements, common to all arrays. Raises ShapeError if the arrays differ."""
    sizes = [aval.shape[0] for aval in types]
    if any(n != sizes[0] for n in sizes):
        raise ShapeError(
            f"{role}: its arrays have {', '.join(map(str, sizes))} elements\n"
            "  make their first axes equally long"
        )
    return sizes[0]


def is_number(n: Any) -> bool:
    """Whether a size is static, not symbolic."""
    return type(n) is int


# ---- map ----


def _map_decompose(*args: Value, body, n_xs, batched):
    """The batched body; without batching rules a ``scan`` over the elements."""
    xs, n = args[:n_xs], args[0].shape[0]
    avals = [element_type(x.type) for x in xs] + [arg.type for arg in args[n_xs:]]
    body = fit_body(body, avals)
    if batched:
        mapped = [True] * n_xs + [False] * (len(args) - n_xs)
        return args[0].emitter.call(batch_body(body, mapped, n), args)
    length = n if is_number(n) else None
    return emit_scan(args, body=body, n_carry=0, n_xs=n_xs, length=length, reverse=False)


def _map_aval(*types, body, n_xs, batched):
    """The result types for one element, with a new first axis."""
    avals = [element_type(aval) for aval in types[:n_xs]]
    n = element_count(types[:n_xs], "map")
    element_types = [arg.type for arg in fit_body(body, [*avals, *types[n_xs:]]).ret.args]
    return tuple([aval and ArrayType(aval.dtype, (n, *aval.shape)) for aval in element_types])


map_ = define_combinator(
    "map",
    _map_decompose,
    _map_aval,
    lambda *, body, **_: len(body.ret.args),
    bodies=BodyLayout(
        loop="elements",
        n_elements=lambda bind: bind.attrs["n_xs"],
        given_types=_element_types(0, 1),
        is_separable=False,
        is_linear=False,
    ),
)

# ---- reduce ----

_REDUCTIONS = {"add": sum_, "mul": prod, "maximum": max_, "minimum": min_}


def _reduce_elements(ufunc: str, x: Value) -> Value:
    """All elements of ``x`` reduced by a ufunc, in the dtype of ``x``; at least one element."""
    if ufunc in ("maximum", "minimum"):
        return _REDUCTIONS[ufunc](x, axis=0)
    if ufunc in _REDUCTIONS:
        return _REDUCTIONS[ufunc](x, axis=0, dtype=x.dtype)  # else small integers would widen
    return ufunc_reduce(x, ufunc=ufunc, axis=0)


_EXTREMES = {"maximum": "min", "minimum": "max"}  # which end of a dtype's range is neutral


def _reduce_possibly_empty(ufunc: str, x: Value) -> Value:
    """Like ``_reduce_elements``, for a symbolic number of elements, which may be 0."""
    if ufunc == "add":
        return _reduce_elements(ufunc, x)
    end = _EXTREMES[ufunc]
    if x.dtype.kind == "f":
        initial = -np.inf if end == "min" else np.inf
    else:
        initial = int(getattr(np.iinfo(x.dtype), end))
    return _REDUCTIONS[ufunc](x, axis=0, initial=initial)


def _reduce_decompose(*args: Value, body, n_xs, batched):
    """NumPy's reduction; else a tree of batched pairs; else a ``scan`` over the elements."""
    start, xs, captured = args[:n_xs], list(args[n_xs : 2 * n_xs]), args[2 * n_xs :]
    n = xs[0].shape[0]
    avals = [element_type(x.type) for x in xs]
    body = fit_body(body, [*avals, *avals, *[arg.type for arg in captured]])
    if n == 0:
        return start
    combine, ufunc = PairwiseBody(body, n_xs, captured), known_ufunc(body, n_xs)
    if ufunc is not None and is_number(n):
        return tuple(combine.combine_single(start, [_reduce_elements(ufunc, xs[0])]))
    if batched and is_number(n):
        return tuple(combine.combine_single(start, reduce_by_halves(combine, xs)))
    if ufunc in ("add", *_EXTREMES) and xs[0].dtype.kind in "fiu":
        return tuple(combine.combine_single(start, [_reduce_possibly_empty(ufunc, xs[0])]))
    length = n if is_number(n) else None
    return emit_scan(args, body=body, n_carry=n_xs, n_xs=n_xs, length=length, reverse=False)


def _reduce_aval(*types, body, n_xs, batched):
    """The types of one element."""
    avals = [element_type(aval) for aval in types[n_xs : 2 * n_xs]]
    element_count(types[n_xs : 2 * n_xs], "reduce")
    check_element("reduce", body, avals, types[2 * n_xs :])
    for aval, start in zip(avals, types, strict=False):
        if start.with_shape(start.shape) is not aval:
            raise DTypeError(
                f"reduce: the initial value has type {start}, the elements have {aval}\n"
                "  pass an initial value of the elements' type"
            )
    return tuple(avals)


def check_element(name: str, body: Lambda, kinds: Sequence, captured: Sequence) -> None:
    """Raise unless the body combines two elements of types ``kinds`` into one of these types."""
    result_types = [arg.type for arg in fit_body(body, [*kinds, *kinds, *captured]).ret.args]
    for aval, out in zip(kinds, result_types, strict=True):
        if out is not None and (out.dtype, out.shape) != (aval.dtype, aval.shape):
            error = DTypeError if out.dtype != aval.dtype else ShapeError
            raise error(f"{name}: the operation combines two elements of type {aval} into {out}")


reduce_ = define_combinator(
    "reduce",
    _reduce_decompose,
    _reduce_aval,
    lambda *, n_xs, **_: n_xs,
    bodies=BodyLayout(
        loop="pairs", given_types=_element_types(1, 2), is_separable=False, is_linear=False
    ),
)

# ---- associative_scan ----


def _accumulate_elements(ufunc: str, x: Value) -> Value:
    """The prefix sums of ``x`` (or products, maxima ...: by a ufunc), in the dtype of ``x``."""
    if ufunc == "add":
        return cumsum(x, 0, dtype=x.dtype)
    if ufunc == "mul":
        return PRIMITIVES["cumprod"](x, 0, dtype=x.dtype)
    return ufunc_accumulate(x, ufunc=ufunc, axis=0)


def _scan_decompose(*args: Value, body, n_xs, reverse, batched):
    """NumPy's accumulation; else prefixes by batched pairs; else a ``scan`` over the elements."""
    xs, captured = list(args[:n_xs]), args[n_xs:]
    n = xs[0].shape[0]
    avals = [element_type(x.type) for x in xs]
    body = fit_body(body, [*avals, *avals, *[arg.type for arg in captured]])
    if n == 0:
        return tuple(xs)
    if reverse:
        xs = [flip(x, 0) for x in xs]
    ufunc = known_ufunc(body, n_xs)
    if ufunc is not None:
        result = [_accumulate_elements(ufunc, xs[0])]
    elif batched and is_number(n):
        result = compute_prefixes(PairwiseBody(body, n_xs, captured), xs)
    else:
        result = _scan_elements(body, xs, captured)
    return tuple([flip(x, 0) for x in result] if reverse else result)


def _scan_elements(body: Lambda, xs: list[Value], captured: Sequence) -> list[Value]:
    """The prefixes by a ``scan``, whose carry has a flag: the first step has no prefix yet."""
    k, n = len(xs), xs[0].shape[0]
    builder = LetBuilder()
    is_first = builder.param(ArrayType(bool))
    carry, elements = ([builder.param(p.type) for p in body.params[:k]] for _ in range(2))
    more = [builder.param(param.type) for param in body.params[2 * k :]]
    # in the first step the operation gets the element twice, because zeros could give nans
    before = [where(is_first, x, c) for c, x in zip(carry, elements, strict=True)]
    combined = builder.call(body, [*before, *elements, *more])
    prefixes = [where(is_first, x, y) for x, y in zip(elements, combined, strict=True)]
    step = builder.build([np.False_, *prefixes, *prefixes])
    start = [zeros_like(sum_(x, axis=0, dtype=x.dtype)) for x in xs]
    attrs = {"n_carry": 1 + k, "n_xs": k, "length": n if is_number(n) else None, "reverse": False}
    begins = xs[0].emitter.apply(constant, (), constant.complete({"value": np.True_}))
    return list(emit_scan([begins, *start, *xs, *captured], body=step, **attrs)[1 + k :])


def _scan_aval(*types, body, n_xs, reverse, batched):
    """The types of the scanned operands."""
    avals = [element_type(aval) for aval in types[:n_xs]]
    element_count(types[:n_xs], "associative_scan")
    check_element("associative_scan", body, avals, types[n_xs:])
    return tuple([aval.with_shape(aval.shape) for aval in types[:n_xs]])


associative_scan = define_combinator(
    "associative_scan",
    _scan_decompose,
    _scan_aval,
    lambda *, n_xs, **_: n_xs,
    bodies=BodyLayout(
        loop="pairs", given_types=_element_types(0, 2), is_separable=False, is_linear=False
    ),
)
