"""``throughout_fitting``: how passes that look at types go into bodies."""

from collections.abc import Callable

from letir.ast.bodies import all_bodies, bodies_of, throughout
from letir.ast.terms import NO_TYPE, Bind, Lambda
from letir.ops.control_flow.scans import step_types


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
    """Whether a body is declared for the types that it gets, as far as its bind tells."""
    given = given_types(bind)
    if len(given) != len(body.params):  # another loop, whose type rule has looked
        return True
    pairs = zip(given, body.params, strict=True)
    # a missing cotangent has no type
    return all(kind is param.type or kind is NO_TYPE for kind, param in pairs)


def given_types(bind: Bind) -> list:
    """The types of what the bodies of a bind get, where that is the operands or their elements."""
    types, attrs = [arg.type for arg in bind.args], bind.attrs
    n_xs = attrs.get("n_xs")
    if n_xs is None or None in types or NO_TYPE in types:
        return types
    if bind.op.name == "scan":
        return step_types(types, attrs["n_carry"], n_xs)
    is_pair = bind.op.name in ("reduce", "associative_scan")  # of two elements one is made
    start = n_xs if bind.op.name == "reduce" else 0
    elements = [kind.with_shape(kind.shape[1:]) for kind in types[start : start + n_xs]]
    return [*elements, *(elements if is_pair else ()), *types[start + n_xs :]]
