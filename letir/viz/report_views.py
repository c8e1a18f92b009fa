"""Reports as views: explanations, residuals, comparisons, memory and profiles of plans, and the
histories of Variables.
"""

import re
from typing import Any

from letir.ast import LATE_BOUND
from letir.eager.recorded_history import history
from letir.errors import LetirError
from letir.executor.explanation import Explanation
from letir.executor.measurements.plan_memory import PlanMemory
from letir.executor.measurements.plan_profile import PlanProfile
from letir.source.side_by_side.comparison import Comparison
from letir.transforms.residual_report import Residuals
from letir.viz.program_view import ProgramTable, program_title
from letir.viz.view_page import (
    escape_text,
    html_table,
    html_view,
    paragraph_elements,
    scrolling_box,
)

_NUMBERS = frozenset(["binds", "time", "runs", "new bytes", "share", "bytes", "GB/s"])
_LOCAL = re.compile(r"%\d+")
_BINDER = re.compile(r"\s*(?:%\d+(?::[\w.]+)?(?:: [^=,]*)?, )*(%\d+)[^=]* = ")
_MARKS = {"<": ("less", ""), ">": ("", "more"), "|": ("less", "more"), " ": ("", "")}


def explanation_html(explanation: Explanation) -> str:
    """The view of an explanation."""
    first, *heads = [*explanation.summary, *map(str, explanation.gradients)]
    parts = [paragraph_elements(heads)]
    for title, columns, rows in explanation.tables():
        numbers = [i for i, name in enumerate(columns) if name in _NUMBERS]
        table = html_table(columns, rows, numbers=numbers, label=title)
        parts.append(f"<h4>{escape_text(title)}</h4>{table}")
    return html_view(
        escape_text(first), "".join([*parts, paragraph_elements(filter(None, [explanation.note]))])
    )


def residuals_html(residuals: Residuals) -> str:
    """The view of the residuals of a gradient."""
    (heads, *rows), left_out = residuals.table()
    if left_out:
        middle = (f"… {left_out:,} left out …", *[""] * (len(heads) - 1))
        rows.insert(len(rows) // 2, middle)
    table = html_table(heads, rows, numbers=(2,), label="residuals")
    return html_view(escape_text(residuals.summary), table, is_searched=True)


def comparison_html(comparison: Comparison) -> str:
    """The view of two programs side by side."""
    if comparison.same:
        return html_view("comparison", paragraph_elements([str(comparison)]))
    counts = [sum(row.mark == mark for row in comparison.rows) for mark in "|<>"]
    title = "{} changed, {} removed, {} added".format(*counts)
    return html_view(title, comparison_table(comparison), is_searched=True)


def comparison_table(comparison: Comparison, prefix: str = "") -> str:
    """Two programs side by side as a table. Changes have a mark as well as a colour.

    ``prefix`` distinguishes its locals from the locals of other tables of a view.
    """
    lines, left_out = comparison.lines()
    rows = []
    for left, mark, right in lines:
        first, second = _MARKS[mark]
        rows.append(
            f'<tr><td class="{first}">{_mark_locals(left, prefix)}</td><td>{escape_text(mark)}</td>'
            f'<td class="{second}">{_mark_locals(right, prefix)}</td></tr>\n'
        )
    more = paragraph_elements([f"{left_out} more rows: .rows has them"] if left_out else [])
    heads = "".join(f'<th scope="col">{text}</th>' for text in ("before", "", "after"))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>\n{''.join(rows)}</tbody></table>"
    return scrolling_box(table, "comparison") + more


def _mark_locals(line: str, prefix: str) -> str:
    """A line of a program with its locals marked, the bound local as a definition."""
    match = _BINDER.match(line)
    defined = match[1] if match else None

    def mark(local: re.Match) -> str:
        tag = "b" if local[0] == defined and local.start() < 80 else "i"
        return f'<{tag} data-v="{prefix}{local[0][1:]}">{local[0]}</{tag}>'

    return _LOCAL.sub(mark, escape_text(line))


def memory_html(memory: PlanMemory) -> str:
    """The view of the memory of a plan."""
    first, second, *_ = str(memory).splitlines()
    rows = [(f"{array.bytes:,}", array.text, array.line) for array in memory.held]
    table = html_table(("bytes", "array", "line"), rows, numbers=(0,), label="arrays at the peak")
    return html_view(escape_text(first), paragraph_elements([second]) + table)


def profile_html(profile: PlanProfile) -> str:
    """The view of the profile of a plan."""
    table = html_table(profile.heads, profile.rows(), numbers=range(4), label="groups of the plan")
    return html_view(f"{1e6 * profile.seconds:.1f} us in {len(profile.groups)} groups", table)


def variable_html(variable: Any) -> str:
    """The view of a Variable: its value, and the program that computed it."""
    value = paragraph_elements(str(variable).splitlines())
    if not variable.requires_grad or variable.is_leaf:
        return html_view("Variable", value)
    try:
        program = history(variable)
    except LetirError as error:  # values that backward has freed
        return html_view("Variable", value + paragraph_elements(str(error).splitlines()))
    table = ProgramTable().html(program, "history")
    return html_view("Variable", f"{value}<h4>history: {program_title(program)}</h4>{table}")


LATE_BOUND.update(
    explanation_html=explanation_html,
    residuals_html=residuals_html,
    comparison_html=comparison_html,
    memory_html=memory_html,
    profile_html=profile_html,
    variable_html=variable_html,
)
