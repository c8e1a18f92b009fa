"""NumPy functions that select, make grids, or call user functions; queries of memory sharing."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.sizes.size import Size
from letir.ast.symbolic_sizes import is_static_shape
from letir.errors import DTypeError, ShapeError, TraceError
from letir.tracing.mutation.memory_order import copy_to_order
from letir.tracing.mutation.views import view_base
from letir.tracing.numpy_functions.join_split_rotate import axis_from_front, broadcast_arrays
from letir.tracing.numpy_protocols.array_value import numpy_namespace
from letir.tracing.operands import check_array_type, traced_or_array
from letir.tracing.source_locations import at_user
from letir.tracing.trace_state import active_trace

# ---- grids ----


# a list before NumPy 2.5, then a tuple
_SPARSE_GRID: Any = type(np.meshgrid([0], sparse=True, copy=False))


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> Sequence[Any]:
    """np.meshgrid."""
    if indexing not in ("xy", "ij"):
        raise ShapeError(
            f"meshgrid: indexing={indexing!r} is neither 'xy' nor 'ij'\n"
            "  write indexing='xy' or indexing='ij'"
        )
    n = len(xi)
    shapes = [(1,) * i + (-1,) + (1,) * (n - 1 - i) for i in range(n)]
    if indexing == "xy" and n > 1:
        shapes[:2] = (1, -1, *shapes[0][2:]), (-1, 1, *shapes[1][2:])
    grid: Any = [traced_or_array(x).reshape(shape) for x, shape in zip(xi, shapes, strict=True)]
    grid = _SPARSE_GRID(grid) if sparse else broadcast_arrays(*grid)
    return tuple([x.copy() for x in grid]) if copy else grid


def ix_(*args: Any) -> tuple[Any, ...]:
    """np.ix_: indices along each axis; masks become indices."""
    result, n = [], len(args)
    for i, arg in enumerate(args):
        places = traced_or_array(arg)
        if places.ndim != 1:
            raise ShapeError(f"ix_: indices must have one axis, found {places.ndim}\n  ravel them")
        indices = places.nonzero()[0] if places.dtype == bool else places
        if not indices.size and isinstance(arg, list | tuple):
            indices = indices.astype(np.intp)
        result.append(indices.reshape((1,) * i + (-1,) + (1,) * (n - i - 1)))
    return tuple(result)


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """np.diag_indices_from, computed from the shape."""
    if arr.ndim < 2 or len(set(arr.shape)) > 1:
        raise ShapeError(
            f"diag_indices_from: all axes must be equally long, found {arr.shape}\n"
            "  pass a square array"
        )
    return np.diag_indices(arr.shape[0], arr.ndim)


def _triangle_arguments(arr, k: int) -> tuple:
    """(rows, k, columns) of a matrix."""
    if arr.ndim != 2:
        raise ShapeError(f"input array must be 2-d, found shape {arr.shape}\n  pass a matrix")
    return arr.shape[0], k, arr.shape[1]


def diag(v: Any, k: int = 0) -> Any:
    """np.diag: the diagonal of a matrix, or a matrix with a diagonal."""
    v = traced_or_array(v)
    if v.ndim not in (1, 2):
        raise ShapeError(
            f"diag: an array with 1 or 2 axes is needed, found {v.ndim}\n"
            "  pass a vector or a matrix"
        )
    if v.ndim == 2:
        return np.diagonal(v, k)
    if type(v.shape[0]) is Size:
        places = numpy_namespace().arange(v.shape[0])
        square = np.where(places[:, None] == places, v, v.dtype.type(0))
        below, right = max(-k, 0), max(k, 0)
        return np.pad(square, ((below, right), (right, below))) if k else square
    return np.diagflat(v, operator.index(k))


# ---- selection ----


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """np.select as nested np.where."""
    if len(condlist) != len(choicelist):
        raise ShapeError(
            f"select: {len(condlist)} conditions for {len(choicelist)} choices\n"
            "  pass one choice for each condition"
        )
    if not len(condlist):
        raise ShapeError("select: the list of conditions is empty\n  pass at least one condition")
    conditions = [traced_or_array(c) for c in condlist]
    if any(c.dtype != bool for c in conditions):
        raise DTypeError("select: conditions must be boolean arrays\n  compare first: x > 0")
    # Python numbers are weak here
    number = (int, float, complex)
    choices = [c if type(c) in number else traced_or_array(c) for c in (*choicelist, default)]
    *choices, out = choices
    dtype = np.result_type(*choices, out)
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        out = np.where(condition, choice, out)
    out = out.astype(dtype, copy=False)
    return copy_to_order(out) if isinstance(out, Value) else out


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """np.piecewise; where several conditions hold, the last function counts.

    A function of elementwise operations is computed for all elements (with a valid stand-in where
    its condition does not hold) and selected by np.where, without a guard. Any other function gets
    the selected elements as in NumPy, and their number is guarded.
    """
    x, funclist = traced_or_array(x), list(funclist)
    conditions = _conditions_of(x, condlist)
    if len(funclist) == len(conditions) + 1:  # the last is for all other elements
        others = conditions[0]
        for condition in conditions[1:]:
            others = others | condition
        conditions.append(~others)
    if len(funclist) != len(conditions):
        raise ShapeError(
            f"piecewise: {len(conditions)} conditions for {len(funclist)} functions\n"
            "  pass one function for each condition, and one more for the rest if needed"
        )
    if not any(isinstance(value, Value) for value in (x, *conditions)):
        return _pieces_of_known(x, conditions, funclist, args, kw)
    if not isinstance(x, Value):
        x = LATE_BOUND["as_buffer"](active_trace(), x.copy())
    out = np.zeros_like(x)
    for condition, piece in zip(conditions, funclist, strict=True):
        out = _replace_where(out, x, condition, piece, args, kw)
    return out


def _pieces_of_known(x, conditions: list, funclist: list, args: tuple, kw: dict):
    """np.piecewise of ordinary arrays, with functions that may give traced values."""
    out = LATE_BOUND["as_buffer"](active_trace(), np.zeros_like(x))
    for condition, piece in zip(conditions, funclist, strict=True):
        if not callable(piece):
            out[condition] = piece
        elif condition.any():
            out[condition] = piece(x[condition], *args, **kw)
    return out


def _conditions_of(x, condlist) -> list:
    """The list of conditions of np.piecewise; a single condition may be given without a list."""
    is_list = isinstance(condlist, list | tuple) or np.ndim(condlist) > 0
    if is_list and x.ndim:
        is_list = isinstance(condlist[0], list | tuple) or getattr(condlist[0], "ndim", 0) > 0
    conditions = [traced_or_array(c).astype(bool) for c in (condlist if is_list else [condlist])]
    for condition in conditions:
        if is_static_shape(x.shape) and condition.shape != x.shape[: condition.ndim]:
            np.empty(x.shape)[np.empty(condition.shape, bool)]  # raises NumPy's IndexError
    return [c.reshape(*c.shape, *[1] * (x.ndim - c.ndim)) if c.ndim else c for c in conditions]


def _replace_where(out, x, condition, piece, args: tuple, kw: dict):
    """``out`` with the values of one piece where its condition holds."""
    if not callable(piece):
        return np.where(condition, traced_or_array(piece).astype(x.dtype), out)
    binds = getattr(x.emitter, "binds", None) if isinstance(x, Value) else None
    if binds is not None and x.size:
        inside = x.reshape(-1)[np.argmax(condition)]
        selected = np.where(condition, x, inside)
        before = len(binds)
        values = piece(selected, *args, **kw)
        # a trial: if the function is not elementwise, the recorded binds stay unused
        if all(map(_is_elementwise, binds[before:])):
            return np.where(condition, traced_or_array(values).astype(x.dtype), out)
    out = out.copy()
    out[condition] = piece(x[condition], *args, **kw)
    return out


def _is_elementwise(bind) -> bool:
    """Whether each element of a result depends only on the operands' elements in its place."""
    return bind.op.elementwise or not bind.args  # without operands: a constant


