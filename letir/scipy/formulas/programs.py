"""The program of a formula, recorded for the types of a call: ``LATE_BOUND["formula_program"]``."""

import inspect
from collections.abc import Callable
from typing import Any

from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.bounded_cache import BoundedCache
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType, ShapeDtype
from letir.errors import LetirError, MissingRule
from letir.ops.special.scipy_functions import fill_form, result_types
from letir.scipy.formulas import (  # noqa: F401  they enter their formulas into the table
    distributions,
    factorisations,
    filters,
    images,
    matrices,
    samples,
    splines,
)
from letir.scipy.formulas.formula_table import FORMULAS, MadeObject, extra_parameters
from letir.tracing.entry import record
from letir.tracing.trace_state import ABSTRACT

_programs = BoundedCache(1 << 10)


@frozen
class FormulaProgram:
    """A program (operands of a call, its results, its operands again) -> results with derivatives.

    ``places``: the positions of these among the results of the call.
    """

    fn: Lambda
    places: tuple[int, ...]


def formula_program(
    function: str, arguments: Any, results: Any, types: tuple[ArrayType, ...]
) -> FormulaProgram | None:
    """The program of the formula of SciPy's ``function``; None if it has no formula.

    ``arguments``, ``results``: the forms of the call; ``types`` of its operands. Raises MissingRule
    for arguments that the formula does not support.
    """
    if function not in FORMULAS:
        return None
    key = (function, Attrs({"arguments": arguments, "results": results}), types)
    found = _programs.get(key)
    if found is None:
        found = _first_formula(function, arguments, results, types)
        _programs[key] = found
    if isinstance(found, str):
        raise MissingRule(found)
    return found


def _first_formula(function: str, arguments: Any, results: Any, types: tuple) -> Any:
    """The program of the first formula that can be recorded; if none can, the reason, a string."""
    reasons = []
    for target in FORMULAS[function]:
        try:
            return _record_formula(target, arguments, results, types)
        except LetirError as error:
            reasons.append(str(error).splitlines()[0])
    return (
        f"scipy.{function} has no derivative for these arguments: {reasons[0]}\n"
        "  letir.opaque(function, aval, vjp=...) gives it one; "
        "letir.stop_gradient(x) treats its argument as a constant"
    )


def _record_formula(target: Callable, arguments: Any, results: Any, types: tuple) -> FormulaProgram:
    """The program of a formula for a call."""
    places: list[int] = []
    kinds = result_types(results)

    def recorded(*values):
        count = len(types)
        inputs = values[:count], values[count:-count], values[-count:]
        made = _called(target, arguments, *inputs)
        made = made if isinstance(made, tuple) else (made,)
        if len(made) != len(kinds):
            raise MissingRule("it has other results for these arguments")
        pairs = zip(made, kinds, strict=True)
        places[:] = [i for i, (x, aval) in enumerate(pairs) if _fits(x, aval)]
        return tuple([_cast_to_type(made[i], kinds[i]) for i in places])

    shapes = [ShapeDtype(t.shape, t.dtype, t.weak) for t in (*types, *kinds, *types)]
    fn = record(recorded, tuple(shapes), {}, ABSTRACT, intercept=False).fn
    return FormulaProgram(fn, tuple(places))


def _called(target: Callable, arguments: Any, operands: tuple, results: tuple, again: tuple) -> Any:
    """The result of a formula for the arguments of a call; ``again``: its operands as constants."""
    positional, keywords = _filled(arguments, operands)
    parameters: dict = {"results": results, "fixed": _filled(arguments, again)}
    extra = {name: parameters[name] for name in extra_parameters(target)}
    try:
        inspect.signature(target).bind(*positional, **keywords, **extra)
    except TypeError as error:
        raise MissingRule(str(error)) from None
    return target(*positional, **keywords, **extra)


def _filled(arguments: Any, operands: tuple) -> tuple:
    """(positional, keywords) of a call; an object of SciPy is a ``MadeObject``."""
    return fill_form(
        arguments,
        iter(operands),
        call=lambda name, args, kwargs: MadeObject(name, tuple(args), kwargs),
    )


def _fits(x: Any, aval: ArrayType) -> bool:
    """Whether a result of a formula has a derivative. Raises MissingRule for another shape."""
    if x is None or not aval.inexact:
        return False
    if tuple(x.shape) != tuple(aval.shape):
        raise MissingRule(f"its formula has the shape {x.shape}, not {aval.shape}")
    return True


def _cast_to_type(x: Any, aval: ArrayType) -> Any:
    if x.dtype == aval.dtype:
        return x
    return (x.real if x.dtype.kind == "c" and aval.dtype.kind != "c" else x).astype(aval.dtype)


LATE_BOUND["formula_program"] = formula_program
