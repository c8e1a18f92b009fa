"""Calls of NumPy's functions on Values, in the rules of users' operations and in scripts."""

from collections.abc import Callable
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.ast.record_fields import SeveralBinds
from letir.tracing.numpy_functions.registry import PLAIN
from letir.tracing.numpy_protocols.dispatch import recorder_of, unsupported_error
from letir.tracing.numpy_protocols.ufunc_calls import call_ufunc


def call_on_values(function: Any, args: tuple, kwargs: dict) -> Any:
    """The result of a NumPy function in a rule, some of whose arguments are Values."""
    recorder = recorder_of(function)
    if recorder is None:
        plain = PLAIN.get(function)
        try:
            if plain is not None:
                return plain(*args, **kwargs)
        except AttributeError:
            pass  # it reads elements, which Values do not have
        raise unsupported_error(function)
    record, prepare = recorder
    if prepare == record.prepare:
        return record(*args, **kwargs)
    return call_prepared(record, prepare, args, kwargs)


def call_prepared(
    record: Primitive, prepare: Callable[..., tuple], args: tuple, kwargs: dict
) -> Any:
    """The results of an operation for a call of a NumPy function, which ``prepare`` reads."""
    try:
        operands, attrs = prepare(*args, **kwargs)
    except SeveralBinds as call:
        return call.results()
    emitter = next((a.emitter for a in operands if isinstance(a, Value)), None)
    if emitter is None:
        return LATE_BOUND["compute"](record, operands, record.complete(attrs))
    return emitter.apply(record, operands, record.complete(attrs))


LATE_BOUND.update(call_on_values=call_on_values, call_ufunc_on_values=call_ufunc)
