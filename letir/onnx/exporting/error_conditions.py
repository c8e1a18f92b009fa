"""Conditions under which an operation raises no error in Python, as nodes on its values.

A program that was recorded while an operation inside ``try`` raised nothing holds for such values
only; ``effect_nodes`` makes the model fail for others.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from letir.ast.liveness import may_raise
from letir.ast.terms import Bind, Local
from letir.onnx.exporting.node_graph import Graph, Unexportable, shows_errors

ERRORS = "the program depends on an error that Python raises"
# their nodes fail in runtimes, where they raise an error in NumPy
_FAILING = frozenset(
    [
        *("index", "index_set", "index_add", "take", "take_along_axis", "embedding", "reshape"),
        "ufunc_at",
    ]
)


def raises_nothing(g: Graph, bind: Bind) -> str | None:
    """The name of a condition that is false where ``bind`` raises an error.

    None if it never raises one, or if its nodes then fail. A result that nothing reads gets a
    condition that always holds, as runtimes leave out nodes without use. Raises Unexportable for
    an operation whose errors its operands and results do not show.
    """
    name = bind.op.name
    if name == "python_operator":
        return _operator_raises_nothing(g, bind)
    if name == "math_function":
        return _is_in_domain(g, bind)
    result = bind.binders[0]
    if not (bind.op.raises and may_raise(bind)) or (name in _FAILING and result not in g.unread):
        return None
    if name in _FAILING:
        found = g.operand(result)
        differs = g("Not", g("Equal", found, found))
        if result.type.dtype.kind == "f":  # nan is not equal to itself
            differs = g("And", differs, g("Not", g("IsNaN", found)))
        return _holds_nowhere(g, differs)
    if shows_errors(name):
        return _holds_nowhere(g, _is_not_finite(g, g.operand(result)))
    raise Unexportable(ERRORS)


def _holds_nowhere(g: Graph, condition: str) -> str:
    """Whether a condition holds for no element."""
    count = g("ReduceSum", g.cast(condition, np.dtype(bool), np.int64), keepdims=0)
    return g("Equal", count, g.array(0, np.int64))


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


def _is_in_domain(g: Graph, bind: Bind) -> str:
    """Whether a function of Python's ``math`` gives a number, or nan or infinity of such operands.

    It raises ValueError in place of nan, and OverflowError or ValueError in place of infinity, but
    not if an operand is nan, or infinite.
    """
    (result,) = bind.binders
    if result.type.dtype.kind != "f":
        raise Unexportable(ERRORS)
    found = g.operand(result)
    given = [x for x in bind.args if type(x) is Local and x.type.dtype.kind == "f"]
    operands = [g.operand(x) for x in given]
    is_nan = g("IsNaN", found)
    is_infinite = g("And", _is_not_finite(g, found), g("Not", is_nan))
    lost = _and_none(g, is_nan, [g("IsNaN", x) for x in operands])
    grown = _and_none(g, is_infinite, [_is_not_finite(g, x) for x in operands])
    return g("Not", g("Or", lost, grown))


def _and_none(g: Graph, holds: str, others: Sequence[str]) -> str:
    """Whether one condition holds and none of the others."""
    return reduce(lambda found, other: g("And", found, g("Not", other)), others, holds)


def _is_not_finite(g: Graph, name: str) -> str:
    """Where elements are infinite or nan."""
    return g("IsNaN", g("Sub", name, name))
