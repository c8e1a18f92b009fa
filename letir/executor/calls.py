"""``PlanRequest``: one call that looks for its plan, with the helpers that prepare its arguments.

``last_executed_graph`` gives the program that such a call ran last.
"""

import logging
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from itertools import count
from types import FunctionType
from typing import Any

from attrs import define, field

from letir.ast import LATE_BOUND
from letir.ast.pytrees import flatten
from letir.ast.terms import Lambda
from letir.errors import DTypeError, EscapedTracerError, GuardError, LetirError
from letir.eval.arguments import is_static
from letir.eval.array_modules import is_lazy
from letir.eval.float_warnings import leave_out_of_warnings
from letir.executor.argument_spec import ArgumentSpec
from letir.executor.compiled import Compiled
from letir.executor.plan_cache import Entry
from letir.executor.static_arguments import (
    is_method_of,
    is_tensor,
    is_users_object,
    name_refused,
)
from letir.plan.effect_log import EffectLog, is_guard
from letir.plan.plan import Miss
from letir.tracing.entry import IN_PYTHON

_LOG = logging.getLogger("letir.plan")
_MAX_LINES = 3  # lines of guards that a reason names
MAX_WITHOUT_PLAN = 40  # calls that need a plan of their own, or have refused arguments of new types
PLANS_AT_ONCE = 4  # each later one waits for twice as many calls as the one before, see plan_limits
_PLANS_QUICK = 8  # quick calls that are tried before keys are computed
_MAX_QUICK = 16  # attempts: if the arguments differ in each call, a quick call gains nothing


@define(eq=False)
class PlanRequest:
    """One call that looks for its plan: number, spec, arrays, and arguments with static marks."""

    number: int
    spec: ArgumentSpec
    leaves: list
    marked: tuple[tuple, dict]
    reason: str = ""
    wants_fixed: bool = False  # whether a plan for symbolic sizes is excluded
    log: EffectLog = field(factory=EffectLog)  # effects of plans whose guards failed

    def forget(self) -> None:
        """Drop the arguments, which a stored exception would otherwise keep alive."""
        self.leaves, self.marked, self.log = [], ((), {}), EffectLog()


def dynamic_leaves(leaves: Any, places: list[int] | None) -> list:
    """A new list of the leaves that are not static."""
    return list(leaves) if places is None else [leaves[i] for i in places]


def _attempt_plan(compiled: Any, leaves: list, log: EffectLog) -> tuple:
    """The results of a plan; raises GuardError if its guards fail."""
    if type(compiled) is not Compiled:
        return compiled.run(leaves)
    return compiled.run(leaves, tries=True, log=log)


def _failed_guard(error: GuardError, compiled: Any) -> str:
    """The reason for the next compile: a guard of this plan failed at these lines."""
    message = str(error).partition("\n")[0]
    guards = [bind for bind in compiled.program.binds if is_guard(bind) and bind.source]
    lines = dict.fromkeys([bind.source.short for bind in guards])
    places = " or ".join(lines) if 0 < len(lines) <= _MAX_LINES else ""
    return f"a guard failed{' at ' + places if places else ''}: {message}"


def needs_log(compiled: Any) -> bool:
    """Whether effects may precede a failing guard of this plan."""
    return type(compiled) is Compiled and compiled.needs_log


def fall_back(compiled: Any, request: PlanRequest) -> tuple | None:
    """The results of a plan's recorded program, without optimisation; None if a guard fails."""
    leaves = list(request.leaves)
    try:
        if type(compiled) is not Compiled:
            return compiled.run_fallback(leaves)
        return compiled.run_fallback(leaves, request.log)
    except GuardError:
        return None


def may_run_again(error: Exception, entry: Entry, executed: Any) -> bool:
    """Whether the call can be completed in another way, after a plan raised ``error``.

    ``executed``: the weak reference to the program of the plan, which each plan has for itself.
    """
    if isinstance(error, GuardError):
        return True
    if isinstance(error, LetirError | MemoryError | RecursionError):
        return hasattr(error, "letir_runs_python")  # raised before the plan changed anything
    plans = [compiled for compiled in entry.plans if compiled.executed is executed]
    # donated arrays may have been overwritten
    return not any(type(v) is Compiled and v.plan.donated for v in plans)


def promote_plan(entry: Entry, compiled: Any) -> None:
    """Move the plan that ran to the front of its entry: it is tried first next time."""
    if entry.plans[0] is not compiled:
        with entry.lock:
            others = [plan for plan in entry.plans if plan is not compiled]
            if len(others) < len(entry.plans):
                entry.plans = (compiled, *others)


