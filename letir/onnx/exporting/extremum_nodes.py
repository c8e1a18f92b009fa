"""The larger and the smaller of two operands, and operands between bounds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast.terms import Bind, Const
from letir.onnx.exporting.elementwise_nodes import loop_operands, node_on
from letir.onnx.exporting.node_graph import Graph, exports_as, exports_op


@exports_as(fmax="Max", fmin="Min")
def _fmax(g: Graph, bind: Bind, word: str) -> str:
    (x, y), dtype = loop_operands(g, bind)
    result = node_on(g, word, [x, y], dtype, dtype)
    if dtype.kind != "f":
        return result
    return g("Where", g("IsNaN", x), y, g("Where", g("IsNaN", y), x, result))


@exports_as(maximum="Max", minimum="Min")
def _maximum(g: Graph, bind: Bind, word: str) -> str:
    names, dtype = loop_operands(g, bind)
    if word == "Max" and dtype.kind == "f":
        for place, arg in enumerate(bind.args):
            if type(arg) is Const and arg.value == 0:
                return g("Relu", names[1 - place])
    return extremum_node(g, word, names, dtype)


def extremum_node(g: Graph, kind: str, names: Sequence[str], dtype: np.dtype) -> str:
    """The larger or smaller of two operands; nan if one of them is nan."""
    result = node_on(g, kind, names, dtype, dtype)
    if dtype.kind != "f":
        return result
    # ONNX leaves Max and Min of nan undefined
    unsure = [name for name in names if _known_number(g, name) is None]
    if len(unsure) == 1:
        return g("Where", g("IsNaN", unsure[0]), unsure[0], result)
    # the sum of the operands is nan if one is
    x, y = names
    return g("Where", g("Or", g("IsNaN", x), g("IsNaN", y)), g("Add", x, y), result)


def _known_number(g: Graph, name: str) -> Any:
    """The number that a constant array without axes holds, unless it is nan; else None."""
    array = g.top.constants.get(name)
    is_number = array is not None and not array.ndim and array == array
    return array if is_number else None


@exports_op("clip")
def _clip(g: Graph, bind: Bind) -> str:
    dtype = bind.binders[0].type.dtype
    x, low, high = (
        *g.operands(bind, dtype),
        *[""] * (3 - len(bind.args)),
    )
    least, most = [_known_number(g, name) for name in (low, high)]
    is_plain = dtype.kind == "f" or dtype in (np.int32, np.int64)
    if is_plain and least is not None and most is not None and least <= most:
        return g("Clip", x, low, high)
    result = extremum_node(g, "Max", [x, low], dtype) if low else x
    return extremum_node(g, "Min", [result, high], dtype) if high else result
