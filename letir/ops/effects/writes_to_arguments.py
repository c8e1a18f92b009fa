"""Operations for code that writes in place: ``write_back``, ``guard_order`` and ``complex_of``.

``write_back`` writes new contents into an array of the caller. ``guard_order`` checks the memory
order of an argument, which decides whether a reshape is a view. ``complex_of`` joins real and
imaginary parts. All other writes are recorded as ``index_set`` and ``index_add``, which return new
values. ``overlapping_pair`` tells which arguments share memory. See docs/in_place.md.
"""

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from letir.ast.record_fields import never
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType, broadcast_shapes
from letir.errors import GuardError, ShapeError, TraceError
from letir.ops.as_numpy import argument_writes
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import define, unbroadcast
from letir.ops.shape.shape_and_creation import zeros_like

_MAX_WORK: Any = 1_000  # of the exact test, beyond which two arrays count as overlapping
_MAX_IN_PAIRS = 32  # written arrays that are compared with each other array, one by one

# ---- writes to arguments ----


def _write_back_impl(xp, x, new):
    """Write ``new`` into the caller's array ``x`` and return ``x``; return ``new`` for a scalar."""
    # a scalar, a constant; CuPy has no read-only arrays
    if not isinstance(x, xp.ndarray) or not getattr(x.flags, "writeable", True):
        return new
    x[...] = new
    return x


def _write_back_aval(x, new):
    """The type of ``x``, which ``new`` must have too."""
    if (x.dtype, x.shape) != (new.dtype, new.shape):
        raise ShapeError(
            f"write_back: {new} cannot be the new contents of {x}\n"
            "  write values of the argument's type and shape"
        )
    return ArrayType(x.dtype, x.shape)


write_back = define(
    "write_back",
    _write_back_impl,
    _write_back_aval,
    vjp=lambda ct, y, x, new: (None, unbroadcast(ct, new)),
    jvp=lambda t, y, x, new: zeros_like(y) if t[1] is None else t[1],
    batch=lambda args, axes: (args[1], axes[1]),  # transforms change no arguments
    effect=True,
    source=argument_writes.write_back,
    role="write_back",
    memory="may_alias",
    write_through="read_only",
)


def changed_params(fn: Lambda) -> tuple[int, ...]:
    """The positions of the parameters into whose arrays the program writes."""
    return fn.memo(_changed_params)


def _changed_params(fn: Lambda) -> tuple[int, ...]:
    if write_back not in map(operator.attrgetter("op"), fn.binds):
        return ()
    changed = {bind.args[0] for bind in fn.binds if bind.op is write_back}
    return tuple([i for i, param in enumerate(fn.params) if param in changed])


# ---- memory order ----


def order_of(x: Any) -> "str | tuple":
    """The memory order of an array: "C", "F", or its strides."""
    if not hasattr(x, "flags") or x.flags.c_contiguous:
        return "C"
    return "F" if x.flags.f_contiguous else tuple(x.strides)


def _guard_order_impl(xp, x, *, order):
    """Raise GuardError if the memory order of ``x`` differs from that in the trace."""
    current = order_of(x)
    # an array with axes of length 1 can be in C and F order at once
    if current != order and not (order == "F" and hasattr(x, "flags") and x.flags.f_contiguous):
        raise GuardError(
            f"the program was recorded for an argument in memory order {order!r}, now it is "
            f"{current!r}: a reshape is a view of one and a copy of the other\n"
            "  trace again with this argument, or copy it before it is reshaped"
        )
    return ()


guard_order = define(
    "guard_order",
    _guard_order_impl,
    lambda x, *, order: (),
    vjp=never("it has no result"),
    jvp=never("it has no result"),
    batch=lambda args, axes, *, order: ((), ()),  # an example is not an array of the caller
    results=lambda **_: 0,
    effect=True,
    source=argument_writes.guard_order,
    guards=True,
)

# ---- shared memory ----


def overlapping_pair(arrays: Sequence, written: Iterable[int]) -> tuple[int, int] | None:
    """(i, j) of two arrays that share memory, i among the positions ``written``; None if none do.

    The ranges of their addresses are compared first, then exactly the elements. Objects that are
    not arrays share no memory. O(n log n) for n arrays that lie apart.
    """
    first = [i for i in written if has_memory(arrays[i])]
    others = [j for j, array in enumerate(arrays) if has_memory(array)]
    if len(first) > _MAX_IN_PAIRS:
        return _overlapping_of_many(arrays, first, others)
    for i in first:
        array, may_share = arrays[i], np.may_share_memory
        is_numpy = isinstance(array, np.ndarray)
        for j in others:
            other = arrays[j]
            # not a function of Python for each pair, which would take several times as long
            if is_numpy and isinstance(other, np.ndarray) and not may_share(array, other):
                continue
            if j != i and share_memory(array, other):
                return i, j
    return None


