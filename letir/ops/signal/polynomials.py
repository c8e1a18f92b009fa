"""Polynomials: polyval, polydiv, polyfit, each recorded as one bind.

NumPy's other functions of polynomials are recorded as several operations
(``letir.tracing.numpy_functions.polynomial_functions``).
"""

import operator

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.errors import DTypeError, GuardError, ShapeError, TraceError
from letir.ops.define.composite_programs import type_of_operand
from letir.ops.define.records import array_dtype, composite
from letir.ops.elementwise.casting import cast
from letir.ops.elementwise.ufuncs import sqrt
from letir.ops.linalg.cross_kron_vander import vander_decompose
from letir.ops.linalg.matrix_parts import known_value
from letir.ops.linalg.svd import pinv
from letir.ops.reductions.reductions import sum_
from letir.ops.reductions.variance_and_average import drop_trailing_nones
from letir.ops.shape.concatenate_stack_split import stack
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import Sizes, zeros, zeros_like

# ---- values ----


def _polyval_decompose(p, x) -> Value:
    """Horner's scheme, from the highest power down; as in NumPy, it begins with 0 * x.

    The first zero has no axes, so that the result has the memory order of ``x``.
    """
    if not p.shape:
        raise ShapeError(
            "polyval: the coefficients must be an array, found a number\n"
            "  write np.array([c]) for a constant"
        )
    dtype = array_dtype(p.type, type_of_operand(x))
    if not p.shape[0]:
        return zeros_like(x)
    attrs = zeros.complete({"shape": (), "dtype": float if x.type is None else x.dtype})
    result = x.emitter.apply(zeros, (), attrs)
    for i in range(p.shape[0]):
        result = result * x + p[i]
    return cast(result, dtype)


polyval = composite(
    "polyval",
    _polyval_decompose,
    prepare=lambda p, x: ((p, x), {}),
    numpy=(np.polyval,),
)

# ---- quotients ----


def _polydiv_prepare(u, v):
    """np.polydiv's call.

    ``length``: the length of the remainder, whose leading zeros NumPy drops.
    """
    concrete = [known_value(_as_coefficients(x)) for x in (u, v)]
    if any(x is None for x in concrete):
        raise TraceError(
            "polydiv: the length of the remainder depends on values, which are not known here\n"
            "  trace with concrete arguments"
        )
    return (_as_coefficients(u), _as_coefficients(v)), {"length": len(np.polydiv(*concrete)[1])}


def _as_coefficients(p):
    """Coefficients as a 1-d array; a number is a single coefficient."""
    p = p if isinstance(p, Value) else np.asarray(p)
    if p.ndim > 1:
        raise ShapeError(
            f"coefficients of a polynomial must have one axis, found {p.shape}\n"
            "  pass a vector of coefficients"
        )
    return p if p.ndim else reshape(p, (1,)) if isinstance(p, Value) else p.reshape(1)


def _polydiv_impl(xp, u, v, *, length):
    """np.polydiv. Raises GuardError if the remainder has another length than when recorded."""
    quotient, rest = xp.polydiv(u, v)
    if len(rest) != length:
        raise GuardError(
            f"the program was recorded for a remainder of {length} coefficients, now there are "
            f"{len(rest)}\n  trace again with these arguments: NumPy drops leading zeros"
        )
    return quotient, rest


def _polydiv_decompose(u, v, *, length) -> tuple[Value, Value]:
    """Long division."""
    dtype = np.result_type(u.dtype, v.dtype, *[np.float64] * (u.dtype.kind in "biu"))
    dtype = np.result_type(dtype, *[np.float64] * (v.dtype.kind in "biu"))
    rest, v = cast(u, dtype), cast(v, dtype)
    n, quotient = v.shape[0], []
    for k in range(u.shape[0] - n + 1):
        quotient.append(rest[k] / v[0])
        rest = rest.at[k : k + n].add(-(quotient[-1] * v))
    return stack(quotient) if quotient else zeros_like(rest[:1]), rest[rest.shape[0] - length :]


polydiv = composite(
    "polydiv",
    _polydiv_decompose,
    impl=_polydiv_impl,
    results=lambda *, length: 2,
    prepare=_polydiv_prepare,
    numpy=(np.polydiv,),
    source=lambda write, u, v, *, length: f"np.polydiv({u}, {v})",
)

# ---- least squares ----


def _polyfit_decompose(x, y, w=None, *, deg, rcond=None) -> Value:
    """The pseudoinverse of the Vandermonde matrix, its columns normalised, times the values."""
    _check_points(x, y, w, deg)
    places = x if x.type.inexact else cast(x, np.float64)
    left, right = vander_decompose(places, n=deg + 1), y if y.type.inexact else cast(y, np.float64)
    if w is not None:
        w = w if w.type.inexact else cast(w, np.float64)
        left, right = left * w[:, None], right * (w if right.ndim == 1 else w[:, None])
    if rcond is None:
        rcond = Sizes.from_value(x)[0] * float(np.finfo(places.dtype).eps)
    scale = sqrt(sum_(left * left, axis=0))
    coefficients = pinv(left / scale, rcond) @ right
    return (coefficients.T / scale).T


def _check_points(x, y, w, deg: int) -> None:
    """Raise, as np.polyfit does, unless x, y and w describe points."""
    if deg < 0:
        raise ShapeError(
            f"polyfit: the degree must be at least 0, found {deg}\n  pass a degree from 0"
        )
    if x.ndim != 1 or x.size == 0 or y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        raise DTypeError(
            f"polyfit: x of shape {x.shape} and y of shape {y.shape} do not fit\n"
            "  pass one y for each x"
        )
    if w is not None and w.shape != x.shape:
        raise DTypeError(
            f"polyfit: x has shape {x.shape}, its weights have shape {w.shape}\n"
            "  pass one weight for each x"
        )


def _polyfit_prepare(x, y, deg, rcond=None, w=None):
    """np.polyfit's call, without the parameters that ask for further results."""
    return drop_trailing_nones(x, y, w), {
        "deg": operator.index(deg),
        "rcond": None if rcond is None else float(rcond),
    }


polyfit = composite(
    "polyfit",
    _polyfit_decompose,
    impl=lambda xp, x, y, w=None, *, deg, rcond=None: LATE_BOUND["call_at_user"](
        xp.polyfit, x, y, deg, rcond, w=w
    ),
    prepare=_polyfit_prepare,
    source=lambda write, x, y, w="None", *, deg, rcond: write.call(
        "np.polyfit", x, y, str(deg), f"w={w}", rcond=rcond
    ),
    raises=True,
)
