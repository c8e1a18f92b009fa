"""Products and powers of vectors: cross, kron, vander.

They are composites computed by NumPy's own functions and differentiated through their
decompositions.
"""

from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.errors import ShapeError
from letir.ops.define.composite_programs import type_of_operand
from letir.ops.define.records import array_dtype, composite
from letir.ops.elementwise.casting import cast
from letir.ops.reductions.cumulative import cumprod
from letir.ops.shape.concatenate_stack_split import concatenate, stack
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import as_size, broadcast_to, ones_like
from letir.ops.shape.transpose import move_axes, normalize_axes
from letir.ops.shape.unit_axes_and_flip import expand_dims, flip

# ---- the cross product ----


def _vector_components(x: Value, axis: int, dtype) -> list:
    """The two or three components of the vectors along ``axis``."""
    if not x.shape or x.shape[normalize_axes(axis, x.ndim)[0]] not in (2, 3):
        raise ShapeError(
            f"cross: vectors have 2 or 3 components, found {x.shape} along {axis}\n"
            "  choose the axis of the components with axis="
        )
    last = move_axes(cast(x, dtype), (axis,), (-1,))
    return [last[..., i] for i in range(last.shape[-1])]


def _cross_decompose(a, b, *, axisa=-1, axisb=-1, axisc=-1) -> Value:
    """The cross product by components; a missing third component is 0."""
    dtype = array_dtype(a.type, b.type)
    a, b = _vector_components(a, axisa, dtype), _vector_components(b, axisb, dtype)
    third = a[0] * b[1] - a[1] * b[0]
    if len(a) == len(b) == 2:
        return third
    if len(a) == 2:
        result = [a[1] * b[2], -(a[0] * b[2]), third]
    elif len(b) == 2:
        result = [-(a[2] * b[1]), a[2] * b[0], third]
    else:
        result = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], third]
    return stack(result, axisc)


def _cross_prepare(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """np.cross, where ``axis`` stands for all three axes."""
    axes = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    return (a, b), dict(zip(("axisa", "axisb", "axisc"), map(as_size, axes), strict=True))


def _linalg_cross_prepare(x1, x2, /, *, axis=-1):
    """np.linalg.cross, which requires three components."""
    for x in (x1, x2):
        if np.shape(x)[axis] != 3:
            raise ShapeError(
                f"cross: vectors have 3 components, found {np.shape(x)} along {axis}\n"
                "  choose the axis of the components with axis="
            )
    return _cross_prepare(x1, x2, axis=axis)


cross = composite(
    "cross",
    _cross_decompose,
    impl=lambda xp, a, b, *, axisa=-1, axisb=-1, axisc=-1: LATE_BOUND["call_at_user"](
        xp.cross, a, b, axisa, axisb, axisc
    ),
    prepare=_cross_prepare,
    numpy={np.cross: _cross_prepare, np.linalg.cross: _linalg_cross_prepare},
)

# ---- the Kronecker product ----


def _kron_decompose(a, b) -> Value:
    """Each element of ``a`` times ``b``, arranged as blocks."""
    rank = max(type_of_operand(x).ndim for x in (a, b))
    if not all(type_of_operand(x).ndim for x in (a, b)):
        return a * b
    a, b = (reshape(x, (1,) * (rank - x.ndim) + x.shape) for x in (a, b))
    products = expand_dims(a, tuple(range(1, 2 * rank, 2))) * expand_dims(
        b, tuple(range(0, 2 * rank, 2))
    )
    return reshape(products, tuple(n * m for n, m in zip(a.shape, b.shape, strict=True)))


kron = composite(
    "kron",
    _kron_decompose,
    impl=lambda xp, a, b: xp.kron(a, b),
    prepare=lambda a, b: ((a, b), {}),
    numpy=(np.kron,),
)

# ---- powers ----


def vander_decompose(x: Value, *, n: Any = None, increasing: bool = False) -> Value:
    """The powers of each element in a row, by cumulative products."""
    if x.ndim != 1:
        raise ShapeError(f"vander: needs an array with one axis, found {x.shape}\n  ravel it first")
    count = x.shape[0] if n is None else n
    x = cast(x, np.promote_types(x.dtype, int))
    factors = broadcast_to(x[:, None], (x.shape[0], count - 1 if count > 0 else 0))
    if count > 0:
        factors = concatenate([ones_like(x[:, None]), factors], 1)
    result = cumprod(factors, 1)
    return result if increasing else flip(result, 1)


vander = composite(
    "vander",
    vander_decompose,
    impl=lambda xp, x, *, n=None, increasing=False: xp.vander(x, n, increasing),
    prepare=lambda x, N=None, increasing=False: (
        (x,),
        {"n": None if N is None else as_size(N), "increasing": bool(increasing)},
    ),
    numpy=(np.vander,),
    sizes_in=("n",),
    source=lambda write, x, *, n, increasing: write.call(
        "np.vander", x, N=n, increasing=increasing
    ),
)
