"""``stop_gradient``: treat values as constants in derivatives."""

from typing import Any

from letir.ast import entry_point, pytrees
from letir.ast.builder import Value
from letir.errors import DTypeError
from letir.ops.elementwise import casting
from letir.tracing.source_locations import at_user


@entry_point
def stop_gradient(x: Any) -> Any:
    """``x``, a value or a pytree of values, as constants: cotangents and tangents are zero.

    >>> from letir import grad
    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    np.float64(3.0)
    >>> grad(lambda p: p["w"] * stop_gradient(p)["w"])({"w": 3.0})
    {'w': np.float64(3.0)}
    """
    if isinstance(x, Value):
        return casting.stop_gradient(x)
    leaves, structure = pytrees.flatten(x)
    return structure.unflatten([_stop_leaf(leaf) for leaf in leaves])


def _stop_leaf(leaf: Any) -> Any:
    """A leaf as a constant; one that is not traced is a constant already."""
    if isinstance(leaf, Value):
        return casting.stop_gradient(leaf)
    attributes = dict(getattr(leaf, "__dict__", {}))
    if any(isinstance(value, Value) for value in pytrees.flatten(attributes)[0]):
        raise DTypeError(
            f"stop_gradient: an object of type {type(leaf).__name__}, which is not a pytree, "
            f"contains traced values{at_user()}\n"
            "  pass the values themselves, or register the class with optree in the namespace "
            "'letir'"
        )
    return leaf
