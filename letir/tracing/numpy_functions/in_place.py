"""NumPy functions that change their first argument: ``WRITES``.

Each computes the new array with functional operations and replaces the traced value, which records
an in-place update [semantics.md B6]. Ordinary arrays are refused earlier.
"""

from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.symbolic_sizes import is_static_shape
from letir.errors import ShapeError
from letir.ops.indexing.index_expressions import item_along
from letir.tracing.operands import array_in_dtype, take_along, traced_or_array
from letir.tracing.source_locations import at_user


def repeat_to_fit(values: Any, count: int, dtype: Any, shape: Any = -1) -> Any:
    """``values`` repeated cyclically, in the shape of the positions."""
    row = array_in_dtype(values, dtype).reshape(-1)
    return np.resize(row, count).reshape(shape)


def refuse_scalar(name: str, target: Any) -> None:
    """Raise NumPy's TypeError if a function would write into a number or a list."""
    value = target
    if isinstance(target, Value):  # first: a traced number claims to be a float
        if not target.is_scalar():
            return
        value = target.concrete_value()  # none in an abstract trace, where it may be an array
    if isinstance(value, np.generic | int | float | complex | list | tuple):
        kind = type(value).__name__
        raise TypeError(f"{name}() argument 1 must be a numpy.ndarray, not {kind}{at_user()}")


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """np.put: writes at flat indices."""
    refuse_scalar("put", a)
    places = traced_or_array(ind).reshape(-1)
    v = array_in_dtype(v, a.dtype)
    if not v.size or not places.size:
        return
    if mode != "raise":
        places = places % a.size if mode == "wrap" else np.clip(places, 0, a.size - 1)
    new = a.reshape(-1).at[places].set(repeat_to_fit(v, places.size, a.dtype))
    a.replace(new.reshape(a.shape))


def place(arr: Any, mask: Any, vals: Any) -> None:
    """np.place: writes the values in order where the mask is true."""
    mask = traced_or_array(mask).reshape(-1).astype(bool)
    row = array_in_dtype(vals, arr.dtype).reshape(-1)
    if mask.size != arr.size:
        raise ShapeError(
            f"place: a mask of {mask.size} elements for an array of {arr.size}\n"
            "  pass a mask of the array's shape"
        )
    if not row.size:
        if mask.any():
            raise ShapeError("place: there are no values to insert\n  pass at least one value")
        return
    order = (np.cumsum(mask) - 1) % row.size
    new = np.where(mask, take_along(row, order), arr.reshape(-1))
    arr.replace(new.reshape(arr.shape))


def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """np.putmask: writes to each element its own value."""
    mask = traced_or_array(mask).astype(bool)
    if mask.size != a.size:
        raise ShapeError(
            f"putmask: a mask of {mask.size} elements for an array of {a.size}\n"
            "  pass a mask of the array's shape"
        )
    values = array_in_dtype(values, a.dtype)
    if values.size:
        new = repeat_to_fit(values, a.size, a.dtype).reshape(a.shape)
        a.replace(np.where(mask.reshape(a.shape), new, a))


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """np.put_along_axis."""
    whole = arr.reshape(-1) if axis is None else arr
    item = item_along(whole, traced_or_array(indices), 0 if axis is None else axis)
    new = whole.at[item].set(array_in_dtype(values, arr.dtype)).reshape(arr.shape)
    del whole  # a view: a Variable with views could not be written into
    arr.replace(new)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """np.fill_diagonal."""
    if a.ndim < 2 or (a.ndim > 2 and len(set(a.shape)) > 1):
        raise ShapeError(
            f"fill_diagonal: all axes must be equally long, found {a.shape}\n"
            "  write the diagonal by an index: x[i, i] = v"
        )
    if a.ndim == 2 and not is_static_shape(a.shape) and not wrap and not np.ndim(val):
        rows, columns = map(PRIMITIVES["arange"], a.shape)
        a.replace(np.where(rows[:, None] == columns, array_in_dtype(val, a.dtype), a))
        return
    step = sum(int(np.prod(a.shape[i + 1 :])) for i in range(a.ndim))
    end = a.shape[1] * a.shape[1] if a.ndim == 2 and not wrap else None
    places = np.arange(a.size)[:end:step]
    new = a.reshape(-1).at[places].set(repeat_to_fit(val, len(places), a.dtype))
    a.replace(new.reshape(a.shape))


WRITES = {
    np.put: put,
    np.place: place,
    np.putmask: putmask,
    np.put_along_axis: put_along_axis,
    np.fill_diagonal: fill_diagonal,
}
