"""NumPy's linear algebra, transforms and windows for the array module of a device."""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND


def _conjugate_transposes(x: Any) -> Any:
    """The conjugate transposes of matrices."""
    return x.swapaxes(-1, -2).conj()


class DeviceLinearAlgebra:
    """``np.linalg``, computed by ``xp.module.linalg``."""

    def __init__(self, xp: Any):
        self.xp, self.module = xp, xp.module.linalg

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def cholesky(self, x: Any, upper: bool = False) -> Any:
        """``np.linalg.cholesky``, also of the upper triangle."""
        return (
            _conjugate_transposes(self.module.cholesky(_conjugate_transposes(x)))
            if upper
            else self.module.cholesky(x)
        )

    def solve(self, a: Any, b: Any) -> Any:
        """``np.linalg.solve``, with stacks of matrices that are broadcast."""
        vector = b.ndim == 1
        columns = b[:, None] if vector else b
        stack = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
        a = self.xp.broadcast_to(a, (*stack, *a.shape[-2:]))
        columns = self.xp.broadcast_to(columns, (*stack, *columns.shape[-2:]))
        result = self.module.solve(a, columns)
        return result[..., 0] if vector else result

    def svd(
        self, x: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
    ) -> Any:
        """``np.linalg.svd``, computed from eigenvalues if the matrices are Hermitian."""
        xp = self.xp
        if not hermitian:
            return self.module.svd(x, full_matrices, compute_uv)
        if not compute_uv:
            return xp.flip(xp.sort(xp.abs(self.module.eigvalsh(x))), -1)
        w, u = self.module.eigh(x)
        order = xp.flip(xp.argsort(xp.abs(w)), -1)
        w = xp.take_along_axis(w, order, -1)
        u = xp.take_along_axis(u, order[..., None, :], -1)
        return u, xp.abs(w), _conjugate_transposes(u * xp.sign(w)[..., None, :])

    def pinv(
        self, x: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = "rcond"
    ) -> Any:
        """``np.linalg.pinv``."""
        xp = self.xp
        if rcond is None:
            rcond = 1e-15 if isinstance(rtol, str) else rtol
        if rcond is None:
            rcond = max(x.shape[-2:]) * np.finfo(x.dtype).eps
        if 0 in x.shape:
            return xp.empty((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
        u, s, vh = self.svd(x, full_matrices=False, hermitian=hermitian)
        cutoff = xp.asarray(rcond)[..., None] * s.max(axis=-1, keepdims=True)
        is_large = s > cutoff
        inverse = xp.where(is_large, 1 / xp.where(is_large, s, 1), 0).astype(s.dtype, copy=False)
        return xp.matmul(_conjugate_transposes(vh), inverse[..., None] * _conjugate_transposes(u))


class DeviceTransforms:
    """``np.fft``, computed by ``xp.module.fft``."""

    def __init__(self, xp: Any):
        self.module = xp.module.fft

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.module, name)
        return _with_full_axes(function) if name.endswith("n") else function


def _with_full_axes(transform: Callable) -> Callable:
    """``transform``, along several axes, with -1 in ``s`` for the full length of an axis."""

    def transformed(x: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        if s is not None and -1 in s:
            along = range(-len(s), 0) if axes is None else axes
            s = tuple([x.shape[axis] if n == -1 else n for n, axis in zip(s, along, strict=True)])
        return transform(x, s=s, axes=axes, norm=norm)

    return transformed


class DeviceStrides:
    """``np.lib.stride_tricks``, whose windows may slide along one axis several times."""

    def __init__(self, xp: Any):
        self.as_strided = xp.module.lib.stride_tricks.as_strided

    def sliding_window_view(self, x: Any, window_shape: Any, axis: Any = None) -> Any:
        """``np.lib.stride_tricks.sliding_window_view``."""
        window = (window_shape,) if isinstance(window_shape, int) else tuple(window_shape)
        axes = (axis,) if isinstance(axis, int) else range(x.ndim) if axis is None else axis
        axes = [n % x.ndim for n in axes]
        shape = list(x.shape)
        for n, size in zip(axes, window, strict=True):
            shape[n] -= size - 1
        strides = (*x.strides, *[x.strides[n] for n in axes])
        return self.as_strided(x, (*shape, *window), strides)


def apply_to_stacks(function: Callable, xp: Any) -> Callable:
    """``function``, of one matrix, applied to each matrix of a stack."""

    def computed(x: Any) -> Any:
        if x.ndim == 2 or not x.size:
            return function(x) if x.size else x.copy()
        result = [function(matrix) for matrix in x.reshape(-1, *x.shape[-2:])]
        return xp.stack(result).reshape(x.shape)

    return computed


LATE_BOUND["apply_to_stacks"] = apply_to_stacks
