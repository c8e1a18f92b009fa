"""Guards, ``custom_vjp``, and the operations that gradient programs are made of.

``grad_of`` is one step of a gradient program: a linear function of its first ``n_cts`` operands,
the cotangents, any of which may be ``Undef``, a symbolic zero [semantics.md D6]. Its body is a
closed Lambda of the cotangents and of the primal values that the rule reads.
"""

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import token
from letir.ast.derivative_types import carries_derivative
from letir.ast.primitive import Primitive
from letir.ast.record_fields import BodyLayout, never, todo
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.types import ArrayType, Undef
from letir.errors import DTypeError, GuardError, LetirError, MissingRule, ShapeError
from letir.ops import LateModule
from letir.ops.as_numpy import control
from letir.ops.define.records import define
from letir.ops.shape.shape_and_creation import runtime_shape, size

batching: Any = LateModule("letir.ops.autodiff.gradient_step_batching")

# ---- guards and custom rules ----


def _guard_impl(xp, x, *, value):
    """Raise GuardError unless the value is the same as when the program was recorded."""
    current = x.get() if hasattr(x, "get") else x  # CuPy's arrays have get
    if not hasattr(value, "shape"):  # a truth value or an integer
        with suppress(ValueError, OverflowError):  # nan and inf, which are not integers
            current = type(value)(current)
    if token(current) != token(value):  # not ==: nan equals nan here, and -0.0 differs from 0.0
        raise GuardError(
            f"the program was recorded where this was {value!r}, now it is {current!r}\n"
            "  trace again with these arguments, or write the choice with numpy.where"
        )
    return ()


guard = define(
    "guard",
    _guard_impl,
    lambda x, *, value: (),
    vjp=never("it has no result"),
    jvp=never("it has no result"),
    batch=batching.mapped_guard,
    results=lambda **_: 0,
    effect=True,
    source=control.guard,
    role="guard",
    guards=True,
    for_scripts=False,
)


_CLOSED_OVER = todo(
    "custom_vjp: its rule has no derivative with respect to a traced value that the function "
    "closes over\n  pass the value as an argument"
)


def _custom_vjp_vjp(cts, outs, *args, n_outs, n_residuals, backward, transform):
    """Apply the user's backward function to the residuals and the cotangents.

    The last operands are values that the function closes over; there is no rule for these.
    """
    cts = [instantiate_like(ct, out) for ct, out in zip(cts, outs, strict=True)]
    residuals = args[n_outs : n_outs + n_residuals]
    pulled = cts[0].emitter.call(backward, (*residuals, *cts))
    closed_over = len(args) - n_outs - n_residuals - len(pulled)
    # an absent rule raises when the cotangent is needed; None would mean zero
    return *[None] * (n_outs + n_residuals), *pulled, *[_CLOSED_OVER] * closed_over


def _custom_vjp_jvp(tangents, outs, *args, n_outs, n_residuals, backward, transform):
    """The transpose of the user's backward function, applied to the tangents of the arguments."""
    first = n_outs + n_residuals
    count = len(backward.ret.args)
    if any(t is not None for t in tangents[first + count :]):
        raise MissingRule(_CLOSED_OVER.reason)
    transposed = backward.memo(_transposed_backwards)
    if n_residuals not in transposed:
        transposed[n_residuals] = _transposed_backward(backward, n_residuals)
    turned = transposed[n_residuals]
    directions = [
        _zeros_of(param.type) if t is None else t
        for t, param in zip(tangents[first : first + count], turned.params, strict=False)
    ]
    pushed = outs[0].emitter.call(turned, (*directions, *args[n_outs:first]))
    return tuple(
        [t if carries_derivative(out.arg) else None for t, out in zip(pushed, outs, strict=True)]
    )


def _transposed_backwards(backward: Lambda) -> dict:
    """The transposed backward program by the number of residuals: a table to be filled."""
    return {}


