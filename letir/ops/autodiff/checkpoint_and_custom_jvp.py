"""``checkpoint`` and ``custom_jvp``: operations that hold a user's function as a closed body.

Their rules call ``transform``, a parameter by which the derivative transforms differentiate a body.
The functions at the top fit bodies to the types of operands; other records with bodies use them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.bodies import attrs_with, bodies_in, first_body, map_bodies
from letir.ast.builder import LetBuilder, Value
from letir.ast.derivative_types import carries_derivative, type_carries_derivative
from letir.ast.primitive import Primitive
from letir.ast.record_fields import BodyLayout, todo
from letir.ast.terms import Bind, Lambda
from letir.ast.types import WEAK, ArrayType
from letir.errors import MissingRule
from letir.ops import LateModule
from letir.ops.as_numpy import control
from letir.ops.define.records import cast_cotangent, define
from letir.ops.elementwise.casting import barrier
from letir.ops.shape.shape_and_creation import zeros_like

batching: Any = LateModule("letir.ops.autodiff.gradient_step_batching")


def body_type(operand: Any) -> ArrayType | None:
    """The type of an operand of a body: a value or a Python number; None for other operands."""
    return operand.type if isinstance(operand, Value) else WEAK.get(type(operand))


def fit_body(body: Lambda, types: Sequence[ArrayType | None]) -> Lambda:
    """``body`` retyped for operands of these types; ``body`` itself if its parameters have them."""
    fits = all(kind is param.type for kind, param in zip(types, body.params, strict=True))
    return body if fits else LATE_BOUND["retype"](body, *types)


def fitted_result_types(body: Lambda, types: Sequence[ArrayType | None]) -> tuple:
    """The types of the body's results for operands of these types."""
    return tuple([arg.type for arg in fit_body(body, types).ret.args])


def fit_body_keeping_numbers(body: Lambda, types: Sequence[ArrayType | None]) -> Lambda:
    """As ``fit_body``, but parameters that are Python numbers keep their type.

    An operand that is a 0-d array is converted when the body runs (``as_numbers``).
    """
    own = [
        param.type if _is_number_for(kind, param.type) else kind
        for kind, param in zip(types, body.params, strict=True)
    ]
    return fit_body(body, own)


def _is_number_for(aval: ArrayType | None, declared: ArrayType | None) -> bool:
    """Whether a value of type ``aval`` can be converted to the Python number ``declared``."""
    if aval is None or declared is None or not declared.weak:
        return False
    return aval.dtype == declared.dtype and not aval.shape


def as_numbers(body: Lambda, operands: list, start: int = 0) -> None:
    """Convert 0-d arrays in ``operands`` to Python numbers where ``body`` has such parameters.

    ``start``: the place in ``operands`` of the body's first parameter.
    """
    for place in body.memo(_number_places):
        value = operands[start + place]
        if hasattr(value, "item"):
            operands[start + place] = value.item()


def _number_places(body: Lambda) -> tuple[int, ...]:
    """The places of the parameters that are Python numbers."""
    return tuple([i for i, p in enumerate(body.params) if p.type is not None and p.type.weak])


def define_body_op(name: str, run: Callable, aval: Callable, **fields: Any) -> Primitive:
    """Register the record of an operation that holds bodies.

    ``run(xp, operands, *, call, **attrs)`` computes the results and empties the list ``operands``.
    """
    return define(
        name,
        lambda xp, *operands, **keywords: run(xp, list(operands), **keywords),
        aval,
        consume=run,
        attributes=run,
        holds_lambdas=True,
        **fields,
    )


# ---- checkpoint ----


def without_effects(body: Lambda) -> Lambda:
    """``body`` without guards and prints, which must not happen again in a recomputation."""
    return body.memo(_drop_effects)


def _drop_effects(body: Lambda) -> Lambda:
    return map_bodies(body, _without_own_effects)


def _without_own_effects(body: Lambda) -> Lambda:
    binds = tuple([b for b in body.binds if b.binders or not b.op.effect])
    return body if len(binds) == len(body.binds) else body.with_binds(binds)


def attrs_without_effects(attrs: Attrs) -> Attrs:
    """``attrs`` with the effects removed from all bodies."""
    bodies = bodies_in(attrs.values())
    return attrs_with(attrs, bodies, [without_effects(body) for body in bodies])


def _checkpoint_vjp(cts, outs, *args, body, saved, transform, wanted=None):
    """Recompute the body, apart from saved residuals, and differentiate it."""
    # the last results are the residuals that a policy saves
    known = {i: outs[i] for i in range(len(outs) - saved, len(outs))}
    body = without_effects(fit_body(body, tuple(map(body_type, args))))
    barred = [barrier(arg) if isinstance(arg, Value) else arg for arg in args]
    return transform(body, barred, cts, wanted=wanted, known=known)


def _checkpoint_jvp(tangents, outs, *args, body, saved, transform):
    """A ``checkpoint`` bind of the tangent program, so that its backward pass recomputes too."""
    body = without_effects(fit_body(body, tuple(map(body_type, args))))
    inner = LetBuilder()
    operands = [inner.param(param.type, param.name) for param in body.params]
    directions = [None if t is None else inner.param(t.type) for t in tangents]
    directions_out = transform(body, operands, directions)
    program = inner.build([t for t in directions_out if t is not None])
    moving = [t for t in tangents if t is not None]  # None, a zero tangent, is not an operand
    results = iter(
        moving[0].emitter.apply(checkpoint, (*args, *moving), _checkpoint_attrs(program))
    )
    return tuple(None if t is None else next(results) for t in directions_out)


