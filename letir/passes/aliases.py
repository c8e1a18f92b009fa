"""Which operations may give memory of their operands: what a pass asks before it lets one value
stand for another.

Here by name, as most of these are loaded on use; ``letir.passes.sharing`` says more of the few that
``peephole`` rewrites. A law over all samples keeps the list complete.
"""

from collections import Counter
from functools import cache

from letir.ast.primitive import Primitive
from letir.ast.terms import Lambda, Local

SHARING = """
    real imag stop_gradient sum_to_size broadcast_to reshape ravel transpose expand_dims
    squeeze flip split index einsum autograd_add instantiate diagonal sliding_window_view
    matrix_power diff barrier write_back weaken when_defined grad_of custom_vjp custom_jvp
    histogram histogram2d histogramdd multi_dot trace nan_to_num unwrap unstack nonzero
    unravel_index map reduce associative_scan reduce_by_index
"""
_SHARING = frozenset(SHARING.split())


@cache
def may_share(op: Primitive) -> bool:
    """Whether a result of ``op`` may share memory with an operand, or with another result."""
    if op.name in _SHARING or "." in op.name:  # of a user's nothing is known
        return True
    return op.holds_lambdas and op.decompose is None


def shown_locals(fn: Lambda) -> set[Local]:
    """The locals whose memory a result may show."""
    found = set(fn.ret.locals())
    for bind in reversed(fn.binds):
        if not found.isdisjoint(bind.binders) and may_share(bind.op):
            found.update([arg for arg in bind.args if type(arg) is Local])
    return found


def tied_locals(fn: Lambda) -> set[Local]:
    """The locals whose memory a result shows as a view, or in two places: the evaluator copies a
    constant for each result, so that one in their place would not be shared, nor read-only.
    """
    results = [arg for arg in fn.ret.args if type(arg) is Local]
    shown, tied = set(results), set()
    if len(shown) < len(results):
        tied = {local for local, count in Counter(results).items() if count > 1}
    for bind in reversed(fn.binds):
        if not shown.isdisjoint(bind.binders) and may_share(bind.op):
            operands = [arg for arg in bind.args if type(arg) is Local]
            shown.update(operands)
            tied.update(operands, bind.binders)
    return tied


def updated_locals(fn: Lambda) -> set[Local]:
    """The locals whose memory an update may take over."""
    found: set[Local] = set()
    for bind in reversed(fn.binds):
        op = bind.op
        if op.update is not None:
            found.add(bind.args[0])
        elif found and not found.isdisjoint(bind.binders) and may_share(op):
            found.update([arg for arg in bind.args if type(arg) is Local])
    return found
