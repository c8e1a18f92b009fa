"""``DeviceFunctions``: the array module that operations compute with on the arrays of a device.

The functions of the device's own module, and NumPy's parameters that these lack. Composites whose
function the module lacks, or computes differently, are computed by the operations they consist of.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache
from letir.ast.types import PYTHON_NUMBERS
from letir.errors import LetirError
from letir.eval.device_linalg import DeviceLinearAlgebra, DeviceStrides, DeviceTransforms
from letir.eval.device_ufuncs import ufunc_or_function, without_0d

Axis = int | Sequence[int] | None

# Functions without parameters that NumPy's have (where, initial, weights, methods of quantiles,
# stacks ...), or with other results: for complex nans, other modes, dtypes, signs of nan.
_COMPUTED_BY_PARTS = frozenset(
    {
        *("var", "std", "nanvar", "nanstd", "nanmean", "nansum", "nanprod", "nanmax", "nanmin"),
        *("quantile", "percentile", "nanquantile", "nanpercentile", "cov", "corrcoef"),
        *("choose", "angle", "polydiv", "polyval", "histogramdd", "inner", "pad", "interp", "sinc"),
        *("linalg.matrix_rank", "linalg.matrix_norm", "linalg.vector_norm"),
    }
)


class MissingFunction(LetirError, AttributeError):
    """An operation calls a function that the array module of the device lacks."""


class DeviceFunctions:
    """NumPy's functions, computed by an array module of a device.

    ``device``: its number, for arrays that are copied to it; None for the current one.
    """

    def __init__(self, module: Any, device: int | None = None):
        self.module, self.device = module, device
        self.linalg, self.fft = DeviceLinearAlgebra(self), DeviceTransforms(self)
        self.lib = _Strides(DeviceStrides(self))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("random", "cuda"):
            return getattr(self.module, name)
        try:
            result = ufunc_or_function(self, name)
        except AttributeError:
            raise MissingFunction(
                f"CuPy has no numpy.{name}\n"
                "  compute it on the host: pass cupy.asnumpy(x) in place of x"
            ) from None
        vars(self)[name] = result
        return result

    def __repr__(self) -> str:
        return f"letir's functions of {self.module!r}"

    def by_parts(self, path: str) -> bool:
        """Whether the function ``path`` is computed by the operations of its composite."""
        return path in _COMPUTED_BY_PARTS

    # ---- reductions ----

    def sum(
        self,
        x: Any,
        axis: Axis = None,
        dtype: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """``np.sum``."""
        result = self.module.sum(
            self._replace_masked(x, where, 0), axis, dtype=dtype, keepdims=keepdims
        )
        return result if initial is None else (result + initial).astype(result.dtype, copy=False)

    def prod(
        self,
        x: Any,
        axis: Axis = None,
        dtype: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """``np.prod``."""
        if isinstance(x, np.ndarray):  # of sizes, on the host
            return x.prod(axis=axis, dtype=dtype, keepdims=keepdims)
        result = self.module.prod(
            self._replace_masked(x, where, 1), axis, dtype=dtype, keepdims=keepdims
        )
        return result if initial is None else (result * initial).astype(result.dtype, copy=False)

    def max(
        self,
        x: Any,
        axis: Axis = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """``np.max``."""
        return self._extremum("max", "maximum", x, axis, keepdims, initial, where)

    def min(
        self,
        x: Any,
        axis: Axis = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """``np.min``."""
        return self._extremum("min", "minimum", x, axis, keepdims, initial, where)

    def _extremum(self, name, joined, x, axis, keepdims, initial, where) -> Any:
        """The maximum or minimum of the elements and ``initial``."""
        if initial is None:
            return getattr(self.module, name)(x, axis, keepdims=keepdims)
        x = self._replace_masked(x, where, initial)
        start = self.asarray(initial, x.dtype)
        if not x.size:
            shape = self.module.sum(x, axis, keepdims=keepdims).shape
            return self.module.full(shape, start, x.dtype)
        result = getattr(self.module, name)(x, axis, keepdims=keepdims)
        return getattr(self.module, joined)(result, start)

    def any(self, x: Any, axis: Axis = None, keepdims: bool = False, where: Any = None) -> Any:
        """``np.any``."""
        x = x if where is None else self._replace_masked(x.astype(bool), where, False)
        return self.module.any(x, axis, keepdims=keepdims)

    def all(self, x: Any, axis: Axis = None, keepdims: bool = False, where: Any = None) -> Any:
        """``np.all``."""
        x = x if where is None else self._replace_masked(x.astype(bool), where, True)
        return self.module.all(x, axis, keepdims=keepdims)

    def mean(
        self,
        x: Any,
        axis: Axis = None,
        dtype: Any = None,
        keepdims: bool = False,
        where: Any = None,
    ) -> Any:
        """``np.mean``."""
        if where is None:
            return self.module.mean(x, axis, dtype=dtype, keepdims=keepdims)
        kind = np.mean(np.ones(1, x.dtype), dtype=dtype).dtype
        wide = np.float32 if dtype is None and kind == np.float16 else kind
        shape = np.broadcast_shapes(x.shape, where.shape)
        count = self.module.broadcast_to(where, shape).sum(axis=axis, keepdims=keepdims)
        total = self.sum(x, axis, wide, keepdims, where=where)
        return (total / count).astype(kind, copy=False)

    def count_nonzero(self, x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
        """``np.count_nonzero``."""
        return self.module.sum(x != 0, axis, dtype=np.int64, keepdims=keepdims)

    def _replace_masked(self, x: Any, where: Any, else_: Any) -> Any:
        """The array with ``else_`` in place of the elements that ``where`` leaves out."""
        if where is None:
            return x
        return self.module.where(where, x, self.asarray(else_, x.dtype))

    # ---- operands on the host ----

    def copy_to_host(self, x: Any) -> Any:
        """A copy of an array of the device, for which the host waits; other values themselves."""
        return x.get() if isinstance(x, self.module.ndarray) else x

    def copy_to_device(self, x: Any) -> Any:
        """A copy of an array of the host, complete when calls on other streams read it."""
        cuda = self.module.cuda
        with nullcontext() if self.device is None else cuda.Device(self.device):
            result = self.module.asarray(x)
            cuda.get_current_stream().synchronize()
        return result

    def _array(self, x: Any) -> Any:
        """``x`` as an array of the device, if it is a number."""
        return x if isinstance(x, self.module.ndarray) else self.module.asarray(x)

    def broadcast_to(self, x: Any, shape: Any) -> Any:
        """``np.broadcast_to``, also of a number."""
        return self.module.broadcast_to(self._array(x), shape)

    def where(self, condition: Any, *operands: Any) -> Any:
        """``np.where``."""
        return self.module.where(*map(without_0d, (condition, *operands)))

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        """``np.clip``."""
        return self.module.clip(self._array(x), without_0d(low), without_0d(high))

    def dot(self, x: Any, y: Any) -> Any:
        """``np.dot``, also of numbers."""
        x, y = self._array(x), self._array(y)  # numbers count by their own dtype here
        return self.module.dot(x, y) if x.ndim and y.ndim else self.module.multiply(x, y)

    def concatenate(
        self,
        arrays: Sequence,
        axis: int | None = 0,
        dtype: Any = None,
        casting: str = "same_kind",
    ) -> Any:
        """``np.concatenate``; without an axis, of numbers too."""
        if any(type(x) in PYTHON_NUMBERS for x in arrays):
            aval = np.result_type(*[getattr(x, "dtype", x) for x in arrays])
            arrays = [self.module.asarray(x, aval) for x in arrays]
        return self.module.concatenate(
            list(map(self._array, arrays)), axis, dtype=dtype, casting=casting
        )

    def convolve(self, x: Any, y: Any, mode: str = "full") -> Any:
        """``np.convolve`` in the dtype of the result."""
        return self.module.convolve(*self._promote_to_one_dtype(x, y), mode)

    def correlate(self, x: Any, y: Any, mode: str = "valid") -> Any:
        """``np.correlate`` in the dtype of the result."""
        return self.module.correlate(*self._promote_to_one_dtype(x, y), mode)

    def _promote_to_one_dtype(self, *arrays: Any) -> list:
        """Arrays in the dtype that holds the numbers of all."""
        aval = np.result_type(*[x.dtype for x in arrays])
        return [x.astype(aval, copy=False) for x in arrays]

    # ---- functions that the module lacks or computes otherwise ----

    def write_in_order(self, x: Any, item: Any, new: Any) -> None:
        """``x[item] = new``; of several writes to one element the last one counts, as in NumPy."""
        xp = self.module
        places = xp.arange(x.size).reshape(x.shape)[item]
        new = xp.asarray(new).astype(x.dtype, copy=False)
        new = new.reshape(new.shape[max(new.ndim - places.ndim, 0) :])
        values, places = xp.broadcast_to(new, places.shape).ravel(), places.ravel()
        order = xp.argsort(places, kind="stable")
        places, is_last = places[order], xp.ones(len(order), bool)
        is_last[:-1] = places[1:] != places[:-1]
        x[xp.unravel_index(places[is_last], x.shape)] = values[order[is_last]]

    def average(self, x: Any, axis: Axis, weights: Any, keepdims: bool = False) -> Any:
        """``np.average`` with ``weights`` of the shape of ``x``, or of its axes ``axis``."""
        if weights.shape != x.shape:
            axes = [n % x.ndim for n in (axis if type(axis) is tuple else (axis,))]
            weights = weights.transpose([axes.index(n) for n in sorted(axes)])
            shape = [size if n in axes else 1 for n, size in enumerate(x.shape)]
            weights = self.module.broadcast_to(weights.reshape(shape), x.shape)
        kind = np.average(np.ones(1, x.dtype), weights=np.ones(1, weights.dtype)).dtype
        total = weights.sum(axis=axis, dtype=kind, keepdims=keepdims)
        scaled = self.module.multiply(x, weights, dtype=kind)
        return scaled.sum(axis=axis, keepdims=keepdims) / total

    def isclose(self, x: Any, y: Any, rtol: Any, atol: Any, equal_nan: bool = False) -> Any:
        """``np.isclose``, also of complex numbers and with arrays as tolerances."""
        xp = self.module
        x, y = self._array(x), self._array(y)
        near = (xp.abs(x - y) <= atol + rtol * xp.abs(y)) & xp.isfinite(y) | (x == y)
        return near | (xp.isnan(x) & xp.isnan(y)) if equal_nan else near

    def lexsort(self, keys: Sequence, axis: int = -1) -> Any:
        """``np.lexsort``: sorts by each key in turn; the last key is the primary one."""
        xp = self.module
        order = xp.argsort(keys[0], axis=axis, kind="stable")
        for key in keys[1:]:
            then = xp.argsort(xp.take_along_axis(key, order, axis), axis=axis, kind="stable")
            order = xp.take_along_axis(order, then, axis)
        return order

    def spacing(self, x: Any) -> Any:
        """``np.spacing``: the distance to the next number away from 0; for float16, upwards."""
        xp, x = self.module, self._array(x)
        x = x.astype(np.spacing(np.zeros(1, x.dtype)).dtype, copy=False)
        start = x if x.dtype == np.float16 else xp.abs(x)
        step = xp.nextafter(start, xp.asarray(np.inf, x.dtype)) - start
        step = xp.where((start == x) | (x == 0), step, -step)
        return xp.where(xp.isfinite(x), step, xp.asarray(np.nan, x.dtype))

    def geomspace(
        self,
        start: Any,
        stop: Any,
        num: int = 50,
        endpoint: bool = True,
        dtype: Any = None,
        axis: int = 0,
    ) -> Any:
        """``np.geomspace``, as powers of 10 between ends that are exactly as given."""
        xp = self.module
        start, stop = xp.broadcast_arrays(self._array(start), self._array(stop))
        aval = np.result_type(start.dtype, stop.dtype, float(num), np.zeros((), dtype))
        start, stop = start.astype(aval), stop.astype(aval)
        sign = start / xp.abs(start)
        first, last = xp.log10(start / sign), xp.log10(stop / sign)
        result = 10.0 ** xp.linspace(first, last, num, endpoint=endpoint) * sign
        if num:
            result[0] = start
        if num > 1 and endpoint:
            result[-1] = stop
        return xp.moveaxis(result, 0, axis).astype(aval if dtype is None else dtype, copy=False)

    def packbits(self, x: Any, axis: int | None = None, bitorder: str = "big") -> Any:
        """``np.packbits``, also along an axis."""
        xp = self.module
        x, axis = (x.ravel(), 0) if axis is None else (x, axis)
        rows = xp.moveaxis(x != 0, axis, -1).astype(np.uint8)
        rest = -rows.shape[-1] % 8
        rows = xp.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, rest)])
        rows = rows.reshape(*rows.shape[:-1], -1, 8) << self._bits(bitorder)
        return xp.moveaxis(rows.sum(axis=-1, dtype=np.uint8), -1, axis)

    def unpackbits(
        self,
        x: Any,
        axis: int | None = None,
        count: int | None = None,
        bitorder: str = "big",
    ) -> Any:
        """``np.unpackbits``, also along an axis."""
        xp = self.module
        x, axis = (x.ravel(), 0) if axis is None else (x, axis)
        rows = xp.moveaxis(x, axis, -1)[..., None] >> self._bits(bitorder) & np.uint8(1)
        rows = rows.reshape(*rows.shape[:-2], -1)
        if count is not None:
            more = count - rows.shape[-1]
            rows = rows[..., :count]
            if more > 0 and count > 0:
                rows = xp.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, more)])
        return xp.moveaxis(rows, -1, axis)

    def _bits(self, bitorder: str) -> Any:
        """The exponents of 2 of the bits of a byte, in the order ``bitorder``."""
        places = np.arange(8, dtype=np.uint8)
        return self.module.asarray(places if bitorder == "little" else places[::-1].copy())


class _Strides:
    """A stand-in for ``np.lib``: operations use only its ``stride_tricks``."""

    def __init__(self, stride_tricks: DeviceStrides):
        self.stride_tricks = stride_tricks


_made = BoundedCache(64)  # (array module, number of the device) -> its DeviceFunctions


def device_functions(module: Any, device: int | None = None) -> DeviceFunctions:
    """The functions that compute on the arrays of a device, see ``DeviceFunctions``.

    Plans keep their constants for each of these.
    """
    result = _made.get((module, device))
    if result is None:
        result = _made[module, device] = DeviceFunctions(module, device)
    return result


LATE_BOUND["device_functions"] = device_functions
