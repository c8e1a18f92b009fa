"""Checkpointed loops: the backward pass stores every k-th carry and recomputes the iterations
between.

A loop over segments, each a checkpoint around a loop of ``every`` iterations (Chen et al., Training
deep nets with sublinear memory cost, 2016).
"""

from collections.abc import Sequence
from typing import Any

from letir.ast.builder import LetBuilder, Value
from letir.ast.terms import Lambda, Local, Source
from letir.ops.autodiff.checkpoint_and_custom_jvp import checkpoint
from letir.ops.control_flow.fori_as_while import convert_number
from letir.ops.control_flow.while_and_fori import INDEX_AS_NUMBER, fori_loop, while_loop
from letir.ops.elementwise.ufuncs import minimum


def _params_like(builder: LetBuilder, params: Sequence[Local]) -> list[Value]:
    """Parameters of these types and names."""
    return [builder.param(param.type, param.name) for param in params]


def _apply_recorded(op, operands: Sequence, **attrs) -> list[Value]:
    """The results of ``op``, emitted where its operands are."""
    emitter = next(v.emitter for v in operands if isinstance(v, Value))
    return list(emitter.apply(op, tuple(operands), op.complete(attrs)))


def _checkpoint_segment(body: Lambda, operands: Sequence) -> list[Value]:
    """The results of a segment, of which the backward pass keeps only the operands."""
    return _apply_recorded(checkpoint, operands, body=body, saved=0)


# ---- until a test fails ----


def while_in_segments(test: Lambda, body: Lambda, every: int, source: Source | None) -> Lambda:
    """The program of a checkpointed ``while_loop``, on its carried and captured values."""
    builder = LetBuilder()
    builder.source = source
    values, count = _params_like(builder, body.params), len(body.ret.args)
    (continues,) = builder.call(test, values)  # evaluated once per iteration: it may have effects
    attrs = {
        "test": _first_is_true(continues, values),
        "body": _segment_body(test, body, every, continues),
    }
    result = _apply_recorded(while_loop, [continues, *values], **attrs)
    return builder.build(result[1 : 1 + count])


def _first_is_true(continues: Value, values: Sequence[Value]) -> Lambda:
    """The test of a loop whose first carried value is the truth value of the test."""
    builder = LetBuilder()
    params = [builder.param(v.type) for v in (continues, *values)]
    return builder.build(params[:1])


def _segment_body(test: Lambda, body: Lambda, every: int, continues: Value) -> Lambda:
    """The body of the outer loop: the iterations of one segment, or the remaining ones."""
    builder = LetBuilder()
    params = [builder.param(continues.type), *_params_like(builder, body.params)]
    return builder.build(_checkpoint_segment(_inner_while(test, body, every, continues), params))


def _inner_while(test: Lambda, body: Lambda, every: int, continues: Value) -> Lambda:
    """The program of one segment, on (answer of the test, carried values, captured values)."""
    builder, count = LetBuilder(), len(body.ret.args)
    first, *values = [builder.param(continues.type), *_params_like(builder, body.params)]
    test_builder, step = LetBuilder(), LetBuilder()
    number, continues_now = test_builder.param(INDEX_AS_NUMBER), test_builder.param(continues.type)
    _params_like(test_builder, body.params)
    is_left = number < every
    ask = test_builder.build(
        [is_left & (continues_now if continues_now.dtype.kind == "b" else continues_now != 0)]
    )
    number, _ = step.param(INDEX_AS_NUMBER), step.param(continues.type)
    carried = _params_like(step, body.params)
    next_carry = step.call(body, carried)
    (continues_now,) = step.call(test, [*next_carry, *carried[count:]])
    step_program = step.build(
        [convert_number(number + 1, INDEX_AS_NUMBER), continues_now, *next_carry]
    )
    return builder.build(
        _apply_recorded(while_loop, [0, first, *values], test=ask, body=step_program)[1:]
    )


# ---- counted ----


def fori_in_segments(
    lower: Any, upper: Any, body: Lambda, every: int, source: Source | None
) -> Lambda:
    """The program of a checkpointed ``fori_loop``, on its bounds that are arrays, and its carried
    and captured values.
    """
    builder = LetBuilder()
    builder.source = source
    bounds: list[Any] = [b if type(b) is int else builder.param(b.type) for b in (lower, upper)]
    values = _params_like(builder, body.params[1:])
    if any(isinstance(b, Value) for b in bounds):
        return builder.build(_uneven_segments(bounds[0], bounds[1], values, body, every))
    whole, rest = divmod(max(upper - lower, 0), every)
    captured = values[len(body.ret.args) :]
    operands = [0, whole, *values]
    result = _apply_recorded(fori_loop, operands, body=_even_segment(lower, body, every))
    if rest:
        result = _checkpoint_segment(_last_segment(upper - rest, upper, body), [*result, *captured])
    return builder.build(result)


def _even_segment(lower: int, body: Lambda, every: int) -> Lambda:
    """The body of a loop over segments of ``every`` iterations."""
    builder = LetBuilder()
    number = builder.param(INDEX_AS_NUMBER)
    values = _params_like(builder, body.params[1:])
    start = convert_number(number * every + lower, INDEX_AS_NUMBER)
    inner = LetBuilder()
    first = inner.param(INDEX_AS_NUMBER)
    params = _params_like(inner, body.params[1:])
    count = len(body.ret.args)
    operands = [0, every, *params, first]
    step = _offset_body(body)
    loop = _apply_recorded(fori_loop, operands, body=step)[:count]
    return builder.build(_checkpoint_segment(inner.build(loop), [start, *values]))


def _offset_body(body: Lambda) -> Lambda:
    """``body`` with an index that starts at its last operand."""
    builder = LetBuilder()
    number = builder.param(INDEX_AS_NUMBER, body.params[0].name)
    values = _params_like(builder, body.params[1:])
    index = convert_number(number + builder.param(INDEX_AS_NUMBER), body.params[0].type)
    return builder.build(builder.call(body, [index, *values]))


def _last_segment(lower: int, upper: int, body: Lambda) -> Lambda:
    """The program of the remaining iterations after the last full segment."""
    builder = LetBuilder()
    values = _params_like(builder, body.params[1:])
    return builder.build(_apply_recorded(fori_loop, [lower, upper, *values], body=body))


def _uneven_segments(lower, upper, values: list, body: Lambda, every: int) -> list[Value]:
    """The results of a loop over segments whose number is known only at run time."""
    start, end = (convert_number(b, INDEX_AS_NUMBER) for b in (lower, upper))
    count, outer = len(body.ret.args), LetBuilder()
    number = outer.param(INDEX_AS_NUMBER)
    params = _params_like(outer, body.params[1:])
    low, high = outer.param(INDEX_AS_NUMBER), outer.param(INDEX_AS_NUMBER)
    begin = number * every + low
    stop = minimum(begin + every, high)
    inner = LetBuilder()
    bounds = [inner.param(begin.type), inner.param(stop.type)]
    loop = _apply_recorded(fori_loop, [*bounds, *_params_like(inner, body.params[1:])], body=body)
    segment_body = outer.build(_checkpoint_segment(inner.build(loop), [begin, stop, *params]))
    segments = -((start - end) // every)  # rounded up
    return _apply_recorded(fori_loop, [0, segments, *values, start, end], body=segment_body)[:count]
