"""The binds through which derivatives flow; see ``letir.ast.activity`` for the locals."""

from letir.ast import entry_point
from letir.ast.activity import propagate_requires_grad
from letir.ast.bodies import bodies_of
from letir.ast.record_fields import Absent
from letir.ast.terms import Bind, Lambda

__all__ = ["has_derivative", "is_differentiable", "propagate_requires_grad"]


@entry_point
def is_differentiable(bind: Bind) -> bool:
    """Whether ``bind`` can be differentiated: its operation has a reverse rule (or a zero
    derivative), and so have all binds in its bodies.

    A ``grad_of`` is differentiable if its whole body is.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = greater(%1, 0.0); return (%1, %2) }")
    >>> [is_differentiable(bind) for bind in f.binds]
    [True, False]
    """
    if type(bind.op.vjp) is Absent:
        return False
    # a cached analysis that returned None would run again, so the results are strings
    return all(body.memo(_body_kind) == "differentiable" for body in bodies_of(bind))


def _body_kind(body: Lambda) -> str:
    return "differentiable" if all(map(has_derivative, body.binds)) else "not"


def has_derivative(bind: Bind) -> bool:
    """Whether ``bind`` is differentiable, or has a derivative of zero."""
    rule = bind.op.vjp
    return rule.final if type(rule) is Absent else is_differentiable(bind)
