"""The program of a formula, recorded for the types of a call: ``LATE_BOUND["formula_program"]``."""

import inspect
from typing import Any

from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.bounded_cache import BoundedCache
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType, ShapeDtype
from letir.errors import LetirError, MissingRule
from letir.ops.special.scipy_functions import fill_form, result_types
from letir.scipy.formulas import factorisations, filters, images, matrices  # noqa: F401
from letir.scipy.formulas.formula_table import FORMULAS, takes_results
from letir.tracing.entry import record
from letir.tracing.trace_state import ABSTRACT

_programs = BoundedCache(1 << 10)


@frozen
class FormulaProgram:
    """A program from the operands and the results of a call to its results number ``places``.

    ``places``: the results that have a derivative; ``reason``: why another one has none.
    """

    fn: Lambda
    places: tuple[int, ...]


@frozen
class MadeObject:
    """An object of SciPy, by the call that makes it."""

    name: str
    args: tuple
    kwargs: dict


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
        found = _programs[key] = _record_formula(*key[:1], arguments, results, types)
    if isinstance(found, str):
        raise MissingRule(found)
    return found


def _record_formula(function: str, arguments: Any, results: Any, types: tuple) -> Any:
    """The program; the reason, a text, if there is none for these arguments."""
    places: list[int] = []
    kinds = result_types(results)

    def recorded(*values):
        operands, found = values[: len(types)], values[len(types) :]
        made = _called(function, arguments, iter(operands), found)
        made = made if isinstance(made, tuple) else (made,)
        if len(made) != len(kinds):
            raise MissingRule("it has other results for these arguments")
        chosen = [i for i, (x, aval) in enumerate(zip(made, kinds, strict=True)) if _fits(x, aval)]
        places.extend(chosen)
        return tuple([_in_dtype(made[i], kinds[i]) for i in chosen])

    try:
        shapes = [ShapeDtype(t.shape, t.dtype, t.weak) for t in (*types, *kinds)]
        fn = record(recorded, tuple(shapes), {}, ABSTRACT, intercept=False).fn
    except LetirError as error:
        return _reason(function, str(error).splitlines()[0])
    return FormulaProgram(fn, tuple(places))


def _reason(function: str, text: str) -> str:
    return (
        f"scipy.{function} has no derivative for these arguments: {text}\n"
        "  letir.opaque(function, aval, vjp=...) gives it one; "
        "letir.stop_gradient(x) treats its argument as a constant"
    )


def _called(function: str, arguments: Any, operands: Any, found: tuple) -> Any:
    """The result of the formula for the arguments of a call."""
    positional, keywords = fill_form(
        arguments, operands, call=lambda name, args, kwargs: MadeObject(name, tuple(args), kwargs)
    )
    target = FORMULAS[function]
    extra = {"results": found} if takes_results(target) else {}
    try:
        inspect.signature(target).bind(*positional, **keywords, **extra)
    except TypeError as error:
        raise MissingRule(str(error)) from None
    return target(*positional, **keywords, **extra)


def _fits(x: Any, aval: ArrayType) -> bool:
    """Whether a result of a formula has a derivative. Raises MissingRule for another shape."""
    if x is None or not aval.inexact:
        return False
    if tuple(x.shape) != tuple(aval.shape):
        raise MissingRule(f"its formula has the shape {x.shape}, not {aval.shape}")
    return True


def _in_dtype(x: Any, aval: ArrayType) -> Any:
    if x.dtype == aval.dtype:
        return x
    return (x.real if x.dtype.kind == "c" and aval.dtype.kind != "c" else x).astype(aval.dtype)


LATE_BOUND["formula_program"] = formula_program