def share_memory(array: Any, other: Any) -> bool:
    """Whether two arrays have an element in common; True if that takes too long to find out."""
    if array is other:
        return True
    if not (isinstance(array, np.ndarray) and isinstance(other, np.ndarray)):
        return False
    if not np.may_share_memory(array, other):
        return False
    try:
        return np.shares_memory(array, other, _MAX_WORK)
    except np.exceptions.TooHardError:
        return True


def has_memory(array: Any) -> bool:
    """Whether a value is an array with elements; scalars have no memory of their own."""
    return hasattr(array, "flags") and not isinstance(array, np.generic) and array.size > 0


def _overlapping_of_many(
    arrays: Sequence, first: list[int], others: list[int]
) -> tuple[int, int] | None:
    """``overlapping_pair`` of many arrays, whose ranges of addresses are sorted."""
    written, by_id = set(first), dict[int, int]()
    ranges = []
    for j in others:
        array = arrays[j]
        if (same := by_id.setdefault(id(array), j)) != j and not written.isdisjoint((same, j)):
            return (same, j) if same in written else (j, same)
        if isinstance(array, np.ndarray):
            ranges.append((*np.lib.array_utils.byte_bounds(array), j))
    ranges.sort()
    active: list[tuple[int, int]] = []  # (end, position) of ranges that the next one may meet
    for begin, end, j in ranges:
        active = [(last, i) for last, i in active if last > begin]
        for _, i in active:
            is_written = i in written or j in written
            if is_written and share_memory(arrays[i], arrays[j]):
                return (i, j) if i in written else (j, i)
        active.append((end, j))
    return None


def overlap_error(name: str, other: str) -> TraceError:
    """The error for an argument that a program writes to, and one that shares its memory."""
    error = TraceError(
        f"{name}, which the program changes, shares memory with {other}\n"
        "  it was recorded for arrays that share no memory: pass a copy of one of them"
    )
    error.letir_runs_python = True  # type: ignore[attr-defined]
    return error


def separate_arguments(arguments: Sequence[Any], written: Iterable[int]) -> tuple | None:
    """(operands, attributes) of the test that arguments at the positions ``written`` share memory
    with no other one; None if there is no other array.

    ``arguments``: parameters with their types. Python numbers have no memory.
    """
    first = list(dict.fromkeys(written))
    arrays = [i for i, x in enumerate(arguments) if x.type is None or not x.type.weak]
    order = [*first, *[i for i in arrays if i not in {*first}]]
    if len(order) < 2 or not first:
        return None
    operands = tuple([arguments[i] for i in order])
    names = tuple([x.name or f"argument {i}" for x, i in zip(operands, order, strict=True)])
    return operands, {"written": len(first), "names": names}


# ---- complex numbers ----

_DOUBLES = frozenset([float, np.float64])


def _complex_of_impl(xp, re, im):
    """Both parts exactly: ``re + 1j * im`` would turn inf into nan and -0.0 into 0.0."""
    if type(re) in _DOUBLES and type(im) in _DOUBLES:
        return xp.complex128(complex(re, im))
    is_array = isinstance(re, xp.ndarray) or isinstance(im, xp.ndarray)
    re, im = xp.broadcast_arrays(re, im)
    out = xp.empty_like(re, dtype=xp.result_type(re, im, xp.complex64))
    out.real[...], out.imag[...] = re, im
    return out if is_array else out[()]


def _complex_of_aval(re, im):
    """The complex dtype with the precision of the parts."""
    dtype = np.result_type(re.dtype, im.dtype, np.complex64)
    return ArrayType(dtype, broadcast_shapes(re.shape, im.shape))


def _complex_of_jvp(tangents, y, re, im):
    """``complex_of`` the tangents, zeros for None."""
    zero = zeros_like(y).real
    return complex_of(*[zero if t is None else t for t in tangents])


complex_of = define(
    "complex_of",
    _complex_of_impl,
    _complex_of_aval,
    vjp=lambda ct, y, re, im: (unbroadcast(ct, re), unbroadcast(ct * 1j, im)),
    jvp=_complex_of_jvp,
    batch=pointwise_rule("complex_of"),
    source=argument_writes.complex_of,
    order="first",
)
