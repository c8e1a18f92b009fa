"""The batching transform: from a program for one example to a program for a batch of examples.

``_Batching`` visits a body. A bind without mapped operands does not change; any other bind is
replaced by the ``batch`` rule of its operation, with the batch axis first. ``vmap`` applies
``batch_program``, the transform of Lambdas, to functions (``letir.transforms.vmapping``).
"""

import functools
from collections.abc import Callable, Sequence

from attrs import frozen

from letir.ad.rule_cache import Steps, compile_steps, rule_body
from letir.ast import LATE_BOUND, entry_point
from letir.ast.attrs import NO_ATTRS, number_token
from letir.ast.bodies import holds_arrays
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import LetBuilder, Value, result_types
from letir.ast.primitive import Primitive, unwrap_results
from letir.ast.process_state import paused_gc
from letir.ast.record_fields import NO_BATCH, is_final
from letir.ast.source import error_at_bind
from letir.ast.terms import Arg, Bind, Const, Lambda, Let, Local, Ret, substitute_args
from letir.ast.types import ArrayType, Size
from letir.errors import LetirError, MissingRule, ShapeError
from letir.ops.autodiff.scripted import mapped_scripted
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.ops.define.batch_rules import move_to_front, types_without_batch
from letir.ops.define.records import decomposition
from letir.visitors.visitor import ExprVisitor, TailCall

_bodies = BoundedCache(1 << 12)


@entry_point
def batch_program(
    fn: Lambda, axes: Sequence[int | None], size: int | Size
) -> tuple[Lambda, tuple[int | None, ...]]:
    """(program, batch axes of its results): ``fn`` for ``size`` examples at once.

    ``axes``: the batch axis of each parameter, None if all examples share it. The batch axis of a
    result is 0, or None if it is the same for all examples. Linear in the number of binds. Raises
    MissingRule with the user's line if an operation cannot be batched.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0: float64[3], %1: float64[] { %2 = mul(%0, %1); return %2, %1 }")
    >>> program, out_axes = batch_program(f, (None, 0), 2)
    >>> print(program.listing(), end="")
    %2 = expand_dims %1, (1,)
    %3 = mul %0, %2
    return (%3, %1)
    >>> out_axes
    (0, 0)
    """
    if len(axes) != len(fn.params):
        raise ShapeError(
            f"batched: {len(axes)} axes for a function of {len(fn.params)} parameters\n"
            "  pass one axis for each parameter, None if it is not mapped"
        )
    with paused_gc():
        builder = LetBuilder()
        names: dict[Local, Arg] = {}
        for param, axis in zip(fn.params, axes, strict=True):
            if axis is None:
                builder.params.append(param)
            else:
                batch = builder.param(_mapped_type(param.type, axis, size), param.name)
                names[param] = move_to_front(batch, axis).arg
        mapped = set(names)
        results = _Batching(builder, size).visit(fn.body, names, mapped)
        program = builder.build(substitute_args(results, names))
        return program, tuple([0 if a in mapped else None for a in results])


def _mapped_type(aval: ArrayType | None, axis: int, size) -> ArrayType | None:
    """The type of ``size`` values of type ``aval`` stacked along ``axis``."""
    if aval is None:
        return None
    place = axis if axis >= 0 else axis + aval.ndim + 1
    return aval.with_shape((*aval.shape[:place], size, *aval.shape[place:]))


class _Batching(ExprVisitor):
    """Emits the binds of a body for a batch of examples; returns the results of the body.

    ``names``: {local of the body: its argument in the new program}. ``mapped``: the locals of the
    body that have a batch axis, axis 0.
    """

    def __init__(self, builder: LetBuilder, size: int | Size):
        self.builder, self.size = builder, size

    def visit_let(self, let: Let, names: dict, mapped: set):
        bind = let.bind
        is_mapped = tuple([type(arg) is Local and arg in mapped for arg in bind.args])
        if True in is_mapped:
            self.emit_batched(bind, is_mapped, names, mapped)
        elif bind.op.random and is_final(bind.op.batch):  # all examples would get the same numbers
            raise error_at_bind(MissingRule(bind.op.batch.reason), bind)
        else:  # all examples share the results
            self.builder.binds.append(bind.substitute(names))
        return TailCall(let.body, names, mapped)

    def visit_ret(self, ret: Ret, names: dict, mapped: set):
        return ret.args

    def emit_batched(self, bind: Bind, is_mapped: tuple, names: dict, mapped: set) -> None:
        """Emit the batch rule of ``bind``; ``is_mapped``: which operands are mapped."""
        args = substitute_args(bind.args, names)
        try:
            body = _batch_body(bind, args, is_mapped, self.size)
        except LetirError as error:
            raise error_at_bind(error, bind) from None
        self.builder.source = bind.source
        # constants are part of the recorded rule
        operands = [arg for arg in args if type(arg) is Local]
        results = body.emit(self.builder, operands)
        for binder, result, axis in zip(bind.binders, results, body.axes, strict=True):
            names[binder] = result
            if axis is not None:
                mapped.add(binder)
            # pass the user's name on, unless the result is an operand with its own name
            if binder.name and type(result) is Local and result.name is None:
                result.name = binder.name


# ---- rules ----


@frozen(eq=False)
class _BatchBody(Steps):
    """A recorded batch rule, whose operands are the locals among the bind's operands.

    ``axes``: the batch axis of each result, 0 or None.
    """

    axes: tuple[int | None, ...]


