"""``DASK_FUNCTIONS``: the array module that operations compute with on Dask arrays.

``dask.array``, extended by parameters of NumPy's functions that operations pass and Dask lacks.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np

from letir.ast.types import dtype_bounds


def _new_array(*_args: Any, **_options: Any) -> Any:
    """Refuses to make an array that its caller is going to write into.

    Views of a Dask array have no memory in common with it: what is written into one is lost.
    """
    raise NotImplementedError("it is computed by writing into an array")


def _reshape(x: Any, shape: Any, order: str = "C", **_options: Any) -> Any:
    """``np.reshape`` in C order."""
    if order != "C":
        raise NotImplementedError("reshape in another order than C")
    return da.reshape(x, shape)


def _concatenate(arrays: Sequence, axis: int | None = 0, dtype: Any = None, **_options: Any) -> Any:
    """``np.concatenate``; without an axis, of the flattened arrays."""
    if axis is None:
        arrays, axis = [da.ravel(da.asarray(x)) for x in arrays], 0
    result = da.concatenate(arrays, axis=axis)
    return result if dtype is None else result.astype(dtype)


def _stack(arrays: Sequence, axis: int = 0, dtype: Any = None, **_options: Any) -> Any:
    """``np.stack`` with a dtype."""
    result = da.stack(arrays, axis=axis)
    return result if dtype is None else result.astype(dtype)


def _split(x: Any, sections: Any, axis: int = 0) -> list:
    """``np.split``: equal parts, or parts between positions."""
    size = x.shape[axis]
    if isinstance(sections, int | np.integer):
        ends: list = [size * n // sections for n in range(1, sections)]
    else:
        ends = list(sections)
    places = zip([0, *ends], [*ends, size], strict=True)
    whole = (slice(None),) * (axis % x.ndim)
    return [x[(*whole, slice(start, end))] for start, end in places]


def _count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """``np.count_nonzero`` with ``keepdims``."""
    return da.sum(da.asarray(x).astype(bool), axis=axis, keepdims=keepdims, dtype=np.intp)


def _isclose(x: Any, y: Any, rtol: Any, atol: Any, equal_nan: bool = False) -> Any:
    """``np.isclose``, whose tolerances may be arrays; Dask's own would call itself forever."""
    compare = functools.partial(np.isclose, equal_nan=equal_nan)
    return da.core.elemwise(compare, x, y, rtol, atol, dtype=bool)


def _einsum(subscripts: str, *operands: Any, **options: Any) -> Any:
    """``np.einsum`` without diagonals, whose elements may be in any block."""
    letters = subscripts.replace(" ", "").partition("->")[0].split(",")
    if any(len(set(axes)) < len(axes.replace("...", "")) for axes in letters):
        raise NotImplementedError("einsum along a diagonal")
    return da.einsum(subscripts, *operands, **options)


def _full(shape: Any, value: Any, dtype: Any = None, **_options: Any) -> Any:
    """``np.full``, of a value that may be an array without axes."""
    value = da.asarray(value)
    result = da.broadcast_to(value, shape)
    return result if dtype is None else result.astype(dtype)


def _take(
    x: Any, places: Any, axis: int | None = None, mode: str = "raise", **_options: Any
) -> Any:
    """``np.take`` that raises for places outside, as Dask's indexing does."""
    if mode != "raise":
        raise NotImplementedError(f"take with mode={mode!r}")
    return da.take(da.ravel(x), places, axis=0) if axis is None else da.take(x, places, axis=axis)


def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """``np.searchsorted`` in sorted numbers, of one value too."""
    if sorter is not None:
        raise NotImplementedError("searchsorted with a sorter")
    if getattr(v, "ndim", 0):
        return da.searchsorted(a, v, side=side)
    return da.searchsorted(a, da.reshape(da.asarray(v), (1,)), side=side)[0]


def _dtype_aware_maker(make: Callable) -> Callable:
    """``np.zeros`` or another maker; Dask's own ignore a dtype that is not a keyword."""
    return lambda like, dtype=None, **options: make(like, dtype=dtype)


