"""Programs that traced functions call, recorded bind by bind into the active trace.

Loaded when such a program is called in a concrete trace, changes an argument, or may raise.
"""

from letir.ast import LATE_BOUND
from letir.ast.primitive import results_tuple
from letir.ast.source import error_at
from letir.ast.symbolic_sizes import given_sizes, resize_attrs
from letir.ast.terms import Bind, Lambda
from letir.errors import GuardError
from letir.eval.evaluator import Environment
from letir.tracing.trace_state import Trace


def replay_each(trace: Trace, fn: Lambda, leaves: list) -> list:
    """Record the binds of ``fn`` one by one; returns its results. ``leaves`` becomes empty."""
    # by ``apply``, not ``inline``: apply computes each bind, and values are freed at their last use
    env = Environment(fn, leaves)
    sizes = given_sizes([param.type for param in fn.params], leaves)
    leaves.clear()
    for bind in fn.binds:
        operands = tuple(env.operands(bind.args))
        before = len(trace.binds)
        try:
            attrs = resize_attrs(bind.attrs, sizes) if sizes else bind.attrs
            out = trace.apply(bind.op, operands, attrs)
        except Exception as error:
            if failed := LATE_BOUND["caught_failure"](error, fn, bind):
                raise failed from error
            if isinstance(error, GuardError):
                error_at(error, bind.source, with_excerpt=True)
            raise
        _keep_line(trace, bind, before)
        env.bind(bind.binders, results_tuple(bind.op, out))
    return env.operands(fn.ret.args)


def _keep_line(trace: Trace, bind: Bind, before: int) -> None:
    """Copy the source line and the names of ``bind`` to its recorded copy."""
    for copy in trace.binds[before:]:
        if copy.op is bind.op or copy.op.role == "guard_computed":
            copy.source = bind.source or copy.source
        if len(copy.binders) == len(bind.binders):
            for binder, original in zip(copy.binders, bind.binders, strict=True):
                binder.name = original.name


LATE_BOUND["replay_each"] = replay_each
