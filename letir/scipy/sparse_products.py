"""Products of known sparse matrices with traced values, by gathers and sums of segments."""

from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.errors import ShapeError
from letir.scipy.namespace import find_in_scipy
from letir.tracing.source_locations import at_user
from letir.tracing.stand_ins import is_recording


def sparse_methods() -> list[tuple]:
    """(class, name, method, stand-in) of the methods with which sparse classes multiply."""
    names = ("_base", "_coo")
    modules = [find_in_scipy(f"sparse.{name}", "__dict__") for name in names]
    classes = [modules[0]["_spbase"], modules[1]["_coo_base"]]
    plain = [vars(kind).get("_matmul_dispatch") for kind in classes]
    return [
        (kind, "_matmul_dispatch", method, _product_stand_in(method))
        for kind, method in zip(classes, plain, strict=True)
        if method is not None
    ]


def _product_stand_in(plain: Any) -> Any:
    """A product of SciPy's sparse arrays that also takes traced values."""

    def _matmul_dispatch(self, other, *args, **kwargs):
        if not isinstance(other, Value) or not is_recording():
            return plain(self, other, *args, **kwargs)
        return _sparse_product(self, other)

    return _matmul_dispatch


def _sparse_product(matrix: Any, x: Any) -> Any:
    """``matrix @ x`` of a known sparse matrix and a traced vector or matrix."""
    if matrix.ndim != 2 or x.ndim not in (1, 2) or matrix.shape[1] != x.shape[0]:
        raise ShapeError(
            f"a sparse matrix of shape {matrix.shape} and a traced value of type {x.type} do not "
            f"multiply{at_user()}\n  pass a vector or a matrix with {matrix.shape[-1]} rows"
        )
    entries = matrix.tocoo()  # not tocsr: it sums entries of one place in the matrix's own type
    order = np.argsort(entries.row, kind="stable")
    aval = np.result_type(entries.dtype, x.dtype)
    filled, starts = np.unique(entries.row[order], return_index=True)
    if not filled.size:
        return np.zeros((matrix.shape[0], *x.shape[1:]), aval) + 0 * x[:1].sum(0)
    factors = entries.data[order].reshape(-1, *(1,) * (x.ndim - 1))
    terms = x[entries.col[order].astype(np.int64)] * factors
    sums = np.add.reduceat(terms, starts, axis=0)
    if filled.size == matrix.shape[0]:
        return sums
    place = np.full(matrix.shape[0], filled.size)  # the position of the zero after the sums
    place[filled] = np.arange(filled.size)
    return np.concatenate([sums, np.zeros((1, *x.shape[1:]), aval)])[place]


LATE_BOUND["sparse_methods"] = sparse_methods
