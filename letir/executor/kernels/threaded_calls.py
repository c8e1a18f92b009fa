"""Calls of kernels on large arrays in several threads.

A call is cut into chunks along one axis of its operands and results. Every element, or every row,
is computed as in a single call, so the bits do not depend on the chunks.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import define

from letir.ast.terms import Lambda
from letir.eval.memory_checks import empty_like_ufunc
from letir.kernels.machine_costs import machine_costs
from letir.kernels.scalar_lowering import has_c_order
from letir.kernels.threads import run_chunks, threads_of_call

__warningregistry__ = "see kernel_binds"  # not a dict: warnings.warn fails
_EXPENSIVE = 10  # the work for an element of an expensive operation, in units of a cheap one
_MOVED = 2  # the work of reading or writing an element of an array
_MIN_CHUNK = 1 << 14  # the fewest elements of a chunk
_CHUNKS = 4  # per thread, so that the others take over from a thread that is held up
_LARGE = 1 << 20  # bytes of a result that may be written into memory of an earlier one
_MIN_PLACES = 8  # with fewer places per thread than this, the longest axis is cut


def with_threads(call: Any, body: Lambda) -> Any:
    """``call``, the elementwise kernel of ``body``, in several threads for large operands."""
    aval, least = body.binds[-1].binders[0].type, least_size(body)
    size = 0 if aval is None else aval.size
    if aval is None or not isinstance(call, np.ufunc):
        return call  # not a ufunc: interpreted
    if type(size) is int and size < least and size * aval.dtype.itemsize < _LARGE:
        return call
    alike = [n for n, p in enumerate(body.params) if p.type and p.type.shape == aval.shape]
    return ThreadedCall(call, least, alike[0] if alike else None)


def least_size(body: Lambda) -> int:
    """The number of elements at which a kernel of ``body`` starts to use threads."""
    return -(-machine_costs().least_thread_work // work_of_element(body))


def work_of_element(body: Lambda) -> int:
    """The work of a kernel of ``body`` for an element of its results."""
    dear = sum([bind.op.cost not in ("free", "cheap") for bind in body.binds])
    arrays = len(body.params) + len(body.ret.args)
    return len(body.binds) + (_EXPENSIVE - 1) * dear + _MOVED * arrays


def uses_threads(call: Any) -> bool:
    """Whether the call of a kernel runs in several threads on large operands."""
    cut = getattr(call, "cut", None)
    is_alone = getattr(cut, "max_threads", None) == 1
    return type(call) is ThreadedCall or (cut is not None and not is_alone)


@define(eq=False)
class ThreadedCall:
    """An elementwise kernel that runs in several threads on large operands.

    ``least``: the fewest elements of a result for which threads are used. ``like``: the
    position of an operand that has the shape of the results, or None. ``new_array(shape, dtype)``
    makes the arrays of results.
    """

    ufunc: np.ufunc
    least: int
    like: int | None
    new_array: Callable = np.empty

    def __call__(self, *operands: Any) -> Any:
        """The results for these operands, in the memory order that NumPy gives them."""
        is_plain_call = self.new_array is np.empty
        if is_plain_call and self.like is not None and operands[self.like].size < self.least:
            return self.ufunc(*operands)
        shape = np.broadcast(*operands).shape
        is_plain = all(type(x) is np.ndarray or np.ndim(x) == 0 for x in operands)
        is_large = math.prod(shape) >= max(self.least, 2)
        threads = threads_of_call() if is_plain and is_large else 1
        if threads == 1:
            return self.ufunc(*operands, **self.out(operands, shape))
        results, views, flat, axis = self.lay_out(operands, shape, threads)
        axes = [axis if np.ndim(x) >= -axis and x.shape[axis] > 1 else None for x in flat]
        axes += [axis] * len(views)
        length = views[0].shape[axis]
        places = places_of(length, chunk_count(length, math.prod(shape), threads))
        run_in_chunks(self.ufunc, flat, views, axes, places, threads)
        return results[0] if len(results) == 1 else tuple(results)

    def lay_out(self, operands: Sequence, shape: tuple[int, ...], threads: int) -> tuple:
        """(results, the arrays into which the kernel writes them, its operands, the axis to cut).

        The axis counts from the end.
        """
        dtypes = [np.dtype(code) for code in self.ufunc.types[0].partition("->")[2]]
        if all(_is_flat(x, shape) for x in operands):
            results = [self.new_array(shape, dtype) for dtype in dtypes]
            flat = [x.reshape(-1) if np.ndim(x) else x for x in operands]
            return results, [y.reshape(-1) for y in results], flat, -1
        results = empty_like_ufunc(operands, dtypes)
        steps = [abs(step) for step in results[0].strides]
        axis = max(range(len(shape)), key=lambda n: (shape[n] > 1, steps[n]))
        if shape[axis] < _MIN_PLACES * threads:
            axis = max(range(len(shape)), key=shape.__getitem__)
        return results, results, operands, axis - len(shape)

    def out(self, operands: Sequence, shape: tuple[int, ...]) -> dict[str, tuple]:
        """The keywords of the ufunc: arrays for the results, unless NumPy has to make them, in the
        order of the operands.
        """
        if self.new_array is np.empty or not all(map(has_c_order, operands)):
            return {}
        dtypes = self.ufunc.types[0].partition("->")[2]
        return {"out": tuple([self.new_array(shape, np.dtype(code)) for code in dtypes])}


def _is_flat(x: Any, shape: tuple[int, ...]) -> bool:
    """Whether an operand is one number, or its elements have the memory order of the result."""
    return np.size(x) == 1 or (x.shape == shape and x.flags.c_contiguous)


def run_in_chunks(
    ufunc: np.ufunc,
    operands: Sequence,
    results: Sequence[np.ndarray],
    axes: Sequence[int | None],
    places: Sequence[slice],
    threads: int,
    scratch: Sequence[tuple] = (),
) -> None:
    """Write the results of a kernel for these operands, in a chunk for each of ``places``.

    ``axes``: the axis along which each operand and result is cut, counted from the end; None for
    arrays that each chunk takes whole, 0 for arrays that have an entry for each chunk. ``scratch``:
    shape and dtype of the scratch arrays, which the kernel takes after the operands.
    """
    arrays, n_in = [*operands, *results], len(operands)

    def compute(chunk: int) -> None:
        own = [_chunk_of(x, axis, chunk, places) for x, axis in zip(arrays, axes, strict=True)]
        room = [np.empty(shape, dtype) for shape, dtype in scratch]
        ufunc(*own[:n_in], *room, out=tuple(own[n_in:]))

    run_chunks(compute, len(places), threads)


def _chunk_of(x: Any, axis: int | None, chunk: int, places: Sequence[slice]) -> Any:
    """The part of an array that a chunk reads or writes."""
    if axis is None:
        return x
    if axis == 0:
        return x[chunk, ...]
    return x[(..., places[chunk], *[slice(None)] * (-1 - axis))]


def places_of(length: int, count: int) -> list[slice]:
    """``count`` parts of an axis, of about equal lengths."""
    ends = [length * n // count for n in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(ends)]


def chunk_count(length: int, elements: int, threads: int) -> int:
    """The number of chunks for arrays of this size, cut along an axis of this length."""
    return max(1, min(length, _CHUNKS * threads, elements // _MIN_CHUNK))
