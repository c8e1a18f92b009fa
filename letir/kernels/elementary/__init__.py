"""Elementary functions as loop language: arithmetic on floats and their bits, without branches.

``ELEMENTARY[name](b, *operands)`` appends the instructions of an operation of letir to the builder
``b``. The results are within 2 units in the last place of the true values, for float64 and float32,
and the flags of floating-point errors are raised where NumPy's functions raise them: the
instructions for special arguments are part of the result, so that LLVM keeps them. Read
``expression``, ``formulas``, then ``exponentials``.
"""

from collections.abc import Callable

from letir.kernels.elementary.exponentials import exp, exp2, expm1
from letir.kernels.elementary.hyperbolic import cosh, sinh, tanh
from letir.kernels.elementary.logarithms import log, log1p, log2, log10
from letir.kernels.elementary.powers import power
from letir.kernels.elementary.trigonometric import cos, sin, tan

ELEMENTARY: dict[str, Callable] = {
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log,
    "log1p": log1p,
    "log2": log2,
    "log10": log10,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "power": power,
}
