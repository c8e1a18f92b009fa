"""Products that sum over axes: tensordot, inner, outer, vdot, vecdot, matvec, vecmat, multi_dot.

They are composites of matmul, dot and einsum, see ``matmul_einsum.py``.
"""

import functools
import math
import operator

import numpy as np

from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.types import ArrayType
from letir.errors import ShapeError
from letir.ops.as_numpy.arrays import list_call
from letir.ops.define.batch_rules import composite_batch
from letir.ops.define.records import (
    add_terms,
    array_dtype,
    broadcast_tangent,
    composite,
    decomposition,
    unbroadcast,
)
from letir.ops.elementwise.ufuncs import mul
from letir.ops.linalg.matmul_einsum import dot, einsum, matmul, require_known_ranks
from letir.ops.linalg.matrix_parts import conjugate
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import as_size
from letir.ops.shape.transpose import int_or_tuple, normalize_axes, transpose
from letir.ops.shape.unit_axes_and_flip import expand_dims, squeeze

# ---- tensordot ----


def _tensordot_prepare(a, b, axes=2):
    """np.tensordot, with the axes as two tuples."""
    try:
        of_a, of_b = axes
    except TypeError:
        count = as_size(axes)
        of_a, of_b = tuple(range(-count, 0)), tuple(range(count))
    return (a, b), {"axes": (_axes_tuple(of_a), _axes_tuple(of_b))}


def _axes_tuple(axis) -> tuple:
    """One axis or several as a tuple."""
    result = int_or_tuple(axis.tolist() if isinstance(axis, np.ndarray) else axis)
    return result if type(result) is tuple else (result,)


def _summed_axes(x, y, axes: tuple) -> tuple[tuple, tuple]:
    """The summed axes of each operand. Raises ShapeError if their sizes differ."""
    of_x, of_y = normalize_axes(axes[0], x.ndim), normalize_axes(axes[1], y.ndim)
    sizes = [x.shape[i] for i in of_x], [y.shape[i] for i in of_y]
    if sizes[0] != sizes[1]:
        raise ShapeError(
            f"tensordot: shapes {x.shape} and {y.shape} have different sizes along the axes "
            f"{axes}\n"
            "  sum over axes of equal sizes"
        )
    return of_x, of_y


def _other_axes(x, axes: tuple) -> tuple:
    """The axes of ``x`` that are not in ``axes``."""
    return tuple(i for i in range(x.ndim) if i not in axes)


def _tensordot_aval(x, y, *, axes):
    """The shape of the axes that are not summed, first of ``x``, then of ``y``."""
    of_x, of_y = _summed_axes(x, y, axes)
    shape = [x.shape[i] for i in _other_axes(x, of_x)] + [y.shape[i] for i in _other_axes(y, of_y)]
    return ArrayType(array_dtype(x, y), tuple(shape))


def _tensordot_decompose(x, y, *, axes):
    """One matrix product, as NumPy computes it."""
    of_x, of_y = _summed_axes(x, y, axes)
    remaining = _other_axes(x, of_x), _other_axes(y, of_y)
    shape = (*[x.shape[i] for i in remaining[0]], *[y.shape[i] for i in remaining[1]])
    n = math.prod(x.shape[i] for i in of_x)
    rows, columns = [
        math.prod(z.shape[i] for i in k) for z, k in zip((x, y), remaining, strict=True)
    ]
    left = reshape(transpose(x, (*remaining[0], *of_x)), (rows, n))
    right = reshape(transpose(y, (*of_y, *remaining[1])), (n, columns))
    return reshape(matmul(left, right), shape)


def _tensordot_vjp(ct, out, x, y, *, axes, transform):
    """The cotangent contracted with each operand, over the kept axes of that operand."""
    require_known_ranks("tensordot", ct, x, y)
    of_x, of_y = _summed_axes(x, y, axes)
    kept_x, kept_y = _other_axes(x, of_x), _other_axes(y, of_y)
    n = len(kept_x)
    # in the products the summed axes are in ascending order of the other operand's axes
    by_x = tensordot(ct, y, (tuple(range(n, ct.ndim)), kept_y))
    by_y = tensordot(x, ct, (kept_x, tuple(range(n))))
    return (
        unbroadcast(_transpose_to_places(by_x, (*kept_x, *_sorted_by(of_y, of_x))), x),
        unbroadcast(_transpose_to_places(by_y, (*_sorted_by(of_x, of_y), *kept_y)), y),
    )


def _sorted_by(keys: tuple, values: tuple) -> tuple:
    """``values`` sorted by ``keys``."""
    return tuple(value for _, value in sorted(zip(keys, values, strict=True)))


def _transpose_to_places(x, places: tuple):
    """``x`` transposed so that its axis i goes to ``places[i]``."""
    order = tuple(sorted(range(len(places)), key=places.__getitem__))
    return x if order == tuple(range(len(order))) else transpose(x, order)


def _tensordot_jvp(tangents, out, x, y, *, axes, transform):
    """The tangent by the product rule."""
    by_x, by_y = tangents
    terms = (
        None if by_x is None else tensordot(by_x, y, axes),
        None if by_y is None else tensordot(x, by_y, axes),
    )
    return broadcast_tangent(add_terms(terms), out)


