"""``map``, ``reduce`` and ``associative_scan``: a body applied to the elements of arrays.

They are composites: each stands for a program of array operations, in which no element is handled
by itself where all operations of the body have a batching rule. Elements lie along axis 0. What a
record stands for depends on the shapes, and so do the derivatives, which are those of that program.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError
from letir.ops.autodiff.checkpoint_and_custom_jvp import fitted
from letir.ops.control_flow.binary_bodies import Pairwise, fold, for_many, known_ufunc, prefixes
from letir.ops.control_flow.scan_vjp import emit_scan
from letir.ops.define.batch_rules import composite_batch
from letir.ops.define.records import composite_numerics, composite_rules, decomposition, define
from letir.ops.elementwise.ufuncs import where
from letir.ops.reductions.cumulative import cumsum
from letir.ops.reductions.reductions import max_, min_, prod, sum_
from letir.ops.reductions.ufunc_methods import ufunc_accumulate, ufunc_reduce
from letir.ops.shape.shape_and_creation import constant, zeros_like
from letir.ops.shape.transpose_join_split import flip

# ---- records ----


def combinator(name: str, decompose: Callable, aval: Callable, results: Callable) -> Primitive:
    """Register a composite that holds a body; transforms put what it stands for in its place."""

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
    )


def element(kind: ArrayType | None) -> ArrayType | None:
    """The type of the elements of an array along axis 0."""
    if kind is None:
        return None
    if not kind.shape:
        raise ShapeError(f"elements lie along the first axis, and {kind} has none")
    return kind.with_shape(kind.shape[1:])


def count_of(types: Sequence[ArrayType], what: str):
    """The number of elements, which all arrays have. Raises ShapeError if they differ."""
    sizes = [kind.shape[0] for kind in types]
    if any(n != sizes[0] for n in sizes):
        raise ShapeError(f"{what}: its arrays have {', '.join(map(str, sizes))} elements")
    return sizes[0]


def is_number(n) -> bool:
    """Whether a size is known, and no name."""
    return type(n) is int


# ---- map ----


def _map_decompose(*args: Value, body, n_xs, batched):
    """The body for all elements at once; one after the other where that cannot be."""
    xs, n = args[:n_xs], args[0].shape[0]
    kinds = [element(x.type) for x in xs] + [arg.type for arg in args[n_xs:]]
    body = fitted(body, kinds)
    if batched:
        mapped = [True] * n_xs + [False] * (len(args) - n_xs)
        return args[0].emitter.call(for_many(body, mapped, n), args)
    length = n if is_number(n) else None
    return emit_scan(args, body=body, n_carry=0, n_xs=n_xs, length=length, reverse=False)


def _map_aval(*types, body, n_xs, batched):
    """The types of the results for one element, along a new first axis."""
    kinds = [element(kind) for kind in types[:n_xs]]
    n = count_of(types[:n_xs], "map")
    found = [arg.type for arg in fitted(body, [*kinds, *types[n_xs:]]).ret.args]
    return tuple([kind and ArrayType(kind.dtype, (n, *kind.shape)) for kind in found])


map_ = combinator("map", _map_decompose, _map_aval, lambda *, body, **_: len(body.ret.args))

# ---- reduce ----

_REDUCTIONS = {"add": sum_, "mul": prod, "maximum": max_, "minimum": min_}


def _reduced(ufunc: str, x: Value) -> Value:
    """All elements of ``x``, at least one, combined by a ufunc; in the dtype of ``x``."""
    if ufunc in ("maximum", "minimum"):
        return _REDUCTIONS[ufunc](x, axis=0)
    if ufunc in _REDUCTIONS:
        return _REDUCTIONS[ufunc](x, axis=0, dtype=x.dtype)  # else small integers would widen
    return ufunc_reduce(x, ufunc=ufunc, axis=0)


_EXTREMES = {"maximum": "min", "minimum": "max"}  # which end of a dtype changes nothing


def _reduced_if_any(ufunc: str, x: Value) -> Value:
    """``_reduced`` of elements of a named number: where there are none, what changes nothing."""
    if ufunc == "add":
        return _reduced(ufunc, x)
    end = _EXTREMES[ufunc]
    if x.dtype.kind == "f":
        initial = -np.inf if end == "min" else np.inf
    else:
        initial = int(getattr(np.iinfo(x.dtype), end))
    return _REDUCTIONS[ufunc](x, axis=0, initial=initial)


def _reduce_decompose(*args: Value, body, n_xs, batched):
    """NumPy's reduction; else neighbours in pairs, again and again; else one after the other."""
    start, xs, captured = args[:n_xs], list(args[n_xs : 2 * n_xs]), args[2 * n_xs :]
    n = xs[0].shape[0]
    kinds = [element(x.type) for x in xs]
    body = fitted(body, [*kinds, *kinds, *[arg.type for arg in captured]])
    if n == 0:
        return start
    combine, ufunc = Pairwise(body, n_xs, captured), known_ufunc(body, n_xs)
    if ufunc is not None and is_number(n):
        return tuple(combine.one(start, [_reduced(ufunc, xs[0])]))
    if batched and is_number(n):
        return tuple(combine.one(start, fold(combine, xs)))
    if ufunc in ("add", *_EXTREMES) and xs[0].dtype.kind in "fiu":
        return tuple(combine.one(start, [_reduced_if_any(ufunc, xs[0])]))
    length = n if is_number(n) else None
    return emit_scan(args, body=body, n_carry=n_xs, n_xs=n_xs, length=length, reverse=False)