def _transposed_backward(backward: Lambda, n_residuals: int) -> Lambda:
    """(tangents of the arguments, residuals) -> tangents of the results."""
    cts = list(range(n_residuals, len(backward.params)))
    try:
        return LATE_BOUND["transposed_program"](backward, cts)
    except LetirError as error:
        why = str(error).partition("\n  take ")[0].removeprefix("linear_transpose: ")
        raise MissingRule(
            "custom_vjp defines the reverse mode, and its backward function cannot be transposed "
            f"for the forward mode: {why}\n"
            "  take the reverse mode: letir.grad, letir.vjp, letir.jacrev; or define a custom_jvp"
        ) from error


def _zeros_of(aval: ArrayType | None) -> Any:
    """Zeros of a type, as an array."""
    return np.zeros((), float) if aval is None else np.zeros(aval.shape, aval.dtype)


def _results_in_place(bind: Bind, number) -> tuple[Lambda, tuple]:
    """The results, which are the first operands."""
    count = bind.attrs["n_outs"]
    params = [Local(arg.type) for arg in bind.args[:count]]
    return Lambda(params, (), Ret(tuple(params))), bind.args[:count]


custom_vjp = define(
    "custom_vjp",
    # forward was recorded before this bind: its results are the first operands
    lambda xp, *args, call, n_outs, n_residuals, backward: args[:n_outs],
    lambda *types, n_outs, n_residuals, backward: tuple(
        ArrayType(t.dtype, t.shape) for t in types[:n_outs]
    ),
    vjp=_custom_vjp_vjp,
    jvp=_custom_vjp_jvp,
    batch=batching.mapped_custom_vjp,
    results=lambda *, n_outs, **_: n_outs,
    holds_lambdas=True,
    bodies=BodyLayout(
        is_separable=False, is_linear=False, in_place=_results_in_place, is_for_derivatives=True
    ),
    source=control.first_results,
    linear_in=(),
    for_scripts=False,
)

# ---- gradient programs ----


def _autograd_add_impl(xp, x, y):
    """x + y, where ``Undef`` counts as zero; ``Undef`` if both are [semantics.md D6]."""
    if x is Undef:  # not zeros: a symbolic zero costs no memory and no addition
        return y
    if y is Undef:
        return x
    _check_same_shape(getattr(x, "shape", ()), getattr(y, "shape", ()))
    return x + y


def _autograd_add_aval(x, y):
    """The type of both operands. Raises ShapeError or DTypeError if they differ."""
    if x is None or y is None or x is y:
        return x if y is None else y
    _check_same_shape(x.shape, y.shape)
    if x.dtype != y.dtype:
        raise DTypeError(
            f"autograd_add: gradients of one value have two dtypes, {x} and {y}\n"
            "  return cotangents in the dtype of the value from custom rules"
        )
    return y


def _check_same_shape(x: tuple, y: tuple) -> None:
    """Raise ShapeError if two contributions to one gradient have different shapes.

    Symbolic sizes may have several names: they are compared when the program runs.
    """
    pairs = zip(x, y, strict=False)
    if len(x) != len(y) or any(type(m) is type(n) is int and m != n for m, n in pairs):
        raise ShapeError(
            f"autograd_add: gradients of one value have two shapes, {x} and {y}\n"
            "  it does not broadcast: reduce a gradient to the shape of its value with sum_to_size"
        )


autograd_add: Primitive = define(
    "autograd_add",
    _autograd_add_impl,
    _autograd_add_aval,
    vjp=lambda ct, out, x, y: (ct, ct),
    jvp=lambda t, out, x, y: t[0] if t[1] is None else t[1] if t[0] is None else autograd_add(*t),
    batch=batching.mapped_autograd_add,
    source=control.autograd_add,
    role="autograd_add",
    undefinable=2,
    commutative=True,
    memory="may_alias",
    cost="cheap",
    for_scripts=False,
)


def _instantiate_impl(xp, x, *sizes, shape, dtype):
    """``x``, or zeros of the declared type if ``x`` is ``Undef``."""
    return x if x is not Undef else xp.zeros(runtime_shape(shape, sizes), dtype)


instantiate = define(
    "instantiate",
    _instantiate_impl,
    lambda x, *sizes, shape, dtype: None if shape is None else ArrayType(dtype, shape),
    vjp=lambda ct, y, x, *sizes, shape, dtype: (ct, *[None] * len(sizes)),
    jvp=lambda t, y, x, *sizes, shape, dtype: t[0],
    batch=batching.mapped_instantiate,
    source=control.instantiate,
    role="instantiate",
    undefinable=1,
    memory="may_alias",
    cost="cheap",
    for_scripts=False,
)