# ---- user functions ----


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    """np.apply_along_axis: one call of the function for each row, as in NumPy."""
    arr = traced_or_array(arr)
    axis = axis_from_front(axis, arr.ndim)
    rows = np.moveaxis(arr, axis, -1)
    outer = rows.shape[:-1]
    if 0 in outer:
        raise ShapeError(
            "apply_along_axis: there is no row to call the function on\n"
            "  pass an array that is not empty"
        )
    results = [func1d(rows[i], *args, **kwargs) for i in np.ndindex(*outer)]
    for result in results:
        if issubclass(type(result), np.ndarray):  # a masked array would lose its mask
            check_array_type(result)
    arrays = [traced_or_array(result) for result in results]
    stacked = np.stack([array.astype(arrays[0].dtype, copy=False) for array in arrays])  # as NumPy
    stacked = stacked.reshape(outer + stacked.shape[1:])
    n, more = len(outer), stacked.ndim - len(outer)
    return np.moveaxis(stacked, list(range(n, n + more)), list(range(axis, axis + more)))


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """np.apply_over_axes."""
    operand = traced_or_array(a)
    for axis in map(operator.index, axes if np.ndim(axes) else (axes,)):
        at = axis + operand.ndim if axis < 0 else axis
        result = func(operand, at)
        if result.ndim != operand.ndim:
            result = np.expand_dims(result, at)
        if result.ndim != operand.ndim:
            raise ShapeError(
                "apply_over_axes: the function returns a result of the wrong rank\n"
                "  return the array reduced along the axis, with or without it"
            )
        operand = result
    return operand


