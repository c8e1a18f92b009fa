"""Which types of values carry derivatives, and the types of these derivatives.

Floating and complex values carry derivatives, integers and booleans do not. The docstring of each
function says what it returns for unknown types. Whether results of users' functions require grad is
only known when they run.
"""

from typing import Any

from letir.ast.record_fields import Absent
from letir.ast.terms import Bind, Lambda
from letir.ast.types import ArrayType


def carries_derivative(x: Any) -> bool:
    """Whether a local, a Value or a parameter is floating or complex; True if its type is
    unknown [semantics.md D1].
    """
    return x.type is None or x.type.inexact


def type_carries_derivative(aval: ArrayType | None) -> bool:
    """Whether a type is floating or complex; True for None, a type that is unknown."""
    return aval is None or aval.inexact


def is_known_inexact(x: Any) -> bool:
    """Whether a local or a Value is floating or complex; False if its type is unknown."""
    return x.type is not None and x.type.inexact


def strong_type(aval: ArrayType | None) -> ArrayType | None:
    """The type of an array where ``aval`` is the type of a Python number, else ``aval`` itself.

    The type of cotangents, tangents and loop-carried values.

    >>> strong_type(ArrayType(float, (), weak=True))
    float64[]
    """
    return ArrayType(aval.dtype, aval.shape) if aval is not None and aval.weak else aval


def might_require_grad(fn: Lambda) -> bool:
    """Whether a result may require grad although no parameter does.

    True if an opaque function is called, which may hold a Variable.
    """
    return any(is_opaque_call(bind) for bind in fn.binds)


def is_opaque_call(bind: Bind) -> bool:
    """Whether a bind calls a user's function without a known derivative."""
    return bind.op.is_user_defined and type(bind.op.vjp) is Absent and not bind.op.vjp.final
