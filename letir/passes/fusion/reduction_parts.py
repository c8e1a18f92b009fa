"""``with_parts``: composites that reduce, such as variances, by their parts, which kernels take."""

from letir.ast.terms import Bind, Lambda
from letir.kernels.reduction_forms import PARTS
from letir.kernels.row_passes import reduction_form
from letir.ops.define.records import decomposition
from letir.passes.cse import common_subexpressions
from letir.passes.dead_code_elimination import dead_code
from letir.passes.decomposition import Parts
from letir.passes.fusion.clustering import reduces_much
from letir.passes.peephole_rules.driver import peephole


def with_parts(fn: Lambda) -> Lambda:
    """``fn`` with large reductions that are composites in parts; equal parts are computed once.

    Sums may be rounded in another order than by NumPy's function.
    """
    found = Parts(lambda op: op.reduction == PARTS, _has_simple_parts).of(fn)
    return fn if found is fn else dead_code(common_subexpressions(peephole(found)))


def _has_simple_parts(bind: Bind) -> bool:
    """Whether a bind reduces many elements by sums and extrema, and neither warns nor raises."""
    kind = bind.binders[0].type
    if not reduces_much(bind) or kind is None or kind.dtype.kind != "f":
        return False
    if len(bind.args) != 1 or bind.attrs.get("ddof", 0) not in (0, 1):
        return False  # too few degrees of freedom are a warning
    parts = decomposition(bind.op.decompose, (bind.args[0].type,), bind.attrs)
    if any(not _is_simple(part) for part in parts.binds):
        return False
    # of no axes: a ufunc gives a scalar, as reductions do, and other functions a 0-d array
    last = [part for part in parts.binds if parts.ret.args[0] in part.binders]
    has_ufunc = bool(last) and getattr(last[0].op.impl, "ufunc", None) is not None
    return bool(kind.shape) or has_ufunc


def _is_simple(part: Bind) -> bool:
    op = part.op
    return (
        op.elementwise or op.memory == "view" or op.reduction == PARTS or bool(reduction_form(part))
    )
