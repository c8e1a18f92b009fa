"""``looped``: a body run on one example after the other, for operations without a batching rule."""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from letir.ast.builder import LetBuilder, Value
from letir.ast.liveness import live_binds
from letir.ast.primitive import Primitive, results_tuple, unwrap_results
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.errors import ShapeError
from letir.ops.as_numpy import control
from letir.ops.define.batch_rules import emit_op, move_to_front, type_without_batch
from letir.ops.define.records import define


def _looped_impl(xp, *args, call, body, mapped):
    """The results of the body for each example, stacked."""
    count = next(len(arg) for arg, has_axis in zip(args, mapped, strict=True) if has_axis)
    if not count:
        avals = [arg.type for arg in body.ret.args]
        if not all(map(has_static_shape, avals)):
            raise ShapeError(
                "looped: the batch is empty, and the shape of a result depends on an example\n"
                "  pass a batch of at least one example"
            )
        return tuple([xp.zeros((0, *a.type.shape), a.type.dtype) for a in body.ret.args])
    rows = [
        call(
            body, [arg[i] if has_axis else arg for arg, has_axis in zip(args, mapped, strict=True)]
        )
        for i in range(count)
    ]
    return tuple([xp.stack(results) for results in zip(*rows, strict=True)])


def _looped_aval(*types, body, mapped):
    """The types of the body's results, with the batch in front."""
    n = next(aval.shape[0] for aval, has_axis in zip(types, mapped, strict=True) if has_axis)
    results = [arg.type for arg in body.ret.args]
    return tuple([None if r is None else ArrayType(r.dtype, (n, *r.shape)) for r in results])


def _example_params(
    builder: LetBuilder, values: Sequence, mapped: Sequence[bool]
) -> list[Value | None]:
    """A parameter for one example of each value; None for a value that is None."""
    return [
        None if v is None else builder.param(type_without_batch(v, 0 if has_axis else None))
        for v, has_axis in zip(values, mapped, strict=True)
    ]


def _emit_looped(
    program: LetBuilder, results: Sequence, operands: Sequence, mapped: Sequence
) -> tuple:
    """The results of ``looped`` for the body that ``program`` builds; None where ``results`` is."""
    body = program.build([r for r in results if r is not None])
    body = body.with_binds(live_binds(body))  # a rule may record more than its results need
    # an operand that the body does not read would be kept alive through the loop
    used = {x for bind in body.binds for x in bind.locals()}.union(body.ret.locals())
    pairs = [(v, has_axis) for v, has_axis in zip(operands, mapped, strict=True) if v is not None]
    triples = [(p, *pair) for p, pair in zip(body.params, pairs, strict=True)]
    counts = next(triple for triple in triples if triple[2])  # gives the size of the batch
    triples = [triple for triple in triples if triple[0] in used or triple is counts]
    params, values, has_axis = zip(*triples, strict=True)
    body = Lambda(params, body.binds, body.ret)
    rows = iter(emit_op("looped", values, body=body, mapped=has_axis))
    return tuple([None if r is None else next(rows) for r in results])


def _looped_vjp(cts, outs, *args, body, mapped, transform, wanted=None):
    """Back through one example after the other; cotangents of shared operands are summed."""
    builder, all_mapped = LetBuilder(), (True,) * len(cts)
    primals, directions = (
        _example_params(builder, args, mapped),
        _example_params(builder, cts, all_mapped),
    )
    results = transform(body, primals, directions, wanted=wanted)
    pulled = _emit_looped(builder, results, (*args, *cts), (*mapped, *all_mapped))
    return tuple(
        [
            ct if ct is None or has_axis else emit_op("sum", (ct,), axis=0)
            for ct, has_axis in zip(pulled, mapped, strict=True)
        ]
    )


def _looped_jvp(tangents, outs, *args, body, mapped, transform):
    """The tangents of one example after the other."""
    builder = LetBuilder()
    primals, directions = (
        _example_params(builder, args, mapped),
        _example_params(builder, tangents, mapped),
    )
    results = transform(body, primals, directions)
    return _emit_looped(builder, results, (*args, *tangents), (*mapped, *mapped))


def _looped_batch(args, axes, *, body, mapped, transform):
    """A loop over the same examples, with the body batched over the new axis."""
    n = next(a.shape[axis] for a, axis in zip(args, axes, strict=True) if axis is not None)
    operands = [
        arg if axis is None else move_to_front(move_to_front(arg, axis), int(inner))
        for arg, axis, inner in zip(args, axes, mapped, strict=True)
    ]
    program, out_axes = transform(body, [None if axis is None else 0 for axis in axes], n)
    result = emit_op("looped", operands, body=program, mapped=mapped)
    return result, tuple([None if axis is None else 1 for axis in out_axes])


looped = define(
    "looped",
    _looped_impl,
    _looped_aval,
    vjp=_looped_vjp,
    jvp=_looped_jvp,
    batch=_looped_batch,
    results=lambda *, body, mapped: len(body.ret.args),
    holds_lambdas=True,
    source=control.looped,
)


@frozen
class LoopOverExamples:
    """The batching rule of an operation that computes one example at a time.

    ``record()`` returns the operation, which does not exist yet when its rule is made.
    """

    record: Callable[[], Primitive]

    def __call__(
        self, args: Sequence, axes: Sequence, /, *, transform: Callable | None = None, **attrs: Any
    ) -> tuple:
        op, builder = self.record(), LetBuilder()
        operands, stacked, has_axis = [], [], []
        for arg, axis in zip(args, axes, strict=True):
            if not isinstance(arg, Value):
                operands.append(arg)
                continue
            operands.append(builder.param(type_without_batch(arg, axis)))
            stacked.append(arg if axis is None else move_to_front(arg, axis))
            has_axis.append(axis is not None)
        out = builder.apply(op, operands, op.complete(attrs))
        body = builder.build(results_tuple(op, out))
        outs = emit_op("looped", stacked, body=body, mapped=tuple(has_axis))
        return unwrap_results(op, outs), unwrap_results(op, (0,) * len(outs))
