"""Functions of Python's modules ``math`` and ``cmath``, computed by them.

``math_function`` is a function of one or two numbers. It gives Python's bits and raises Python's
errors (``math.sqrt(-1.0)``), where NumPy gives nan. Derivatives and batches are NumPy's.
``complex_math_function`` is the same for ``cmath``.

``math_reduction`` is a function of any number of numbers that rounds once: ``fsum`` of 1e16, 1.0
and -1e16 is 1.0, where additions give 0.0, and ``hypot`` of numbers near 1e200 does not overflow.
"""

import cmath
import functools
import math
import operator
from typing import Any

from letir.ast.primitive import PRIMITIVES
from letir.ast.record_fields import is_final
from letir.ast.types import WEAK
from letir.ops.define.records import define, unbroadcast

# the record with the derivative, where math and letir name it differently
_RECORDS = {
    **{"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"},
    **{"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"},
    **{"pow": "float_power", "lgamma": "gammaln"},
}


def numpy_record_of(name: str) -> Any:
    """The record of NumPy's function that computes the same as ``math``'s or ``cmath``'s."""
    return PRIMITIVES[_RECORDS.get(name, name)]


def _math_function_impl(xp, *numbers, name):
    return getattr(math, name)(*numbers)


def _math_function_vjp(ct, out, *numbers, name):
    rule = numpy_record_of(name).vjp
    return (None,) * len(numbers) if is_final(rule) else rule(ct, out, *numbers)


def _math_function_jvp(tangents, out, *numbers, name):
    rule = numpy_record_of(name).jvp
    return None if is_final(rule) else rule(tangents, out, *numbers)


def _math_function_batch(args, axes, *, name):
    """NumPy's function: a batch of Python numbers is an array."""
    return numpy_record_of(name).batch(args, axes)


def _math_function_source(write, *numbers, name):
    return f"{write.imported(getattr(math, name))}({', '.join(numbers)})"


math_function = define(
    "math_function",
    _math_function_impl,
    lambda *numbers, name: WEAK[float],
    vjp=_math_function_vjp,
    jvp=_math_function_jvp,
    batch=_math_function_batch,
    source=_math_function_source,
    linear_in=(),
    scalar=lambda name: _RECORDS.get(name, name),
    python_errors=True,
    rule_reads_numbers=True,
    for_scripts=False,
)


# ---- functions of complex numbers ----


def _complex_function_impl(xp, *numbers, name):
    return getattr(cmath, name)(*numbers)


def _rotation(phi):
    """The complex number of modulus 1 at the angle ``phi``."""
    return PRIMITIVES["complex_of"](PRIMITIVES["cos"](phi), PRIMITIVES["sin"](phi))


def _slopes_of_two(out, x, y, name):
    """The derivatives of ``rect(x, y)``, or of the logarithm of x to the base y."""
    if name == "rect":
        return _rotation(y), 1j * out
    level = PRIMITIVES["log"](y)
    return 1 / (x * level), -out / (y * level)


def _complex_function_vjp(ct, out, *numbers, name):
    if len(numbers) == 1:
        return numpy_record_of(name).vjp(ct, out, *numbers)
    slopes = _slopes_of_two(out, *numbers, name)
    return tuple(unbroadcast(ct * slope, x) for slope, x in zip(slopes, numbers, strict=True))


def _complex_function_jvp(tangents, out, *numbers, name):
    if len(numbers) == 1:
        return numpy_record_of(name).jvp(tangents, out, *numbers)
    slopes = _slopes_of_two(out, *numbers, name)
    parts = [t * slope for t, slope in zip(tangents, slopes, strict=True) if t is not None]
    return functools.reduce(operator.add, parts)


def _complex_function_batch(args, axes, *, name):
    """NumPy's function: a batch of Python numbers is an array."""
    if len(args) == 1:
        return numpy_record_of(name).batch(args, axes)
    x, y = args
    if name == "rect":
        return PRIMITIVES["complex_of"](x * PRIMITIVES["cos"](y), x * PRIMITIVES["sin"](y)), 0
    return PRIMITIVES["log"](x) / PRIMITIVES["log"](y), 0


def _complex_function_source(write, *numbers, name):
    return f"{write.imported(getattr(cmath, name))}({', '.join(numbers)})"


complex_math_function = define(
    "complex_math_function",
    _complex_function_impl,
    lambda *numbers, name: WEAK[complex],
    vjp=_complex_function_vjp,
    jvp=_complex_function_jvp,
    batch=_complex_function_batch,
    source=_complex_function_source,
    linear_in=(),
    python_errors=True,
    for_scripts=False,
)


# ---- functions of any number of numbers ----


def _math_reduction_impl(xp, *numbers, name):
    return math.fsum(numbers) if name == "fsum" else math.hypot(*numbers)


def _slopes(out, numbers, name):
    """The derivatives of the result with respect to each number."""
    if name == "fsum":
        return [1.0] * len(numbers)
    length = PRIMITIVES["where"](out == 0, 1.0, out)  # the slope at the origin is 0
    return [x / length for x in numbers]


def _math_reduction_vjp(ct, out, *numbers, name):
    return tuple(ct * slope for slope in _slopes(out, numbers, name))


def _math_reduction_jvp(tangents, out, *numbers, name):
    slopes = _slopes(out, numbers, name)
    parts = [t * slope for t, slope in zip(tangents, slopes, strict=True) if t is not None]
    return functools.reduce(operator.add, parts)


def _math_reduction_batch(args, axes, *, name):
    """Arithmetic of NumPy: a batch of Python numbers is an array."""
    parts = args if name == "fsum" else [x * x for x in args]
    total = functools.reduce(operator.add, parts)
    return total if name == "fsum" else PRIMITIVES["sqrt"](total), 0


def _math_reduction_source(write, *numbers, name):
    numbers_text = ", ".join(numbers)
    listed = f"[{numbers_text}]" if name == "fsum" else numbers_text
    return f"{write.imported(getattr(math, name))}({listed})"


math_reduction = define(
    "math_reduction",
    _math_reduction_impl,
    lambda *numbers, name: WEAK[float],
    vjp=_math_reduction_vjp,
    jvp=_math_reduction_jvp,
    batch=_math_reduction_batch,
    source=_math_reduction_source,
    python_errors=True,
    for_scripts=False,
)