def _batch_body(bind: Bind, args: tuple[Arg, ...], is_mapped: tuple, size) -> _BatchBody:
    """The batch rule of ``bind`` for the operands ``args``; cached by their types."""
    operands = [arg.type if type(arg) is Local else number_token(arg.value) for arg in args]
    attrs = None if bind.attrs is NO_ATTRS else bind.attrs.token
    # the key has types instead of locals, so that many binds share one recorded rule
    key = (bind.op, attrs, size, is_mapped, *operands)
    result = _bodies.get(key)
    if result is None:
        result = _record_batch_rule(bind, args, is_mapped, size)
        if not holds_arrays(bind.attrs):  # the cache would keep the arrays alive
            _bodies[key] = result
    return result


def _record_batch_rule(bind: Bind, args: tuple[Arg, ...], is_mapped: tuple, size) -> _BatchBody:
    """The batch rule of ``bind``, recorded for these operands; ``is_mapped``: which are mapped."""
    builder = LetBuilder()
    operands = [builder.param(a.type) if type(a) is Local else a.value for a in args]
    axes = tuple([0 if mapped else None for mapped in is_mapped])
    rule = _batching_rule(bind.op)
    # bodies are batched too
    keywords = {"transform": batch_program} if bind.op.holds_lambdas else {}
    outs, out_axes = rule(operands, axes, **bind.attrs, **keywords)
    if bind.op.results is None:
        outs, out_axes = (outs,), (out_axes,)
    if len(outs) != len(bind.binders) or len(out_axes) != len(outs):
        raise ShapeError(
            f"{bind.op.name}: its batch rule gave {len(outs)} results and {len(out_axes)} axes "
            f"for {len(bind.binders)} results\n"
            "  return results and their axes, one of each for each result"
        )
    types = _slice_types(bind, args, is_mapped)
    results = [
        _settle_result(bind, *triple, size) for triple in zip(outs, out_axes, types, strict=True)
    ]
    fn = builder.build(results)
    return _BatchBody(*compile_steps(fn), tuple([None if a is None else 0 for a in out_axes]))


def _batching_rule(op: Primitive) -> Callable:
    """The batch rule of ``op``.

    If the record has none, a composite is batched together with its own derivative rule, and any
    other operation runs in a loop over the examples.
    """
    if op.batch is not NO_BATCH:
        return op.rule("batch")
    # correct but slow, and visible: the text of the program shows ``looped``
    return (
        LoopOverExamples(lambda: op)
        if op.decompose is None
        else functools.partial(_with_gradient, op)
    )


def _with_gradient(op: Primitive, args, axes, *, transform, **attrs):
    """The batch rule of a composite with its own vjp: decomposition and vjp are both batched."""
    avals = types_without_batch(args, axes)
    forward = decomposition(op.decompose, avals, attrs)
    backward, context, gradients = _gradient_of_slices(op, avals, forward, attrs)
    given = [i for i, aval in enumerate(avals) if aval is not None]
    place = {position: i for i, position in enumerate(given)}
    count = len(forward.ret.args)
    place.update({len(args) + i: len(given) + i for i in range(count)})
    results, out_axes = mapped_scripted(
        [args[i] for i in given],
        [axes[i] for i in given],
        script=op.name,
        forward=forward,
        backward=backward,
        context=tuple([place[i] for i in context]),
        gradients=tuple([place[i] for i in gradients]),
        n_outs=count,
        transform=transform,
    )
    return unwrap_results(op, results), unwrap_results(op, out_axes)


def _gradient_of_slices(op: Primitive, avals: tuple, forward: Lambda, attrs: dict) -> tuple:
    """(program, captured positions, operand positions of its results) of the vjp for one example.

    Captured positions count the operands, then the results.
    """
    args = tuple([Const(None) if aval is None else Local(aval) for aval in avals])
    outs = tuple([Local(arg.type) for arg in forward.ret.args])
    bind = Bind(outs, op, args, op.complete(attrs))
    # for all operands, because it is not known yet which of them will require grad
    rule = rule_body("vjp", bind, (True,) * len(outs), None)
    params, count = rule.body.params, len(outs)
    # ``scripted`` operations take cotangents last
    program = Lambda([*params[count:], *params[:count]], rule.body.binds, rule.body.ret)
    return program, rule.captured, rule.results


def _slice_types(bind: Bind, args: tuple[Arg, ...], is_mapped: tuple) -> tuple:
    """The result types of ``bind`` for one example of the batches ``args``."""
    slices = [
        Local(arg.type.with_shape(arg.type.shape[1:])) if mapped and arg.type is not None else arg
        for arg, mapped in zip(args, is_mapped, strict=True)
    ]
    return result_types(bind.op, tuple(slices), bind.attrs)


def _settle_result(bind: Bind, result, axis: int | None, expected: ArrayType | None, size):
    """The result of a batch rule with the batch axis first, in the dtype of ``expected``.

    ``expected``: the result's type for one example. Raises ShapeError if the shape differs from it.
    """
    if not isinstance(result, Value):
        return result
    if axis is not None:
        result = move_to_front(result, axis)
    if expected is None or result.type is None:
        return result
    shape = expected.shape if axis is None else (size, *expected.shape)
    if result.shape != shape:
        raise ShapeError(
            f"{bind.op.name}: its batch rule gave a result of {result.type}, "
            f"the batch of its results is {ArrayType(expected.dtype, shape)}\n"
            "  the batch axis is the one that the rule returns with it"
        )
    return result if result.dtype == expected.dtype else result.astype(expected.dtype)


LATE_BOUND["batch_program"] = batch_program
