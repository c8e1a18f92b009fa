"""Memory checks: whether an array is owned by one value, so that it may be updated in place
[semantics.md C2], and whether the arguments that a program writes to may be written to.

The evaluator moves a value out of its environment at its last use, so that the list of operands
holds the only reference. Any other observer (a caller, a result, a constant, a view) would hold
another one: the reference count of CPython proves sole ownership.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.primitive import Primitive
from letir.ast.source import source_line
from letir.ast.terms import Arg, Lambda
from letir.errors import ShapeError
from letir.eval.array_modules import is_lazy
from letir.ops.effects.writes_to_arguments import overlap_error, overlapping_pair


def _references_to_first(operands: list) -> int:
    """The reference count of the first operand."""
    return sys.getrefcount(operands[0])


def _references_to_base(view) -> int:
    """The reference count of the base of a view."""
    return sys.getrefcount(view.base)


# Measured, because it differs between versions of CPython: the counts of an array with one owner.
_ALONE = _references_to_first([np.empty(1)])
_BASE_ALONE = _references_to_base(np.empty(1)[:])


class PooledMemory(np.ndarray):
    """Memory to which a pool refers besides arrays, see ``letir.executor.kernels.arena``."""


def is_owned(xp: Any, operands: list) -> bool:
    """Whether the first operand is a writable array referenced only by the list of operands."""
    if _references_to_first(operands) > _ALONE:
        return False
    x = operands[0]
    if type(x) is not xp.ndarray:  # a scalar, or a subclass, which may hold other references
        return False
    flags, is_writeable = x.flags, getattr(x.flags, "writeable", True)  # CuPy has no such flag
    if x.base is None:
        return flags.owndata and is_writeable
    # the only view of its base, for example a transpose
    is_pooled = type(x.base) is PooledMemory
    return (
        _references_to_base(x) <= _BASE_ALONE + is_pooled
        and (is_pooled or type(x.base) is xp.ndarray)
        and x.base.base is None
        and x.base.flags.owndata
        and is_writeable
        and is_unfolded(x)
    )


def _is_owned_with_view(operands: list) -> bool:
    """Whether only the two operands refer to the memory of the first, a NumPy array of which the
    second is a view.
    """
    # before the operands have names here, which would be further references
    if len(operands) != 2 or _references_to_first(operands) != _ALONE + 1:
        return False
    if _references_to_first(operands[1:]) > _ALONE + 1:  # in two lists
        return False
    x, view = operands
    return (
        type(x) is np.ndarray is type(view)
        and view.base is x
        and x.base is None
        and x.flags.owndata
        and x.flags.writeable
    )


def is_unfolded(x: Any) -> bool:
    """Whether no two elements share an address, as they may in a view made by as_strided."""
    extent = x.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(x.strides, x.shape, strict=True)):
        if n > 1:
            if stride < extent:
                return False
            extent = stride * n
    return True


def update_in_place(op: Primitive, xp: Any, operands: list, attrs: Attrs) -> Any:
    """The result of an operation, computed in place in its first operand if that is owned."""
    is_free = is_owned(xp, operands) or (op.updates_from_view and _is_owned_with_view(operands))
    return (op.update if is_free else op.impl)(xp, *operands, **attrs)


def check_writable(fn: Lambda, leaves: list, changed: tuple[int, ...]) -> None:
    """Raise NumPy's ValueError if the program writes to a read-only array, TraceError if a written
    array overlaps another argument, whose values would depend on the order of reads and writes.
    """
    for i in changed:
        array = leaves[i]
        if not hasattr(array, "flags"):
            continue
        name = fn.params[i].name or f"argument {i}"
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            raise _read_only(fn, i, name)
    pair = overlapping_pair(leaves, changed)
    if pair is not None:
        raise overlap_error(*[fn.params[i].name or f"argument {i}" for i in pair])


def _read_only(fn: Lambda, place: int, name: str) -> ShapeError:
    """The error for a program that writes into a read-only array, with the line of the write."""
    param = fn.params[place]
    new = {b.args[1] for b in fn.binds if b.op.role == "write_back" and b.args[0] is param}
    sources = [b.source for b in fn.binds if not new.isdisjoint(b.binders) and b.source]
    return ShapeError(
        f"{name}: assignment destination is read-only{source_line(sources[0] if sources else None)}"
        "\n"
        f"  the program writes into this argument: pass a copy, {name}.copy()"
    )


def own_results(f: Lambda, results: tuple) -> tuple:
    """The results, copied where they share memory with a constant of the program.

    A value that is returned several times is copied once.
    """
    # a caller may write into results, and constants are used in the next call
    return copy_apart(f.ret.args, results, [bind.attrs["value"] for bind in f.constants])


def copy_apart(args: Sequence[Arg], results: Sequence, kept: Sequence) -> tuple:
    """The results, which are the values of ``args``, copied where they share memory with ``kept``.

    A value that is returned several times is copied once.
    """
    owners = {*map(id, kept)}
    by_value = dict(zip(args, results, strict=True))
    own = {
        arg: r.copy(order="K") if id(memory_owner(r)) in owners else r
        for arg, r in by_value.items()
    }
    return tuple([own[arg] for arg in args])


def empty_like_ufunc(
    operands: Sequence, dtypes: Sequence[Any], shape: Sequence[int] | None = None
) -> list[np.ndarray]:
    """Arrays for results, in the memory order that a ufunc gives them for these operands.

    ``shape``: of the results, if it is not that to which the operands are broadcast.
    """
    n = len(operands)
    nditer: Any = np.nditer  # its annotations do not allow None among the operands
    iterator = nditer(
        [*operands, *[None] * len(dtypes)],
        flags=["external_loop", "buffered", "delay_bufalloc", "grow_inner", "zerosize_ok"],
        op_flags=[["readonly"]] * n + [["writeonly", "allocate"]] * len(dtypes),
        op_dtypes=[None] * n + list(dtypes),
        order="K",
        itershape=shape,
    )
    return list(iterator.operands[n:])


def copy_in_order(array: Any) -> Any:
    """A copy of an array in the same memory order and direction; a scalar itself.

    Sums and products read memory in this order, and their rounding depends on it.
    """
    if not hasattr(array, "copy") or isinstance(array, np.generic):
        return array
    if is_lazy(array):  # it cannot be written into
        return array
    if not isinstance(array, np.ndarray) or min(array.strides, default=0) >= 0:
        return array.copy(order="K")
    forward = tuple([slice(None, None, -1 if n < 0 else 1) for n in array.strides])
    return array[forward].copy(order="K")[forward]


def writable_view(array: np.ndarray) -> np.ndarray:
    """A view of a read-only array for functions that do not write into it, but copy read-only
    arrays; the array itself if it does not own its memory.
    """
    if not array.flags.owndata:
        return array
    array.flags.writeable = True
    result = array.view()
    array.flags.writeable = False
    return result


def memory_owner(array: Any) -> Any:
    """The array that owns the memory of a view."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array