def _checkpoint_attrs(program: Lambda):
    """The attributes of a ``checkpoint`` bind whose body is ``program``."""
    return checkpoint.complete({"body": program, "saved": 0})


def _saved_count(bind: Bind, results: Sequence[int], params: Sequence[int]) -> dict:
    """The number of saved results."""
    first_saved = len(bind.binders) - bind.attrs["saved"]
    return {"saved": sum(i >= first_saved for i in results)}


checkpoint = define_body_op(
    "checkpoint",
    lambda xp, operands, *, call, body, saved: call(body, operands),
    lambda *types, body, saved: fitted_result_types(body, types),
    vjp=_checkpoint_vjp,
    jvp=_checkpoint_jvp,
    batch=partial(batching.mapped_checkpoint, fit_body),
    results=lambda *, body, saved: len(body.ret.args),
    bodies=BodyLayout(counts=_saved_count, in_place=first_body, is_for_derivatives=True),
    source=control.inline_body,
)

# ---- custom_jvp ----


def _custom_jvp_aval(*types, name, primal, rule, closed_over):
    """The result types of the function."""
    return tuple(arg.type for arg in fit_body(primal, types[: len(primal.params)]).ret.args)


def _custom_jvp_rule(operands, tangents, *, name, primal, rule, closed_over) -> Lambda:
    """The user's rule retyped for operands (arguments, captured values, results) and tangents."""
    if rule is None:
        raise MissingRule(
            f"custom_jvp {name}: its rule calls {name} on other arguments, which can be recorded "
            "for a few orders of derivatives only\n"
            "  write the rule without a call of the function itself"
        )
    return fit_body(rule, [body_type(value) for value in (*operands, *tangents)])


def _tangents_of(args, tangents) -> list:
    """The tangents of the floating arguments of the function, zeros for None."""
    pairs = [(t, x) for t, x in zip(tangents, args, strict=True) if _has_tangent(x)]
    return [_zero_tangent(x) if t is None else t for t, x in pairs]


def _custom_jvp_jvp(tangents, outs, *args, transform, **attrs):
    """Apply the user's rule to the tangents."""
    end = len(attrs["primal"].params)
    count = end - attrs["closed_over"]
    if any(t is not None for t in tangents[count:end]):
        raise MissingRule(_closed_over_reason(attrs["name"]))
    emitter = next(t.emitter for t in tangents if t is not None)
    operands, directions = (*args, *outs), _tangents_of(args[:count], tangents[:count])
    rule = _custom_jvp_rule(operands, directions, **attrs)
    results = iter(emitter.call(rule, (*operands, *directions)))
    return tuple(
        _tangent_like(next(results), out) if carries_derivative(out) else None for out in outs
    )


def _tangent_like(tangent, out: Value) -> Value:
    """``tangent`` cast to the result's dtype: a number's tangent may have widened it."""
    has_types = isinstance(tangent, Value) and tangent.type is not None and out.type is not None
    return cast_cotangent(tangent, out.dtype) if has_types else tangent


def _custom_jvp_vjp(cts, outs, *args, transform, **attrs):
    """Transpose the user's rule, which is linear in the tangents, at tangents of zero."""
    end = len(attrs["primal"].params)
    inputs = args[: end - attrs["closed_over"]]
    operands, zeros = (*args, *outs), _tangents_of(inputs, [None] * len(inputs))
    wanted = [isinstance(x, Value) for x in inputs if _has_tangent(x)]
    rule = _custom_jvp_rule(operands, zeros, **attrs)
    directions = [ct for ct, out in zip(cts, outs, strict=True) if carries_derivative(out)]
    cotangents = transform(
        rule, (*operands, *zeros), directions, wanted=[*[False] * len(operands), *wanted]
    )
    rest = iter(cotangents[len(operands) :])
    # an absent rule raises when the cotangent is needed; None would mean zero
    missing = [todo(_closed_over_reason(attrs["name"]))] * attrs["closed_over"]
    captured = [None] * (len(args) - end)
    return *[next(rest) if _has_tangent(x) else None for x in inputs], *missing, *captured


def _closed_over_reason(name: str) -> str:
    """Why there is no derivative with respect to a closed-over value."""
    return (
        f"custom_jvp {name}: its rule has no derivative with respect to a traced value that the "
        "function closes over\n  pass the value as an argument"
    )


def _has_tangent(operand) -> bool:
    """Whether the user's rule takes a tangent for this operand."""
    return operand is not None and type_carries_derivative(body_type(operand))


def _zero_tangent(operand):
    """A tangent of zeros for an operand; for a Python number a number, which promotes weakly."""
    aval = body_type(operand)
    if aval is not None and aval.weak:
        return 0j if aval.dtype.kind == "c" else 0.0
    return zeros_like(operand)


def _run_custom_jvp(xp, operands: list, *, call, name, primal, rule, closed_over):
    """Call the function; the rule reads further operands, which are dropped here."""
    del operands[len(primal.params) :]
    return call(primal, operands)


# The bodies are a function and its user's derivative rule, which only derivatives run.
FUNCTION_AND_RULE = BodyLayout(
    is_separable=False,
    runs_first=True,
    is_linear=False,
    in_place=first_body,
    is_for_derivatives=True,
)
custom_jvp = define_body_op(
    "custom_jvp",
    _run_custom_jvp,
    _custom_jvp_aval,
    vjp=_custom_jvp_vjp,
    jvp=_custom_jvp_jvp,
    batch=partial(batching.mapped_custom_jvp, fit_body, type_carries_derivative),
    results=lambda *, name, primal, rule, closed_over: len(primal.ret.args),
    bodies=FUNCTION_AND_RULE,
    source=control.inline_primal,
)
