"""If, Loop and Scan as letir's conditionals and loops.

A loop whose body cannot be recorded once, because it changes a shape or holds a sequence, is
unrolled: with example arguments a guard records each decision.
"""

from typing import Any

import numpy as np

import letir.numpy as lnp
from letir.ast.types import Size
from letir.errors import LetirError, ParseError, TraceError
from letir.onnx.importing.tensors import dtype_of
from letir.onnx.importing.values import (
    MAX_COMPUTED,
    NeedsConstant,
    as_array,
    as_traced,
    axis_of,
    is_known,
    is_shape,
    known_array,
    known_int,
    model_trace,
)
from letir.tracing.control_flow.conditionals import cond
from letir.tracing.control_flow.scans import scan
from letir.tracing.control_flow.while_and_fori import while_loop
from letir.tracing.trace_state import EAGER

_MAX_WITH_EXAMPLES = 1_000_000  # iterations on example inputs

# ---- If ----


def _if(condition: Any, then_branch: Any, else_branch: Any) -> tuple:
    """If: one of two bodies; if the condition is known, the binds of that body alone."""
    if is_known(condition):
        return tuple(then_branch() if condition.item() else else_branch())
    try:
        result = cond(condition.reshape(()), _values_of(then_branch), _values_of(else_branch))
        return tuple(result)
    except (LetirError, TypeError):
        if model_trace().mode is not EAGER:
            raise
    is_true = known_array(condition, "If: the condition").item()
    return tuple(then_branch() if is_true else else_branch())


def _values_of(body: Any) -> Any:
    """A body for a conditional: its results are arrays, and sequences of them as lists.

    Both branches must return sequences of one length. Raises TraceError for an empty optional.
    """

    def run() -> list:
        return [
            list(map(_checked_body_result, value))
            if isinstance(value, list)
            else _checked_body_result(value)
            for value in body()
        ]

    return run


def _checked_body_result(value: Any) -> Any:
    """A value that a body may return. Raises TraceError for a sequence or an optional."""
    if value is None or isinstance(value, list):
        raise TraceError("a sequence or an optional cannot be the result of a recorded body")
    return as_array(value)


# ---- Loop ----


def _loop(trips: Any, condition: Any, *carried: Any, body: Any) -> tuple:
    """Loop: a body that is repeated while its condition is true, at most ``trips`` times."""
    count = len(carried)
    is_endless = condition is None or (is_known(condition) and bool(condition.item()))
    if is_known(condition) and condition is not None and not condition.item():
        trips = np.array(0, np.int64)
    rows = body.output_count - 1 - count
    try:
        if any(value is None or isinstance(value, list) for value in carried):
            raise TraceError("a sequence cannot be carried by a recorded loop")
        if trips is not None and is_known(trips) and trips.item() == 0:
            raise TraceError("a loop without iterations is not recorded")
        state = _first_state(trips, is_endless, carried, body)
        if is_endless and trips is not None and (is_known(trips) or is_shape(trips)):
            try:
                return _counted_loop(trips, state, body, rows)
            except _ConditionChanges:
                pass
        if rows:
            raise TraceError("the number of rows of a loop's result depends on its condition")
        return _conditional_loop(trips, condition, state, body)
    except (NeedsConstant, ParseError):
        raise
    except (LetirError, TypeError) as error:
        return _unrolled_loop(trips, condition, carried, body, error)


def _first_state(trips: Any, is_endless: bool, carried: tuple, body: Any) -> tuple:
    """(the number 0 of the first iteration, the values that are carried).

    They are traced if the loop would otherwise be computed while the model is loaded, except for a
    short loop.
    """
    state = (np.zeros((), np.int64), *map(as_array, carried))
    n = trips.item() if is_endless and is_known(trips) and trips is not None else None
    is_short = n is not None and n <= MAX_COMPUTED and not body.has_bodies
    if model_trace().mode is EAGER and n is not None and n > _MAX_WITH_EXAMPLES:
        raise ParseError(
            f"Loop: {n} iterations, at most {_MAX_WITH_EXAMPLES} are run on example inputs\n"
            "  load the model without args"
        )
    if is_short or not is_known(list(state)):
        return state
    return tuple([as_traced(value) for value in state])


class _ConditionChanges(Exception):
    """Raised if the condition that a body returns is not always true."""


def _counted_loop(trips: Any, state: tuple, body: Any, rows: int) -> tuple:
    """A loop of a known number of iterations, whose condition stays true."""
    n = known_int(trips, "Loop: the number of iterations")

    def step(carry: tuple, _: Any) -> tuple:
        place, *values = carry
        continues, *results = body(place, np.array(True), *values)
        if not (is_known(continues) and continues.item()):
            raise _ConditionChanges
        results = [_checked_body_result(value) for value in results]
        count = len(results) - rows
        return (place + 1, *results[:count]), tuple(results[count:])

    last, stacked = scan(step, state, None, n)
    return *last[1:], *stacked


