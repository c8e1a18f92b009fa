"""Which kinds of kernels a program may have, and a program with kernels of all kinds.

The tests here take little time: most programs are small, and have no kernels.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from letir.ast import LATE_BOUND
from letir.ast.bodies import all_bodies, has_bodies
from letir.ast.primitive import Primitive
from letir.ast.process_state import paused_gc
from letir.ast.record_fields import PRODUCTS_OF_WINDOWS
from letir.ast.terms import Arg, Lambda
from letir.executor.default_pipeline import has_compiler
from letir.passes.fusion.clustering import (
    LONG_CHAIN,
    MIN_ITEMS,
    is_worth_kernel,
    work_alone,
    work_around,
    work_of,
)

T = TypeVar("T")
_LOG = logging.getLogger("letir.plan")
_MIN_IN_TABLE = 200  # the fewest operations for which a table of instructions may save time


@paused_gc()
def with_all_kernels(fn: Lambda, is_exact: bool, on_device: bool) -> Lambda:
    """``fn`` with kernels of all kinds; ``fn`` itself if no group becomes a kernel.

    ``is_exact``: only kernels whose bits are NumPy's. ``on_device``: only kernels that can be
    launched on a device.
    """
    for may_pay, name in _KINDS_ON_DEVICE if on_device else _KINDS_OF_KERNELS:
        if may_pay(fn) and has_compiler():
            fn = try_to_compile(partial(_with_kind, name, fn, is_exact), fn)
    if any(hasattr(bind.op.impl, "call") for bind in fn.binds):
        fn = LATE_BOUND["let_kernels_reuse_memory"](fn)
    return fn


def _with_kind(name: str, fn: Lambda, is_exact: bool) -> Lambda:
    result: Lambda = LATE_BOUND[name](fn, is_exact)
    return result


def try_to_compile(make: Callable[[], T], otherwise: T) -> T:
    """``make()``, which compiles kernels; ``otherwise`` if it fails.

    Kernels only save time: a failure of LLVM must not stop the user's program.
    """
    try:
        return make()
    except Exception as error:
        if os.environ.get("LETIR_CHECK", "0") != "0":
            raise
        if threading.main_thread().is_alive():  # else Python is exiting, and starts no threads
            notes = " ".join(getattr(error, "__notes__", ()))
            _LOG.warning("no kernels, NumPy computes all calls: %s %s", repr(error), notes)
        return otherwise


def _levels(fn: Lambda) -> Iterable[Lambda]:
    """A program and all programs in it, without a walk for the many programs that hold none."""
    return all_bodies(fn) if has_bodies(fn) else (fn,)


def _has_convolutions(fn: Lambda) -> bool:
    """Whether a program has products of windows, at any depth."""
    products = {bind.op.product for body in _levels(fn) for bind in body.binds}
    return not products.isdisjoint(PRODUCTS_OF_WINDOWS)


def _is_long_chain(fn: Lambda) -> bool:
    """Whether a program has enough operations for one kernel of many to save time."""
    return _count_operations(fn) >= LONG_CHAIN


def _may_have_tables(fn: Lambda) -> bool:
    """Whether a program has enough operations for a table of instructions to save time."""
    return _count_operations(fn) >= _MIN_IN_TABLE


def _count_operations(fn: Lambda) -> int:
    """The number of binds, and of binds in groups."""
    result = len(fn.binds)
    for bind in fn.binds:
        if bind.op.role == "fused":
            result += len(bind.attrs["body"].binds)
    return result


def _has_operations(fn: Lambda) -> bool:
    """Whether a program has two operations, which may become one launch on a device."""
    return _count_operations(fn) > 1


def _has_loops(fn: Lambda) -> bool:
    """Whether a program has a loop, not counting loops in bodies."""
    return any(bind.op.bodies is not None and bind.op.bodies.loop for bind in fn.binds)


def _may_have_batches(fn: Lambda) -> bool:
    """Whether ``fn`` may have a group on the items of a batch: it moves elements of long arrays."""
    return any(_moves_elements(bind.op) and any(map(_is_long, bind.args)) for bind in fn.binds)


def _moves_elements(op: Primitive) -> bool:
    """Whether an operation reads or writes at an index, joins arrays, or has parts that do."""
    is_array_form = bool(op.scalar) and not op.elementwise
    has_parts = op.decompose is not None
    return op.role == "index" or op.moves_elements > 1 or is_array_form or has_parts


def _is_long(arg: Arg) -> bool:
    shape: tuple = getattr(arg.type, "shape", ())
    return bool(shape) and type(shape[0]) is int and shape[0] >= MIN_ITEMS


def _may_have_kernels(fn: Lambda) -> bool:
    """Whether a group of ``fn``, at any depth, may become a kernel."""
    for body in _levels(fn):
        reduced = computed = 0.0  # the elements that reductions read, and that groups compute
        for bind in body.binds:
            if bind.op.role == "fused":
                computed += work_of(bind.attrs["body"])
            else:
                computed = max(computed, work_alone(bind))
            if bind.op.reduction is not None:
                reduced += work_around(bind)
        if is_worth_kernel(max(reduced, computed)):
            return True
    return False


_KINDS_OF_KERNELS = (
    (_has_convolutions, "with_convolution_kernels"),
    (_has_loops, "with_loop_kernels"),
    (_may_have_tables, "with_first_tables"),
    (_is_long_chain, "with_unrolled_kernels"),
    (_may_have_tables, "with_tables"),
    (_may_have_batches, "with_batch_kernels"),
    (_may_have_kernels, "with_kernels"),
)
_KINDS_ON_DEVICE = (
    (_has_loops, "with_loop_kernels"),
    (_is_long_chain, "with_unrolled_kernels"),
    (_has_operations, "with_device_kernels"),
)

LATE_BOUND["with_all_kernels"] = with_all_kernels
