"""``differentiable_graph``: a part of a program as one operation, with its own gradient program.

An executor cuts such subgraphs out of programs whose arguments require grad: each becomes one node
of the tape, whose backward runs ``df``. The record is loaded when its name is first looked up.
"""

from letir.ast.record_fields import BodyLayout
from letir.ast.terms import Lambda
from letir.ops.as_numpy import control
from letir.ops.autodiff.checkpoint_and_custom_jvp import body_type, fit_body
from letir.ops.autodiff.gradient_step_batching import axes_of, mapped_body
from letir.ops.define.batch_rules import batch_first, first_mapped
from letir.ops.define.records import define

VECTORS = (
    *("f_real_outputs", "df_input_vjps", "df_input_captured_inputs"),
    *("df_input_captured_outputs", "df_output_vjps"),
)


def _graph_impl(
    xp,
    *args,
    call,
    f,
    df,
    f_real_outputs,
    df_input_vjps,
    df_input_captured_inputs,
    df_input_captured_outputs,
    df_output_vjps,
):
    """The results of ``f``: the subgraph's results, then the temporaries that ``df`` reads."""
    return call(f, list(args))


def _run_graph(xp, operands: list, *, call, f, **others):
    """Like ``_graph_impl``, but empties ``operands``, so that ``f`` frees each at its last use."""
    return call(f, operands)


def _graph_aval(*types, f, df, **vectors):
    """The result types of ``f``."""
    return tuple([arg.type for arg in fit_body(f, types).ret.args])


def _graph_vjp(cts, outs, *args, f, df, transform, wanted=None, **vectors):
    """Differentiate ``f`` in reverse, given all its results.

    ``df`` is not used: it tests at run time which cotangents are defined, which is known here.
    """
    body = fit_body(f, tuple(map(body_type, args)))
    return transform(body, args, cts, wanted=wanted, known=dict(enumerate(outs)))


def _graph_jvp(tangents, outs, *args, f, df, transform, **vectors):
    """Differentiate ``f`` in forward mode."""
    return transform(fit_body(f, tuple(map(body_type, args))), args, tangents)


@batch_first
def _graph_batch(args, mapped, *, f, df, transform, **vectors):
    """The batched ``f``, inlined: a batched subgraph would need another ``df``."""
    like, summed = first_mapped(args, mapped), [False] * len(f.ret.args)
    program = mapped_body(f, axes_of(mapped), like.shape[0], transform, summed)
    return like.emitter.call(program, args)


def _n_results(*, f: Lambda, **others) -> int:
    """The number of results of ``f``."""
    return len(f.ret.args)


def _graph_source(write, *args, f, **others):
    """The forward program, written inline."""
    return control.inline_body(write, *args, body=f)


differentiable_graph = define(
    "differentiable_graph",
    _graph_impl,
    _graph_aval,
    vjp=_graph_vjp,
    jvp=_graph_jvp,
    batch=_graph_batch,
    results=_n_results,
    holds_lambdas=True,
    consume=_run_graph,
    source=_graph_source,
    role="subgraph",
    bodies=BodyLayout(is_separable=False, runs_first=True),
)
