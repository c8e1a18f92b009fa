"""``map``, ``reduce``, ``associative_scan``, ``reduce_by_index``, ``scatter``, for Python callers.

Each records its function once, on the types of elements, and emits one bind.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen
from optree import PyTreeSpec

from letir.ast import LATE_BOUND, entry_point
from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.pytrees import Tree, flatten
from letir.ast.signatures import R
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError, TraceError
from letir.eval.arguments import leaf_names
from letir.eval.array_modules import type_of
from letir.ops.control_flow.binary_bodies import can_batch
from letir.ops.define.batch_rules import move_from_front, move_to_front
from letir.ops.define.records import cast_cotangent, result_dtype
from letir.tracing.control_flow import traced_bodies
from letir.tracing.control_flow.elements import (
    as_element,
    element_type,
    element_types,
    initial_leaves,
)
from letir.tracing.control_flow.scans import (
    array_words,
    as_body,
    as_row,
    carry_as_array,
    declare_argument,
    row_type,
    step_count,
)
from letir.tracing.source_locations import at_user, user_place

# ---- map ----


@entry_point
def map(f: Callable[..., Any], *xs: Any) -> Any:
    """``f(*x)`` for the elements of ``xs`` along their leading axes, stacked.

    Each of ``xs`` is a pytree of arrays with the same number of elements; ``f`` returns a pytree.
    ``f`` is recorded once for one element. If all its operations have batching rules the program
    has no loop; otherwise, or if it has effects, elements are processed one after the other. Traced
    values that ``f`` closes over are differentiated too.

    >>> import numpy as np
    >>> map(lambda x, y: x @ y, np.arange(6.0).reshape(2, 3), np.ones((2, 3)))
    array([ 3., 12.])
    """
    if not xs:
        raise TraceError(
            f"map: an array is needed to map over{at_user()}\n  write letir.map(f, xs)"
        )
    leaves, spec = flatten(xs)
    if not leaves:
        raise ShapeError(
            f"map: the pytrees contain no arrays{at_user()}\n  pass at least one array"
        )
    rows = [as_row(x) for x in leaves]
    step_count(rows, None, "map")
    recorded = LATE_BOUND["recorded_function"](f)
    wrapped = _Nested(lambda elements: recorded(*elements), spec)
    names = leaf_names(f, xs, {})
    avals = [element_type(row_type(x)) for x in rows]
    step = _Recorded.from_function("map: f", wrapped, avals, names)
    mapped = [True] * len(rows) + [False] * len(step.lifted)
    attrs = {"body": step.fn, "n_xs": len(rows), "batched": can_batch(step.fn, mapped)}
    outs = _run_combinator("map", [*rows, *step.lifted], attrs)
    return wrapped.out_spec.unflatten(outs)


class _Nested:
    """A function of one pytree as a function of its leaves; stores the nesting of its results."""

    def __init__(self, f: Callable, spec: PyTreeSpec):
        self.f, self.spec = f, spec
        self.out_spec: PyTreeSpec | None = None

    def __call__(self, *leaves):
        results, self.out_spec = flatten(self.f(self.spec.unflatten(leaves)))
        return tuple([carry_as_array(leaf, None) for leaf in results])


@frozen(eq=False)
class _Recorded:
    """A function recorded on elements, and the traced values that it closes over."""

    fn: Lambda
    lifted: tuple

    @classmethod
    def from_function(
        cls, caller: str, f: Callable, avals: Sequence[ArrayType], names: Sequence
    ) -> "_Recorded":
        """``f`` recorded on elements of these types; ``caller`` is as in ``record_body``."""
        arguments = tuple([declare_argument(aval) for aval in avals])
        recording = traced_bodies.record_abstractly(caller, f, arguments)
        return cls(as_body(recording.fn, names), recording.lifted)


def _run_combinator(
    name: str, operands: Sequence, attrs: dict, arrange: Callable | None = None
) -> list:
    """The results of a program with one combinator.

    ``arrange(values)`` converts the parameters to its operands, and returns the conversion of its
    results.
    """
    builder, op = LetBuilder(), PRIMITIVES[name]
    builder.source, _ = user_place(3)
    values = [builder.param(type_of(value)) for value in operands]
    finish = None
    if arrange is not None:
        values, finish = arrange(values)
    outs = builder.apply(op, values, op.complete(attrs))
    program = builder.build(outs if finish is None else finish(outs))
    return traced_bodies.run_program(program, list(operands))


# ---- binary operations ----


class _Binary:
    """A binary operation on pytrees as a function of leaves, with checked results."""

    def __init__(self, f: Callable, spec: PyTreeSpec, avals: Sequence[ArrayType], caller: str):
        self.f, self.spec, self.kinds, self.caller = f, spec, avals, caller

    def __call__(self, *leaves):
        count = len(self.kinds)
        a, b = (self.spec.unflatten(part) for part in (leaves[:count], leaves[count:]))
        result, spec = flatten(self.f(a, b))
        if spec != self.spec:
            raise TraceError(
                f"{self.caller}: the operation returns {Tree(spec)} for two elements that nest as "
                f"{Tree(self.spec)}{at_user()}\n"
                "  return one element, nested like its arguments"
            )
        result = [carry_as_array(leaf, aval) for leaf, aval in zip(result, self.kinds, strict=True)]
        for i, (leaf, aval) in enumerate(zip(result, self.kinds, strict=True)):
            out = type_of(leaf)
            if out is not None and (out.dtype, out.shape) != (aval.dtype, aval.shape):
                error = DTypeError if out.dtype != aval.dtype else ShapeError
                raise error(
                    f"{self.caller}: the operation combines two elements of type {aval} into "
                    f"{out}{f', in array {i}' if count > 1 else ''}{at_user()}\n"
                    "  return the type of the elements, so that results can be combined"
                )
        return tuple(result)


def _recorded_binary(
    f: Callable, spec: PyTreeSpec, avals: Sequence[ArrayType], caller: str
) -> _Recorded:
    """A binary operation recorded on two elements of these types."""
    names = leaf_names(f, (spec.unflatten(avals), spec.unflatten(avals)), {})
    step = _Binary(f, spec, avals, caller)
    return _Recorded.from_function(f"{caller}: op", step, [*avals, *avals], names)


def _binary_attrs(step: _Recorded, n_xs: int, **more) -> dict:
    """The attributes of a combinator of a binary operation."""
    mapped = [True] * (2 * n_xs) + [False] * len(step.lifted)
    return {"body": step.fn, "n_xs": n_xs, "batched": can_batch(step.fn, mapped), **more}


@entry_point
def reduce(op: Callable[[Any, Any], Any], init: Any, xs: Any, axis: int = 0) -> Any:
    """``op(...op(op(init, xs[0]), xs[1])..., xs[-1])`` for the elements of ``xs`` along ``axis``.

    ``op`` must be associative: neighbouring elements are combined in pairs, with other rounding
    than from left to right. It takes two elements (arrays, or pytrees like ``xs``) and is recorded
    once. Sums, products, minima, maxima and other ufuncs become NumPy's reductions, with their
    derivatives. Without elements the result is ``init``.

    >>> import numpy as np
    >>> reduce(lambda a, b: a @ b, np.eye(2), np.stack([np.eye(2), 2 * np.eye(2)]))
    array([[2., 0.],
           [0., 2.]])
    """
    axis = operator.index(axis)
    rows, spec, kinds = element_types(xs, axis, "reduce")
    start = initial_leaves(init, spec, [element_type(k) for k in kinds], "reduce", "init")
    dtypes = [result_dtype(type_of(a), k) for a, k in zip(start, kinds, strict=True)]
    avals = [ArrayType(d, k.shape[1:]) for d, k in zip(dtypes, kinds, strict=True)]
    step = _recorded_binary(op, spec, avals, "reduce")
    k = len(rows)

    def arrange(values):
        first = [as_element(v, kind) for v, kind in zip(values[:k], avals, strict=True)]
        arrays = [
            cast_cotangent(move_to_front(v, axis), d)
            for v, d in zip(values[k:], dtypes, strict=False)
        ]
        return [*first, *arrays, *values[2 * k :]], None

    outs = _run_combinator("reduce", [*start, *rows, *step.lifted], _binary_attrs(step, k), arrange)
    return spec.unflatten(outs)


@entry_point
def associative_scan(
    op: Callable[[Any, Any], Any], xs: R, reverse: bool = False, axis: int = 0
) -> R:
    """The prefixes ``xs[0]``, ``op(xs[0], xs[1])``, ... of the elements of ``xs`` along ``axis``.

    ``op`` must be associative; it takes two elements (arrays, or pytrees like ``xs``) and is
    recorded once. Elements are combined in pairs: about 2 log2(n) array operations for each
    operation of ``op``. ``cumsum`` and similar functions are NumPy's. ``reverse``: suffixes,
    combined from the last element.

    >>> import numpy as np
    >>> associative_scan(lambda a, b: a + b, np.array([1, 2, 3]))
    array([1, 3, 6])
    """
    axis = operator.index(axis)
    rows, spec, kinds = element_types(xs, axis, "associative_scan")
    step = _recorded_binary(op, spec, [element_type(aval) for aval in kinds], "associative_scan")
    k = len(rows)

    def arrange(values):
        arrays = [move_to_front(v, axis) for v in values[:k]]
        return [*arrays, *values[k:]], lambda outs: [move_from_front(y, axis) for y in outs]

    attrs = _binary_attrs(step, k, reverse=bool(reverse))
    outs = _run_combinator("associative_scan", [*rows, *step.lifted], attrs, arrange)
    prefixes: Any = spec.unflatten(outs)
    return prefixes


# ---- places ----


def _row_of_indices(indices, caller: str):
    """Indices as a 1-d array of integers."""
    result = as_row(indices)
    aval = row_type(result)
    if aval is None or len(aval.shape) != 1 or aval.dtype.kind not in "iu":
        if aval is not None and aval.shape == (0,) and not isinstance(result, Value):
            return result.astype(np.int64)  # [] is an array of floats
        raise DTypeError(
            f"{caller}: indices must be a vector of integers, found {aval}{at_user()}\n"
            "  convert them with .astype(int), and ravel them"
        )
    return result


def _check_destinations(dest, values, indices, caller: str) -> tuple:
    """(destinations, their nesting, indices, values), checked to fit each other."""
    dests, spec = flatten(dest)
    arrays, nesting = flatten(values)
    if nesting != spec:
        raise TraceError(
            f"{caller}: values nest as {Tree(nesting)}, dest as {Tree(spec)}{at_user()}\n"
            "  nest the values like dest"
        )
    dests, arrays = [as_row(x) for x in dests], [as_row(x) for x in arrays]
    places = _row_of_indices(indices, caller)
    step_count([*arrays, places], None, caller, "values and indices")
    for i, (d, v) in enumerate(zip(dests, arrays, strict=True)):
        target, aval = row_type(d), row_type(v)
        misfit = (
            f"{caller}: {array_words('dest', i, len(dests))} is {target} and cannot hold {aval}"
        )
        if not target.shape or target.shape[1:] != aval.shape[1:]:
            raise ShapeError(
                f"{misfit}{at_user()}\n"
                "  convert dest or the values with .astype, and give them equal sizes"
            )
        if not np.can_cast(aval.dtype, target.dtype, "same_kind"):
            raise DTypeError(
                f"{misfit}{at_user()}\n"
                "  convert dest or the values with .astype, and give them equal sizes"
            )
    return dests, spec, places, arrays


@entry_point
def scatter(dest: Any, indices: Any, values: Any) -> Any:
    """``dest`` with ``values[i]`` at ``indices[i]`` of its leading axis.

    Indices outside of ``dest``, also negative ones, are ignored. For repeated indices the last
    value wins, and it alone has a derivative. ``dest`` and ``values`` may be pytrees of the same
    nesting.

    >>> import numpy as np
    >>> scatter(np.zeros(3), np.array([2, 0, 7]), np.array([1.0, 2.0, 3.0]))
    array([2., 0., 1.])
    """
    dests, spec, places, arrays = _check_destinations(dest, values, indices, "scatter")
    k = len(dests)
    dtypes = [row_type(d).dtype for d in dests]

    def arrange(args):
        new = [cast_cotangent(v, d) for v, d in zip(args[k + 1 :], dtypes, strict=True)]
        return [*args[: k + 1], *new], None

    return spec.unflatten(
        _run_combinator("scatter", [*dests, places, *arrays], {"n_xs": k}, arrange)
    )


@entry_point
def reduce_by_index(
    dest: Any, op: Callable[[Any, Any], Any], ne: Any, indices: Any, values: Any
) -> Any:
    """``dest`` with ``op(dest[i], v)`` for each value ``v`` and its index ``i``: a histogram.

    ``op`` must be associative with the neutral element ``ne``; it takes two elements and is
    recorded once. Indices outside of ``dest``, also negative ones, are ignored. Sums, minima and
    maxima become NumPy's ``ufunc.at``; for other operations the elements are sorted by index, and
    those with equal indices are combined in pairs. ``dest``, ``ne`` and ``values`` may be pytrees
    of the same nesting.

    >>> import numpy as np
    >>> reduce_by_index(np.zeros(2), lambda a, b: a + b, 0.0, np.array([1, 1, 5]), np.ones(3))
    array([0., 2.])
    """
    dests, spec, places, arrays = _check_destinations(dest, values, indices, "reduce_by_index")
    avals = [element_type(row_type(d)) for d in dests]
    neutral = initial_leaves(ne, spec, avals, "reduce_by_index", "ne")
    step = _recorded_binary(op, spec, avals, "reduce_by_index")
    k = len(dests)

    def arrange(args):
        first = [as_element(v, aval) for v, aval in zip(args[k : 2 * k], avals, strict=True)]
        rest = args[2 * k + 1 :]
        new = [cast_cotangent(v, aval.dtype) for v, aval in zip(rest[:k], avals, strict=True)]
        return [*args[:k], *first, args[2 * k], *new, *rest[k:]], None

    operands = [*dests, *neutral, places, *arrays, *step.lifted]
    return spec.unflatten(
        _run_combinator("reduce_by_index", operands, _binary_attrs(step, k), arrange)
    )
