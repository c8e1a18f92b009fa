"""``flatten_stacks``: a matrix that is stacked row by row from scalars becomes one stack."""

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.process_state import paused_gc
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ast.types import ArrayType
from letir.ops.define.records import array_dtype
from letir.ops.shape.concatenate_stack_split import stack
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import constant
from letir.visitors.usedef import use_counts

_MAX_CONSTANTS = 16  # in a row
_NUMBERS = (np.dtype(np.float64), np.dtype(np.int64))


@paused_gc()
def flatten_stacks(fn: Lambda) -> Lambda:
    """Stack the scalars of a matrix at once and reshape the result, not row by row.

    Applies to rows that are used nowhere else. Bodies do not change. Linear time.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[], %1: float64[] {
    ...   %2: float64[2] = stack(%0, %1, axis=0);
    ...   %3: float64[2] = stack(%1, 0.5, axis=0);
    ...   %4: float64[2, 2] = stack(%2, %3, axis=0);
    ...   return %4 }''')
    >>> print(flatten_stacks(f).listing(), end="")
    %2 = stack %0, %1, %1, 0.5, 0
    %3 = reshape %2, (2, 2), 'C'
    return %3
    """
    rows = {bind.binders[0]: scalars for bind in fn.binds if (scalars := _scalars_of(bind))}
    if not rows:
        return fn
    counts, replaced = use_counts(fn), {}
    unpacked: set[Arg] = set()
    for bind in fn.binds:
        if _is_matrix_of(bind, rows, counts):
            replaced[bind.binders[0]] = _flat_stack(bind, rows)
            unpacked.update(bind.args)
    if not replaced:
        return fn
    binds: list[Bind] = []
    for bind in fn.binds:
        first = bind.binders[0] if bind.binders else None
        if first in replaced:
            binds += replaced[first]
        elif first not in unpacked:
            binds.append(bind)
    return fn.with_binds(binds)


def _scalars_of(bind: Bind) -> tuple[Arg, ...]:
    """The elements of a row that is stacked from scalars or constant; () for other binds."""
    if bind.op is stack and all(getattr(arg.type, "shape", None) == () for arg in bind.args):
        return bind.args
    if bind.op is not constant:
        return ()
    row = bind.attrs["value"]
    is_short = row.ndim == 1 and row.size <= _MAX_CONSTANTS and row.dtype in _NUMBERS
    return tuple(map(Const, row.tolist())) if is_short and np.isfinite(row).all() else ()


def _is_matrix_of(bind: Bind, rows: dict, counts: dict) -> bool:
    """Whether a bind stacks such rows, which are used once each, into its own dtype."""
    if bind.op is not stack or bind.attrs["axis"] != 0 or len(bind.args) < 2:
        return False
    if type(bind.binders[0].type) is not ArrayType:
        return False
    if not all(arg in rows and counts[arg] == 1 for arg in bind.args):
        return False
    avals = [arg.type for row in bind.args for arg in rows[row]]
    return bool(array_dtype(*avals) == bind.binders[0].type.dtype)


def _flat_stack(bind: Bind, rows: dict) -> list[Bind]:
    """The stack of all scalars, and its reshape."""
    aval = bind.binders[0].type
    scalars = tuple([arg for row in bind.args for arg in rows[row]])
    flat = Local(aval.with_shape((len(scalars),)))
    shape = Attrs({"shape": aval.shape, "order": "C"})
    return [
        Bind((flat,), stack, scalars, Attrs({"axis": 0}), bind.source),
        Bind(bind.binders, reshape, (flat,), shape, bind.source),
    ]