def _singular_values(
    x: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """``np.linalg.svd`` without vectors."""
    if compute_uv or hermitian:
        raise NotImplementedError("the signs of its vectors would depend on the blocks")
    return da.linalg.svd(x)[1]


def _cholesky(x: Any, upper: bool = False) -> Any:
    """``np.linalg.cholesky``: by default the lower factor, where Dask gives the upper one."""
    return da.linalg.cholesky(x, lower=not upper)


def _no_qr(*_args: Any, **_options: Any) -> Any:
    """Refuses ``np.linalg.qr``, whose factors Dask computes with other signs."""
    raise NotImplementedError("the signs of its factors would depend on the blocks")


class _Ufunc:
    """A ufunc of Dask's with the method ``accumulate``, which goes from block to block."""

    def __init__(self, name: str):
        self._name, self._own = name, getattr(da, name)

    def __call__(self, *operands: Any, **options: Any) -> Any:
        return self._own(*operands, **options)

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._own, name)
        except AttributeError:
            raise NotImplementedError(f"dask.array.{self._name} has no {name}") from None

    def accumulate(self, x: Any, axis: int = 0, dtype: Any = None) -> Any:
        """``np.ufunc.accumulate`` of an extremum."""
        ufunc = getattr(np, self._name)
        kind = np.dtype(dtype or x.dtype)
        lowest, highest = dtype_bounds(kind)
        start = lowest if self._name in ("maximum", "fmax") else highest
        return da.reductions.cumreduction(ufunc.accumulate, ufunc, start, x, axis, kind)


class _LinearAlgebra:
    """``dask.array.linalg``, as far as its results are NumPy's."""

    svd = staticmethod(_singular_values)
    qr = staticmethod(_no_qr)
    cholesky = staticmethod(_cholesky)

    def __getattr__(self, name: str) -> Any:
        return _function_of_dask(da.linalg, name)


def _function_of_dask(module: Any, name: str) -> Any:
    """A function of ``dask.array`` or of its part ``linalg``.

    Raises NotImplementedError for a function that Dask lacks, AttributeError for names such as
    ``__wrapped__``, by which Python asks an object what it is.
    """
    try:
        return getattr(module, name)
    except AttributeError:
        if name.startswith("__"):
            raise
        raise NotImplementedError(f"{module.__name__} has no {name}") from None


class _DaskFunctions:
    """The functions of this file and of ``dask.array``, as attributes.

    ``makes_arrays``: whether arrays of zeros and ones can be made, for operations that return them.
    """

    def __init__(self, makes_arrays: bool = False):
        if makes_arrays:
            vars(self).update({name: _dtype_aware_maker(getattr(da, name)) for name in _MAKERS})

    ndarray = da.Array
    newaxis = None
    pi, e, inf, nan = math.pi, math.e, math.inf, math.nan
    array = copy = copyto = put_along_axis = fill_diagonal = staticmethod(_new_array)
    empty = zeros = ones = empty_like = zeros_like = ones_like = staticmethod(_new_array)
    ascontiguousarray = staticmethod(da.asarray)
    reshape = staticmethod(_reshape)
    concatenate = staticmethod(_concatenate)
    stack = staticmethod(_stack)
    split = staticmethod(_split)
    count_nonzero = staticmethod(_count_nonzero)
    isclose = staticmethod(_isclose)
    einsum = staticmethod(_einsum)
    full = staticmethod(_full)
    take = staticmethod(_take)
    searchsorted = staticmethod(_searchsorted)
    index = operator.getitem
    linalg = _LinearAlgebra()

    def __getattr__(self, name: str) -> Any:
        result = getattr(np, name, None)
        if isinstance(result, type) and not hasattr(da, name):  # a dtype, such as np.float64
            return result
        return _Ufunc(name) if name in _EXTREMA else _function_of_dask(da, name)

    def __repr__(self) -> str:
        return "dask.array"


_EXTREMA = ("maximum", "minimum", "fmax", "fmin")
_MAKERS = ("zeros", "ones", "zeros_like", "ones_like")
DASK_FUNCTIONS: Any = _DaskFunctions()
DASK_MAKERS: Any = _DaskFunctions(makes_arrays=True)