def _conditional_loop(trips: Any, condition: Any, state: tuple, body: Any) -> tuple:
    """A loop that ends when its condition becomes false."""

    def continues(carry: tuple) -> Any:
        place, holds, _ = carry
        return holds if trips is None else holds & (place < trips.reshape(()))

    def step(carry: tuple) -> tuple:
        place, holds, values = carry
        holds, *results = body(place, holds, *values)
        results = [_checked_body_result(value) for value in results]
        return place + 1, lnp.asarray(holds).reshape(()), tuple(results)

    first = np.array(True) if condition is None else condition.reshape(())
    return tuple(while_loop(continues, step, (state[0], first, state[1:]))[2])


def _unrolled_loop(
    trips: Any, condition: Any, carried: tuple, body: Any, cause: Exception
) -> tuple:
    """A loop as its iterations one after another; their number must be known."""
    most = None
    if trips is not None:
        most = known_int(trips, "Loop: the number of iterations")
        if type(most) is Size:
            raise cause
    holds = condition is None or bool(known_array(condition, "Loop: the condition").item())
    values, rows, place = list(carried), [], 0
    while holds and (most is None or place < most):
        body.runner.count_node()
        results = body(np.array(place, np.int64), np.array(True), *values)
        holds = bool(known_array(results[0], "Loop: the condition").item())
        values = results[1 : 1 + len(carried)]
        rows.append(results[1 + len(carried) :])
        place += 1
    missing = body.output_count - 1 - len(carried)
    if not rows:
        return *values, *[_no_rows(body, len(carried) + 1 + i) for i in range(missing)]
    columns = zip(*rows, strict=True)
    return *values, *[np.stack(list(map(as_array, column))) for column in columns]


def _no_rows(body: Any, place: int) -> np.ndarray:
    """The stacked result of a loop without iterations."""
    declared = body.graph.output[place].type.tensor_type
    sizes = [d.dim_value for d in declared.shape.dim]
    return np.zeros((0, *sizes), dtype_of(declared.elem_type))


# ---- Scan ----


def _scan(
    *inputs: Any,
    body: Any,
    num_scan_inputs: int,
    scan_input_axes: Any = None,
    scan_input_directions: Any = None,
    scan_output_axes: Any = None,
    scan_output_directions: Any = None,
    opset: int = 9,
    directions: Any = None,
) -> tuple:
    """Scan: a body that is applied along axes of its inputs, and carries a state."""
    if opset < 9:
        return _batched_scan(inputs, body, num_scan_inputs, directions)
    states, rows = inputs[: len(inputs) - num_scan_inputs], inputs[len(inputs) - num_scan_inputs :]
    axes = scan_input_axes or [0] * len(rows)
    turned = scan_input_directions or [0] * len(rows)
    moved = [np.moveaxis(x, axis_of(axis, x.ndim), 0) for x, axis in zip(rows, axes, strict=True)]
    moved = [np.flip(x, 0) if flip else x for x, flip in zip(moved, turned, strict=True)]
    last, new_rows = _scan_rows(states, moved, body)
    stacked = list(new_rows)
    flips = scan_output_directions or [0] * len(stacked)
    places = scan_output_axes or [0] * len(stacked)
    stacked = [np.flip(y, 0) if flip else y for y, flip in zip(stacked, flips, strict=True)]
    pairs = zip(stacked, places, strict=True)
    return *last, *[np.moveaxis(y, 0, axis_of(axis, y.ndim)) for y, axis in pairs]


def _scan_rows(states: tuple, rows: list, body: Any) -> tuple[tuple, tuple]:
    """(the last states, the stacked results) of a body along the first axes of ``rows``."""

    def step(carry: tuple, row: tuple) -> tuple:
        results = [_checked_body_result(value) for value in body(*carry, *row)]
        return tuple(results[: len(states)]), tuple(results[len(states) :])

    if is_known([*states, *rows]):  # a long loop over constants is left to the program
        is_long = body.has_bodies or any(len(row) > MAX_COMPUTED for row in rows[:1])
        rows = [as_traced(row) for row in rows] if is_long else rows
    return scan(step, tuple(states), tuple(rows))


def _batched_scan(inputs: tuple, body: Any, count: int, directions: Any) -> tuple:
    """Scan before version 9: the first axis is the batch, the second the time."""
    lengths, inputs_ = inputs[0], inputs[1:]
    if lengths is not None:
        raise TraceError("Scan of version 8 with sequence lengths is not supported")
    states, last = inputs_[: len(inputs_) - count], inputs_[len(inputs_) - count :]
    turned = directions or [0] * len(last)
    rows = [np.flip(x, 1) if flip else x for x, flip in zip(last, turned, strict=True)]
    results = []
    for i in range(known_int([rows[0].shape[0]], "Scan: the number of examples")):
        body.runner.count_node()
        last, stacked = _scan_rows(tuple(s[i] for s in states), [x[i] for x in rows], body)
        results.append((*last, *stacked))
    return tuple(np.stack(parts) for parts in zip(*results, strict=True))


OPERATORS: dict[str, Any] = {"If": _if, "Loop": _loop, "Scan": _scan}
