"""The principal logarithm of square matrices, by inverse scaling and squaring.

Square roots of the Schur form T until it is near I, a sum of fractions for log(I + X), and the
logarithms of the eigenvalues themselves on the diagonal: Higham, Functions of Matrices, SIAM 2008,
chapter 11. SciPy's ``logm`` chooses the number of roots by an estimate that draws random numbers
from NumPy's global state, and equals this one up to rounding.
"""

from typing import Any

import numpy as np

from letir.errors import MatrixError
from letir.ops.special.define import scipy_or_cupy_function

# Gauss-Legendre nodes on [0, 1]: log(I + X) is the sum of w X (I + t X)^-1 over them
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(9)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2


def logarithms(xp: Any, a: Any) -> Any:
    """The logarithms of a stack of matrices; complex if one of them is."""
    n = a.shape[-1]
    if not a.size:
        return a.astype(xp.result_type(a.dtype, xp.float32), copy=True)
    each = [_logarithm(xp, matrix) for matrix in a.reshape(-1, n, n)]
    return xp.stack(each).reshape(a.shape)


def _logarithm(xp: Any, a: Any) -> Any:
    """The logarithm of one matrix; of a real one it is complex only if it has to be."""
    t, z = scipy_or_cupy_function(xp, "linalg", "schur")(a.astype("complex128"), output="complex")
    diagonal = xp.diagonal(t)
    if not bool((diagonal != 0).all()):
        raise MatrixError("logm: the matrix is singular, and has no logarithm")
    root, count = t, 0
    unit = xp.eye(a.shape[-1])
    while float(abs(root - unit).sum(0).max()) > 0.25:
        root, count = scipy_or_cupy_function(xp, "linalg", "sqrtm")(root), count + 1
    x = xp.triu(root - unit)
    levels = xp.log(diagonal)
    x[range(len(levels)), range(len(levels))] = xp.expm1(levels / 2**count)
    pairs = zip(_NODES, _WEIGHTS, strict=True)
    total = sum([w * xp.linalg.solve(unit + s * x, x) for s, w in pairs])
    total = xp.triu(total) * 2**count
    total[range(len(levels)), range(len(levels))] = levels
    result = z @ total @ xp.conj(z.T)
    is_real = a.dtype.kind != "c" and xp.allclose(result.imag, 0.0, atol=1e3 * 2.3e-16)
    return result.real if is_real else result
