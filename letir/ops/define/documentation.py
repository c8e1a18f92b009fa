"""The text that ``help`` shows for an operation: its signature and a docstring."""

import inspect
from collections.abc import Callable

from letir.ast import LATE_BOUND
from letir.ast.primitive import Primitive

_INTERNAL = ("xp", "call")  # parameters that callers do not pass


def record_documentation(record: Primitive) -> str:
    """The signature and the docstring of an operation.

    A composite is described by the function of which it consists, other operations by ``impl``,
    and those that NumPy has by the name of NumPy's function.
    """
    described = inspect.getdoc(record.decompose or record.impl)
    if record.numpy:
        called = next(iter(record.numpy))
        described = f"NumPy's ``{called.__name__}``, recorded as one operation."
    elif described is None and record.is_user_defined:
        described = "An operation that ``letir.primitive`` has made."
    described = described or "One of the operations that docs/operations.md lists."
    return f"{record.name}{record_signature(record)}\n\n{described}"


def record_signature(record: Primitive) -> inspect.Signature:
    """The signature with which users call an operation."""
    if record.prepare is None and record.max_operands is not None:  # of a ufunc
        count = record.max_operands
        names = ["x"] if count == 1 else [f"x{i}" for i in range(1, count + 1)]
        kind = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Signature([inspect.Parameter(name, kind) for name in names])
    function: Callable = record.prepare or record.decompose or record.impl
    signature = inspect.signature(function)
    parameters = [p for name, p in signature.parameters.items() if name not in _INTERNAL]
    return signature.replace(parameters=parameters, return_annotation=signature.empty)


LATE_BOUND["record_documentation"] = record_documentation
LATE_BOUND["record_signature"] = record_signature
