"""Whether an array belongs to nobody else, so that an update may be done in it [C2].

The evaluator moves a value out of its environment at the last use: then the list of operands has
the only reference. Whoever else could see the array, a caller, a result, a constant, a view of it,
an observer, has a reference as well, and CPython counts them: the proof is the count.

Arguments that a program changes: whether they can be, before anything runs.
"""

import sys

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.primitive import Primitive
from letir.ast.terms import Lambda
from letir.errors import TraceError


def _references_to_first(operands: list) -> int:
    """How many references there are to the first operand."""
    return sys.getrefcount(operands[0])


def _references_to_base(view) -> int:
    """How many references there are to the array whose memory a view has."""
    return sys.getrefcount(view.base)


# Counted and not said, as it differs from one CPython to the next: of what has one owner.
_ALONE = _references_to_first([np.empty(1)])
_BASE_ALONE = _references_to_base(np.empty(1)[:])


def is_owned(xp, operands: list) -> bool:
    """Whether the first operand is a writable array whose memory the list of operands alone has."""
    if _references_to_first(operands) > _ALONE:
        return False
    x = operands[0]
    if type(x) is not xp.ndarray:  # a scalar, or a subclass that may keep what it likes
        return False
    flags = x.flags
    if x.base is None:
        return flags.owndata and flags.writeable
    # a view that is the only one of its base, such as a transpose
    return (
        _references_to_base(x) <= _BASE_ALONE
        and type(x.base) is xp.ndarray
        and x.base.base is None
        and x.base.flags.owndata
        and flags.writeable
        and is_unfolded(x)
    )


def is_unfolded(x) -> bool:
    """Whether no two elements are at one place, as they may be in a view that strides made."""
    extent = x.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(x.strides, x.shape, strict=True)):
        if n > 1:
            if stride < extent:
                return False
            extent = stride * n
    return True


def updated(op: Primitive, xp, operands: list, attrs: Attrs):
    """The result of an operation that may be done in the array of its first operand."""
    compute = op.update if is_owned(xp, operands) else op.impl
    return compute(xp, *operands, **attrs)


def check_writable(fn: Lambda, leaves: list, changed: tuple[int, ...]) -> None:
    """Raise NumPy's ValueError if an array that the program changes is read-only, TraceError if it
    overlaps another argument: which of its values that has would depend on the order of reading.
    """
    for i in changed:
        array = leaves[i]
        if not hasattr(array, "flags"):
            continue
        name = fn.params[i].name or f"argument {i}"
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            raise ValueError(f"{name}: assignment destination is read-only")
        for j, other in enumerate(leaves):
            if j != i and _overlap(array, other):
                raise TraceError(
                    f"{name}, which the program changes, shares memory with "
                    f"{fn.params[j].name or f'argument {j}'}: it was recorded for arrays apart\n"
                    "  pass a copy of one of them"
                )


def _overlap(array, other) -> bool:
    """Whether two arguments may share memory."""
    both = isinstance(array, np.ndarray) and isinstance(other, np.ndarray)
    return bool(array.size) and (array is other or (both and np.may_share_memory(array, other)))
