"""Steps of plans that call kernels on whole arrays, see ``letir.kernels.stencils``."""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.terms import Bind


def _direct_kernel(write: Any) -> tuple:
    """(ufunc, shape, dtypes of results) of the kernel, which the current step calls."""
    facts: Any = write.bind.op.impl
    write.kernels = max(write.kernels, facts.least_state)
    result: tuple = facts.stencil
    return result


def stencil_form(write: Any, function: Callable) -> str:
    """The expression for the results of a kernel that reads whole arrays.

    ``function`` computes the results for arrays in other memory orders than that of C.
    """
    ufunc, shape, dtypes = _direct_kernel(write)
    empty = write.constant(write.bind.op.impl.call.new_array)
    made = ", ".join([f"{empty}({shape!r}, {write.constant(dtype)})" for dtype in dtypes])
    slots = list(map(write.slot, range(len(write.bind.args))))
    out = made if len(dtypes) == 1 else f"({made})"
    call = f"{write.constant(ufunc)}({', '.join(slots)}, out={out})"
    with_rows = [n for n in range(len(slots)) if len(write.type(n).shape) > 1]
    if len(shape) == 1 or not with_rows:
        return call
    test = " and ".join(dict.fromkeys([f"{slots[n]}.flags.c_contiguous" for n in with_rows]))
    return f"{call} if {test} else {write.constant(function)}({', '.join(slots)})"


def stencil_write(write: Any, bind: Bind) -> tuple[str, Callable[[str], str]] | None:
    """(array, text) for a kernel that writes into a part of an array, else None: the expression for
    the array to write into, and the statement for its name. No test is needed: nothing else refers
    to the array.
    """
    is_direct = getattr(bind.op.impl, "stencil", None) is not None and not write.plain
    if not is_direct or bind.op.update is None or write.slots[0] in write.slots[1:]:
        return None
    if write.is_sole(0):
        array = write.slot(0)
    elif write.is_argument(0):
        array = f"{write.constant(np.array)}({write.slot(0)})"
    else:
        return None
    ufunc, *_ = _direct_kernel(write)
    operands = ", ".join([write.slot(n) for n in range(1, len(bind.args))])
    return array, lambda name: f"{write.constant(ufunc)}({operands}, out={name})"
