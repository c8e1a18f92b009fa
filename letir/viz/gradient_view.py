"""A Gradient as two tables side by side: the primal program and the gradient program, with the
residuals linked and their bytes.
"""

from collections.abc import Sequence

from letir.ad.gradient_program import Gradient, number_locals
from letir.ad.remat.cost_model import nbytes
from letir.ast import LATE_BOUND
from letir.ast.terms import Arg, Local
from letir.transforms.residual_report import shared_bytes
from letir.viz.program_view import ProgramTable, program_title
from letir.viz.view_page import escape_text, html_view


def gradient_html(gradient: Gradient) -> str:
    """The view of a Gradient that a notebook shows.

    A residual has the same mark in both tables, so that hovering it lights up its definition in the
    primal program and its uses in the gradient program.
    """
    f, df = gradient.f, gradient.df
    numbers = number_locals(f)
    values: list[Arg] = [f.params[i] for i in gradient.df_input_captured_inputs]
    values += [f.ret.args[i] for i in gradient.df_input_captured_outputs]
    pairs = zip(df.params[len(gradient.df_input_vjps) :], values, strict=True)
    shared = {param: value for param, value in pairs if type(value) is Local}
    residuals = list(dict.fromkeys(shared.values()))
    roles = {param: f"residual {numbers[local]} of f" for param, local in shared.items()}
    for param, i in zip(df.params, gradient.df_input_vjps, strict=False):
        arg = f.ret.args[i]
        roles[param] = f"cotangent of {numbers[arg] if type(arg) is Local else repr(arg)}"
    primal = ProgramTable(
        prefix="f",
        notes={local: f"kept {_bytes_text(local)}".rstrip() for local in residuals},
    )
    backward = ProgramTable(
        prefix="d",
        roles=roles,
        marks={param: f"f{numbers[local][1:]}" for param, local in shared.items()},
    )
    two = "".join(
        f"<div><h4>{name}: {program_title(program)}</h4>{table.html(program, label)}</div>"
        for name, program, table, label in (
            ("f", f, primal, "primal program"),
            ("df", df, backward, "gradient program"),
        )
    )
    return html_view(
        f"gradient: {_residual_summary(gradient, residuals)}", f'<div class="two">{two}</div>'
    )


def _residual_summary(gradient: Gradient, residuals: Sequence[Local]) -> str:
    """The number of residuals and their bytes; shared memory counts once."""
    total, unknown = shared_bytes(gradient.f, residuals)
    size = f"{total:,}" if type(total) is int else escape_text(total)
    others = f", {unknown} of unknown size" if unknown else ""
    return f"{len(residuals)} residual{'' if len(residuals) == 1 else 's'}, {size} bytes{others}"


def _bytes_text(local: Local) -> str:
    """The bytes of a value, such as "24 bytes"; empty if they are not known."""
    size = nbytes(local)
    return "" if size is None else f"{size:,} bytes" if type(size) is int else f"{size} bytes"


LATE_BOUND["gradient_html"] = gradient_html
