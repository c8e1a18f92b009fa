"""A Function as an operation, which traces and histories record for a call [semantics.md B12].

The operation is named after the class, ``module.Class``. Its derivative is another operation,
``module.Class.backward``, which runs forward again to make the ctx, and then backward.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from letir.ast.attrs import Attrs, Here
from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.types import ArrayType
from letir.eager.backward_pass.entry_points import gradients
from letir.eager.functions.context import Context
from letir.eager.grad_mode import enable_grad, recording_set
from letir.eager.recorder import Recorder
from letir.errors import DTypeError, LetirError, ShapeError, TraceError
from letir.eval.array_modules import is_array, type_of
from letir.ops.define.records import takes_gradient
from letir.ops.define.user_operations import primitive
from letir.ops.shape.shape_and_creation import zeros_like
from letir.tracing.refusals import escaped_error
from letir.tracing.source_locations import at_user, error_at_user_line, user_place
from letir.tracing.trace_state import ABSENT, ACTIVE, EAGER, Paused, Trace
from letir.tracing.tracer import Tracer
from letir.transforms.custom_reverse import custom_vjp

if TYPE_CHECKING:
    from letir.eager.functions.function import Function

HERE = Here()  # the placeholder for an array among the arguments


def make_operation(function: type["Function"]) -> Primitive:
    """The operation of a Function, registered under the name of the class."""
    # a class defined in a function, m.f.<locals>.C, is named m.f.C
    name = re.sub(r"<locals>\.|[^\w.]", "", f"{function.__module__}.{function.__qualname__}")
    backward = _backward_operation(function, f"{name}.backward")

    def impl(xp, *arrays, arguments, types):
        with recording_set(False):
            result, _ = call_function_at(function, arguments, arrays)
        result = tuple([out.array for out in result])
        _check_result_types(name, tuple(map(type_of, result)), types)
        return result

    named: Any = impl  # Any, because functions have no declared attributes
    named.function = function  # called instead in eager mode, see ``function_behind``

    def vjp(cts, outs, *args, arguments, types):
        cts = [zeros_like(o) if ct is None else ct for ct, o in zip(cts, outs, strict=True)]
        places = tuple([i for i, arg in enumerate(args) if takes_gradient(arg)])
        avals = tuple([ArrayType(args[i].dtype, args[i].shape) for i in places])
        result = backward(*args, *cts, arguments=arguments, places=places, types=avals)
        by_place = dict(zip(places, result, strict=True))
        return tuple([by_place.get(i) for i in range(len(args))])

    return primitive(
        name,
        impl,
        lambda *avals, arguments, types: types,
        vjp=vjp,
        results=lambda *, arguments, types: len(types),
    )


def _backward_operation(function, name: str) -> Primitive:
    """The operation for backward: the gradients of the arrays at ``places``, with these types."""

    def impl(xp, *arrays, arguments, places, types):
        count = sum(arg is HERE for arg in arguments)
        variable = Recorder.variable
        with enable_grad():  # the caller may be under no_grad; this history is local to the call
            inputs = [variable(a, requires_grad=i in places) for i, a in enumerate(arrays[:count])]
            outs, _ = call_function_at(function, arguments, inputs)
        pairs = [p for p in zip(outs, arrays[count:], strict=True) if p[0].requires_grad]
        variables = [inputs[i] for i in places]
        if not pairs:  # no result of forward has a gradient
            return tuple([xp.zeros_like(v.array) for v in variables])
        results = gradients(
            [p[0] for p in pairs], variables, [p[1] for p in pairs], allow_unused=True
        )
        return tuple(
            [
                xp.zeros_like(v.array) if ct is None else ct.array
                for v, ct in zip(variables, results, strict=True)
            ]
        )

    return primitive(
        name,
        impl,
        lambda *kinds, arguments, places, types: types,
        results=lambda *, arguments, places, types: len(types),
    )


def function_behind(op: Primitive) -> type["Function"] | None:
    """The Function behind ``op``, None for other operations."""
    return getattr(op.impl, "function", None)


def call_function_at(
    function: type["Function"], arguments: Sequence, arrays: Sequence
) -> tuple[tuple, bool]:
    """(results as Variables, whether a tuple) of a call with arrays in place of ``HERE``."""
    rest = iter(arrays)
    filled = [_wrap_array(next(rest)) if arg is HERE else arg for arg in arguments]
    out = function.apply(*filled)
    outs = out if isinstance(out, tuple) else (out,)
    for result in outs:
        if not isinstance(result, Value):
            raise TraceError(
                f"{function.__name__}: a result of forward is {result!r}, not an array: "
                "it cannot be recorded\n"
                "  return Variables or arrays only"
            )
    return outs, isinstance(out, tuple)


def _wrap_array(array):
    """An array as a Variable."""
    return array if isinstance(array, Recorder.variable) else Recorder.variable(array)


def _check_result_types(name: str, actual: tuple, expected: tuple) -> None:
    """Raise ShapeError unless a call gave results of the types that were recorded."""
    if actual != expected:
        raise ShapeError(
            f"{name}: recorded with results {expected}, now it returned {actual}\n"
            "  trace again with these arguments"
        )


def call_attributes(function: type["Function"], arguments: Sequence, types: tuple) -> Attrs:
    """The attributes of a call. Raises DTypeError for an argument that a program cannot hold."""
    result = Attrs(arguments=tuple(arguments), types=types)
    try:
        hash(result.token)
    except (LetirError, TypeError) as error:
        raise error_at_user_line(
            DTypeError(
                f"{function.__name__}: an argument is not hashable: {error}\n"
                "  pass arrays as Variables, others as strings, numbers or tuples"
            )
        ) from None
    return result


# ---- in a trace ----


def call_traced(function: type["Function"], args: tuple) -> Any:
    """The results of a call on traced values."""
    if function.traceable:
        return _record_traceable(function, args)
    active = ACTIVE.get()
    arguments = [HERE if is_array(arg) or isinstance(arg, Value) else arg for arg in args]
    operands = [arg for arg, mark in zip(args, arguments, strict=True) if mark is HERE]
    if not isinstance(active, Trace):
        return _compute_call(function, arguments, operands, active)
    with recording_set(False):
        outs, several = call_function_at(
            function, arguments, [_operand_array(operand) for operand in operands]
        )
    attrs = call_attributes(function, arguments, tuple([out.type for out in outs]))
    active.source, name = user_place(3)
    binders = active.emit(
        function.operation, tuple([active.enter(operand) for operand in operands]), attrs
    )
    if len(binders) == 1:
        binders[0].name = name
    # without concrete values the results were computed from zeros, only for their types
    values = [out.array if active.mode is EAGER else ABSENT for out in outs]
    result = tuple([Tracer(active, *pair) for pair in zip(binders, values, strict=True)])
    return result if several else result[0]


def _compute_call(function, arguments: list, operands: list, active: Paused | None) -> Any:
    """The results as arrays: a call on traced values while tracing is paused."""
    traced = [operand for operand in operands if isinstance(operand, Tracer)]
    if active is None:
        raise escaped_error(traced[0])
    if any(value.concrete_value() is ABSENT for value in traced):
        raise TraceError(
            f"{function.__name__}: while tracing is paused, a Function computes its results: trace "
            f"with concrete arguments{at_user()}\n"
            "  trace it without pause_tracing"
        )
    with recording_set(False):
        outs, several = call_function_at(function, arguments, list(map(_operand_array, operands)))
    arrays = tuple([out.array for out in outs])
    return arrays if several else arrays[0]


def _operand_array(operand):
    """The array of an operand; zeros of its type for an abstract tracer."""
    if not isinstance(operand, Value):
        return operand
    value = operand.concrete_value()
    if value is not ABSENT:
        return value
    if not is_static_shape(operand.shape):
        raise TraceError(
            f"a Function of a value of type {operand.type} is traced, but the size "
            "of the value must be known"
            f"{at_user()}\n  trace with concrete arguments, or set traceable = True"
        )
    return np.zeros(operand.shape, operand.dtype)


def _record_traceable(function, args: tuple):
    """The results of a traceable Function: forward is traced, backward becomes the rule."""
    arguments = [HERE if isinstance(arg, Value) else arg for arg in args]
    operands = [arg for arg in args if isinstance(arg, Value)]
    places = [i for i, mark in enumerate(arguments) if mark is HERE]
    ctx = Context(function.__name__, tuple([mark is HERE for mark in arguments]))

    def forward(*operands):
        rest = iter(operands)
        out = function.forward(ctx, *[next(rest) if a is HERE else a for a in arguments])
        return out, ctx.saved_tensors

    def backward(saved, cts):
        cts = cts if isinstance(cts, tuple) else (cts,)
        returned = function.backward(ctx.with_saved(saved), *cts)
        returned = returned if isinstance(returned, tuple) else (returned,)
        return tuple([returned[i] for i in places])

    call = custom_vjp(forward)
    call.defvjp(forward, backward)
    return call(*operands)
