"""Which binds may be rows of a table of instructions."""

import math
from typing import Any

import numpy as np

from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import NO_TYPE, Arg, Bind, Lambda, Local
from letir.ast.types import ArrayType
from letir.kernels.reduction_forms import is_sum
from letir.kernels.row_passes import reduction_form
from letir.kernels.scalar_forms import scalar_name
from letir.kernels.tables.table_kernel import arity_of

_MAX_MADE = 1 << 11  # the most elements that one operation computes
_MAX_READ = 1 << 15  # the most elements of an operand


def fits_table(bind: Bind, dtype: np.dtype, is_exact: bool = False) -> bool:
    """Whether the record and the types of a bind allow it to be part of a table."""
    op = bind.op
    if is_exact and not op.exact and not op.moves_elements and op.update is None:
        return False
    if op.effect or op.random or op.holds_lambdas or op.is_user_defined:
        return False
    if not all(_is_small(x.type, dtype, _MAX_READ) for x in bind.args if type(x) is Local):
        return False
    avals = [binder.type for binder in bind.binders]
    if any(not _is_small(aval, dtype, _MAX_READ) or aval.weak for aval in avals):
        return False
    if len(avals) > 1:
        return op.memory == "view" and len(bind.args) == 1
    (aval,) = avals
    if is_sum_of_parts(bind):
        return all(map(_has_plain_item, bind.attrs["items"]))
    if is_write(bind) or is_added(bind):
        return len(bind.args) == 2 and _has_plain_item(bind.attrs["item"])
    if op.role == "index":
        return len(bind.args) == 1 and _has_plain_item(bind.attrs["item"])
    if bind.args and (op.memory == "view" or op.moves_elements):
        return len(bind.args) <= (op.moves_elements or 1) and op.results is None
    if not bind.args:
        return not op.needs_elements
    if aval.size > _MAX_MADE:
        return False
    if is_sum(op):
        return reduction_form(bind) is not None and len(bind.args) == 1
    if multiplies_arrays(bind):
        return len(bind.args) == 2
    name = scalar_name(bind)
    return bool(op.elementwise and name and arity_of(name))


def multiplies_arrays(bind: Bind) -> bool:
    """Whether a bind is a product of matrices or vectors."""
    return bind.op.product in ("matrix", "outer")


def is_write(bind: Bind) -> bool:
    """Whether a bind replaces a part of an array by other elements."""
    return bind.op.update is not None and bind.op.moves_elements > 0


def is_added(bind: Bind) -> bool:
    """Whether a bind adds to a part of an array."""
    return bind.op.adds_parts == "operand"


def parts_read_after_writes(body: Lambda) -> set[Local]:
    """The results of indexing that are read after a part of their array is overwritten.

    Such an element of an array is copied; in its place the whole array would be.
    """
    last_use: dict[Arg, int] = {}
    overwritten: dict[Arg, int] = {}
    for n, bind in enumerate(body.binds):
        last_use.update(dict.fromkeys(bind.args, n))
        if is_write(bind) or is_added(bind):
            overwritten[bind.args[0]] = n
    last_use.update(dict.fromkeys(body.ret.args, len(body.binds)))
    result: set[Local] = set()
    arrays: dict[Arg, Arg] = {}  # a part that is a view -> its array
    for bind in body.binds:
        if bind.op.role == "index":
            (part,), array = bind.binders, arrays.get(bind.args[0], bind.args[0])
            if last_use.get(part, 0) > overwritten.get(array, len(body.binds)):
                result.add(part)
            else:
                arrays[part] = array
    return result


def is_sum_of_parts(bind: Bind) -> bool:
    """Whether a bind adds parts to zeros, each at an index of its own."""
    return bind.op.adds_parts == "zeros" and len(bind.args) == len(bind.attrs["items"])


def _is_small(aval: Any, dtype: np.dtype, most: int) -> bool:
    """Whether values of this type have this dtype and few elements."""
    if type(aval) is not ArrayType or aval is NO_TYPE or aval.dtype != dtype:
        return False
    return has_static_shape(aval) and math.prod(aval.shape) <= most


def _has_plain_item(item: Any) -> bool:
    """Whether an index has only integers, slices and an ellipsis."""
    entries = item if type(item) is tuple else (item,)
    return all(type(entry) in (int, slice) or entry is ... for entry in entries)
