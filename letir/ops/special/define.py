"""How records of SciPy's functions are made: ``special`` for ufuncs of ``scipy.special``.

Nothing here imports SciPy: ``by_scipy`` does, when a function is computed.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.primitive import LATE_BOUND, Primitive, never
from letir.ops.define.batch_rules import pointwise_rule
from letir.ops.define.records import FLAT, define, diagonal_rules, ufunc_aval

NO_FORM = never("the derivative by this operand has no closed form")
OF_SCIPY: dict[str, str] = {}  # ufunc of scipy.special -> operation


def by_scipy(xp: Any, part: str, name: str) -> Any:
    """``scipy.part.name``, or CuPy's form of it."""
    return LATE_BOUND["scipy"](xp, part, name)


def ufunc_named(xp: Any, name: str) -> Any:
    """A ufunc of ``scipy.special``; one with an underscore is behind a function."""
    if name.startswith("_") and xp is np:
        return getattr(by_scipy(xp, "special", "_ufuncs"), name)
    return by_scipy(xp, "special", name.removeprefix("_"))  # CuPy's have no function in front


def op_of_scipy(function: Any) -> str | None:
    """The operation that a ufunc of ``scipy.special`` records; None for others."""
    module = sys.modules.get("scipy.special")
    if module is None or not isinstance(function, np.ufunc):
        return None
    name = function.__name__
    # by identity: NumPy has ufuncs of the same names
    is_its = function in (getattr(module, name, None), getattr(module._ufuncs, name, None))
    return OF_SCIPY.get(name) if is_its else None


@functools.cache
def _rule_of(name: str) -> Callable:
    """The type rule of a ufunc of SciPy, which is that of a ufunc."""
    return ufunc_aval(ufunc_named(np, name))


def special_aval(name: str) -> Callable:
    """The type rule of a function, found when it is needed."""

    def aval(*types):
        return _rule_of(name)(*types)

    return aval


def _special_impl(name: str) -> Callable:
    """``impl`` that calls the ufunc of this name."""

    def impl(xp, *arrays):
        return ufunc_named(xp, name)(*arrays)

    return impl


def _special_source(name: str) -> Callable:
    """A call of the function, which is imported from SciPy."""

    def source(write, *operands):
        module = "scipy.special._ufuncs" if name.startswith("_") else "scipy.special"
        return write.call(write.writer.module.imported(module, name), *operands)

    return source


def special(name: str, *terms: Any, ufunc: str | None = None, **fields: Any) -> Primitive:
    """Register an operation that a ufunc of ``scipy.special`` computes, that of this name or
    ``ufunc``.

    ``terms`` as in ``makers.diagonal``; none for a function whose derivative is zero.
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
        **fields,
    )
