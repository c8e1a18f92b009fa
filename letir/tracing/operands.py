"""What becomes an operand without having been traced: arrays of Variables, lists, and what is none.

Each is used by ``Trace.enter`` or ``Trace.frozen``, and refuses with the user's line.
"""

import numpy as np

from letir.ast.builder import Value
from letir.errors import DTypeError, TraceError
from letir.eval.array_modules import type_of
from letir.tracing.places import at_user, placed


def captured_array(variable: Value):
    """The array of a Variable that a traced function uses without having it as an argument.

    Raises TraceError if it requires grad: the program would be constant in it [B1].
    """
    if variable.arg.requires_grad:
        raise TraceError(
            f"a Variable of type {variable.type} that requires grad is used in a trace, but is no "
            f"argument of the traced function{at_user()}\n"
            "  make it an argument, or detach it: x.detach() enters as a constant"
        )
    return variable.concrete_value()


def check_type(operand) -> None:
    """Raise DTypeError with the remedy and the user's line if it is no array of numbers."""
    try:
        type_of(operand)
    except DTypeError as error:
        raise placed(error) from None


def as_array(items) -> np.ndarray:
    """A list of numbers as an array. Raises TraceError if it holds traced values."""
    if any(isinstance(item, Value) for item in items):
        raise TraceError(
            f"a list that holds traced values is no operand{at_user()}\n"
            "  stack it first: numpy.stack([...]), or letir.numpy.array([...])"
        )
    return np.asarray(items)
