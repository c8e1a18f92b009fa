"""Products of a large matrix with vectors, as parts of groups with reductions.

A linear model computes ``x @ w`` and, for its gradient, ``r @ x``, where each element of ``r``
depends on one row of ``x`` only. Two calls of BLAS read the matrix from memory twice. A kernel
computes both products of a row while the row is in the processor's cache.
"""

from collections.abc import Iterable

from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Bind, Lambda, Local
from letir.ast.types import ArrayType
from letir.ops.elementwise.ufuncs import mul
from letir.ops.reductions.reductions import sum_
from letir.ops.shape.unit_axes_and_flip import expand_dims

_MIN_ELEMENTS = 1 << 18  # of the matrix: a smaller one stays in the cache between two calls
_MIN_ROW, _MAX_ROW = 32, 1 << 12  # elements of a row: few save no time, many leave the cache


def is_product(bind: Bind) -> bool:
    """Whether a bind multiplies a matrix and a vector."""
    if bind.op.product != "matrix" or len(bind.args) != 2:
        return False
    avals = [arg.type for arg in (*bind.args, *bind.binders)]
    if any(type(aval) is not ArrayType or not has_static_shape(aval) for aval in avals):
        return False
    dtypes = {aval.dtype for aval in avals}
    return sorted([k.ndim for k in avals]) == [1, 1, 2] and len(dtypes) == 1 and _is_float(avals[0])


def _is_float(aval: ArrayType) -> bool:
    return aval.dtype.char in "fd" and not aval.weak


def operands_of_product(bind: Bind) -> tuple[Local, Local]:
    """(matrix, vector) of a product."""
    x, y = bind.args
    return (x, y) if x.type.ndim == 2 else (y, x)  # type: ignore[union-attr, return-value]


def multiplies_rows(bind: Bind) -> bool:
    """Whether a product is ``matrix @ vector``, with an element for each row of the matrix."""
    return bind.args[0].type.ndim == 2  # type: ignore[union-attr]


def paired_products(binds: Iterable[Bind]) -> frozenset[Local]:
    """The results of products of large matrices that are multiplied from both sides."""
    products: dict[Local, tuple[list[Local], list[Local]]] = {}
    for bind in binds:
        if is_product(bind) and all(type(arg) is Local for arg in bind.args):
            matrix, _ = operands_of_product(bind)
            n_rows, n_columns = matrix.type.shape
            if n_rows * n_columns >= _MIN_ELEMENTS and _MIN_ROW <= n_columns <= _MAX_ROW:
                sides = products.setdefault(matrix, ([], []))
                sides[multiplies_rows(bind)].append(bind.binders[0])
    pairs = [[*left, *right] for left, right in products.values() if left and right]
    return frozenset([binder for both in pairs for binder in both])


def has_pairs(binds: Iterable[Bind]) -> bool:
    """Whether each product in a group has one from the other side with the same matrix."""
    sides: dict[Local, set[bool]] = {}
    for bind in binds:
        if is_product(bind):
            sides.setdefault(operands_of_product(bind)[0], set()).add(multiplies_rows(bind))
    return all(len(side) == 2 for side in sides.values())


def products_as_sums(body: Lambda) -> Lambda:
    """``body`` with sums of elementwise products in place of its products."""
    if not any(map(is_product, body.binds)):
        return body
    binds: list[Bind] = []
    for bind in body.binds:
        binds += _sum_of_products(bind) if is_product(bind) else [bind]
    return body.with_binds(binds)


def _sum_of_products(bind: Bind) -> list[Bind]:
    """The binds for the sums along rows or columns."""
    matrix, vector = operands_of_product(bind)
    by_rows, source = multiplies_rows(bind), bind.source
    terms = Local(matrix.type)
    attrs = sum_.complete({"axis": 1 if by_rows else 0})
    total = Bind(bind.binders, sum_, (terms,), attrs, source)
    if by_rows:
        return [Bind((terms,), mul, (matrix, vector), mul.default_attrs, source), total]
    column = Local(vector.type.with_shape((*vector.type.shape, 1)))
    view = Bind((column,), expand_dims, (vector,), expand_dims.complete({"axis": 1}), source)
    return [view, Bind((terms,), mul, (matrix, column), mul.default_attrs, source), total]
