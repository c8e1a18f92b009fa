"""Elementary functions in the loop language: arithmetic on floats and their bits.

There are no branches but the calls of functions for rare arguments, see ``Builder.call_rarely``.

``ELEMENTARY[name](b, *operands)`` appends the instructions of an operation to the builder ``b``.
For float64 and float32 the results are within 2 units in the last place of the true values. The
functions raise the same floating-point flags as NumPy's: the result depends on the instructions
that raise them, so that LLVM cannot remove these. Read ``expression``, ``formulas``, then
``exponentials``.
"""

from collections.abc import Callable

from letir.kernels.elementary.error_functions import erf, erfc, ndtr
from letir.kernels.elementary.exponentials import exp, exp2, expit, expm1
from letir.kernels.elementary.expression import elementary
from letir.kernels.elementary.hyperbolic import cosh, sinh, tanh
from letir.kernels.elementary.inverse_hyperbolic import (
    arccosh,
    arcsinh,
    arctanh,
    log_expit,
    logaddexp,
    logaddexp2,
)
from letir.kernels.elementary.inverse_trigonometric import arccos, arcsin, arctan, arctan2
from letir.kernels.elementary.log_gamma import gammaln
from letir.kernels.elementary.logarithms import log, log1p, log2, log10
from letir.kernels.elementary.powers import power
from letir.kernels.elementary.roots import cbrt, hypot
from letir.kernels.elementary.trigonometric import cos, sin, tan

_FUNCTIONS: list[Callable] = [
    *(exp, exp2, expm1, log, log1p, log2, log10, logaddexp, logaddexp2),
    *(sin, cos, tan, arcsin, arccos, arctan, arctan2),
    *(sinh, cosh, tanh, arcsinh, arccosh, arctanh),
    *(power, cbrt, hypot, erf, erfc, ndtr, expit, log_expit, gammaln),
]
ELEMENTARY: dict[str, Callable] = {f.__name__: elementary(f) for f in _FUNCTIONS}
ELEMENTARY["float_power"] = ELEMENTARY["power"]
