"""Series of calls on objects without a plan: after some of them Python runs most calls at once."""

from typing import Any

_SERIES = 8  # calls without a plan in a row, after which most calls look for no plan
_NEVER = 1 << 62  # stands for such a number of calls if no call looks for a plan
_MAX_PARTS = 500  # of an object, if calls still look for a plan after such a series


def is_in_series(on_arrays: Any, kind: type) -> bool:
    """Whether a call on an object of this class runs the Python function, and looks for no plan.

    It does after a series of calls that have had no plan, because the state of the object cannot be
    recorded or differs each time. Ever fewer calls, those with a power of two as number and the
    next ones, look for a plan, and none if the object is large: the time of a search grows with the
    object, which may grow with each call.
    """
    number = on_arrays.series.get(kind, 0)
    if number < _SERIES:
        return False
    if number < _NEVER:
        on_arrays.series[kind] = number + 1
        if not number & (number + 1) or not number & (number - 1):
            return False
    next(on_arrays.missed_calls)
    return True


def count_in_series(on_arrays: Any, kind: type, parts: int | None) -> None:
    """Count a call on an object of this class that has had no plan.

    It has run the Python function, or a plan that was made for it. ``parts``: the number of parts
    that were searched; None for a call that has had a plan.
    """
    if parts is not None:
        number = on_arrays.series.get(kind, 0)
        is_last = number >= _SERIES and parts > _MAX_PARTS
        # longer series have been counted in ``is_in_series``
        on_arrays.series[kind] = _NEVER if is_last else number + (number < _SERIES)
    elif on_arrays.series:
        on_arrays.series.pop(kind, None)
