"""``Subject``: what an explorer page shows of a program, a Gradient, a plan or a function."""

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from letir.ad.differentiation import differentiate
from letir.ad.gradient_program import Gradient
from letir.ast.terms import Lambda, Local
from letir.errors import DTypeError, LetirError
from letir.eval.arguments import flat_arguments
from letir.executor.compiled import Compiled
from letir.executor.jit_api import JittedFunction
from letir.tracing.entry import trace
from letir.viz.shown_programs import shown_plan

_MAX_DIFFERENTIATED = 20_000  # binds of a program whose gradient is shown


@frozen(eq=False)
class Subject:
    """A program, and its gradient behind it if it has one.

    ``program``: the forward program and the backward program as one; its first ``forward`` binds
    are the forward program, and its first ``results`` results are the forward program's.
    ``cotangents``: its parameters that are cotangents; ``inputs``: those with respect to which it
    differentiates. ``reason``: why there is no backward
    program. ``args``: flat arguments of ``forward_program``; None if none were given.
    """

    title: str
    forward_program: Lambda
    program: Lambda
    forward: int
    results: int
    cotangents: tuple[Local, ...] = ()
    inputs: tuple[Local, ...] = ()
    reason: str = ""
    args: list | None = None


def subject_of(value: Any, args: Sequence, kwargs: dict, has_gradient: bool) -> Subject:
    """The object to show for ``value``, see ``explorer``."""
    title = getattr(value, "__name__", None) or type(value).__name__.lower()
    title = "program" if isinstance(value, Lambda | Compiled) else title
    if isinstance(value, Compiled):
        value = value.program
    elif isinstance(value, JittedFunction) and not (args or kwargs):
        shown_plan("explorer", value)  # raises if there is no plan yet
        value = value.debug_state().plans[0].graph
    elif callable(value) and not isinstance(value, Lambda | Gradient):
        value = trace(
            value.__wrapped__ if isinstance(value, JittedFunction) else value, *args, **kwargs
        )
    program = value.f if isinstance(value, Gradient) else value
    if not isinstance(program, Lambda):
        raise DTypeError(
            "explorer shows a program, a Gradient, a compiled program or a function with its "
            f"arguments, found {type(value).__name__}\n"
            "  record a function with letir.trace(f, ...)"
        )
    leaves = list(flat_arguments(program, tuple(args), kwargs)) if args or kwargs else None
    if isinstance(value, Gradient):
        return _with_backward(title, value, leaves)
    return _program_subject(title, program, leaves, has_gradient)


def _program_subject(
    title: str, program: Lambda, leaves: list | None, has_gradient: bool
) -> Subject:
    """A program, with its gradient if it has one and ``has_gradient`` asks for it."""
    count = len(program)
    reason = ""
    if not has_gradient:
        reason = "It was not asked for."
    elif count > _MAX_DIFFERENTIATED:
        reason = f"It is left out: the program has {count:,} binds."
    else:
        try:
            gradient = differentiate(program)
            if any(i < gradient.f_real_outputs for i in gradient.df_input_vjps):
                return _with_backward(title, gradient, leaves)
            reason = "No result depends differentiably on a parameter."
        except LetirError as error:
            reason = str(error).partition("\n")[0]
    results = len(program.ret.args)
    return Subject(title, program, program, count, results, reason=reason, args=leaves)


def _with_backward(title: str, gradient: Gradient, leaves: list | None) -> Subject:
    """A Gradient as one program."""
    joined = gradient.joined()
    forward_params = set(gradient.f.params)
    return Subject(
        title=title,
        forward_program=gradient.f,
        program=joined,
        forward=len(gradient.f.binds),
        results=gradient.f_real_outputs,
        cotangents=tuple([param for param in joined.params if param not in forward_params]),
        inputs=tuple([gradient.f.params[i] for i in gradient.df_output_vjps]),
        args=leaves,
    )
