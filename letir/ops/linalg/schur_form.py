"""Checks of Schur forms: triangular_schur_form."""

from letir.ast.record_fields import never
from letir.errors import MissingRule
from letir.ops.define.records import define
from letir.ops.linalg.matrix_parts import square_aval, stacked_rule


def _triangular_schur_form_impl(xp, t):
    """A copy of ``t``. Raises MissingRule if a pair of eigenvalues is complex."""
    if xp.any(xp.diagonal(t, -1, -2, -1)):
        raise MissingRule(
            "schur: letir has no derivative for a real matrix with complex eigenvalues, "
            "whose 2 x 2 blocks LAPACK brings into a standard form\n"
            "  pass a matrix with real eigenvalues; scipy.linalg.eigvals has derivatives"
        )
    return xp.copy(t)


triangular_schur_form = define(
    "triangular_schur_form",
    _triangular_schur_form_impl,
    square_aval("triangular_schur_form"),
    vjp=lambda ct, y, t: (ct,),
    jvp=lambda tangents, y, t: tangents[0],
    batch=stacked_rule("triangular_schur_form"),
    source="{0}",
    onnx=never("ONNX has no Schur form"),
    raises=True,
)
