"""``numpy.poly1d`` with traced coefficients, and NumPy's functions of such polynomials.

The class itself works on traced arrays. Stand-ins are needed where NumPy's own code would convert a
list of traced values, or a polynomial, to an ordinary array.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.tracing.operands import first_traced, traced_or_array

_WITHOUT_RESULT = ("roots", "polyval")  # whose results are arrays also for polynomials


def coefficients_of(c_or_r: Any) -> Any:
    """The first argument of ``np.poly1d``: a list of traced coefficients or roots as an array."""
    is_list = isinstance(c_or_r, list | tuple) and first_traced(c_or_r) is not None
    return traced_or_array(c_or_r) if is_list else c_or_r


def polynomial_call(original: Any, recorded: Callable) -> Callable:
    """NumPy's function ``original``, which also takes polynomials with traced coefficients.

    ``recorded``: the function of coefficients that records.
    """

    def function(*args, **kwargs):
        if not any(isinstance(x, np.poly1d) and isinstance(x.coeffs, Value) for x in args):
            return recorded(*args, **kwargs)
        if original.__name__ == "polyval" and isinstance(args[1], np.poly1d):
            return _evaluate_by_horner(
                args[1], traced_or_array(getattr(args[0], "coeffs", args[0]))[::-1]
            )
        result = recorded(*[x.coeffs if isinstance(x, np.poly1d) else x for x in args], **kwargs)
        if original.__name__ in _WITHOUT_RESULT:
            return result
        return tuple(map(np.poly1d, result)) if type(result) is tuple else np.poly1d(result)

    return function


def _evaluate_by_horner(x: Any, coefficients: Any) -> Any:
    """The polynomial with these coefficients, lowest first, at ``x``, which is a polynomial too."""
    out = x * 0 + coefficients[-1]
    for c in coefficients[-2::-1]:
        out = out * x + c
    return out


LATE_BOUND["polynomial_call"] = polynomial_call
LATE_BOUND["coefficients_of"] = coefficients_of
LATE_BOUND["horner"] = _evaluate_by_horner
