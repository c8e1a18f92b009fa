"""Which values carry derivatives, judged by their types, and the types of these derivatives.

Floating and complex values carry derivatives, integers and booleans do not. Each function states
its answer for unknown types.
"""

from typing import Any

from letir.ast.types import ArrayType


def carries_derivative(x: Any) -> bool:
    """Whether a local, a Value or a parameter is floating or complex; True if its type is
    unknown [D1].
    """
    return x.type is None or x.type.inexact


def type_carries_derivative(kind: ArrayType | None) -> bool:
    """Whether a type is floating or complex; True for None, a type that is unknown."""
    return kind is None or kind.inexact


def is_known_inexact(x: Any) -> bool:
    """Whether a local or a Value is floating or complex; False if its type is unknown."""
    return x.type is not None and x.type.inexact


def strong_type(kind: ArrayType | None) -> ArrayType | None:
    """The type of an array where ``kind`` is the type of a Python number, else ``kind`` itself.

    The type of cotangents, tangents and loop-carried values.

    >>> strong_type(ArrayType(float, (), weak=True))
    float64[]
    """
    return ArrayType(kind.dtype, kind.shape) if kind is not None and kind.weak else kind
