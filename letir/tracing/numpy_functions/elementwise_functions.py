"""NumPy's elementwise functions that are combinations of ufuncs.

Where NumPy chooses a dtype (numpy.emath, real_if_close) or a shape (trim_zeros) by values, the
choice becomes a guard: a replay whose values would choose otherwise fails. Where NumPy returns a
Python bool the result is a traced boolean, which becomes a guard when Python asks for it.
"""

from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.operators import weaken_result
from letir.ast.primitive import PRIMITIVES
from letir.ast.symbolic_sizes import is_same_size
from letir.ast.types import broadcast_shapes
from letir.errors import DTypeError, ShapeError
from letir.ops.shape.transpose import array_as_tuple, normalize_axes
from letir.tracing.operands import stack_traced, strong_element, traced_or_array
from letir.tracing.source_locations import at_user

# ---- questions ----


def _is_infinite(is_negative: bool):
    """np.isneginf (True), or isposinf."""

    def infinite_with_sign(x, out=None):
        """Infinite, and of this sign."""
        if x.dtype.kind == "c":
            raise DTypeError(
                f"complex numbers have no signed infinity, found {x.type}{at_user()}\n"
                "  test the parts: np.isposinf(x.real)"
            )
        side = np.signbit(x) if is_negative else ~np.signbit(x)
        result = np.isinf(x)
        return (
            np.logical_and(result, side) if out is None else np.logical_and(result, side, out=out)
        )

    return infinite_with_sign


def _is_complex(x):
    """np.iscomplex, whose result is in C order where no element is complex."""
    if x.dtype.kind == "c":
        return np.not_equal(PRIMITIVES["imag"](strong_element(x)), 0)
    result = np.zeros_like(x, bool, order="C")
    return result if x.ndim else result[()]


def _as_python_bool(result):
    """A traced boolean that behaves as a Python bool, where NumPy returns one."""
    return weaken_result(result) if isinstance(result, Value) else bool(result)


def allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """np.allclose."""
    return _as_python_bool(
        np.all(np.isclose(stack_traced(a), stack_traced(b), rtol, atol, equal_nan))
    )


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """np.array_equal: shapes are compared while recording, elements at run time."""
    a1, a2 = (
        x if isinstance(x, Value) else np.asarray(x) for x in (stack_traced(a1), stack_traced(a2))
    )
    if a1.ndim != a2.ndim or not all(map(is_same_size, a1.shape, a2.shape)):
        return False
    same = a1 == a2
    return _as_python_bool(np.all(same | (np.isnan(a1) & np.isnan(a2)) if equal_nan else same))


def _array_equiv(a1, a2):
    """np.array_equiv: whether shapes broadcast is known while recording."""
    a1, a2 = (
        x if isinstance(x, Value) else np.asarray(x) for x in (stack_traced(a1), stack_traced(a2))
    )
    try:
        broadcast_shapes(a1.shape, a2.shape)
    except ShapeError:
        # from the end, as axes broadcast
        pairs = zip(reversed(a1.shape), reversed(a2.shape), strict=False)
        if not all(1 in pair or is_same_size(*pair) for pair in pairs):
            return False
    return _as_python_bool(np.all(a1 == a2))


# ---- dtypes and shapes that depend on values ----


def real_if_close(a: Any, tol: int = 100) -> Any:
    """np.real_if_close, with a guard on whether the imaginary parts are small enough."""
    if not a.shape:
        a = strong_element(a)[...]  # of a scalar, an array
    if a.dtype.kind != "c":
        return a
    if tol > 1:
        tol = np.finfo(a.dtype).eps * tol
    return a.real if bool(np.all(np.abs(a.imag) < tol)) else a


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """np.trim_zeros, with guards on the positions of the cuts."""
    trim = trim.lower()
    if trim not in {"fb", "bf", "f", "b"}:
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")  # NumPy's message
    original, filt = filt, traced_or_array(filt)
    axes = range(filt.ndim) if axis is None else normalize_axes(array_as_tuple(axis), filt.ndim)
    item = [slice(None)] * filt.ndim
    for a in map(int, axes):
        others = tuple(i for i in range(filt.ndim) if i != a)
        is_nonzero = np.any(filt != 0, axis=others)
        if not filt.size or not bool(np.any(is_nonzero)):
            item[a] = slice(0)
            continue
        start = int(np.argmax(is_nonzero)) if "f" in trim else None
        stop = filt.shape[a] - int(np.argmax(is_nonzero[::-1])) if "b" in trim else None
        item[a] = slice(start, stop)
    if isinstance(original, list | tuple) and filt.ndim == 1:  # then NumPy returns a part of it
        return original[item[0]]
    return filt[tuple(item)] if item else filt


# ---- numpy.emath: complex results where reals have none ----


def _emath_operand(x):
    """An operand of numpy.emath, with Python numbers as arrays."""
    return strong_element(stack_traced(x))


def _complex_where(x, is_beyond):
    """``x``, made complex if an element has no real result; the choice is a guard."""
    x = _emath_operand(x)
    if x.dtype.kind == "c" or not bool(np.any(is_beyond(x))):
        return x
    # as numpy.lib.scimath chooses
    return x.astype(np.complex64 if x.dtype.char in "fbhBH" else np.complex128)


def _below_zero(x):
    """Where there is no real root or logarithm."""
    return x < 0


def _is_beyond_one(x):
    """Where there is no real arc sine."""
    return abs(x) > 1


def _extend_domain(ufunc, is_beyond):
    """The function of numpy.emath for a ufunc of one operand."""
    return lambda x: ufunc(_complex_where(x, is_beyond))


def _logn(n, x):
    """np.emath.logn."""
    return np.log(_complex_where(x, _below_zero)) / np.log(_complex_where(n, _below_zero))


def power(x: Any, p: Any) -> Any:
    """np.emath.power; negative integer exponents become floating."""
    x, p = _complex_where(x, _below_zero), _emath_operand(p)
    if p.dtype.kind in "iu" and bool(np.any(p < 0)):
        p = p * 1.0
    return np.power(x, p)


_EMATH = {
    np.emath.sqrt: _extend_domain(np.sqrt, _below_zero),
    np.emath.log: _extend_domain(np.log, _below_zero),
    np.emath.log2: _extend_domain(np.log2, _below_zero),
    np.emath.log10: _extend_domain(np.log10, _below_zero),
    np.emath.logn: _logn,
    np.emath.power: power,
    np.emath.arccos: _extend_domain(np.arccos, _is_beyond_one),
    np.emath.arcsin: _extend_domain(np.arcsin, _is_beyond_one),
    np.emath.arctanh: _extend_domain(np.arctanh, _is_beyond_one),
}
FUNCTIONS = {
    **_EMATH,
    np.fix: lambda x, out=None: np.trunc(x) if out is None else np.trunc(x, out=out),
    np.iscomplex: _is_complex,
    np.isreal: lambda x: PRIMITIVES["imag"](x) == 0,
    np.isposinf: _is_infinite(False),
    np.isneginf: _is_infinite(True),
    np.allclose: allclose,
    np.array_equal: array_equal,
    np.array_equiv: _array_equiv,
    np.real_if_close: real_if_close,
    np.trim_zeros: trim_zeros,
}
