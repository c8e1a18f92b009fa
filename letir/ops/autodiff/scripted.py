"""``scripted``: a function with its own gradient script.

The bind holds the forward and the backward program that ``letir.scripting`` made of the script. Its
results are the results of the function, then the further values that the backward program captures.
"""

from collections.abc import Callable, Sequence
from typing import Any

from letir.ast.builder import LetBuilder
from letir.ast.terms import Lambda
from letir.ops.as_numpy import control
from letir.ops.autodiff.checkpoint_and_custom_jvp import FUNCTION_AND_RULE
from letir.ops.autodiff.gradient_step_batching import axes_of, mapped_body
from letir.ops.define.batch_rules import batch_first, emit_op, first_mapped
from letir.ops.define.records import add_terms, define
from letir.ops.shape.shape_and_creation import zeros_like


def _scripted_aval(*types, forward: Lambda, **_):
    """The result types of the forward program for operands of these types."""
    if all(aval is param.type for aval, param in zip(types, forward.params, strict=True)):
        return tuple([result.type for result in forward.ret.args])
    builder = LetBuilder()
    results = builder.inline(forward, [builder.param(aval).arg for aval in types])
    return tuple([result.type for result in results])


def _scripted_vjp(
    cts, outs, *args, script, forward, backward, context, gradients, n_outs, transform
):
    """Run the backward program; for cotangents of captured values differentiate the forward one.

    Captured values have cotangents only when the backward program is differentiated again.
    """
    result: list = [None] * len(args)
    if any(ct is not None for ct in cts[:n_outs]):
        pulled = emit_backward(cts[:n_outs], outs, (*args, *outs), backward, context)
        for position, ct in zip(gradients, pulled, strict=True):
            result[position] = ct
    # the script defines cotangents of the function's results only, not of captured values
    captured_cts = [None] * n_outs + list(cts[n_outs:])
    if any(ct is not None for ct in captured_cts):
        further = transform(forward, list(args), captured_cts)
        result = [add_terms(pair) for pair in zip(result, further, strict=True)]
    return tuple(result)


def emit_backward(
    cts: Sequence, outs: Sequence, values: Sequence, backward: Lambda, context: Sequence[int]
) -> tuple:
    """The results of a backward program, recorded where ``outs`` are.

    ``context``: the positions in ``values`` of the values that it captures. ``cts``: the cotangents
    of the first of ``outs``, None for zeros.
    """
    cotangents = [zeros_like(out) if ct is None else ct for ct, out in zip(cts, outs, strict=False)]
    return outs[0].emitter.call(backward, [*(values[i] for i in context), *cotangents])


@batch_first
def mapped_scripted(
    args: Sequence,
    mapped: Sequence[bool],
    *,
    forward: Lambda,
    backward: Lambda,
    context: Sequence[int],
    gradients: Sequence[int],
    transform: Callable,
    **attrs: Any,
) -> tuple:
    """Both programs, batched; the gradient of an operand that is not mapped is summed."""
    size = first_mapped(args, mapped).shape[0]
    count = len(forward.ret.args)
    captured_mapped = (*mapped, *[True] * count)
    axes = [*axes_of(captured_mapped[i] for i in context), *[0] * attrs["n_outs"]]
    return emit_op(
        "scripted",
        args,
        forward=mapped_body(forward, axes_of(mapped), size, transform, [False] * count),
        backward=mapped_body(backward, axes, size, transform, [not mapped[i] for i in gradients]),
        context=context,
        gradients=gradients,
        **attrs,
    )


def _scripted_impl(xp, *args, call, script, forward, backward, context, gradients, n_outs):
    """The results of the forward program."""
    return call(forward, args)


scripted = define(
    "scripted",
    _scripted_impl,
    _scripted_aval,
    vjp=_scripted_vjp,
    jvp=lambda tangents, outs, *args, forward, transform, **_: transform(
        forward, list(args), tangents
    ),
    batch=mapped_scripted,
    results=lambda *, forward, **_: len(forward.ret.args),
    holds_lambdas=True,
    bodies=FUNCTION_AND_RULE,
    source=control.inline_forward,
    for_scripts=False,
)