tensordot = composite(
    "tensordot",
    _tensordot_decompose,
    impl=lambda xp, x, y, *, axes: xp.tensordot(x, y, axes),
    aval=_tensordot_aval,
    vjp=_tensordot_vjp,
    jvp=_tensordot_jvp,
    prepare=_tensordot_prepare,
    numpy=(np.tensordot,),
    batch=composite_batch(functools.partial(decomposition, _tensordot_decompose), False),
)

# ---- inner, outer, vdot ----


def _inner_decompose(x, y):
    """The sum over the last axes of both operands; the product if one is a scalar."""
    if not x.shape or not y.shape:
        return mul(x, y)
    return dot(x, y) if y.ndim == 1 else tensordot(x, y, ((-1,), (-1,)))


inner = composite(
    "inner",
    _inner_decompose,
    impl=lambda xp, x, y: xp.inner(x, y),
    prepare=lambda a, b, /: ((a, b), {}),
    numpy=(np.inner,),
)
outer = composite(
    "outer",
    lambda x, y: mul(expand_dims(reshape(x, -1), 1), expand_dims(reshape(y, -1), 0)),
    impl=lambda xp, x, y: xp.outer(x, y),
    prepare=lambda a, b, out=None: ((a, b), {}),
    numpy=(np.outer,),
    scalar="outer",
    product="outer",
)
vdot = composite(
    "vdot",
    lambda x, y: dot(conjugate(reshape(x, -1)), reshape(y, -1)),
    impl=lambda xp, x, y: xp.vdot(x, y),
    prepare=lambda a, b, /: ((a, b), {}),
    numpy=(np.vdot,),
)

# ---- products of stacked vectors ----


def _check_ranks(name: str, x, y, ranks: tuple[int, int]) -> None:
    """Raise ShapeError if an operand has fewer axes than ``ranks`` requires."""
    if x.ndim < ranks[0] or y.ndim < ranks[1]:
        raise ShapeError(
            f"{name}: operands of shapes {x.shape} and {y.shape} have too few axes\n"
            "  add axes with x[None, :]"
        )


def _vecdot_decompose(x, y):
    """The sum over the last axis, with the first operand conjugated."""
    _check_ranks("vecdot", x, y, (1, 1))
    return einsum("...i,...i->...", conjugate(x), y)


def _matvec_decompose(x, y):
    """Stacked matrices times stacked vectors."""
    _check_ranks("matvec", x, y, (2, 1))
    return squeeze(matmul(x, expand_dims(y, -1)), -1)


def _vecmat_decompose(x, y):
    """Stacked conjugated vectors times stacked matrices."""
    _check_ranks("vecmat", x, y, (1, 2))
    return squeeze(matmul(expand_dims(conjugate(x), -2), y), -2)


def _product_of_vectors(name: str, decompose):
    """Register NumPy's generalised ufunc ``name``."""
    return composite(
        name,
        decompose,
        impl=lambda xp, x, y: getattr(xp, name)(x, y),
        numpy=(getattr(np, name),),
    )


vecdot = _product_of_vectors("vecdot", _vecdot_decompose)
matvec = _product_of_vectors("matvec", _matvec_decompose)
vecmat = _product_of_vectors("vecmat", _vecmat_decompose)

# ---- multi_dot ----


def _multi_dot_decompose(*arrays):
    """The matrix products in the order with the fewest multiplications."""
    if len(arrays) < 2:
        raise ShapeError(
            "multi_dot: expecting at least two arrays\n  pass a list of two arrays or more"
        )
    if len(arrays) == 2:  # of any rank, as in NumPy
        return dot(*arrays)
    if any(x.ndim != 2 for x in arrays[1:-1]) or {arrays[0].ndim, arrays[-1].ndim} - {1, 2}:
        raise ShapeError(
            "multi_dot: only the first and the last array may be vectors\n"
            "  make vectors in between matrices: x[:, None]"
        )
    first, last = arrays[0], arrays[-1]
    chain = [expand_dims(first, 0) if first.ndim == 1 else first, *arrays[1:]]
    chain[-1] = expand_dims(last, 1) if last.ndim == 1 else last
    out = _cheapest_chain_product(chain)
    axes = (*[0] * (first.ndim == 1), *[1] * (last.ndim == 1))
    return squeeze(out, axes) if axes else out


def _cheapest_chain_product(chain: list):
    """The product of a chain of matrices in the cheapest order (Cormen et al., Introduction to
    Algorithms, chapter 15.2).
    """
    sizes = [chain[0].shape[0], *[x.shape[1] for x in chain]]
    if not is_static_shape(sizes):
        return functools.reduce(operator.matmul, chain)
    best: dict = {(i, i): (0, chain[i]) for i in range(len(chain))}
    for length in range(1, len(chain)):
        for i in range(len(chain) - length):
            j = i + length
            cost, k = min(
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
            best[i, j] = (cost, (i, k, j))
    return _multiply_chain(best, 0, len(chain) - 1)


def _multiply_chain(best: dict, i: int, j: int):
    """The product of the matrices from i to j in the order given by ``best``."""
    if i == j:
        return best[i, i][1]
    _, k, _ = best[i, j][1]
    return _multiply_chain(best, i, k) @ _multiply_chain(best, k + 1, j)


multi_dot = composite(
    "multi_dot",
    _multi_dot_decompose,
    impl=lambda xp, *arrays: xp.linalg.multi_dot(arrays),
    prepare=lambda arrays, *, out=None: (tuple(arrays), {}),
    numpy=(np.linalg.multi_dot,),
    source=list_call,
    memory="may_alias",
)
