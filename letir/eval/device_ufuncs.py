"""``DeviceUfunc``: a ufunc of a device's array module with all the methods of NumPy's ufuncs.

The module's own methods are used where it has them. Other methods are computed by calls of the
ufunc: by a number of calls that grows with the logarithm of the length where the order of the
operands does not matter, else by one call for each element.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ast.process_state import float_errors

# exact in any order, so that neighbours can be folded first
_ORDERLESS = {
    *("maximum", "minimum", "fmax", "fmin", "gcd", "lcm"),
    *("bitwise_and", "bitwise_or", "bitwise_xor"),
    *("logical_and", "logical_or", "logical_xor"),
}
_REDUCTIONS = {
    **{"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"},
    **{"logical_and": "all", "logical_or": "any"},
}
# computed in single precision by the device's module, whatever the dtype
_INEXACT_AT = ("maximum", "minimum")


class DeviceUfunc:
    """A ufunc, by its name, of the array module ``xp`` with which operations compute."""

    def __init__(self, xp: Any, name: str):
        self.xp, self.__name__ = xp, name
        self.numpys: np.ufunc = getattr(np, name)

    @property
    def module_ufunc(self) -> Any:
        """The ufunc of the device's module."""
        return getattr(self.xp.module, self.__name__)

    def __call__(self, *operands: Any, **options: Any) -> Any:
        operands = tuple(map(without_0d, operands))
        if not options and all(map(_is_number, operands)):  # a launch would take longer
            with float_errors(all="ignore"):  # as on the device
                return self.numpys(*operands)
        if self.__name__.startswith("logical_"):  # the module has no loops for complex numbers
            operands = tuple([x != 0 if _is_complex(x) else x for x in operands])
        return self.module_ufunc(*operands, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.numpys, name)  # its identity, numbers of operands and dtypes

    def reduce(
        self,
        x: Any,
        axis: int | Sequence[int] | None = 0,
        dtype: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """``np.ufunc.reduce``."""
        reduction = _REDUCTIONS.get(self.__name__)
        if reduction is not None:
            options: dict = {} if initial is None else {"initial": initial}
            options |= {} if where is None else {"where": where}
            if dtype is not None:
                x = self.xp.asarray(x).astype(dtype)
            return getattr(self.xp, reduction)(x, axis=axis, keepdims=keepdims, **options)
        x = x.astype(self._fold_dtype(x.dtype, dtype), copy=False)
        axes = tuple(range(x.ndim)) if axis is None else axis if type(axis) is tuple else (axis,)
        axes = tuple([n % x.ndim for n in axes])
        shape = tuple([1 if n in axes else size for n, size in enumerate(x.shape)])
        mask = (
            None if where is None else self._merge_axes(self.xp.broadcast_to(where, x.shape), axes)
        )
        result = self._fold_rows(self._merge_axes(x, axes), mask, initial)
        remaining = tuple([size for n, size in enumerate(shape) if n not in axes])
        return result.reshape(shape if keepdims else remaining)

    def _fold_dtype(self, dtype: np.dtype, option: Any) -> np.dtype:
        """The dtype in which elements are folded."""
        if option is not None:
            return np.dtype(option)
        return self.numpys.resolve_dtypes((None, dtype, None), reduction=True)[-1]

    def _merge_axes(self, x: Any, axes: Sequence[int]) -> Any:
        """``x`` with ``axes`` merged into axis 0, along which elements are folded."""
        moved = self.xp.moveaxis(x, axes, tuple(range(len(axes))))
        count = math.prod([x.shape[n] for n in axes])
        return moved.reshape(count, *moved.shape[len(axes) :])

    def _fold_rows(self, rows: Any, mask: Any, initial: Any) -> Any:
        """The rows combined by the ufunc one after the other, from ``initial`` or the first row."""
        start = self.numpys.identity if initial is None else initial
        if start is None and (mask is not None or not len(rows)):
            raise ValueError(
                f"zero-size array to reduction operation {self.__name__} which has no identity"
            )
        begins = initial is not None or mask is not None or not len(rows)
        total = self.xp.full(rows.shape[1:], start, rows.dtype) if begins else rows[0]
        for k in range(0 if begins else 1, len(rows)):
            combined = self(total, rows[k]).astype(rows.dtype, copy=False)
            total = combined if mask is None else self.xp.where(mask[k], combined, total)
        return total

    def accumulate(self, x: Any, axis: int = 0, dtype: Any = None) -> Any:
        """``np.ufunc.accumulate``."""
        try:
            return self.module_ufunc.accumulate(x, axis=axis, dtype=dtype)
        except NotImplementedError:
            pass
        x = x.astype(self._fold_dtype(x.dtype, dtype), copy=False)
        out = self.xp.moveaxis(x, axis, 0).copy()
        if self.__name__ in _ORDERLESS:
            shift = 1
            while shift < len(out):
                out[shift:] = self(out[:-shift], out[shift:])
                shift *= 2
        else:
            for k in range(1, len(out)):
                out[k] = self(out[k - 1], out[k])
        return self.xp.moveaxis(out, 0, axis)

    def reduceat(self, x: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Any:
        """``np.ufunc.reduceat``."""
        starts = [int(n) for n in indices]
        if not starts:
            return self.xp.moveaxis(x, axis, 0)[:0].copy().swapaxes(0, axis)
        rows, ends = self.xp.moveaxis(x, axis, 0), [*starts[1:], x.shape[axis]]
        parts = [
            self.reduce(rows[start : end if end > start else start + 1], dtype=dtype)
            for start, end in zip(starts, ends, strict=True)
        ]
        return self.xp.moveaxis(self.xp.stack(parts), 0, axis)

    def at(self, x: Any, item: Any, new: Any = None) -> None:
        """``np.ufunc.at``, by as many calls as the most frequent index occurs."""
        if self.__name__ not in _INEXACT_AT:
            try:
                self.module_ufunc.at(x, item, *([] if new is None else [new]))
                return
            except NotImplementedError:
                pass
        xp = self.xp
        indexed = xp.arange(x.size).reshape(x.shape)[item]
        values = None if new is None else xp.broadcast_to(xp.asarray(new), indexed.shape).ravel()
        flat, places = x.ravel(), indexed.ravel()
        for chosen in _occurrence_rounds(xp, places):
            at = places[chosen]
            more = [] if values is None else [values[chosen]]
            flat[at] = self(flat[at], *more).astype(x.dtype, copy=False)
        x[...] = flat.reshape(x.shape)

    def outer(self, x: Any, y: Any, **options: Any) -> Any:
        """``np.ufunc.outer``."""
        x, y = self.xp.asarray(x), self.xp.asarray(y)
        return self(x.reshape(*x.shape, *[1] * y.ndim), y, **options)


def _occurrence_rounds(xp: Any, places: Any) -> Any:
    """Positions in ``places``: of the first occurrence of each value, then of the second, and so
    on.
    """
    if not places.size:
        return
    order = xp.argsort(places)
    ordered = places[order]
    earlier = xp.arange(len(places)) - xp.searchsorted(ordered, ordered)
    for count in range(int(earlier.max()) + 1):
        yield order[earlier == count]


def _is_number(x: Any) -> bool:
    """Whether an operand is a number of the host."""
    return isinstance(x, np.generic | int | float | complex)


def without_0d(x: Any) -> Any:
    """An operand; a 0-d NumPy array becomes a scalar, which device kernels accept."""
    return x[()] if type(x) is np.ndarray and not x.ndim else x


def _is_complex(x: Any) -> bool:
    """Whether an operand is complex."""
    return type(x) is complex or getattr(getattr(x, "dtype", None), "kind", "") == "c"


def ufunc_or_function(xp: Any, name: str) -> Callable | Any:
    """The module's attribute ``name``, a ufunc with all methods if NumPy's is a ufunc."""
    result = getattr(xp.module, name)
    return DeviceUfunc(xp, name) if isinstance(getattr(np, name, None), np.ufunc) else result
