"""Loops whose steps the threads of a warp share, so that neighbours read neighbouring elements.

A warp takes one step of the spread loop, or runs a whole kernel that has no such loop. Its 32
threads, the lanes, compute the same scalars, but in innermost loops each lane takes every 32nd
step; carried scalars are then combined.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from letir.kernels.loop_language import (
    FunctionCall,
    Kernel,
    Let,
    Load,
    Loop,
    Number,
    Operand,
    Scalar,
    Statement,
    Store,
    While,
)

LANES = 32
_COMBINING = ("add", "mul", "max", "min", "or", "and")


def spread_loop(kernel: Kernel) -> Loop | None:
    """The outermost loop, whose steps are spread over threads; None: one thread runs the kernel."""
    (first, *others) = kernel.body
    if type(first) is not Loop or others or first.carried or not first.is_parallel:
        return None
    return first if first.extent is kernel.extents[0] else None


def shared_loops(kernel: Kernel) -> dict[Loop, tuple[str, ...]]:
    """The innermost loops, each with the instructions that combine its carried scalars.

    Empty if each thread works alone: there are no such loops, or one of them cannot be shared.

    In a spread loop, an element that one such loop stores is only loaded by others, in the same
    lane: the steps of a block of a row begin at a multiple of ``LANES``. Elsewhere lanes wait for
    each other, see ``has_waiting_lanes``.
    """
    spread = spread_loop(kernel)
    innermost, outer = _split_statements(kernel.body if spread is None else spread.body)
    bodies = [outer, *[loop.body for loop in innermost]]
    written = {x.array for body in bodies for x in body if type(x) is Store}
    if any(type(x) is While for x in outer):
        return {}
    if spread is not None and any(type(x) is Load and x.array in written for x in outer):
        return {}
    loops = {loop: _combining_instructions(loop) for loop in innermost}
    return {} if None in loops.values() else {k: v for k, v in loops.items() if v is not None}


def has_waiting_lanes(kernel: Kernel) -> bool:
    """Whether one warp runs the kernel, and lanes load elements that other lanes have stored."""
    return spread_loop(kernel) is None and bool(shared_loops(kernel))


def has_enough_steps(kernel: Kernel, sizes: Mapping[str, int]) -> bool:
    """Whether an inner loop has steps for most lanes of a warp; else each thread works alone.

    ``sizes``: the numbers of steps by the names of extents; numbers that a kernel computes are not
    among them, and count as enough.
    """
    for loop in shared_loops(kernel):
        extent = loop.extent
        known = int(extent.value) if isinstance(extent, Number) else sizes.get(extent.name)
        if known is None or known > LANES // 2:
            return True
    return False


def _split_statements(body: tuple[Statement, ...]) -> tuple[list[Loop], list[Statement]]:
    """(the innermost loops, all statements outside of them except loops)."""
    innermost: list[Loop] = []
    outer: list[Statement] = []
    todo = list(body)
    while todo:
        statement = todo.pop()
        if type(statement) is not Loop:
            outer.append(statement)
        elif any(type(x) in (Loop, While) for x in statement.body):
            todo += statement.body
        else:
            innermost.append(statement)
    return innermost, outer


def _combining_instructions(loop: Loop) -> tuple[str, ...] | None:
    """The instruction that updates each carried scalar; None if one is updated in another way."""
    if not loop.is_parallel:
        return None
    makers = {x.result: x for x in loop.body if type(x) is Let}
    uses = Counter([id(x) for statement in loop.body for x in _statement_operands(statement)])
    names = []
    for scalar, _, then, _ in loop.carried:
        step = makers.get(then) if type(then) is Scalar else None
        if step is None or step.name not in _COMBINING or scalar not in step.operands:
            return None
        if uses[id(scalar)] != 1 or uses[id(then)]:
            return None
        names.append(step.name)
    return tuple(names)


def _statement_operands(statement: Statement) -> Iterator[Operand]:
    """The operands of a statement without a body."""
    if isinstance(statement, Let | FunctionCall):
        yield from statement.operands
    elif isinstance(statement, Load | Store):
        yield from statement.indices
    if isinstance(statement, Store):
        yield statement.value


def neutral_element(name: str, dtype: np.dtype) -> Number:
    """The neutral element of an instruction: 0 of a sum, 1 of a product, and so on."""
    if name in ("max", "min") and dtype.kind != "f":
        limits = np.iinfo(dtype)
        return Number(dtype.type(limits.min if name == "max" else limits.max))
    if name == "and":
        return Number(dtype.type(True) if dtype.kind == "b" else np.invert(dtype.type(0)))
    value = {"add": -0.0, "mul": 1, "max": -np.inf, "min": np.inf, "or": 0}[name]
    return Number(dtype.type(value))
