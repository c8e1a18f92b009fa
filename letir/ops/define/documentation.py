"""The text that ``help`` shows for an operation: its signature and a docstring."""

import inspect
from collections.abc import Callable

from letir.ast import LATE_BOUND
from letir.ast.primitive import Primitive

_INTERNAL = ("xp", "call")  # parameters that callers do not pass


def record_documentation(record: Primitive) -> str | None:
    """The signature and the docstring of an operation that has one; None for the others.

    A composite is described by the function of which it consists, other operations by ``impl``.
    """
    described = inspect.getdoc(record.decompose or record.impl)
    if described is None or record.numpy:
        return None
    return f"{record.name}{record_signature(record)}\n\n{described}"


def record_signature(record: Primitive) -> inspect.Signature:
    """The signature with which users call an operation."""
    function: Callable = record.prepare or record.decompose or record.impl
    signature = inspect.signature(function)
    parameters = [p for name, p in signature.parameters.items() if name not in _INTERNAL]
    return signature.replace(parameters=parameters)


LATE_BOUND["record_documentation"] = record_documentation
LATE_BOUND["record_signature"] = record_signature
