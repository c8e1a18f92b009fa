"""Draws of a traced generator from lists, and from objects that are not numbers."""

from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES


def array_of_list(x: Any) -> Any:
    """A list or a tuple as an array, traced if one of its elements is; other values unchanged."""
    if not isinstance(x, list | tuple):
        return x
    x = LATE_BOUND["stack_traced"](x)
    return x if isinstance(x, Value) else np.asarray(x)


def shuffle_list(generator: Any, items: list) -> None:
    """Put a list in random order.

    Numbers of one kind are moved by operations of the program. Other objects do not change, and
    the order is guarded.
    """
    count = len(items)
    order = generator.draw("permutation", (), count, np.int64, n=count)
    kinds = {type(item) for item in items}
    if kinds == {int} or kinds == {float}:
        moved = PRIMITIVES["index"](np.array(items), (order,))
        items[:] = [PRIMITIVES["weaken"](moved[i]) for i in range(count)]
    elif kinds and all(isinstance(x, Value) and x.type == items[0].type for x in items):
        moved = PRIMITIVES["index"](array_of_list(items), (order,))
        is_weak = items[0].type.weak
        items[:] = [PRIMITIVES["weaken"](x) if is_weak else x for x in moved]
    else:
        items[:] = [items[int(place)] for place in order]


def is_of_numbers(x: Any) -> bool:
    """Whether ``x`` is a traced value, or an array of numbers."""
    return isinstance(x, Value) or x.dtype.kind in "biufc"


def choose_objects(items: np.ndarray, places: Any, axis: int) -> Any:
    """The elements of an array of strings at these places, which are guarded."""
    if not np.ndim(places):
        return items.take(int(places), axis)
    concrete = np.array([int(place) for place in places.reshape(-1)])
    return items.take(concrete.reshape(places.shape), axis)
