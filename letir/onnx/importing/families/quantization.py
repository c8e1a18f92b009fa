"""QuantizeLinear and DequantizeLinear."""

from typing import Any

import numpy as np

from letir.errors import MissingRule, ShapeError
from letir.onnx.importing.tensors import dtype_of
from letir.onnx.importing.values import axis_of, number_like


def _broadcast_parameter(value: Any, x: Any, axis: int, block_size: int) -> Any:
    """Scales or zero points made to broadcast with ``x``: one, one a row, or one a block."""
    if value.ndim == 0 or value.shape == (1,):
        return value.reshape(())
    axis = axis_of(axis, x.ndim)
    if not block_size:
        if value.ndim != 1:
            raise ShapeError(
                f"a scale of shape {value.shape} does not fit the axis {axis} of {x.shape}\n"
                "  pass one number, or a vector with one number for each place along the axis"
            )
        return value.reshape(tuple([-1 if i == axis else 1 for i in range(x.ndim)]))
    repeated = np.repeat(value, block_size, axis=axis)
    return repeated[(*[slice(None)] * axis, slice(0, x.shape[axis]))]


def _quantize(
    x: Any,
    scale: Any,
    zero: Any = None,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Any:
    """QuantizeLinear: numbers divided by a scale, rounded, and limited to the integers."""
    dtype = np.dtype(np.uint8) if zero is None else zero.dtype
    dtype = dtype_of(output_dtype) if output_dtype and zero is None else dtype
    if dtype.kind not in "iu" or dtype.name not in ("int8", "uint8", "int16", "uint16", "int32"):
        raise MissingRule(f"QuantizeLinear: {dtype} is not supported\n  use int8 or uint8")
    scale = _broadcast_parameter(scale, x, axis, block_size)
    if precision:
        x, scale = x.astype(dtype_of(precision)), scale.astype(dtype_of(precision))
    elif x.dtype.kind in "iu":
        x = x.astype(scale.dtype)
    rounded, limits = np.rint(x / scale), np.iinfo(dtype)
    # int32 is as exact as the operator demands; float16 has too few digits for the sum
    wide = rounded.astype(np.float32) if rounded.dtype == np.float16 else rounded
    if zero is not None:
        wide = wide + _broadcast_parameter(zero, x, axis, block_size).astype(wide.dtype)
    return np.clip(wide, number_like(limits.min, wide), number_like(limits.max, wide)).astype(dtype)


def _dequantize(
    x: Any, scale: Any, zero: Any = None, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Any:
    """DequantizeLinear: integers without their zero point, times a scale."""
    if x.dtype.name not in ("int8", "uint8", "int16", "uint16", "int32"):
        raise MissingRule(f"DequantizeLinear: {x.dtype} is not supported\n  use int8 or uint8")
    dtype = dtype_of(output_dtype) if output_dtype else scale.dtype
    wide = x.astype(np.int32)
    if zero is not None:
        wide = wide - _broadcast_parameter(zero, x, axis, block_size).astype(np.int32)
    by = _broadcast_parameter(scale, x, axis, block_size)
    kind = np.float32 if scale.dtype == np.float16 else scale.dtype
    return (wide.astype(kind) * by.astype(kind)).astype(dtype)


OPERATORS: dict[str, Any] = {"QuantizeLinear": _quantize, "DequantizeLinear": _dequantize}