def add_quick_call(
    executor: Any, record: tuple, args: tuple, kwargs: dict, leaves: Sequence
) -> None:
    """From now on, try this plan first for calls of ``executor`` with arguments of this kind."""
    if executor.quick_made < _MAX_QUICK:
        quick = LATE_BOUND["quick_call"](executor, record, args, kwargs, leaves)
        if quick is not None:
            executor.quick_made += 1
            executor.try_first((quick, *executor.quick)[:_PLANS_QUICK])


def promote_quick_call(executor: Any, quick: Any) -> None:
    """Try ``quick`` first from now on, if it is also the last quick call that took a later place.

    In a series of calls like this one the others would fail at their guards before it.
    """
    if quick is executor.later_quick:
        executor.try_first((quick, *[other for other in executor.quick if other is not quick]))
    executor.later_quick = quick


def run_first_valid_plan(
    plans: tuple, entry: Entry, request: PlanRequest, excluded: list, f: Callable
) -> tuple | None:
    """(plan, results) of the first plan of ``entry`` whose guards hold, None if there is none.

    ``excluded``: plans to leave out, to which the plans whose guards fail are added. The plan is
    None if the Python function ``f`` has to be called, see ``Executor.run_first_fitting``.
    """
    for compiled in plans:
        if compiled in excluded:
            continue
        try:
            results = _attempt_plan(compiled, list(request.leaves), request.log)
        except GuardError as error:
            excluded.append(compiled)
            request.reason = _failed_guard(error, compiled)
            continue
        except Exception as error:
            if not may_run_again(error, entry, compiled.executed):
                raise
            # the error as text: a stored log record would keep its frames alive
            _LOG.info("%s: called as Python, for %s", executor_name(f), repr(error))
            return None, None
        promote_plan(entry, compiled)
        return compiled, results
    return None


def run_python_function(executor: Any, args: tuple, kwargs: dict) -> Any:
    """The results of the Python function; warns once if the function cannot be recorded."""
    raised, executor.raised_recording = executor.raised_recording, ""
    has_failed = False
    try:
        if executor.iterators:
            results = LATE_BOUND["call_watching"](executor, args, kwargs)
        elif executor.cache.entries and not executor.runs_python:
            results = LATE_BOUND["call_noting_changes"](executor, args, kwargs)
        else:
            results = executor.f(*args, **kwargs)
    except Exception as error:
        # one about values of an earlier recording tells less than the function's own, and one of
        # another class would not be caught where the function's own is
        is_own = not isinstance(raised, Exception) or isinstance(raised, EscapedTracerError)
        if is_own or not isinstance(raised, type(error)):
            raise
        has_failed = True
    if has_failed:  # outside ``except``: letir's error would get the caught one as its context
        try:
            raise raised  # it names both sides and the remedy
        finally:
            del raised, args, kwargs  # its traceback holds this frame
    if raised:  # the recording raised an error, the function does not
        executor.runs_python = True
        is_own_error = isinstance(raised, LetirError)
        prefix = "" if is_own_error else "with traced values a library raises "
        executor.why_python = f"{prefix}{raised}"
    if executor.why_python and not executor.has_warned:  # not if the function raises the error
        LATE_BOUND["warn_of_python"](executor)
    return results


def spec_or_error(marked: tuple[tuple, dict]) -> tuple[Any, list, DTypeError | None]:
    """(spec of the arguments, their arrays, None), or the error for an argument as the last."""
    try:
        return *ArgumentSpec.from_arguments(*marked), None
    except DTypeError as error:
        return None, [], error


def call_refused(
    executor: Any, args: tuple, kwargs: dict, marked: tuple[tuple, dict], error: DTypeError
) -> Any:
    """The results of a call with an argument that is not an array of numbers, as ``error`` says.

    Methods may be called as ``Class.method(object, ...)``, and an object as the first argument of
    a function is treated like the object of a method: its arrays are arguments. Other values are
    passed to the Python function, which takes all calls once many calls had such arguments of ever
    new types and no call had a plan. Raises ``error`` for values of letir's own classes.
    """
    if is_method_of(executor, args) or is_users_object(args):
        if not isinstance(args[0], type):
            executor.object_kinds |= {type(args[0])}
            LATE_BOUND["executor_on_arrays"](executor)
            executor.try_first(executor.quick)
        return LATE_BOUND["call_on_first"](executor, args, kwargs)
    error, value = name_refused(executor.f, marked, error)
    if type(value).__module__.startswith("letir.") or is_lazy(value) or is_tensor(value):
        raise error from None  # it says what to call
    executor.why_python = str(error)
    try:
        results = run_python_function(executor, args, kwargs)
    except TypeError as raised:
        LATE_BOUND["refuse_static"](raised, executor.f, args, kwargs)
        raise
    executor.refused += 1
    if executor.refused >= MAX_WITHOUT_PLAN and not executor.cache.compiles:
        executor.runs_python = True
        executor.forget_keys()
    executor.note_python_kind(executor.refused, args, kwargs)
    return results


