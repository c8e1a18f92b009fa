"""``diff``: a program before and after passes, side by side."""

from collections.abc import Callable
from typing import Any

from letir.ast import entry_point
from letir.ast.terms import Lambda
from letir.errors import DTypeError
from letir.executor.default_pipeline import optimize_program
from letir.executor.explanation import PassReport
from letir.passes.pipeline import run_pipeline
from letir.source.side_by_side.comparison import diff as compare
from letir.viz.picture import View
from letir.viz.report_views import comparison_table
from letir.viz.shown_programs import shown_program
from letir.viz.view_page import folding_box


@entry_point
def diff(before: Any, *steps: Lambda | Callable[[Lambda], Lambda]) -> View:
    """A program before and after each step, side by side; steps that change nothing are left out.

    ``steps``: passes, which run one after the other, or programs to compare with. Without steps,
    those of ``jit``. ``before``: a Lambda, a Gradient or a compiled program.

    >>> from letir import parse, passes
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = exp(%0); %3 = mul(%1, %2); return %3 }")
    >>> print(diff(f, passes.dead_code, passes.common_subexpressions))
    2 steps, 1 changes the program: 3 binds, then 2
    common_subexpressions: 3 -> 2 binds, -1 exp
      lambda %0            lambda %0
      %1 = exp(%0)         %1 = exp(%0)
      %2 = exp(%0)      <
      %3 = mul(%1, %2)  |  %3 = mul(%1, %1)
      return %3            return %3
    """
    program = shown_program("diff", before)
    reports: list[tuple[PassReport, Lambda, Lambda]] = []

    def note(name: str, f: Lambda, g: Lambda, seconds: float) -> None:
        reports.append((PassReport.from_programs(name, f, g, seconds), f, g))

    after = program
    for i, step in enumerate(steps):
        if isinstance(step, Lambda):
            note(f"program {i + 1}", after, step, 0.0)
            after = step
        elif callable(step):
            after = run_pipeline((step,), after, observe=note)
        else:
            raise DTypeError(
                f"diff: a step is a pass or a program, found {type(step).__name__}\n"
                "  pass functions of letir.passes, or a program to compare with"
            )
    if not steps:
        optimize_program(program, observe=note)
    changes = [step for step in reports if step[1] is not step[2] and step[1] != step[2]]
    last = len(reports[-1][2]) if reports else len(program)
    title = (
        f"{len(reports)} step{'' if len(reports) == 1 else 's'}, {len(changes)} "
        f"change{'s' if len(changes) == 1 else ''} the program: {len(program)} binds, then {last}"
    )
    parts: list[str] = []
    texts = [title]
    for report, f, g in changes:
        head = f"{report.name}: {report.before} -> {report.after} binds, {report.change}"
        compared = compare(f, g)
        body = comparison_table(compared, f"{len(parts)}.")
        parts.append(folding_box(head, body, is_open=len(changes) == 1))
        texts += [head, *[f"  {line}" for line in str(compared).splitlines()]]
    return View(title, "".join(parts), "\n".join(texts))
