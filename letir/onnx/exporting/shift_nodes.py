"""Shifts of bits, also by negative counts and by all bits of the type, as NumPy computes them."""

import numpy as np

from letir.ast.terms import Bind
from letir.onnx.exporting.elementwise_nodes import floor_quotient, loop_operands
from letir.onnx.exporting.node_graph import Graph, exports_as

_WIDE, _BITS = np.dtype(np.int64), np.dtype(np.uint64)


@exports_as(left_shift="LEFT", right_shift="RIGHT")
def _shift(g: Graph, bind: Bind, word: str) -> str:
    (x, count), dtype = loop_operands(g, bind)
    if word == "RIGHT" and dtype.kind != "u":
        return _shifted_with_sign(g, x, count, dtype)
    is_usual, count = _usual_count(g, count, dtype, 8 * dtype.itemsize)
    bits = g.cast(g.cast(x, dtype, _WIDE), _WIDE, _BITS) if dtype.kind == "i" else x
    bits = g.cast(x, dtype, _BITS) if dtype.kind == "u" else bits
    result = g("BitShift", bits, g.cast(count, _WIDE, _BITS), direction=word)
    result = g("Where", is_usual, g.cast(result, _BITS, _WIDE), g.array(0, _WIDE))
    return g.cast(result, _WIDE, dtype)


def _shifted_with_sign(g: Graph, x: str, count: str, dtype: np.dtype) -> str:
    """A signed number shifted to the right: its sign moves in from the left."""
    # 2 ** 63 is not an int64; a shift by 63 bits has the same result as a shift by more
    is_usual, count = _usual_count(g, count, dtype, min(8 * dtype.itemsize, 63))
    wide = g.cast(x, dtype, _WIDE)
    shifted = floor_quotient(g, wide, g("Pow", g.array(2, np.int64), count), _WIDE)
    sign = g.cast(g("Less", wide, g.array(0, _WIDE)), np.dtype(bool), _WIDE)
    return g.cast(g("Where", is_usual, shifted, g("Neg", sign)), _WIDE, dtype)


def _usual_count(g: Graph, count: str, dtype: np.dtype, width: int) -> tuple[str, str]:
    """(whether a count is from 0 to below ``width``, the count in int64 then, else 0)."""
    count, zero = g.cast(count, dtype, _WIDE), g.array(0, _WIDE)
    is_usual = g("And", g("GreaterOrEqual", count, zero), g("Less", count, g.array(width, _WIDE)))
    return is_usual, g("Where", is_usual, count, zero)