def donated_positions(args: tuple, argnums: tuple[int, ...]) -> tuple[int, ...]:
    """The parameter positions of these positional arguments, among marked arguments."""
    if not argnums:
        return ()
    LATE_BOUND["refuse_positions"]("jit: donate_argnums", argnums, len(args))
    chosen, place = {n % len(args) for n in argnums}, 0
    result: list[int] = []
    for i, arg in enumerate(args):
        count = sum(not is_static(leaf) for leaf in flatten(arg)[0])
        if i in chosen:
            result += range(place, place + count)
        place += count
    return tuple(result)


def counter_value(counter: count) -> int:
    """The next value of a counter, without advancing it."""
    return int(repr(counter)[len("count(") : -1])


def executor_name(f: Callable) -> str:
    """The readable name of a function."""
    return getattr(f, "__qualname__", None) or type(f).__name__


def runs_as_python(executor: Any, entry: Any, request: PlanRequest) -> bool:
    """Whether this call runs the Python function: most calls need a new plan, or use SciPy."""
    is_on_host = not request.spec.is_on_device  # Python may not run on the arrays of a device
    is_with_scipy = "scipy" in sys.modules and executor.watches_state and is_on_host
    of_call = executor.f, request.leaves, entry.key.has_names
    if is_with_scipy and LATE_BOUND["is_faster_in_scipy"](*of_call):
        entry.runs_python = True
    # effects of a plan that failed must not happen again
    elif request.log.done:
        pass
    elif executor.cache.waits(request.number):
        if not entry.plans:
            executor.cache.remove(entry)
        return True
    elif executor.cache.compiles >= PLANS_AT_ONCE:
        return LATE_BOUND["exceeds_plan_limit"](executor, entry, request)
    return entry.runs_python


# ---- the function of an executor ----


class _Dropped:
    """Stands in for an executor that has been freed: calls only run its function."""

    def __init__(self, f: Callable) -> None:
        self.f = f

    def call_generally(self, args: tuple, kwargs: dict, first: int = 0) -> Any:
        """The result of the Python function."""
        return self.f(*[arg for arg in args if arg is not Miss], **kwargs)


def executor_by_reference(executor: Any) -> Callable[[], Any]:
    """A function that gives the executor without keeping it alive."""
    find, dropped = weakref.ref(executor), _Dropped(executor.f)
    return lambda: find() or dropped


def general_call(executor: Any) -> Callable:
    """The call of an executor that has no quick call."""
    find = executor_by_reference(executor)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return find().call_generally(args, kwargs)
        except BaseException as error:
            del args, kwargs  # a stored exception would keep them alive
            LATE_BOUND["shorten_traceback"](error)
            raise

    return call


def call_of_executor(executor: Any) -> Callable:
    """The function that an executor becomes: that of its first quick call, or a general one."""
    if runs_python_alone(executor):
        return _direct_call(executor)
    own_call = next((call.own_call for call in (*executor.quick, *executor.as_python)), None)
    if own_call is None:
        make = LATE_BOUND["call_of_objects"] if executor.object_kinds else general_call
        own_call = make(executor)
    return own_call


def runs_python_alone(executor: Any) -> bool:
    """Whether all calls run the Python function, whatever the arguments are."""
    f = executor.f
    if not executor.runs_python or executor.quick or executor.object_kinds:
        return False
    if type(f) is not FunctionType or str(f.__module__).startswith(IN_PYTHON):
        return False  # a trace records a function in its place
    return not any(run is not None for _, run, *_ in executor.keys.values())


def _direct_call(executor: Any) -> Callable:
    """The call of an executor that runs its Python function in all calls: it counts the call."""
    f, counts = executor.f, zip(executor.calls, executor.missed, strict=True)

    def call(*args: Any, **kwargs: Any) -> Any:
        next(counts)
        try:
            return f(*args, **kwargs)
        except BaseException as error:
            del args, kwargs  # a stored exception would keep them alive
            LATE_BOUND["shorten_traceback"](error)
            raise

    return call


leave_out_of_warnings(run_python_function, call_refused, general_call, _direct_call)


# ---- the latest program ----


class LatestProgram(threading.local):
    """The program that an executor last ran successfully in this thread."""

    graph: Callable = staticmethod(lambda: None)  # a weak reference


LATEST = LatestProgram()


def last_executed_graph() -> Lambda | None:
    """The optimised program of this thread's last call of a jitted function.

    None if there is none, or if it was freed. A call that fails does not change it.

    >>> from letir import jit
    >>> f = jit(lambda x: (x + 1) * 2)
    >>> f(3)
    8
    >>> [bind.op.name for bind in last_executed_graph().binds if bind.op.name != "weaken"]
    ['add', 'mul']
    """
    return LATEST.graph()
