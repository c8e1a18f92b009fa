"""Calls of NumPy's functions that choose among strings or objects: ``np.where(x > 0, "+", "-")``.

Arrays of texts are not recorded. The conditions are guarded, as the integers that index an ordinary
array are, and NumPy chooses.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.tracing.trace_state import NOT_COMPUTED

_CHOICES = frozenset([np.where, np.select, np.choose])


def choose_texts(func: Callable, args: tuple, kwargs: dict) -> Any:
    """NumPy's choice among strings or objects with guarded conditions.

    ``NOT_COMPUTED`` for other functions, and where a choice or a condition is a traced number.
    """
    if func not in _CHOICES or kwargs or len(args) < 2 or not _is_text_among(args[1:]):
        return NOT_COMPUTED
    conditions = args[0] if type(args[0]) is list else [args[0]]
    kinds = [x.dtype.kind for x in conditions if isinstance(x, Value)]
    if not set(kinds).issubset("iub") or _is_traced_among(args[1:]):
        return NOT_COMPUTED
    concrete = [_known_condition(x) if isinstance(x, Value) else x for x in conditions]
    return func(concrete if type(args[0]) is list else concrete[0], *args[1:])


def _known_condition(x: Any) -> Any:
    """The value of a traced condition, with a guard."""
    return x.guarded(np.copy, "a condition") if x.shape else x.dtype.type(x.item())


def _is_text_among(choices: tuple | list) -> bool:
    """Whether a choice is a string, an object or an array of them."""
    for x in choices:
        if type(x) in (list, tuple):
            if _is_text_among(x):
                return True
        elif not isinstance(x, Value) and np.asarray(x).dtype.kind in "USOMm":
            return True
    return False


def _is_traced_among(choices: tuple | list) -> bool:
    """Whether a choice is a traced value."""
    return any(
        _is_traced_among(x) if type(x) in (list, tuple) else isinstance(x, Value) for x in choices
    )


LATE_BOUND["choose_texts"] = choose_texts
