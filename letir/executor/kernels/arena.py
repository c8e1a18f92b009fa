"""The memory of large temporary arrays of plans, which later steps and calls use again.

A new large array has fresh pages, and the system takes longer to provide and clear these than most
kernels take to fill them. Kernels write temporaries of a plan into blocks that are kept from one
call to the next. A block is free if nothing refers to it: arrays in it, and views of these, have it
as their base. Results of plans are never placed in blocks. Blocks are given back when no kernel has
used one for five seconds, and when an allocation fails.
"""

import math
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve

from letir.ast import LATE_BOUND
from letir.ast.process_state import renew_after_fork
from letir.ast.terms import Bind, Lambda, Local
from letir.eval.memory_checks import PooledMemory

_MIN_BYTES = 1 << 17  # bytes: smaller arrays stay in the heap when they are freed
MAX_BYTES = 1 << 27  # bytes of all blocks
IDLE = 5.0  # seconds without use after which blocks are given back


def _count_references(blocks: list) -> list[int]:
    """The number of references to each block."""
    return [sys.getrefcount(block) for block in blocks]


# references to a block in a list alone, as ``_count_references`` counts them in this version of
# Python
(_FREE,) = _count_references([np.empty(1, np.uint8)])


class _Arena:
    """The blocks of this process, by their bytes."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin without blocks, as in the child of a fork, whose threads are gone."""
        self.lock = threading.Lock()  # held for a few lines only
        self.blocks: dict[int, list[PooledMemory]] = {}
        self.bytes, self.used = 0, 0.0
        self.thread: threading.Thread | None = None

    def new_array(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """``np.empty(shape, dtype)``, in a block."""
        size = math.prod(shape) * dtype.itemsize
        if size < _MIN_BYTES:
            return np.empty(shape, dtype)
        # not waiting: the collector may run a finalizer here, which calls a plan
        lock = self.lock
        if not lock.acquire(blocking=False):
            return np.empty(shape, dtype)
        try:
            self.used = time.monotonic()
            block = self.free_block(size)
            if block is None and size <= MAX_BYTES:
                block = self.new_block(size)
            result = None if block is None else np.ndarray(shape, dtype, block)
        finally:
            lock.release()
        return np.empty(shape, dtype) if result is None else result

    def free_block(self, size: int) -> PooledMemory | None:
        """A block of this size that nothing refers to."""
        blocks = self.blocks.get(size, [])
        counts = _count_references(blocks)
        return blocks[counts.index(_FREE)] if _FREE in counts else None

    def new_block(self, size: int) -> PooledMemory:
        """A block that did not exist; the others are given back if there is no room for it."""
        if self.bytes + size > MAX_BYTES:
            self.clear()
        try:
            block = PooledMemory(size, np.uint8)
        except MemoryError:
            self.clear()
            block = PooledMemory(size, np.uint8)
        self.blocks.setdefault(size, []).append(block)
        self.bytes += size
        if self.thread is None:
            self.start()
        return block

    def start(self) -> None:
        """Start the thread that gives blocks back; without one, no block is kept."""
        thread = threading.Thread(target=self.watch, name="letir arena", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # too many threads, or Python is about to end
            self.clear()
        else:
            self.thread = thread

    def clear(self) -> None:
        """Forget all blocks: the memory of those that are free goes back to the system."""
        self.blocks, self.bytes = {}, 0

    def watch(self) -> None:
        """Give all blocks back when they are idle; the main function of a thread."""
        while True:
            time.sleep(IDLE)
            with self.lock:
                if time.monotonic() - self.used >= IDLE:
                    self.clear()
                    self.thread = None
                    return


_arena = _Arena()
new_array = _arena.new_array
renew_after_fork(_arena)


def bytes_in_arena() -> int:
    """The bytes of all blocks that are kept now."""
    return _arena.bytes


def give_back() -> None:
    """Give all blocks back now."""
    with _arena.lock:
        _arena.clear()


def let_kernels_reuse_memory(fn: Lambda) -> Lambda:
    """``fn``, whose kernels and copies write large results that are only temporary into blocks."""
    results = _possible_results(fn)
    binds = []
    for bind in fn.binds:
        call = getattr(bind.op.impl, "call", None)
        large = [binder for binder in bind.binders if _bytes_of(binder) >= _MIN_BYTES]
        if large and results.isdisjoint(large):
            if hasattr(call, "new_array"):
                call.new_array = new_array
            if bind.op.role == "copy" and bind.attrs["order"] == "K":
                bind = bind.replace(op=evolve(bind.op, impl=_copy_impl, numpy=()))  # noqa: PLW2901
        binds.append(bind)
    return fn.with_binds(binds)


def contiguous_copy(x: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
    """A copy of an array in C order, in a block, as ``dtype``: by default, the dtype of ``x``."""
    result = new_array(x.shape, x.dtype if dtype is None else dtype)
    result[...] = x
    return result


def _copy_into_block(x: np.ndarray) -> np.ndarray:
    """A copy of an array in the same memory order, in a block if that is the order of C."""
    return contiguous_copy(x) if x.flags.c_contiguous else x.copy("K")


def _copy_impl(xp: Any, x: Any, *, order: str = "K") -> Any:
    """The ``impl`` of a copy that is only temporary."""
    return _copy_into_block(x) if xp is np else xp.array(x, copy=True, order=order)


_copy_impl.for_arrays = _copy_into_block  # type: ignore[attr-defined]  # which plans call directly


def _bytes_of(binder: Local) -> int:
    aval = binder.type
    size = getattr(aval, "size", None)
    return size * aval.dtype.itemsize if type(size) is int and not aval.weak else 0


def _possible_results(fn: Lambda) -> set:
    """The values that results of a program may be, or share memory with."""
    results: set[Any] = set(fn.ret.locals())
    for bind in reversed(fn.binds):
        is_result = not results.isdisjoint(bind.binders) and not _makes_new_arrays(bind)
        if bind.op.update is not None and not results.isdisjoint(bind.binders):
            results.add(bind.args[0])  # it may be updated in place
        if bind.op.role == "write_back":  # copies the elements of its second operand
            results.add(bind.args[0])
        elif is_result or bind.op.effect or (bind.op.holds_lambdas and not _makes_new_arrays(bind)):
            results.update(bind.locals())
    return results


def _makes_new_arrays(bind: Bind) -> bool:
    """Whether no result of a bind shares memory with an operand."""
    if bind.op.role == "fused":
        return all(map(_makes_new_arrays, bind.attrs["body"].binds))
    return bind.op.memory == "new"


LATE_BOUND["let_kernels_reuse_memory"] = let_kernels_reuse_memory
