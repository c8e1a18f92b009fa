"""Makers of records for SciPy's functions: ``special`` for ufuncs of ``scipy.special``.

SciPy is not imported here, but by ``scipy_or_cupy_function``, when a function is first computed.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.primitive import Primitive
from letir.ast.record_fields import never
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import FLAT, define, diagonal_rules, ufunc_aval

NO_FORM = never("the derivative with respect to this operand has no closed form")
OF_SCIPY: dict[str, str] = {}  # ufunc of scipy.special -> operation


def scipy_or_cupy_function(xp: Any, part: str, name: str) -> Any:
    """``scipy.part.name``, or CuPy's version of it."""
    return LATE_BOUND["scipy"](xp, part, name)


def ufunc_named(xp: Any, name: str) -> Any:
    """A ufunc of ``scipy.special``; SciPy's functions call private ones, with an underscore."""
    if name.startswith("_") and xp is np:
        return getattr(scipy_or_cupy_function(xp, "special", "_ufuncs"), name)
    return scipy_or_cupy_function(
        xp, "special", name.removeprefix("_")
    )  # in CuPy the ufunc itself is public


def op_of_scipy(function: Any) -> str | None:
    """The operation that a ufunc of ``scipy.special`` records; None for other functions."""
    module = sys.modules.get("scipy.special")
    if module is None or not isinstance(function, np.ufunc):
        return None
    name = function.__name__
    # identity, not the name: NumPy has ufuncs of the same names
    is_its = function in (getattr(module, name, None), getattr(module._ufuncs, name, None))
    return OF_SCIPY.get(name) if is_its else None


@functools.cache
def _rule_of(name: str) -> Callable:
    """The type rule of a ufunc of SciPy."""
    return ufunc_aval(ufunc_named(np, name))


def special_aval(name: str) -> Callable:
    """The type rule of a ufunc of SciPy, which is looked up at its first use."""

    def aval(*types):
        return _rule_of(name)(*types)

    return aval


def _special_impl(name: str) -> Callable:
    """``impl`` that calls the ufunc of this name."""

    def impl(xp, *arrays):
        return ufunc_named(xp, name)(*arrays)

    return impl


def _special_source(name: str) -> Callable:
    """The ``source``: a call of the function, which the module imports from SciPy."""

    def source(write, *operands):
        module = "scipy.special._ufuncs" if name.startswith("_") else "scipy.special"
        return write.call(write.writer.module.imported(module, name), *operands)

    return source


def special(name: str, *terms: Any, ufunc: str | None = None, **fields: Any) -> Primitive:
    """Register an operation that a ufunc of ``scipy.special`` computes, by default of its name.

    ``terms``: the derivative with respect to each operand, as in
    ``letir.ops.define.records.diagonal_rules``; none for a function whose derivative is zero.
    """
    ufunc = ufunc or name
    OF_SCIPY[ufunc] = name
    vjp, jvp = diagonal_rules(terms) if terms else (FLAT, FLAT)
    return define(
        name,
        _special_impl(ufunc),
        special_aval(ufunc),
        vjp=vjp,
        jvp=jvp,
        batch=pointwise_rule(name),
        elementwise=True,
        source=_special_source(ufunc),
        by_element="fd",
        **fields,
    )


LATE_BOUND["op_of_scipy"] = op_of_scipy
