"""Formula of ``scipy.interpolate.splev``: splines as tuples (knots, coefficients, degree)."""

from typing import Any

import numpy as np

from letir.scipy.formulas.formula_table import formula, no_derivative
from letir.tracing.operands import traced_or_array


def _over(x: Any, y: Any) -> Any:
    """x / y, and 0 where y is 0: knots may be repeated."""
    return np.where(y == 0, 0.0, x / np.where(y == 0, 1.0, y))


def _spline_values(x: Any, t: Any, c: Any, k: int) -> Any:
    """The values at ``x`` of a spline with coefficients along the first axis, by de Boor's
    algorithm; extrapolated by its first and last polynomials.
    """
    n = t.shape[0] - k - 1
    place = np.clip(np.searchsorted(t, x, side="right") - 1, k, n - 1)
    extra = (1,) * (c.ndim - 1)
    parts = [c[place - k + j] for j in range(k + 1)]
    for r in range(1, k + 1):
        for j in range(k, r - 1, -1):
            low, high = t[place - k + j], t[place + 1 + j - r]
            weight = _over(x - low, high - low)
            weight = weight.reshape((*weight.shape, *extra))
            parts[j] = (1.0 - weight) * parts[j - 1] + weight * parts[j]
    return parts[k]


@formula("interpolate.splev")
def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """The value of a spline at ``x``, or of a derivative of it."""
    t, c, k = tck
    if type(k) is not int:
        no_derivative("the degree is a traced value; write make_interp_spline(x, y)(points)")
    if isinstance(c, list | tuple) or not 0 <= der <= k:
        no_derivative("the spline is a curve, or the order of the derivative is above its degree")
    x, t, c = traced_or_array(x).astype(float), traced_or_array(t), traced_or_array(c)
    start, end = t[k], t[t.shape[0] - k - 1]
    is_inside = (x >= start) & (x <= end)
    if ext in (3, "const"):
        x = np.clip(x, start, end)
    c = c[: t.shape[0] - k - 1]
    for _ in range(der):
        c = k * _over(c[1:] - c[:-1], t[k + 1 : -1] - t[1 : -k - 1])
        t, k = t[1:-1], k - 1
    result = _spline_values(x, t, c, k)
    return np.where(is_inside, result, 0.0) if ext in (1, "zeros") else result
