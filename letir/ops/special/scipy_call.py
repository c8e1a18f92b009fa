"""``scipy_call``: a call of a SciPy function for which letir has no operation.

The types and the number of its results may depend on the values of the operands. A program has the
types of its recording; results of other types raise ``GuardError``. Derivatives come from rules
(``scipy_derivatives``) or from a formula (``letir.scipy.formulas``), a program of other operations
that has the same results.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.ast.record_fields import never
from letir.ast.terms import Lambda
from letir.errors import DTypeError, ExportError, GuardError, MissingRule
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.ops.define.composite_programs import type_of_operand
from letir.ops.define.records import define, takes_gradient, unbroadcast
from letir.ops.shape.shape_and_creation import zeros_like
from letir.ops.special.define import scipy_or_cupy_function
from letir.ops.special.scipy_derivatives import RULES, DerivativeRules
from letir.ops.special.scipy_distributions import DISTRIBUTIONS
from letir.ops.special.scipy_functions import (
    ATTRIBUTES,
    METHODS,
    argument_text,
    count_operands,
    describe_result,
    fill_form,
    is_call,
    result_paths,
    result_types,
    split_name,
)


def _scipy_call_impl(xp, *operands, function, arguments, results):
    """The arrays and numbers in the result of SciPy's function, as a tuple."""
    copies = iter([writable_copy(x) for x in operands])
    call = functools.partial(called_by_name, xp)
    positional, keywords = fill_form(arguments, copies, call=call)
    return checked_leaves(function, call(function, positional, keywords), results)


def called_by_name(xp: Any, function: str, positional: Sequence, keywords: dict) -> Any:
    """The result of a function of SciPy, or of a method or attribute of its first argument."""
    part, name = split_name(function)
    if part not in METHODS:
        return scipy_or_cupy_function(xp, part, name)(*positional, **keywords)
    if f"{part.rpartition('.')[0]}.{type(positional[0]).__name__}" != part:
        raise GuardError(
            f"the program was recorded for an object of class scipy.{part}, "
            f"now it is a {type(positional[0]).__name__}\n  trace again with these arguments"
        )
    result = getattr(positional[0], name)
    return result if name in ATTRIBUTES[part] else result(*positional[1:], **keywords)


def checked_leaves(function: str, result: Any, results: Any) -> tuple:
    """The arrays and numbers in ``result``, the result of SciPy's ``function``.

    Raises GuardError unless their form is ``results``.
    """
    form, leaves = describe_result(result)
    if form != results:
        raise GuardError(
            f"the program was recorded where scipy.{function} returned {_form_text(results)}, "
            f"now it returns {_form_text(form)}\n"
            "  trace again with these arguments, or call letir.jit(f), which does so"
        )
    return tuple(leaves)


def writable_copy(x: Any) -> Any:
    """``x`` as an array that SciPy's compiled code accepts, which may refuse read-only memory."""
    return x if type(x) is not np.ndarray or x.flags.writeable else x.copy()


def _form_text(form: Any) -> str:
    """A short text for a form of results, for messages."""
    kinds = result_types(form)
    texts = [form] if type(form) is str else []
    return ", ".join([*map(str, kinds), *map(repr, texts)]) or "nothing"


def _scipy_call_aval(*types, function, arguments, results):
    """The recorded types of the results."""
    part, _ = split_name(function)
    if not is_call(arguments) or (part in METHODS and len(arguments[1]) < 2):
        raise DTypeError(
            f"scipy_call: {arguments!r} is not a form of arguments\n"
            "  record the program again with letir.trace"
        )
    if count_operands(arguments) != len(types):
        raise DTypeError(
            f"scipy_call: the form of the arguments {arguments!r} has another number of operands "
            f"than {len(types)}\n  record the program again with letir.trace"
        )
    return tuple(result_types(results))


def _scipy_call_vjp(cts, outs, *operands, function, arguments, results, wanted=None):
    """The cotangents, for functions with ``RULES`` or with a formula."""
    known = _rules_of(function, arguments, operands)
    if known is not None:
        rules, keywords = known
        return (rules.vjp(cts, outs, operands[0], keywords),)
    program, places = _formula_of(function, arguments, results, operands)
    given = [i for i, ct in enumerate(cts) if ct is not None and outs[i].type.inexact]
    other = next((i for i in given if i not in places), None)
    if other is not None:
        raise MissingRule(_no_derivative(function, f"result {other} has none"))
    needed = [isinstance(x, Value) and takes_gradient(x) for x in operands]
    needed = needed if wanted is None else [a and b for a, b in zip(needed, wanted, strict=True)]
    chosen = [cts[i] for i in places]
    if not any(needed) or all(ct is None for ct in chosen):
        return (None,) * len(operands)
    pulled = LATE_BOUND["pull"](
        program,
        [*operands, *outs, *operands],
        chosen,
        wanted=[*needed, *[False] * (len(outs) + len(operands))],
    )
    return tuple([unbroadcast(g, x) for g, x in zip(pulled, operands, strict=False)])


