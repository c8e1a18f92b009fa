"""``fused``: a chain of elementwise operations as one bind with a body.

``letir.passes.fuse`` makes such binds, and a plan compiles each as one. Derivatives and batching
inline the body in place of the bind; the transformed program is fused again when it is optimised.
"""

from letir.ast.record_fields import BodyLayout
from letir.ops.as_numpy import control
from letir.ops.autodiff.checkpoint_and_custom_jvp import body_type, fit_body
from letir.ops.define.batch_rules import types_without_batch
from letir.ops.define.records import define


def _run_fused(xp, operands: list, *, call, body):
    """The results of the body, which frees each operand at its last use."""
    return call(body, operands)


def _fused_aval(*types, body):
    """The types of the body's results."""
    return tuple([arg.type for arg in fit_body(body, types).ret.args])


def _fused_vjp(cts, outs, *args, body, transform, wanted=None):
    """The cotangents by the VJP of the body, whose results are known."""
    body = fit_body(body, tuple(map(body_type, args)))
    return transform(body, args, cts, wanted=wanted, known=dict(enumerate(outs)))


def _fused_jvp(tangents, outs, *args, body, transform):
    """The tangents by the JVP of the body."""
    return transform(fit_body(body, tuple(map(body_type, args))), args, tangents)


def _fused_batch(args, axes, /, *, body, transform):
    """The batched body, inlined in place of the bind."""
    like, axis = next((a, i) for a, i in zip(args, axes, strict=True) if i is not None)
    body = fit_body(body, types_without_batch(args, axes))
    program, out_axes = transform(body, axes, like.shape[axis])
    return like.emitter.call(program, args), out_axes


fused = define(
    "fused",
    lambda xp, *args, call, body: call(body, list(args)),
    _fused_aval,
    vjp=_fused_vjp,
    jvp=_fused_jvp,
    batch=_fused_batch,
    results=lambda *, body: len(body.ret.args),
    holds_lambdas=True,
    consume=_run_fused,
    source=control.inline_body,
    role="fused",
    cost="bodies",
    bodies=BodyLayout(),
)
