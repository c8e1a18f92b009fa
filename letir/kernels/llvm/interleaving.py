"""The number of vectors that one step of a vectorised loop computes side by side.

An instruction waits for its operands for several cycles. While it waits, a processor begins
instructions of later steps, but not of steps that are hundreds of instructions away: in a long loop
body, each of whose instructions needs the one before it, most of the cycles would pass in waiting.
"""

import math

import numpy as np
from attrs import frozen

from letir.kernels.loop_language import FunctionCall, Let, Loop, Scalar

_CYCLES = {"add": 4, "sub": 4, "mul": 4, "fma": 4, "convert": 4, "div": 13, "sqrt": 20}  # of floats
_RATE = 4  # vector instructions that a fast processor completes in a cycle if none has to wait
_FEW = 4  # vectors; more of them save time only if ...
_USUAL_RATE = 2.5  # ... a usual processor would wait too, because registers become scarce
_MIN_INSTRUCTIONS = 16  # instructions: in shorter loops the processor looks far enough ahead
_MAX_INSTRUCTIONS = 2048  # instructions in a step, because LLVM's time grows with them
_REUSE = 3  # values for each register: constants are in memory, and values are computed late
_MAX_VECTORS = 8


@frozen
class Vectors:
    """The vectors of a processor: how many registers it has, and of how many float64 each.

    ``has_fma``: whether it computes x * y + z in one instruction; else a C function does.
    ``has_masks``: whether flags have registers of their own.
    """

    registers: int = 16
    lanes: int = 4
    has_fma: bool = True
    has_masks: bool = False

    def lanes_of(self, dtype: np.dtype) -> int:
        """The elements of this dtype in a vector."""
        return self.lanes * 8 // dtype.itemsize


COMMON = Vectors()  # of most x86 processors


def interleave_count(loop: Loop, vectors: Vectors) -> int:
    """The number of vectors, a power of 2, that a step of a loop without inner loops computes."""
    lets = [
        statement for statement in loop.body if type(statement) is Let and statement.name != "bits"
    ]
    if len(lets) < _MIN_INSTRUCTIONS:
        return 1
    idle = _critical_path(loop) / len(lets)  # cycles for each instruction of one vector
    waits = max(min(_FEW, idle * _RATE), idle * _USUAL_RATE)
    fits = _REUSE * vectors.registers / max(1, _most_live(loop))
    most = min(waits, fits, _MAX_INSTRUCTIONS / len(lets), _MAX_VECTORS)
    return 1 << max(0, math.floor(math.log2(most)))


def _critical_path(loop: Loop) -> int:
    """The cycles from the first operand of a step to its last result."""
    ready: dict[object, int] = {}
    for statement in loop.body:
        if type(statement) is FunctionCall:
            ready[statement.result] = max([ready.get(x, 0) for x in statement.operands])
        elif type(statement) is Let:
            is_float = statement.operands[-1].dtype.kind == "f"
            cycles = _CYCLES.get(statement.name, 1) if is_float else 1
            ready[statement.result] = max([ready.get(x, 0) for x in statement.operands]) + cycles
    return max(ready.values(), default=0)


def _most_live(loop: Loop) -> int:
    """The most values of a step that are needed at the same time."""
    last: dict[Scalar, int] = {}
    for n, statement in enumerate(loop.body):
        operands = getattr(statement, "operands", None) or (getattr(statement, "value", None),)
        last.update({x: n for x in operands if type(x) is Scalar})
    ends: dict[int, int] = {}
    live = most = 0
    for n, statement in enumerate(loop.body):
        result = getattr(statement, "result", None)
        if result in last:
            ends[last[result]] = ends.get(last[result], 0) + 1
            live += 1
        live -= ends.get(n, 0)
        most = max(most, live)
    return most