def _reduce_aval(*types, body, n_xs, batched):
    """The types of one element."""
    kinds = [element(kind) for kind in types[n_xs : 2 * n_xs]]
    count_of(types[n_xs : 2 * n_xs], "reduce")
    check_element("reduce", body, kinds, types[2 * n_xs :])
    for kind, start in zip(kinds, types, strict=False):
        if start.with_shape(start.shape) is not kind:
            raise DTypeError(f"reduce: it begins with {start}, and its elements are {kind}")
    return tuple(kinds)


def check_element(name: str, body: Lambda, kinds: Sequence, captured: Sequence) -> None:
    """Raise unless the body makes an element of two."""
    found = [arg.type for arg in fitted(body, [*kinds, *kinds, *captured]).ret.args]
    for kind, out in zip(kinds, found, strict=True):
        if out is not None and (out.dtype, out.shape) != (kind.dtype, kind.shape):
            error = DTypeError if out.dtype != kind.dtype else ShapeError
            raise error(f"{name}: the operation makes {out} of two elements of type {kind}")


reduce_ = combinator("reduce", _reduce_decompose, _reduce_aval, lambda *, n_xs, **_: n_xs)

# ---- associative_scan ----


def _accumulated(ufunc: str, x: Value) -> Value:
    """The prefixes of ``x`` by a ufunc, in the dtype of ``x``."""
    if ufunc == "add":
        return cumsum(x, 0, dtype=x.dtype)
    if ufunc == "mul":
        return PRIMITIVES["cumprod"](x, 0, dtype=x.dtype)
    return ufunc_accumulate(x, ufunc=ufunc, axis=0)


def _scan_decompose(*args: Value, body, n_xs, reverse, batched):
    """NumPy's accumulation; else the prefixes of pairs; else one element after the other."""
    xs, captured = list(args[:n_xs]), args[n_xs:]
    n = xs[0].shape[0]
    kinds = [element(x.type) for x in xs]
    body = fitted(body, [*kinds, *kinds, *[arg.type for arg in captured]])
    if n == 0:
        return tuple(xs)
    if reverse:
        xs = [flip(x, 0) for x in xs]
    ufunc = known_ufunc(body, n_xs)
    if ufunc is not None:
        found = [_accumulated(ufunc, xs[0])]
    elif batched and is_number(n):
        found = prefixes(Pairwise(body, n_xs, captured), xs)
    else:
        found = _one_by_one(body, xs, captured)
    return tuple([flip(x, 0) for x in found] if reverse else found)


def _one_by_one(body: Lambda, xs: list[Value], captured: Sequence) -> list[Value]:
    """The prefixes by a loop, which begins with any elements and a flag that says so."""
    k, n = len(xs), xs[0].shape[0]
    builder = LetBuilder()
    is_first = builder.param(ArrayType(bool))
    carry, elements = ([builder.param(p.type) for p in body.params[:k]] for _ in range(2))
    more = [builder.param(param.type) for param in body.params[2 * k :]]
    # the operation also gets an element in the place of none, so that no nan comes from there
    before = [where(is_first, x, c) for c, x in zip(carry, elements, strict=True)]
    found = builder.call(body, [*before, *elements, *more])
    prefixes = [where(is_first, x, y) for x, y in zip(elements, found, strict=True)]
    step = builder.build([np.False_, *prefixes, *prefixes])
    start = [zeros_like(sum_(x, axis=0, dtype=x.dtype)) for x in xs]
    attrs = {"n_carry": 1 + k, "n_xs": k, "length": n if is_number(n) else None, "reverse": False}
    yes = xs[0].emitter.apply(constant, (), constant.complete({"value": np.True_}))
    return list(emit_scan([yes, *start, *xs, *captured], body=step, **attrs)[1 + k :])


def _scan_aval(*types, body, n_xs, reverse, batched):
    """The types of the operands."""
    kinds = [element(kind) for kind in types[:n_xs]]
    count_of(types[:n_xs], "associative_scan")
    check_element("associative_scan", body, kinds, types[n_xs:])
    return tuple([kind.with_shape(kind.shape) for kind in types[:n_xs]])


associative_scan = combinator(
    "associative_scan", _scan_decompose, _scan_aval, lambda *, n_xs, **_: n_xs
)
