"""Arguments that a program changes: whether they can be, before anything runs."""

import numpy as np

from letir.ast.terms import Lambda
from letir.errors import TraceError


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
            if j != i and overlap(array, other):
                raise TraceError(
                    f"{name}, which the program changes, shares memory with "
                    f"{fn.params[j].name or f'argument {j}'}: it was recorded for arrays apart\n"
                    "  pass a copy of one of them"
                )


def overlap(array, other) -> bool:
    """Whether two arguments may share memory."""
    both = isinstance(array, np.ndarray) and isinstance(other, np.ndarray)
    return bool(array.size) and (array is other or (both and np.may_share_memory(array, other)))
