"""Conditions under which an operation raises no error in Python, as nodes on its values.

If a program was recorded while an operation inside ``try`` raised no error, it is valid only for
such values; ``effect_nodes`` makes the model fail for other values.
"""

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from letir.ast.bodies import bodies_of
from letir.ast.liveness import may_raise
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Bind, Local
from letir.onnx.exporting.node_graph import Graph, Unexportable, shows_errors

ERRORS = "the program depends on an error that Python raises"
_conditions: dict[str, Callable] = {}  # of operations, by name


def _raises_unless(*names: str) -> Callable[[Callable], Callable]:
    """Register ``condition(graph, bind)`` for operations.

    It returns the name of a condition that is false where the operation raises an error in Python,
    or None if the operation's nodes fail there by themselves.
    """

    def registered(condition: Callable) -> Callable:
        _conditions.update(dict.fromkeys(names, condition))
        return condition

    return registered


def names_with_conditions() -> set[str]:
    """The names of the operations that have a condition."""
    return set(_conditions)


def raises_nothing(g: Graph, bind: Bind) -> str | None:
    """The name of a condition that is false if ``bind`` raises an error; None if none is needed.

    Raises Unexportable for an operation whose errors its operands and results do not show.
    """
    name = bind.op.name
    condition = _conditions.get(name)
    if condition is not None:
        return condition(g, bind)
    if not may_raise(bind):
        return None
    if not bind.op.raises:
        return _bodies_raise_nothing(g, bind)
    if shows_errors(name):
        return _holds_nowhere(g, _is_not_finite(g, g.operand(bind.binders[0])))
    raise Unexportable(ERRORS)


@_raises_unless("index", "index_set", "index_add", "take", "take_along_axis", "embedding")
@_raises_unless("reshape", "ufunc_at")
def _is_computed(g: Graph, bind: Bind) -> str | None:
    """A condition that always holds, for results that no output of the model depends on.

    Runtimes drop unused nodes, but the nodes of ``bind`` fail only if they are run. Raises
    Unexportable for a result without elements, which has no nodes.
    """
    result = bind.binders[0]
    if not may_raise(bind):
        return None
    if is_static_shape(result.type.shape) and 0 in result.type.shape:
        raise Unexportable(ERRORS)
    if not g.unread.issuperset(bind.binders):
        return None
    value = g.operand(result)
    differs = g("Not", g("Equal", value, value))
    if result.type.dtype.kind == "f":  # nan is not equal to itself
        differs = g("And", differs, g("Not", g("IsNaN", value)))
    return _holds_nowhere(g, differs)


def _bodies_raise_nothing(g: Graph, bind: Bind) -> str | None:
    """The condition of a loop, or of another operation whose bodies may raise.

    Raises Unexportable unless the nodes of the bodies fail by themselves.
    """
    pending = [*bodies_of(bind)]
    if not pending:
        return None
    while pending:
        for inner in pending.pop().binds:
            condition = _conditions.get(inner.op.name)
            if condition is not _is_computed and may_raise(inner):
                if condition is not None or inner.op.raises:
                    raise Unexportable(ERRORS)
                pending += bodies_of(inner)
    return _is_computed(g, bind)


@_raises_unless("python_operator")
def _operator_raises_nothing(g: Graph, bind: Bind) -> str | None:
    """The condition of Python's arithmetic on numbers."""
    operator, kind, second = bind.attrs["operator"], bind.attrs["kind"], bind.args[-1]
    if operator in ("div", "floor_divide", "remainder"):
        return g("Not", g("Equal", g.operand(second), g.array(0, second.type.dtype)))
    if operator in ("left_shift", "right_shift") or (operator == "power" and kind == "int"):
        return g("GreaterOrEqual", g.operand(second), g.array(0, second.type.dtype))
    if operator == "power":
        return _is_in_domain(g, bind)
    raise Unexportable(ERRORS)


@_raises_unless("math_function")
def _is_in_domain(g: Graph, bind: Bind) -> str:
    """Whether a function of Python's ``math`` raises no error for its operands.

    It raises ValueError in place of nan, and OverflowError or ValueError in place of infinity, but
    not if an operand is nan, or infinite.
    """
    (result,) = bind.binders
    if result.type.dtype.kind != "f":
        raise Unexportable(ERRORS)
    value = g.operand(result)
    floats = [x for x in bind.args if type(x) is Local and x.type.dtype.kind == "f"]
    operands = [g.operand(x) for x in floats]
    is_nan = g("IsNaN", value)
    is_infinite = g("And", _is_not_finite(g, value), g("Not", is_nan))
    lost = _and_none(g, is_nan, [g("IsNaN", x) for x in operands])
    grown = _and_none(g, is_infinite, [_is_not_finite(g, x) for x in operands])
    return g("Not", g("Or", lost, grown))


def _holds_nowhere(g: Graph, condition: str) -> str:
    """Whether a condition holds for no element."""
    count = g("ReduceSum", g.cast(condition, np.dtype(bool), np.int64), keepdims=0)
    return g("Equal", count, g.array(0, np.int64))


def _and_none(g: Graph, holds: str, others: Sequence[str]) -> str:
    """Whether one condition holds and none of the others."""
    return reduce(lambda total, other: g("And", total, g("Not", other)), others, holds)


def _is_not_finite(g: Graph, name: str) -> str:
    """Where elements are infinite or nan."""
    return g("IsNaN", g("Sub", name, name))
