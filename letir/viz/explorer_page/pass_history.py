"""``pass_steps``: a program after each pass, as JSON that shares the rows that stay."""

from collections.abc import Sequence
from typing import Any

from letir.ast.bodies import bodies_of
from letir.ast.terms import Bind, Lambda, Local
from letir.errors import LetirError
from letir.executor.compiled import kernel_mode
from letir.executor.default_pipeline import optimize_program
from letir.executor.explanation import PassReport
from letir.viz.explorer_page.row_pool import RowPool

_SAME, _CHANGED, _ADDED, _REMOVED = range(4)  # the marks of rows, as passes.js knows them
_MAX_ROWS = 60_000  # new rows of all steps, so that pages stay small
_Run = list[list[int]]


def pass_steps(fn: Lambda, pool: RowPool) -> dict[str, Any]:
    """The steps of ``jit``'s passes that change the program, and the number of all of them.

    A step is a name, a time, a text of the change, the parameters and results after it, and runs
    ``[mark, first row, number of rows]``: rows that follow each other in the pool. ``reason``: why
    steps are left out. Linear in the number of binds for each pass.
    """
    steps: list[tuple[str, Lambda, Lambda, float]] = []
    content: dict[str, Any] = {"steps": [], "count": 0, "reason": ""}

    def note(name: str, before: Lambda, after: Lambda, seconds: float) -> None:
        content["count"] += 1
        if before is not after:
            steps.append((name, before, after, seconds))

    try:
        optimize_program(fn, kernels=kernel_mode(None, optimize=True, exact=False), observe=note)
    except LetirError as error:
        content["reason"] = str(error).partition("\n")[0]
    start, rows = len(pool.rows), pool.binds(fn.binds)
    for name, before, after, seconds in steps:
        if len(pool.rows) - start > _MAX_ROWS:
            content["reason"] = "The page leaves out later passes, which would make it too long."
            break
        runs, new = _runs_of_step(before, after, rows, pool)
        if all(mark == _SAME for mark, _, _ in runs) and new == rows:
            continue
        report = PassReport.from_programs(name, before, after, seconds)
        content["steps"].append(
            {
                "name": name,
                "seconds": seconds,
                "before": report.before,
                "after": report.after,
                "change": report.change,
                "params": pool.params(after),
                "results": pool.operands(after.ret.args),
                "runs": runs,
            }
        )
        rows = new
    return content


def _runs_of_step(
    before: Lambda, after: Lambda, rows: list[int], pool: RowPool
) -> tuple[_Run, list[int]]:
    """(the runs of a step, the rows after it); ``rows``: those before it."""
    _take_equal_rows(before, after, rows, pool)
    old_rows = set(rows)
    new = pool.binds(after.binds)
    new_rows = set(new)
    rows_of_locals = {local: row for row in rows for local in pool.rows[row][0]}
    marked: list[tuple[int, int]] = []
    at = 0
    for row in new:
        if row in old_rows:
            while at < len(rows) and rows[at] not in new_rows:
                marked.append((_REMOVED, rows[at]))
                at += 1
            at += at < len(rows) and rows[at] == row
            marked.append((_SAME, row))
            continue
        is_change = any(local in rows_of_locals for local in pool.rows[row][0])
        if is_change:  # the row that it replaces stands before it
            while at < len(rows) and rows[at] not in new_rows:
                marked.append((_REMOVED, rows[at]))
                at += 1
        marked.append((_CHANGED if is_change else _ADDED, row))
    marked += [(_REMOVED, row) for row in rows[at:] if row not in new_rows]
    return _join_runs(marked), new


def _take_equal_rows(before: Lambda, after: Lambda, rows: Sequence[int], pool: RowPool) -> None:
    """Give a new bind that equals a bind before the pass the row and the numbers of this bind."""
    pool.numbers.update(
        {
            own: pool.numbers[old]
            for own, old in zip(after.params, before.params, strict=False)
            if own not in pool.numbers
        }
    )
    equal: dict[tuple, list[int]] = {}
    binders = {bind.binders for bind in after.binds}
    for bind, row in zip(before.binds, rows, strict=True):
        if bind.binders not in binders:
            equal.setdefault(_row_key(pool.rows[row]), []).append(row)
    if not equal:
        return
    for bind in after.binds:
        if pool.has(bind) or not bind.binders or any(b in pool.numbers for b in bind.binders):
            continue
        if not _is_known(bind, pool) or bodies_of(bind):
            continue
        candidates = equal.get(_row_key(pool.row(bind, [], 0)))
        if candidates:
            pool.take_row(bind, candidates.pop(0))


def _is_known(bind: Bind, pool: RowPool) -> bool:
    """Whether all operands of a bind have numbers."""
    return all(type(arg) is not Local or arg in pool.numbers for arg in bind.args)


def _row_key(row: Sequence) -> tuple:
    """The parts of a row by which rows are compared: operation, operands and attributes."""
    return row[1], tuple(row[2]), row[3]


def _join_runs(marked: Sequence[tuple[int, int]]) -> _Run:
    """Marked rows, with neighbours that follow each other as one run."""
    runs: _Run = []
    for mark, row in marked:
        if runs and runs[-1][0] == mark and runs[-1][1] + runs[-1][2] == row:
            runs[-1][2] += 1
        else:
            runs.append([mark, row, 1])
    return runs
