"""Calls on objects that found no plan: after several in a row, most calls run the Python function.

``Executor`` counts them by the class of the object, in ``calls_without_plan``.
"""

from typing import Any

_SEARCHED_CALLS = 8  # calls without a plan in a row, after which most calls look for no plan
_NEVER = 1 << 62  # stands for such a number of calls if no call looks for a plan
_MAX_PARTS = 500  # of an object, if calls still look for a plan after that


def skips_plan_search(on_arrays: Any, kind: type) -> bool:
    """Whether a call on an object of this class runs the Python function without a plan search.

    It does after several calls that have had no plan, because the state of the object cannot be
    recorded or differs each time. Ever fewer calls, those with a power of two as number and the
    next ones, look for a plan, and none if the object is large: the time of a search grows with the
    object, which may grow with each call.
    """
    number = on_arrays.calls_without_plan.get(kind, 0)
    if number < _SEARCHED_CALLS:
        return False
    if number < _NEVER:
        on_arrays.calls_without_plan[kind] = number + 1
        if not number & (number + 1) or not number & (number - 1):
            return False
    next(on_arrays.missed_calls)
    return True


def count_call_without_plan(on_arrays: Any, kind: type, parts: int) -> None:
    """Count a call on an object of this class that ran as Python, or made a plan for itself alone.

    ``parts``: the number of parts of the object that were searched for arrays.
    """
    number = on_arrays.calls_without_plan.get(kind, 0)
    is_last = number >= _SEARCHED_CALLS and parts > _MAX_PARTS
    # further calls have been counted in ``skips_plan_search``
    number = _NEVER if is_last else number + (number < _SEARCHED_CALLS)
    on_arrays.calls_without_plan[kind] = number
