"""The Sylvester equation A X + X B = Q, which the derivatives of matrix functions solve too."""

from itertools import product

from letir.ast.types import ArrayType
from letir.errors import ShapeError
from letir.ops.define.batch_rules import batch_first, broadcast_batch, emit_op, first_mapped
from letir.ops.define.records import add_terms, define, unbroadcast
from letir.ops.linalg.matmul_einsum import swap_last_axes
from letir.ops.linalg.matrix_parts import lapack_dtype, require_known_types, square_shape
from letir.ops.special.define import scipy_or_cupy_function


def _impl(xp, a, b, q):
    """scipy.linalg.solve_sylvester, for each matrix of a stack."""
    dtype = lapack_dtype(a, b, q)
    if not q.size:
        return xp.zeros(q.shape, dtype)
    solve = scipy_or_cupy_function(xp, "linalg", "solve_sylvester")
    a, b, q = [x.astype(dtype, copy=False) for x in (a, b, q)]
    if q.ndim == 2:
        return solve(a, b, q)
    out = xp.empty(q.shape, dtype)
    for place in product(*map(range, q.shape[:-2])):
        out[place] = solve(a[place], b[place], q[place])
    return out


def _aval(a, b, q):
    lead, m = square_shape("solve_sylvester", a)
    other_lead, n = square_shape("solve_sylvester", b)
    if other_lead != lead or q.shape != (*lead, m, n):
        raise ShapeError(
            f"solve_sylvester: {a.shape}, {b.shape} and {q.shape} are not A X + X B = Q\n"
            "  pass a of shape (m, m), b of shape (n, n) and q of shape (m, n)"
        )
    return ArrayType(lapack_dtype(a, b, q), q.shape)


def _vjp(ct, x, a, b, q):
    """The solution W of A.T W + W B.T = ct, and its products with X."""
    require_known_types("solve_sylvester", ct, a, b, q)
    w = solve_sylvester(swap_last_axes(a), swap_last_axes(b), ct)
    by_a, by_b = w @ swap_last_axes(x), swap_last_axes(x) @ w
    return unbroadcast(-by_a, a), unbroadcast(-by_b, b), unbroadcast(w, q)


def _jvp(tangents, x, a, b, q):
    """The solution of the same equation for the right-hand side dQ - dA X - X dB."""
    by_a, by_b, by_q = tangents
    terms = [by_q]
    if by_a is not None:
        terms.append(-(by_a @ x))
    if by_b is not None:
        terms.append(-(x @ by_b))
    return solve_sylvester(a, b, add_terms(term for term in terms if term is not None))


@batch_first
def _batch(args, mapped):
    like = first_mapped(args, mapped)
    return emit_op(
        "solve_sylvester",
        [broadcast_batch(x, is_mapped, like) for x, is_mapped in zip(args, mapped, strict=True)],
    )


def _source(write, a, b, q):
    solve, names = write.writer.module.imported("scipy.linalg", "solve_sylvester"), [a, b, q]
    types = [write.type(n) for n in range(3)]
    if None not in types:
        dtype = lapack_dtype(*types)
        for n, aval in enumerate(types):
            if aval.dtype != dtype:  # SciPy takes matrices of one dtype
                names[n] = f"{names[n]}.astype('{dtype}')"
    return f"{solve}({', '.join(names)})"


solve_sylvester = define(
    "solve_sylvester", _impl, _aval, vjp=_vjp, jvp=_jvp, batch=_batch, source=_source, raises=True
)