# ---- queries ----


def sort_complex(a: Any) -> Any:
    """np.sort_complex: complex numbers of single precision for short integers only."""
    result = np.sort(a)
    if result.dtype.kind == "c":
        return result
    # like numpy.sort_complex, which tests characters of dtypes: float32 becomes complex128
    return result.astype("F" if result.dtype.char in "bhBH" else "D")


def may_share_memory(a: Any, b: Any, /, max_work: int = 0) -> bool:
    """np.may_share_memory: whether both have the same base."""
    arrays = [getattr(x, "array", x) for x in (a, b)]  # of Variables
    if not any(isinstance(x, Value) for x in arrays):
        return np.may_share_memory(*arrays)
    return all(isinstance(x, Value) for x in arrays) and view_base(a) is view_base(b)


def shares_memory(a: Any, b: Any, /, max_work: int = -1) -> bool:
    """np.shares_memory, if it is known."""
    if a is not b and may_share_memory(a, b):
        raise TraceError(
            "shares_memory: whether two parts of one traced value overlap is not "
            f"known{at_user()}\n"
            "  compare their indices, or ask numpy.may_share_memory"
        )
    return a is b and a.size > 0


FUNCTIONS = {
    np.meshgrid: meshgrid,
    np.ix_: ix_,
    np.diag: diag,
    np.diag_indices_from: diag_indices_from,
    np.tril_indices_from: lambda arr, k=0: np.tril_indices(*_triangle_arguments(arr, k)),
    np.triu_indices_from: lambda arr, k=0: np.triu_indices(*_triangle_arguments(arr, k)),
    np.select: select,
    np.piecewise: piecewise,
    np.apply_along_axis: apply_along_axis,
    np.apply_over_axes: apply_over_axes,
    np.sort_complex: sort_complex,
    np.may_share_memory: may_share_memory,
    np.shares_memory: shares_memory,
    np.astype: lambda x, dtype, /, *, copy=True, device=None: x.astype(dtype, copy=copy),
    np.common_type: lambda *arrays: np.common_type(*[np.zeros(0, a.dtype) for a in arrays]),
}


LATE_BOUND["piecewise"] = piecewise
