"""``throughout_fitting``: how passes that look at types go into bodies."""

from collections.abc import Callable

from letir.ast.bodies import all_bodies, bodies_of, throughout
from letir.ast.terms import NO_TYPE, Bind, Lambda


def throughout_fitting(fn: Lambda, change: Callable[[Lambda], Lambda]) -> Lambda:
    """``throughout`` for a ``change`` that looks at types and keeps parameters: bodies whose
    parameters are declared with other types than they get stay as they are.
    """
    if not any(bind.op.holds_lambdas for bind in fn.binds):  # nearly all programs
        return change(fn)
    unfit = {
        id(body.params)  # not of the body: what it holds itself is changed by then
        for outer in all_bodies(fn)
        for bind in outer.binds
        if bind.op.holds_lambdas
        for body in bodies_of(bind)
        if not is_fit(bind, body)
    }
    if not unfit:
        return throughout(fn, change)
    return throughout(fn, lambda body: body if id(body.params) in unfit else change(body))


def is_fit(bind: Bind, body: Lambda) -> bool:
    """Whether a body that takes the operands of its bind is declared for their types."""
    if len(bind.args) != len(body.params):  # a loop, whose type rule has looked
        return True
    pairs = zip(bind.args, body.params, strict=True)
    # a missing cotangent has no type
    return all(arg.type is param.type or arg.type is NO_TYPE for arg, param in pairs)
