"""``with np.errstate(...)`` in a traced function: binds recorded inside store the state.

NumPy keeps the state in a context variable, which is the same object unless the state was changed:
comparing it is faster than reading the state. Where ``warnings.catch_warnings`` surrounds the code
and its filters ignore a floating-point warning, the stored state ignores the error. Warnings that
NumPy's functions issue themselves, such as ``nanmean`` of nan alone, are stored as patterns of
their texts.
"""

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES, Primitive, unwrap_results
from letir.errors import LetirError
from letir.eval.array_modules import is_array, type_of
from letir.eval.float_warnings import HANDLER, current_state
from letir.tracing.trace_state import NOT_COMPUTED

if TYPE_CHECKING:
    from letir.tracing.trace_state import Trace

_MESSAGES = {
    "divide": "divide by zero encountered in ",
    "over": "overflow encountered in ",
    "under": "underflow encountered in ",
    "invalid": "invalid value encountered in ",
}
# the warnings that NumPy's functions issue in a class of their own, and how their texts begin
_CLASSES: dict[Any, str] = {
    np.exceptions.RankWarning: "Polyfit may be poorly conditioned",
    np.exceptions.ComplexWarning: "Casting complex values to real",
}
_KNOWN = frozenset(["ignore", "warn", "raise", "print"])  # other handlings call user functions


def record_errstate(trace: "Trace", op: Primitive, operands: Iterable[Any], attrs: Attrs) -> Any:
    """``op`` on these operands as a bind that runs in the current error state.

    ``NOT_COMPUTED`` if this is the state around the function: then the bind needs no state.
    """
    state: dict[str, Any] = {**np.geterr()}
    if np.geterrcall() is HANDLER:  # recorded while an operation is computed
        state = {name: "warn" if mode == "log" else mode for name, mode in state.items()}
    patterns: tuple[str, ...] = ()
    if warnings.filters is not trace.filters:  # catch_warnings has replaced the list
        hidden = [name for name in state if state[name] == "warn" and _is_hidden(name, op)]
        if hidden or not op.elementwise:  # ufuncs issue no other warnings
            patterns = _hidden_patterns()
        if not (hidden or patterns) and current_state() is trace.error_state:
            return NOT_COMPUTED
        state.update(dict.fromkeys(hidden, "ignore"))
    if not _KNOWN.issuperset(state.values()):
        raise LetirError(
            "numpy.errstate with 'call' or 'log' is not recorded: use 'ignore', 'warn', 'raise' "
            "or 'print'"
        )
    operands = [np.asarray(x) if isinstance(x, list | tuple) else x for x in operands]
    builder, sources, args = LetBuilder(), [], []
    for operand in operands:
        if isinstance(operand, Value) or is_array(operand):
            aval = operand.type if isinstance(operand, Value) else type_of(operand)
            sources.append(operand)
            args.append(builder.param(aval).arg)
        else:
            args.append(builder.enter(operand))
    body = builder.build(builder.emit(op, tuple(args), attrs))
    region = PRIMITIVES["errstate"]
    settings = region.complete({"body": body, **state, "hidden": patterns})
    results = trace.apply(region, sources, settings)
    return unwrap_results(op, results)


def _is_hidden(name: str, op: Primitive) -> bool:
    """Whether the filters of ``warnings`` ignore the warning of a floating-point error in ``op``.

    The first filter that fits decides. Filters for one module or one line do not count.
    """
    message = _MESSAGES[name] + op.name
    for action, text, category, module, line in warnings.filters:
        is_one_place = module is not None or line != 0
        if is_one_place or not issubclass(RuntimeWarning, category):
            continue
        if text is None or (text.match(message) if hasattr(text, "match") else text == message):
            return action == "ignore"
    return False


def _hidden_patterns() -> tuple[str, ...]:
    """Patterns of the texts of warnings of NumPy's that the filters ignore; "" fits every text."""
    result = []
    for action, text, category, module, line in warnings.filters:
        is_general = issubclass(RuntimeWarning, category)
        if module is not None or line != 0 or not (is_general or category in _CLASSES):
            continue
        pattern = getattr(text, "pattern", None) or _CLASSES.get(category, "")
        if action == "ignore":
            result.append(pattern)
        if not pattern:  # later filters decide nothing
            break
    return tuple(result)


LATE_BOUND.update(record_errstate=record_errstate)
