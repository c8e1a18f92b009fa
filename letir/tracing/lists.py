"""Lists that hold traced values, as the traced arrays that NumPy would make of them."""

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES


def gathered(items):
    """A list that holds traced values as the traced array that numpy.array makes of it.

    Anything else as it is. Numbers in it are float64, int64 or complex128, as in NumPy.
    """
    if not isinstance(items, list | tuple) or first_traced(items) is None:
        return items
    # strong: np.array([x, 1.0]) makes float64 of float32 x, where x + 1.0 does not
    return PRIMITIVES["stack"]([strong(gathered(item)) for item in items])


def arrayed(x):
    """An operand as a traced value or an ordinary array; lists are gathered."""
    x = gathered(x)
    return x if isinstance(x, Value) else np.asarray(x)


def first_traced(items) -> Value | None:
    """The first traced value in nested lists and tuples, None if there is none."""
    if isinstance(items, list | tuple):
        return next((found for item in items if (found := first_traced(item)) is not None), None)
    return items if isinstance(items, Value) else None


def strong(item):
    """An element of a list as an array: a Python number has NumPy's default dtype."""
    if not isinstance(item, Value):
        return np.asarray(item)
    return item.astype(item.dtype) if item.type.weak else item
