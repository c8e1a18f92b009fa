"""The limit on an executor's plans: calls beyond it that need new plans run as Python."""

import logging
from typing import TYPE_CHECKING

from letir.ast import LATE_BOUND
from letir.executor.argument_spec import ArgumentSpec
from letir.executor.calls import (
    MAX_WITHOUT_PLAN,
    PLANS_AT_ONCE,
    PlanRequest,
    counter_value,
    executor_name,
)
from letir.executor.compiled import compile_reason
from letir.executor.plan_cache import Entry

if TYPE_CHECKING:
    from letir.executor.executor import Executor

_LOG = logging.getLogger("letir.plan")
_MAX_WAIT = 1 << 8  # calls
_MIN_WAITING_COMPILES = 6  # the fewest compiles before a warning, while plans wait
_MIN_COMPILES = 10  # the fewest compiles before a warning otherwise


def exceeds_plan_limit(executor: "Executor", entry: Entry, request: PlanRequest) -> bool:
    """Whether this call runs the Python function, because too many calls need new plans."""
    compiles = executor.cache.compiles
    # a guard failed, no plan serves all sizes, or an object changes: later calls may need new plans
    is_open = bool(entry.plans or executor.families.family_of(request.spec).refused)
    is_open = is_open or _changes_its_object(executor, request.number)
    plan_number = len(entry.plans) or (compiles if is_open else 0)
    is_many = compiles >= MAX_WITHOUT_PLAN and 2 * compiles >= request.number
    number, missed = executor.cache.last_compile
    calls = max(0, request.number - number)  # another thread may compile at a later call
    is_useless = 2 * (counter_value(executor.missed) - missed) > calls
    waits = calls < _wait_before(plan_number)
    is_full = len(entry.plans) >= PLANS_AT_ONCE and not waits
    if is_many or (is_full and is_useless):
        entry.runs_python = True
        executor.runs_python = is_many
        executor.forget_keys()
        _LOG.info("%s: called as Python from now on", executor_name(executor.f))
    is_python = entry.runs_python or waits
    is_most = compiles >= _MIN_COMPILES and 4 * compiles >= 3 * request.number
    if entry.runs_python or is_most or (waits and is_useless and compiles >= _MIN_WAITING_COMPILES):
        _warn_of_compiles(executor, request, entry.key, is_python)
    if is_python and not entry.plans:
        executor.cache.remove(entry)  # other threads come this far before they see the flag
    return is_python


def _changes_its_object(executor: "Executor", number: int) -> bool:
    """Whether this call, a method's, is on the same object as the one before, which had another
    state then, and most calls have had no plan.
    """
    (before, state), (now, other) = executor.objects
    is_same = now == before and 2 * counter_value(executor.missed) > number
    return is_same and state != other


def _wait_before(plan_number: int) -> int:
    """The number of calls between the compiles of plan number ``plan_number`` - 1 and this plan."""
    further = plan_number - PLANS_AT_ONCE
    return 0 if further < 0 else min(1 << (further + 2), _MAX_WAIT)


def _warn_of_compiles(
    executor: "Executor", request: PlanRequest, key: ArgumentSpec, is_python: bool
) -> None:
    """Warn once that most calls of an executor need a plan of their own."""
    if not executor.has_warned:
        executor.has_warned = True
        reason = request.reason or compile_reason(executor, request, key)
        why_not = executor.families.why_not(request.spec, list(executor.cache.entries))
        LATE_BOUND["warn_of_compiles"](executor, reason, why_not, is_python)


LATE_BOUND["exceeds_plan_limit"] = exceeds_plan_limit
