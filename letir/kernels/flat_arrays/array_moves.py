"""Operations that move elements of small arrays, as views or as copies of runs of elements."""

import math

import numpy as np
from attrs import frozen

from letir.ast.terms import Bind
from letir.kernels.scalar_lowering import NoKernel

_MAX_RUNS = 64
_View = tuple[int, tuple[int, ...], tuple[int, ...]]


def view_layout(bind: Bind, shape: tuple[int, ...], strides: tuple[int, ...]) -> list[_View] | None:
    """(first element, shape, strides in elements) of each result; None if one is a copy.

    ``shape`` and ``strides`` are the only operand's.
    """
    # a view of an array that is never read shows the memory layout of the view
    length = 1 + sum([step * (n - 1) for step, n in zip(strides, shape, strict=True) if step > 0])
    if any(step < 0 for step in strides):
        return None
    memory = np.ndarray(shape, "i1", np.empty(length, "i1"), strides=strides)
    moved = bind.op.impl(np, memory, **bind.attrs)
    views = list(moved) if bind.op.results is not None else [moved]
    first = memory.__array_interface__["data"][0]
    result = []
    for view in views:
        if type(view) is not np.ndarray or not np.may_share_memory(view, memory):
            return None
        result.append((view.__array_interface__["data"][0] - first, view.shape, view.strides))
    return result


@frozen
class MovedRun:
    """``count`` elements of an operand, from ``start`` on, each ``step`` after the other.

    ``target``: the place of the first one in the result.
    """

    operand: int
    start: int
    step: int
    target: int
    count: int


def moved_runs(bind: Bind, shapes: list[tuple[int, ...]]) -> list[MovedRun]:
    """The runs of elements of operands of which a result consists, in C order."""
    sizes = [math.prod(shape) for shape in shapes]
    starts = np.cumsum([0, *sizes])
    numbers = [
        np.arange(start, start + size).reshape(shape)
        for start, size, shape in zip(starts, sizes, shapes, strict=False)
    ]
    moved = np.asarray(bind.op.impl(np, *numbers, **bind.attrs))
    if moved.dtype.kind != "i":
        raise NoKernel
    flat = moved.ravel()
    owners = np.searchsorted(starts, flat, "right") - 1
    runs: list[MovedRun] = []
    most = max(_MAX_RUNS, len(shapes))  # joined operands are at least one run each
    at = 0
    while at < len(flat):
        step = int(flat[at + 1] - flat[at]) if at + 1 < len(flat) else 1
        same = (np.diff(flat[at:]) == step) & (owners[at + 1 :] == owners[at])
        count = 1 + (len(same) if same.all() else int(np.argmin(same)))
        owner = int(owners[at])
        runs.append(MovedRun(owner, int(flat[at] - starts[owner]), step, at, count))
        at += count
        if len(runs) > most:
            raise NoKernel
    return runs
