"""``memory_content``: the memory of a call over the binds of a program, as JSON."""

from collections.abc import Sequence
from typing import Any

from letir.ast.terms import Bind, Lambda
from letir.errors import LetirError
from letir.executor.compiled import compile as compile_program
from letir.executor.measurements.memory_timeline import memory_timeline


def memory_content(fn: Lambda) -> dict[str, Any]:
    """The bytes that exist at each bind of a program when its plan runs it bind by bind.

    ``live``: a number for each bind; ``arrays``: for each array the bind that makes it, the last
    bind at which it exists (the number of binds for a result), and its bytes. ``reason``: why there
    are no numbers. Linear in the number of binds.
    """
    try:
        timeline = memory_timeline(compile_program(fn, optimize=False, kernels="off").plan, {})
    except LetirError as error:
        return {"reason": str(error).partition("\n")[0]}
    if not timeline.steps:
        return {"reason": "There are no steps."}
    at = _positions_of_steps(fn, timeline.steps)
    live, now = [0] * len(fn), 0
    for step, size in zip(at, timeline.live, strict=True):
        live[step] = max(live[step], size)
    steps = set(at)
    for i in range(len(live)):  # a bind without a step changes nothing
        now = live[i] = live[i] if i in steps else now
    at.append(len(fn))  # results exist after the last step
    arrays = [[at[array.first], at[array.last], array.bytes] for array in timeline.arrays]
    return {"live": live, "arrays": arrays, "exact": timeline.is_exact}


def _positions_of_steps(fn: Lambda, steps: Sequence[Bind]) -> list[int]:
    """The position of the bind that each step of a plan computes."""
    place = {binder: i for i, bind in enumerate(fn.binds) for binder in bind.binders}
    result, last = [], 0
    for step in steps:
        positions = [place[binder] for binder in step.binders if binder in place]
        last = positions[0] if positions else last
        result.append(last)
    return result