def instantiate_like(ct: Any, like: Any) -> Any:
    """``ct``, or zeros like ``like`` if ``ct`` is ``Undef`` at run time; None if ``ct`` is None."""
    if ct is None:
        return None
    if like.type is None:
        return instantiate(ct, size(like), shape=None, dtype=np.dtype(float))
    # a symbolic size is read from the operand at run time
    is_static = is_static_shape(like.shape)
    return instantiate(
        ct, *(() if is_static else (size(like),)), shape=like.shape, dtype=like.dtype
    )


def _grad_of_impl(xp, *args, call, op, n_cts, body):
    """The body's results; all are ``Undef`` if no cotangent is defined."""
    if all(ct is Undef for ct in args[:n_cts]):
        return (Undef,) * len(body.ret.args)  # the body is linear: zero cotangents give zero
    return tuple([Undef if out is None else out for out in call(body, args)])


def _with_defined_cotangents(args, n_cts, body):
    """The operands with ``Undef`` cotangents replaced by zeros, for derivatives of the body."""
    types = [param.type for param in body.params[:n_cts]]
    cts = [
        ct if kind is None else _instantiate_type(ct, kind)
        for ct, kind in zip(args[:n_cts], types, strict=True)
    ]
    return [*cts, *args[n_cts:]]


def _instantiate_type(ct, aval: ArrayType):
    """``ct``, or zeros of type ``aval`` if ``ct`` is ``Undef``, now or at run time."""
    return (
        instantiate(ct, shape=aval.shape, dtype=aval.dtype)
        if ct is Undef
        else instantiate_like(ct, ct)
    )


def _count_results(n_cts: int, body: Lambda) -> int:
    """The number of results of a step whose first ``n_cts`` operands are cotangents."""
    if type(n_cts) is not int or not 0 <= n_cts <= len(body.params):
        raise ShapeError(
            f"n_cts, the number of parameters of the body that are cotangents, is {n_cts!r}\n"
            f"  pass an integer from 0 to {len(body.params)}, the number of all parameters"
        )
    return len(body.ret.args)


grad_of = define(
    "grad_of",
    _grad_of_impl,
    lambda *types, op, n_cts, body: tuple(arg.type for arg in body.ret.args),
    vjp=lambda cts, outs, *args, op, n_cts, body, transform: transform(
        body, _with_defined_cotangents(args, n_cts, body), cts
    ),
    jvp=lambda ts, outs, *args, op, n_cts, body, transform: transform(
        body, _with_defined_cotangents(args, n_cts, body), ts
    ),
    batch=partial(batching.mapped_step, "grad_of"),
    results=lambda *, op, n_cts, body: _count_results(n_cts, body),
    holds_lambdas=True,
    source=control.gradient_step,
    role="grad_of",
    undefinable=lambda *, op, n_cts, body: n_cts,
    cost="bodies",
    bodies=BodyLayout(is_linear=False),
    for_scripts=False,
)
when_defined = define(
    "when_defined",
    lambda xp, *args, call, n_cts, body: _grad_of_impl(
        xp, *args, call=call, op=None, n_cts=n_cts, body=body
    ),
    lambda *types, n_cts, body: tuple(arg.type for arg in body.ret.args),
    vjp=lambda cts, outs, *args, n_cts, body, transform: transform(
        body, _with_defined_cotangents(args, n_cts, body), cts
    ),
    jvp=lambda ts, outs, *args, n_cts, body, transform: transform(
        body, _with_defined_cotangents(args, n_cts, body), ts
    ),
    batch=partial(batching.mapped_step, "when_defined"),
    results=lambda *, n_cts, body: _count_results(n_cts, body),
    holds_lambdas=True,
    source=control.gradient_step,
    role="when_defined",
    undefinable=lambda *, n_cts, body: n_cts,
    cost="bodies",
    bodies=BodyLayout(is_linear=False),
    for_scripts=False,
)
