"""Matrix products, determinants, and their quantised forms."""

from typing import Any

import numpy as np

from letir.onnx.importing.values import number_like, transpose_matrix


def _gemm(
    a: Any,
    b: Any,
    c: Any = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 0,
) -> Any:
    """Gemm: ``alpha * a @ b + beta * c``, with the matrices transposed on request."""
    result = (transpose_matrix(a) if transA else a) @ (transpose_matrix(b) if transB else b)
    result = result if alpha == 1 else result * number_like(alpha, result)
    if c is None or beta == 0:
        return result
    return result + (c if beta == 1 else c * number_like(beta, c))


def _einsum(*arrays: Any, equation: str) -> Any:
    """Einsum: the sum of products that an equation describes."""
    return np.einsum(equation.replace(" ", ""), *arrays)


def minus_zero_point(x: Any, zero: Any, axis: int) -> Any:
    """Integers without their zero point, as int32."""
    x = x.astype(np.int32)
    if zero is None:
        return x
    zero = zero.astype(np.int32)
    if zero.ndim == 1 and zero.shape[0] != 1:
        zero = zero.reshape(tuple([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]))
    elif zero.ndim == 1:
        zero = zero.reshape(())
    return x - zero


def _matmul_integer(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    """MatMulInteger: the product of integers without their zero points."""
    return minus_zero_point(a, a_zero, -2) @ minus_zero_point(b, b_zero, -1)


def quantize_again(x: Any, scale: Any, zero: Any) -> Any:
    """Numbers as integers of the dtype of ``zero``: divided by the scale and rounded."""
    limits = np.iinfo(zero.dtype)
    result = np.rint(x / scale) + zero.astype(x.dtype)
    return np.clip(result, number_like(limits.min, x), number_like(limits.max, x)).astype(
        zero.dtype
    )


def _matmul_quantized(
    a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, y_scale: Any, y_zero: Any
) -> Any:
    """QLinearMatMul: a product of quantised matrices, quantised again."""
    total = _matmul_integer(a, b, a_zero, b_zero).astype(np.float32)
    rows = a_scale[..., None] if a_scale.ndim == 1 and a_scale.shape[0] > 1 else a_scale
    scale = (rows * b_scale).astype(np.float32)
    return quantize_again(total * scale, y_scale.astype(np.float32), y_zero)


OPERATORS: dict[str, Any] = {
    **{"MatMul": np.matmul, "Gemm": _gemm, "Einsum": _einsum, "Det": np.linalg.det},
    **{"MatMulInteger": _matmul_integer, "QLinearMatMul": _matmul_quantized},
}
