"""Guards, prints and other effects, and operations of Python numbers."""

from typing import Any

import numpy as np

from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Bind, Local
from letir.onnx.exporting.elementwise_nodes import as_truth
from letir.onnx.exporting.error_conditions import ERRORS, raises_nothing
from letir.onnx.exporting.node_graph import (
    Graph,
    Unexportable,
    exports_op,
    refuses_operations,
)
from letir.onnx.package import onnx_package

# ---- effects ----


@exports_op("guard")
def _guard(g: Graph, bind: Bind) -> tuple:
    """A condition under which the model is valid; if it is false, running the model fails."""
    if g.parent is not None:
        raise Unexportable(
            "a guard inside a loop or a branch: a choice by a value; write numpy.where"
        )
    (x,), value = bind.args, bind.attrs["value"]
    if type(value) is bool:
        holds = as_truth(g, x)
        holds = holds if value else g("Not", holds)
    elif np.ndim(value) == 0 and value != value:
        holds = g("IsNaN", g.operand(x))
    else:
        current = g.operand(x)
        if type(value) is int and x.type.dtype.kind == "f":  # the program asked for int(x)
            is_negative = g("Less", current, g.array(0, x.type.dtype))
            current = g("Where", is_negative, g("Ceil", current), g("Floor", current))
        same = g("Equal", current, g.array(value, x.type.dtype))
        lost = g(
            "ReduceSum", g("Cast", g("Not", same), to=onnx_package().TensorProto.INT64), keepdims=0
        )
        holds = g("Equal", lost, g.array(0, np.int64))
    g.checks.append((g("Reshape", holds, g.array([], np.int64)), bind, repr(value)))
    return ()


@exports_op("write_back")
def _write_back(g: Graph, bind: Bind) -> str:
    """The new value of the argument: a model does not change its inputs."""
    return g.operand(bind.args[1])


@exports_op("print", "guard_order", "guard_separate")
def _without_nodes(g: Graph, bind: Bind) -> tuple:
    """No nodes: models have neither prints, nor memory orders, nor arrays that overlap."""
    return ()


refuses_operations(ERRORS, "guard_raised")


@exports_op("guard_computed")
def _guard_computed(g: Graph, bind: Bind) -> tuple:
    """A condition that fails where the operation inside ``try`` raises an error in Python."""
    (x,) = bind.args
    maker = g.makers.get(x) if type(x) is Local else None
    if maker is None:
        raise Unexportable(ERRORS)
    holds = raises_nothing(g, maker)
    if holds is None:
        return ()
    if g.parent is not None:
        raise Unexportable("an error that Python catches inside a loop or a branch")
    g.checks.append((holds, bind, f"a result of {maker.op.name}"))
    return ()


# ---- operations of Python numbers ----


@exports_op("math_function")
def _math_function(g: Graph, bind: Bind) -> Any:
    scalar: Any = bind.op.scalar
    op = PRIMITIVES[scalar(**bind.attrs)]
    return g.emitter.emitted(g, bind.replace(op=op, attrs=op.complete({})))


@exports_op("math_reduction")
def _math_reduction(g: Graph, bind: Bind) -> Any:
    numbers = [g.operand(x) for x in bind.args]
    if bind.attrs["name"] == "fsum":
        return g("Sum", *numbers)
    return g("Sqrt", g("Sum", *[g("Mul", x, x) for x in numbers]))


@exports_op("python_operator")
def _python_operator(g: Graph, bind: Bind) -> Any:
    operator, kind = bind.attrs["operator"], bind.attrs["kind"]
    if operator == "round" or kind == "complex":
        raise Unexportable(f"Python's {operator} of {kind} numbers")
    op = PRIMITIVES[operator]
    if operator == "power" and kind == "float":  # also of integers, as 2 ** -1
        return g("Pow", *g.operands(bind, np.dtype(np.float64)))
    return g.emitter.emitted(g, bind.replace(op=op, attrs=op.complete({})))
