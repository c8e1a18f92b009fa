"""Operators of traced Python numbers where Python and NumPy differ: see ``python_operator``.

Loaded when such an operator is first recorded.
"""

import sys
from typing import Any

from letir.ast import LATE_BOUND, operators
from letir.ast.attrs import Attrs
from letir.ast.builder import Value
from letir.ast.operators import weaken_result
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.types import WEAK
from letir.ops.elementwise.python_operators import compute_operator
from letir.tracing import entry, math_stand_ins
from letir.tracing.numpy_protocols import array_value, python_protocols
from letir.tracing.source_locations import at_user, is_user_file
from letir.tracing.trace_state import ABSENT

# the files of the operators' methods
_OWN_FILES = frozenset(
    [
        *(operators.__file__, array_value.__file__, python_protocols.__file__, __file__),
        math_stand_ins.__file__,  # of the builtin pow
    ]
)


def apply_python_operator(emitter: Any, op: Primitive, operands: tuple) -> Any:
    """The traced Python number that Python's operator for ``op`` gives.

    Raises TypeError where Python does.
    """
    x, y = operands
    if op.python.orders_numbers and _written_by_user():
        kinds = f"{_python_kind(x)!r} and {_python_kind(y)!r}"
        raise TypeError(
            f"{op.symbol!r} not supported between instances of {kinds}{at_user()}\n"
            "  Python does not order complex numbers: compare abs(z) or z.real"
        )
    if not _differs_from_numpy(op, x, y) or not _written_by_user():
        return weaken_result(emitter.apply(op, operands))
    attrs = Attrs(operator=op.name, kind=_kind_of_result(op, x, y))
    return emitter.apply(PRIMITIVES["python_operator"], operands, attrs)


def _written_by_user() -> bool:
    """Whether the operator is in the user's code.

    Operators in letir's implementations of NumPy's functions, such as np.average, follow NumPy.
    """
    frame: Any = sys._getframe(2)
    while frame.f_code.co_filename in _OWN_FILES and frame.f_back is not None:
        frame = frame.f_back
    file = frame.f_code.co_filename
    return is_user_file(file) or file == entry.__file__  # operator.truediv itself is recorded


def _python_kind(x: Any) -> str:
    """The name of the type of a Python number, traced or not; a bool counts as an int."""
    letter = x.dtype.kind if isinstance(x, Value) else WEAK[type(x)].dtype.kind
    return {"f": "float", "c": "complex"}.get(letter, "int")


def _differs_from_numpy(op: Primitive, x: Any, y: Any) -> bool:
    """Whether Python may raise, or give another type or number, where NumPy does not."""
    kinds = {_python_kind(x), _python_kind(y)}
    if isinstance(y, Value) or "complex" in kinds:
        return True
    return op.python.differs is not None and op.python.differs(y, kinds)


def _kind_of_result(op: Primitive, x: Any, y: Any) -> str:
    """The name of the type that Python gives at the values of a concrete trace.

    Without values: an int for powers of ints, a float for powers of floats.
    """
    kinds = {_python_kind(x), _python_kind(y)}
    if "complex" in kinds:
        return "complex"
    default = "float" if "float" in kinds else "int"
    if op.python.result_kind is None:
        return default
    kind = op.python.result_kind(None if isinstance(y, Value) else y, kinds)
    if kind is not None:
        return kind
    values = [n.concrete_value() if isinstance(n, Value) else n for n in (x, y)]
    if not any(value is ABSENT for value in values):
        numbers = [n.item() if hasattr(n, "item") else n for n in values]
        try:
            return type(compute_operator(op.name, *numbers)).__name__
        except ArithmeticError:  # computing the operation raises it again
            pass
    return default


LATE_BOUND["apply_python_operator"] = apply_python_operator
LATE_BOUND["is_users_operator"] = _written_by_user
