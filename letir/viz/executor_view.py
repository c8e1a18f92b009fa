"""A jitted function as a view: its counters, and each plan with its guards, kernels and program."""

from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.terms import Lambda
from letir.executor.reports import ExecutorState, PlanState
from letir.plan.effect_log import is_guard
from letir.viz.program_view import ProgramTable
from letir.viz.view_page import escape_text, folding_box, html_table, html_view, paragraph_elements

_MAX_PLANS = 8
_MAX_LINES = 20  # guards and kernels of a plan
_MAX_BINDS = 60  # of the program of a plan


def executor_html(executor: Any) -> str:
    """The view of a jitted function that a notebook shows."""
    return state_html(executor.debug_state())


def state_html(state: ExecutorState) -> str:
    """The view of the state of a jitted function."""
    counters = html_table(
        tuple(state.counters),
        [tuple(state.counters.values())],
        numbers=range(len(state.counters)),
        label="counters",
    )
    plans = [
        folding_box(_plan_line(plan), _plan_body(plan, f"p{i}."), is_open=i == 0)
        for i, plan in enumerate(state.plans[:_MAX_PLANS])
    ]
    omitted = len(state.plans) - _MAX_PLANS
    more = [f"{omitted} more plans: debug_state().plans has them all"] if omitted > 0 else []
    none = [] if plans else ["no plan yet: the first call makes one"]
    title = f'{escape_text(state.function, 80)} <span class="q">jitted function</span>'
    return html_view(title, counters + "".join(plans) + paragraph_elements([*none, *more]))


def plan_html(plan: PlanState) -> str:
    """The view of one plan of a jitted function."""
    return html_view(escape_text(_plan_line(plan)), _plan_body(plan, ""))


def _plan_line(plan: PlanState) -> str:
    """The arguments and the size of a plan."""
    optimized, recorded = len(plan.optimized), len(plan.graph)
    return f"({plan.spec}): {optimized} binds of {recorded} recorded, last used by call {plan.used}"


def _plan_body(plan: PlanState, prefix: str) -> str:
    """The reason, the guards, the kernels and the program of a plan."""
    return (
        paragraph_elements([f"made because {plan.reason}"])
        + _program_body(plan.graph, plan.optimized, plan.kernels, prefix)
        + paragraph_elements(map(str, plan.gradients))
    )


def compiled_html(compiled: Any) -> str:
    """The view of a compiled program."""
    optimized, recorded = len(compiled.optimized), len(compiled.program)
    body = _program_body(compiled.program, compiled.optimized, compiled.kernels, "")
    return html_view(f"compiled program: {optimized} binds of {recorded} recorded", body)


def _program_body(recorded: Lambda, optimized: Any, kernels: tuple, prefix: str) -> str:
    """The guards and the kernels of a plan, and its program after the passes."""
    parts = []
    guards = [(bind.source, bind) for bind in recorded.binds if is_guard(bind)]
    rows = [
        (source.short, source.excerpt) if source else ("", bind.op.name)
        for source, bind in guards[:_MAX_LINES]
    ]
    if guards:
        limit_note = f", the first {_MAX_LINES}" if len(guards) > _MAX_LINES else ""
        title = f"<h4>{len(guards)} guard{'' if len(guards) == 1 else 's'}{limit_note}</h4>"
        parts += [title, html_table(("line", "condition"), rows, label="guards")]
    parts.append(_kernel_table(kernels))
    if isinstance(optimized, Lambda):
        table = ProgramTable(prefix=prefix, max_binds=_MAX_BINDS)
        parts += ["<h4>program after the passes</h4>", table.html(optimized, "program")]
    return "".join(parts)


def _kernel_table(kernels: tuple) -> str:
    """The kernels of a plan."""
    if not kernels:
        return paragraph_elements(["no kernels: NumPy computes all operations"])
    rows = [
        (
            "; ".join([x for x in str(kernel).split("; ") if not x.endswith(" bytes")]),
            "" if kernel.bytes is None else f"{kernel.bytes:,}",
            ", ".join(kernel.lines[:_MAX_LINES]),
        )
        for kernel in kernels[:_MAX_LINES]
    ]
    limit_note = f", the first {_MAX_LINES}" if len(kernels) > _MAX_LINES else ""
    heads = ("kernel", "bytes", "lines")
    title = f"<h4>{len(kernels)} kernel{'' if len(kernels) == 1 else 's'}{limit_note}</h4>"
    return title + html_table(heads, rows, numbers=(1,), label="kernels")


LATE_BOUND.update(
    compiled_html=compiled_html,
    executor_html=executor_html,
    plan_html=plan_html,
    state_html=state_html,
)