def _scipy_call_jvp(tangents, outs, *operands, function, arguments, results):
    """The tangents of the results, for functions with ``RULES`` or with a formula."""
    known = _rules_of(function, arguments, operands)
    if known is not None:
        rules, keywords = known
        return rules.jvp(tangents[0], outs, operands[0], keywords)
    program, places = _formula_of(function, arguments, results, operands)
    constant = [*outs, *operands]
    directions = [*tangents, *[None] * len(constant)]
    pushed = LATE_BOUND["push"](program, [*operands, *constant], directions)
    by_place = dict(zip(places, pushed, strict=True))
    # nan: not known
    return tuple(
        [
            by_place[i] if i in by_place else zeros_like(x) + np.nan if x.type.inexact else None
            for i, x in enumerate(outs)
        ]
    )


def _rules_of(
    function: str, arguments: Any, operands: Sequence
) -> tuple[DerivativeRules, dict] | None:
    """(rules, keywords) of a call; None if it has no rules."""
    rules = RULES.get(function)
    if rules is not None and len(operands) == 1:
        positional, keywords = fill_form(arguments, iter(operands))
        if rules.hold_for(positional, keywords):
            return rules, keywords
    return None


def _formula_of(
    function: str, arguments: Any, results: Any, operands: Sequence
) -> tuple[Lambda, tuple[int, ...]]:
    """(program, numbers of its results) of the formula of a call.

    Raises MissingRule if SciPy computes its values only.
    """
    types = tuple([type_of_operand(x) for x in operands])
    found = LATE_BOUND["formula_program"](function, arguments, results, types)
    if found is None:
        raise MissingRule(_no_derivative(function, "SciPy computes its values only"))
    return found.fn, found.places


def _no_derivative(function: str, reason: str) -> str:
    return (
        f"scipy.{function} has no derivative here: {reason}\n"
        "  letir.opaque(function, aval, vjp=...) gives it one; "
        "letir.stop_gradient(x) treats its argument as a constant"
    )


def _source_of_function(write, part: str, name: str) -> str:
    """The name of a function of SciPy in a source, or of a method of a distribution."""
    if part in DISTRIBUTIONS:
        distribution = part.rpartition(".")[2]
        return f"{write.writer.module.imported('scipy.stats', distribution)}.{name}"
    return write.writer.module.imported(f"scipy.{part}", name)


def _scipy_call_source(write, *operands, function, arguments, results):
    """A call of SciPy's function, and the expressions of the arrays in its result."""
    part, name = split_name(function)
    if part in METHODS:
        raise ExportError(
            f"to_source: scipy.{function} of an object has no form in NumPy\n"
            "  save the program with letir.save"
        )
    called = _source_of_function(write, part, name)
    texts = iter(operands)
    _, positional, keywords = arguments
    pieces = [argument_text(form, texts, write.literal) for form in positional[1:]]
    pieces += [f"{k}={argument_text(form, texts, write.literal)}" for k, form in keywords[1:]]
    call = f"{called}({', '.join(pieces)})"
    paths = result_paths(results, "")
    if paths == [""] and len(write.bind.binders) == 1:
        result = write.result()
        write.line(f"{result} = {call}")
        return None
    whole = write.named(name)
    write.line(f"{whole} = {call}")
    return tuple([whole + path for path in paths])


# fields of the records of all operations that call SciPy
CALL_OF_SCIPY: dict[str, Any] = {
    "results": lambda *, results, **_: len(result_types(results)),
    "guards": True,
    "raises": True,
    "onnx": never("ONNX has no functions of SciPy"),
    "for_scripts": False,
}
scipy_call: Primitive = define(
    "scipy_call",
    _scipy_call_impl,
    _scipy_call_aval,
    vjp=_scipy_call_vjp,
    jvp=_scipy_call_jvp,
    batch=LoopOverExamples(lambda: scipy_call),
    memory="may_alias",
    role="library",
    source=_scipy_call_source,
    **CALL_OF_SCIPY,
)
