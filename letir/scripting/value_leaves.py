"""The values of scripts (arrays, numbers, shapes, and nested tuples of them) and their leaves.

``plain_result`` converts a value to the form of arguments and results of programs.
``parameters_for`` brings a value into a closed body: its arrays become parameters, and its numbers
and shapes become part of the body.
"""

from typing import Any

from letir.ast.builder import LetBuilder, Value
from letir.ops.shape.shape_and_creation import Sizes


def plain_result(value: Any) -> Any:
    """A value in the form that programs return: shapes as arrays."""
    if isinstance(value, tuple):
        return tuple(map(plain_result, value))
    return value.array if type(value) is Sizes else value


def leaves_of(value: Any) -> list:
    """The leaves of nested tuples; None is a leaf."""
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves_of(part)]
    return [value]


def parameters_for(builder: LetBuilder, name: str, value: Any) -> Any:
    """A captured value inside a body: arrays become parameters, other values stay unchanged."""
    if isinstance(value, tuple):
        return tuple(parameters_for(builder, f"{name}.{i}", part) for i, part in enumerate(value))
    if type(value) is Sizes:
        # known values stay known
        return Sizes(builder.param(value.array.type, name), value.static_shape)
    return builder.param(value.type, name) if isinstance(value, Value) else value


def is_static(value: Any) -> bool:
    """Whether a value is known when the script is read: it contains no array."""
    if isinstance(value, tuple):
        return all(map(is_static, value))
    return not isinstance(value, Value) and type(value) is not Sizes


def with_local_name(value: Any, name: str) -> Any:
    """``value``, with its local named ``name`` if it has no name."""
    if isinstance(value, Value) and value.arg.name is None:
        value.arg.name = name
    return value
