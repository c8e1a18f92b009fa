"""``rule_for``: how an operation acts on arrays that are split into blocks of rows.

One axis of some operands is split, and this axis is called their rows. An operation acts row by row
if each block of its results needs only the same block of its operands; it gives partial results if
the results of all blocks can be added up, multiplied or compared. Other operations have no rule.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.terms import Bind
from letir.ast.types import ArrayType
from letir.dask.einsum_labels import labels_of_dot, labels_of_einsum, labels_of_matmul
from letir.dask.row_indexing import assemble_rule, index_rule, index_write_rule
from letir.dask.row_rule import (
    SUM,
    Partial,
    RowRule,
    SplitOperands,
    attrs_for,
    broadcast_row_axes,
    operand_types,
    with_row_count,
)
from letir.errors import LetirError
from letir.kernels.reduction_forms import is_mean


def rule_for(bind: Bind, split: SplitOperands) -> RowRule | None:
    """The rule of a bind for these operands, None if it has none."""
    op, types = bind.op, [arg.type for arg in bind.args]
    if op.effect or op.random or op.holds_lambdas or not all(type(t) is ArrayType for t in types):
        return None
    if "shape" in bind.attrs and bind.attrs["shape"] is None:
        return None
    rule = _rule_named(op.name) or (_elementwise_rule if op.elementwise else None)
    result = None if rule is None else rule(bind, split)
    if result is None or result.combine is not None:
        return result
    results = _axes_of_results(bind, split, result)
    if results is None:
        return None
    return RowRule(result.needed, results, None, result.attrs, result.shape_axis, result.numbers)


def _rule_named(name: str) -> Callable | None:
    """The rule that is registered for an operation."""
    return _RULES.get(name)


def _axes_of_results(bind: Bind, split: SplitOperands, rule: RowRule) -> tuple[int, ...] | None:
    """The axis of rows of each result: the axis that is longer for operands with one more row."""
    more = split.count + 1
    avals = [
        with_row_count(arg.type, axis, more)
        for arg, axis in zip(bind.args, rule.needed, strict=True)
    ]
    attrs = attrs_for(rule.attrs or bind.attrs, rule.shape_axis, more)
    try:
        inferred = bind.op.aval(*avals, **attrs)
    except LetirError:
        return None
    grown = inferred if type(inferred) is tuple else (inferred,)
    axes = []
    for kind, binder in zip(grown, bind.binders, strict=True):
        shape = binder.type.shape
        places = [i for i, n in enumerate(shape) if n == split.count]
        fits = [i for i in places if with_row_count(binder.type, i, more) is kind]
        if len(fits) != 1:
            return None
        axes += fits
    return tuple(axes)


# ---- operands that are broadcast ----


def _elementwise_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """An elementwise operation on operands that are broadcast."""
    broadcast = broadcast_row_axes(operand_types(bind), split.axes, split.count)
    return broadcast and RowRule(broadcast[0])


def _searchsorted_rule(bind: Bind, split: SplitOperands, place: int) -> RowRule | None:
    """A search for the elements of the operand at ``place``, which is split, in the other one."""
    others = [axis for i, axis in enumerate(split.axes) if i != place]
    if any(axis is not None for axis in others) or split.axes[place] is None:
        return None
    return RowRule(split.axes)


# ---- reductions, and other operations along axes ----


def _axes_named(bind: Bind, default: Any = None) -> tuple[int, ...]:
    """The axes that the attribute ``axis`` or ``axes`` names; None names all."""
    ndim = bind.args[0].type.ndim
    axis = bind.attrs.get("axis", bind.attrs.get("axes", default))
    if axis is None:
        return tuple(range(ndim))
    return tuple([a % ndim for a in (axis if type(axis) is tuple else (axis,))])


def _reduction_rule(
    bind: Bind, split: SplitOperands, combine: Partial | None = None
) -> RowRule | None:
    """A reduction, perhaps of masked elements; ``combine`` joins the results of several rows."""
    result = broadcast_row_axes(operand_types(bind), split.axes, split.count)
    if result is None or result[0][0] is None:
        return None
    if result[0][0] not in _axes_named(bind):
        return RowRule(result[0])
    return None if combine is None else RowRule(result[0], (None,), combine)


def _accumulation_rule(bind: Bind, split: SplitOperands, combine: Partial) -> RowRule | None:
    """A sum or product, which must not begin with another number in each block."""
    return _reduction_rule(bind, split, combine if bind.attrs["initial"] is None else None)


def _mean_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """A mean: the quotient of a sum, unless a mask chooses how many numbers there are."""
    aval, dtype = bind.args[0].type, bind.attrs["dtype"]
    is_sum = len(bind.args) == 1 and (dtype is None or np.dtype(dtype).kind in "fc")
    count = math.prod(aval.shape[i] for i in _axes_named(bind))
    return _reduction_rule(bind, split, Partial("add", count) if is_sum else None)


def _other_axes_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """An operation along other axes than the rows, such as a sort."""
    axis = split.axes[0]
    same = all(a == axis for a in split.axes)
    return RowRule(split.axes) if same and axis not in _axes_named(bind, -1) else None


def _stack_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """A join of parts of one shape along a new axis."""
    axes = {axis for axis in split.axes if axis is not None}
    if len(axes) != 1:
        return None
    (axis,) = axes
    if any(arg.type.ndim <= axis or arg.type.shape[axis] != split.count for arg in bind.args):
        return None
    return RowRule((axis,) * len(bind.args))


def _concatenate_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """A join of parts along another axis than the rows."""
    result = _stack_rule(bind, split)
    return None if result is None or result.needed[0] in _axes_named(bind) else result


def _matrix_stack_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """An operation on stacks of matrices whose rows are an axis of the stack."""
    stacks = [arg.type.ndim - 2 for arg in bind.args]
    if any(a is not None and a >= n for a, n in zip(split.axes, stacks, strict=True)):
        return None
    if len(bind.args) == 1:
        return RowRule(split.axes)
    broadcast = broadcast_row_axes(operand_types(bind), split.axes, split.count)
    return broadcast and RowRule(broadcast[0]) if broadcast and broadcast[1] > 2 else None


# ---- shapes ----


def _move_axes_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """An operation that moves axes, or adds axes of size 1."""
    return RowRule(split.axes)


def _squeeze_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """A squeeze; its axes are named, because a block may have one row."""
    shape = bind.args[0].type.shape
    dropped = bind.attrs["axis"]
    if dropped is None:
        dropped = tuple([i for i, n in enumerate(shape) if n == 1])
    return RowRule(split.axes, attrs=Attrs({**bind.attrs, "axis": dropped}))


def _reshape_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """A reshape that keeps the rows as an axis."""
    (axis,), (aval,) = split.axes, operand_types(bind)
    shape = bind.binders[0].type.shape
    before = math.prod(aval.shape[:axis])
    places = [i for i, n in enumerate(shape) if n == split.count]
    fits = [i for i in places if math.prod(shape[:i]) == before]
    if len(fits) != 1 or bind.attrs["order"] != "C" or 0 in aval.shape:
        return None
    attrs = Attrs({**bind.attrs, "shape": shape})
    return RowRule(split.axes, attrs=attrs, shape_axis=fits[0])


def _broadcast_to_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """``broadcast_to`` of rows."""
    (axis, *_), shape = split.axes, bind.attrs["shape"]
    place = len(shape) - bind.args[0].type.ndim + axis
    return RowRule(split.axes, shape_axis=place) if shape[place] == split.count else None


def _sum_to_size_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """The sum over the axes that a broadcast added or repeated."""
    (axis,), shape = split.axes, bind.attrs["shape"]
    place = len(shape) - bind.args[0].type.ndim + axis
    if place >= 0 and shape[place] == split.count:
        return RowRule(split.axes, shape_axis=place)
    return RowRule(split.axes, (None,), SUM)


# ---- products ----


def _product_rule(bind: Bind, split: SplitOperands, labels_of: Callable) -> RowRule | None:
    """A product of arrays, a partial result if rows are summed. ``labels_of(bind)``: its labels."""
    labels = labels_of(bind)
    if labels is None:
        return None
    operands, result = labels
    rows = {
        names[axis] for names, axis in zip(operands, split.axes, strict=True) if axis is not None
    }
    if len(rows) != 1 or any(names.count(next(iter(rows))) > 1 for names in operands):
        return None
    (row,) = rows
    needed = tuple([names.index(row) if row in names else None for names in operands])
    pairs = zip(bind.args, needed, strict=True)
    if any(axis is not None and arg.type.shape[axis] != split.count for arg, axis in pairs):
        return None  # one that is broadcast
    if row in result:
        return RowRule(needed)
    return None if bind.binders[0].type.dtype.kind == "b" else RowRule(needed, (None,), SUM)


def _convolution_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """A convolution of examples, which the first axis counts, with whole weights."""
    return RowRule(split.axes) if split.axes == (0, None) else None


def _convolution_weight_rule(bind: Bind, split: SplitOperands) -> RowRule | None:
    """The derivative of a convolution with respect to its weights."""
    return RowRule((0, 0), (None,), SUM) if set(split.axes) <= {0, None} else None


def repeats_value(bind: Bind) -> bool:
    """Whether a bind repeats a value, or makes one, in the shape of its attribute ``shape``."""
    return bind.op.repeats and bind.attrs["shape"] is not None


def is_masked_mean(bind: Bind) -> bool:
    """Whether a bind is a mean of the elements that a mask chooses."""
    return is_mean(bind.op) and len(bind.args) == 2


def _rules_for_names(names: str, rule: Callable, **options: Any) -> dict[str, Callable]:
    """The same rule, with ``options``, for each of the operations in ``names``."""
    return dict.fromkeys(names.split(), functools.partial(rule, **options))


_RULES: dict[str, Callable] = {
    **_rules_for_names(
        "real imag round nan_to_num modf frexp divmod isclose complex_of i0", _elementwise_rule
    ),
    **_rules_for_names("i0_slope copy", _elementwise_rule),
    **_rules_for_names("searchsorted", _searchsorted_rule, place=1),
    **_rules_for_names("digitize", _searchsorted_rule, place=0),
    **_rules_for_names("sum", _accumulation_rule, combine=SUM),
    **_rules_for_names("prod", _accumulation_rule, combine=Partial("multiply")),
    **_rules_for_names("mean", _mean_rule),
    **_rules_for_names("count_nonzero", _reduction_rule, combine=SUM),
    **_rules_for_names("max", _reduction_rule, combine=Partial("maximum")),
    **_rules_for_names("min", _reduction_rule, combine=Partial("minimum")),
    **_rules_for_names("any", _reduction_rule, combine=Partial("logical_or")),
    **_rules_for_names("all", _reduction_rule, combine=Partial("logical_and")),
    **_rules_for_names("argmax argmin nanargmax nanargmin", _reduction_rule),
    **_rules_for_names(
        "sort argsort partition argpartition cumsum cumprod flip unwrap lexsort", _other_axes_rule
    ),
    **_rules_for_names(
        "ufunc_accumulate fftn ifftn rfftn irfftn split packbits unpackbits", _other_axes_rule
    ),
    **_rules_for_names("concatenate", _concatenate_rule),
    **_rules_for_names("stack", _stack_rule),
    **_rules_for_names(
        "cholesky det inv eig eigh eigvals eigvalsh svd svdvals qr slogdet", _matrix_stack_rule
    ),
    **_rules_for_names(
        "expm logm sqrtm tril triu solve solve_sylvester solve_triangular", _matrix_stack_rule
    ),
    **_rules_for_names("transpose expand_dims", _move_axes_rule),
    **_rules_for_names("squeeze", _squeeze_rule),
    **_rules_for_names("reshape", _reshape_rule),
    **_rules_for_names("broadcast_to", _broadcast_to_rule),
    **_rules_for_names("sum_to_size", _sum_to_size_rule),
    **_rules_for_names("matmul", _product_rule, labels_of=labels_of_matmul),
    **_rules_for_names("dot", _product_rule, labels_of=labels_of_dot),
    **_rules_for_names("einsum", _product_rule, labels_of=labels_of_einsum),
    **_rules_for_names("conv conv_transpose", _convolution_rule),
    **_rules_for_names("conv_weight", _convolution_weight_rule),
    **_rules_for_names("index", index_rule),
    **_rules_for_names("index_set index_add", index_write_rule),
    **_rules_for_names("assemble", assemble_rule),
}
