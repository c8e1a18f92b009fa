"""``checkpoint``: keep only the arguments of a function, and recompute it in the backward pass."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

from letir.ad.gradient_program import Gradient, Policy
from letir.ad.remat.cost_model import recomputation_cost
from letir.ad.remat.policies import GRADES, check_policy
from letir.ast import LATE_BOUND, entry_point
from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder
from letir.ast.primitive import Primitive
from letir.ast.pytrees import flatten
from letir.ast.signatures import P, R
from letir.ast.terms import Bind, Lambda, Local, Ret, Source
from letir.errors import TraceError
from letir.eval.evaluator import run_flat
from letir.ops.autodiff.checkpoint_and_custom_jvp import checkpoint as checkpoint_op
from letir.ops.effects.writes_to_arguments import changed_params
from letir.tracing.manual import is_tracing
from letir.tracing.source_locations import user_place
from letir.transforms.jitted_functions import shared_with_executors
from letir.transforms.program_call import as_program, bind_arguments, record_call, split_arguments


@overload
def checkpoint(
    f: Lambda | Gradient, policy: Policy | None = None, *, static_argnums: int | Sequence[int] = ()
) -> Lambda: ...
@overload
def checkpoint(
    f: Callable[P, R], policy: Policy | None = None, *, static_argnums: int | Sequence[int] = ()
) -> Callable[P, R]: ...
@shared_with_executors
def checkpoint(
    f: Any,
    policy: Policy | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]:
    """``f``, but its only residuals are its arguments; the backward pass recomputes the rest.

    A Lambda gives a Lambda of one bind, a function gives a function. Values and derivatives of
    every order are those of ``f``. ``policy(bind)`` says whether the results of a bind are
    residuals too, for example ``lambda bind: bind.op.name == "matmul"``; "recompute_cheap" and
    "min_bytes" keep what these policies of ``differentiate`` do not recompute. Guards and other
    effects happen once, not again in the recomputation. Arguments in ``static_argnums`` may be any
    objects. Each derivative costs about one more evaluation of ``f`` (Chen et al., Training deep
    nets with sublinear memory cost, 2016).

    >>> import numpy as np
    >>> from letir import differentiate, trace
    >>> layer = checkpoint(lambda x: np.tanh(np.sin(np.exp(x))))
    >>> f = trace(lambda x: layer(layer(x)), np.ones(3))
    >>> [bind.op.name for bind in f.binds]
    ['checkpoint', 'checkpoint']
    >>> gradient = differentiate(f)  # the argument and what is between the layers
    >>> len(gradient.df_input_captured_inputs) + len(gradient.df_input_captured_outputs)
    2
    """
    if isinstance(f, Lambda) and changed_params(f):
        raise TraceError(
            "checkpoint: the program changes its arguments, and would change them "
            "again in the backward pass"
            "\n  return the new values instead"
        )
    f = as_program(f)
    if policy is not None:
        check_policy(policy)
    if isinstance(f, Lambda):
        return _as_one_bind(f, policy)
    argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @entry_point
    @functools.wraps(f)
    def checkpointed(*args, **kwargs):
        LATE_BOUND["refuse_argnums"]("checkpoint", static_argnums, "static_argnums")
        if not is_call_recorded(args, kwargs):  # nothing will be differentiated
            if argnums:
                LATE_BOUND["refuse_positions"]("checkpoint: static_argnums", argnums, len(args))
            return LATE_BOUND["call_plainly"](f, args, kwargs)
        source, _ = user_place(2)  # the user's line, for the new bind
        static, dynamic = split_arguments(args, argnums, "checkpoint: static_argnums")
        call = record_call(bind_arguments(f, static, argnums), dynamic, kwargs, writes=None)
        return call.out_tree.unflatten(
            run_flat(_as_one_bind(call.fn, policy, source), list(call.leaves))
        )

    return checkpointed


def is_call_recorded(*values: Any) -> bool:
    """Whether a call with these arguments is recorded: in a trace, or because of Variables."""
    return is_tracing() or any(hasattr(type(leaf), "__letir_run__") for leaf in flatten(values)[0])


def _as_one_bind(fn: Lambda, policy: Policy | None, source: Source | None = None) -> Lambda:
    """``fn`` as a program of a single ``checkpoint`` bind, which holds it as its body."""
    saved = _saved_locals(fn, policy)
    body = Lambda(fn.params, fn.binds, Ret((*fn.ret.args, *saved)))
    attrs = Attrs(body=body, saved=len(saved))
    result = one_bind_program(checkpoint_op, attrs, fn.params, fn.ret, source)
    return Lambda(result.params, result.binds, result.ret, fn.in_tree, fn.out_tree)


def _saved_locals(fn: Lambda, policy: Policy | None) -> tuple[Local, ...]:
    """The locals that the policy keeps, without parameters and unused locals."""
    read = {local for bind in fn.binds for local in bind.locals()}
    used = [bind for bind in fn.binds if not read.isdisjoint(bind.binders)]
    return tuple(
        [binder for bind in used if _keeps_results(policy, bind) for binder in bind.binders]
    )


def _keeps_results(policy: Policy | None, bind: Bind) -> bool:
    """Whether the results of ``bind`` are residuals; results of effects always are."""
    if bind.op.effect or policy is None:
        return bind.op.effect
    if callable(policy):
        return bool(LATE_BOUND["call_rule"]("checkpoint: policy", policy, bind))
    grade = recomputation_cost(bind)  # None: must not be recomputed
    return policy == "keep_all" or grade is None or grade > GRADES[policy]


def one_bind_program(
    op: Primitive, attrs: Attrs, params: Sequence[Local], ret: Ret, source: Source | None
) -> Lambda:
    """A program of one bind of ``op``, with parameters like ``params`` and results as ``ret``."""
    builder = LetBuilder()
    builder.source = source
    operands = [builder.param(param.type, param.name).arg for param in params]
    # further results of the body are residuals, which only its derivative reads
    return builder.build(builder.emit(op, tuple(operands), attrs)[: len(ret.args)])
