"""``math_function``: a function of Python's module ``math``, computed by it.

It gives Python's bits and raises Python's errors (``math.sqrt(-1.0)``), where NumPy gives nan.
Derivatives and batches are NumPy's.
"""

import math
from typing import Any

from letir.ast.primitive import PRIMITIVES
from letir.ast.record_fields import is_final
from letir.ast.types import WEAK
from letir.ops.define.records import define

# the record with the derivative, where math and letir name it differently
_RECORDS = {
    **{"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"},
    **{"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"},
    **{"pow": "float_power", "lgamma": "gammaln"},
}


def _numpy_record_of(name: str) -> Any:
    """The record of NumPy's function that computes the same as ``math.name``."""
    return PRIMITIVES[_RECORDS.get(name, name)]


def _math_function_impl(xp, *numbers, name):
    return getattr(math, name)(*numbers)


def _math_function_vjp(ct, out, *numbers, name):
    rule = _numpy_record_of(name).vjp
    return (None,) * len(numbers) if is_final(rule) else rule(ct, out, *numbers)


def _math_function_jvp(tangents, out, *numbers, name):
    rule = _numpy_record_of(name).jvp
    return None if is_final(rule) else rule(tangents, out, *numbers)


def _math_function_batch(args, axes, *, name):
    """NumPy's function: a batch of Python numbers is an array."""
    return _numpy_record_of(name).batch(args, axes)


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
