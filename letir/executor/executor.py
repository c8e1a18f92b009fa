"""``Executor``: records and compiles a Python function once for all calls of equal types.

A call computes the spec of its arguments, looks up the plans for it, and runs the first one whose
guards hold. ``PlanCache`` holds the plans; ``symbolic_shapes`` decides on plans for all sizes.
"""

import functools
from collections.abc import Callable, Sequence
from itertools import count
from types import FunctionType, NoneType, SimpleNamespace
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache
from letir.ast.process_state import new_lock
from letir.errors import GuardError
from letir.eval.arguments import is_static, nested_results
from letir.eval.float_warnings import leave_out_of_warnings, restore_abandoned_state
from letir.executor.argument_spec import ArgumentSpec, has_tracer, key_of_arrays, key_of_call
from letir.executor.calls import (
    LATEST,
    PlanRequest,
    add_quick_call,
    call_of_executor,
    call_refused,
    counter_value,
    dynamic_leaves,
    fall_back,
    may_run_again,
    needs_log,
    promote_plan,
    promote_quick_call,
    run_first_valid_plan,
    run_python_function,
    runs_as_python,
    spec_or_error,
)
from letir.executor.compiled import Compiled
from letir.executor.plan_cache import Entry, PlanCache
from letir.executor.plan_making import PLANS_EACH, make_plan
from letir.executor.static_arguments import Options, StaticArguments
from letir.executor.symbolic_shapes import NoSymbolicProgram, ShapeFamilies
from letir.plan.plan import Miss
from letir.tracing.entry import IN_PYTHON
from letir.tracing.trace_state import ACTIVE, active_trace

_PLANS_NAMED = 8  # plans for one spec with symbolic sizes; beyond, each size gets its own
_CALLS_BY_KEY = 8  # calls by key after which a plan becomes the plan that is tried first
_NO_PLAN: Any = SimpleNamespace(), None, None, None, None
_MAX_KEYS = 1 << 12  # short keys of calls: each size served by a symbolic plan has its own


class Executor:
    """The plans of a function, by the types of its arguments, and how each call finds its plan."""

    held: Any = None  # the partial whose arrays, ``bound``, are arguments: ``PartialExecutor``
    bound: list
    function: Callable[[], Any] = NoneType  # a weak reference to the jitted function, or None()
    origin: tuple | None = None  # (jitted function, transform) of which it is the result
    has_warned = False  # whether it has warned that most calls compile
    watches_state = True  # whether it calls functions whose results depend on state they change
    ended_recording = effect = ""  # why recordings ended, see ``record_limited``, ``effects``
    # each executor has a call of its own, see ``try_first``
    __slots__ = ("__call__", "__dict__", "__weakref__")

    def __init__(self, f: Callable, options: Options):
        self.f, self.options = f, options
        self.is_plain = type(f) is FunctionType and not f.__dict__  # not a derivative of a function
        self.marker = StaticArguments(f, options.static_argnums, options.static_argnames)
        self.cache = PlanCache(options.max_plans, PLANS_EACH, self.forget_keys)
        self.families = ShapeFamilies(options.static_shapes, options.max_plans)
        self.keys = BoundedCache(_MAX_KEYS)  # plans by the short keys of calls
        self.known_call = self.keys.get  # bound once, which makes it as fast as ``dict.get``
        self.as_python: tuple = ()  # argument types for which the Python function is called
        self.quick_made, self.later_quick = 0, None  # later_quick: see ``promote_quick_call``
        self.calls, self.missed = count(1), count()  # next() is atomic, += is not
        self.latest: ArgumentSpec | None = None
        self.runs_python = False  # whether calls without a plan by key run the function
        self.why_python = self.raised_recording = ""  # errors: of recording, see ``reports``
        self.refused = self.changed_state = 0  # see ``call_refused`` and ``refuse_changes``
        self.earlier_changes: list = []  # of state outside, by its recordings
        self.iterators: list | None = None  # outside, watched while the first call runs as Python
        self.transformed: dict = {}  # executors of the transformed function, by transform
        self.method: Executor | None = None  # for methods: takes the arrays of the object
        self.objects: tuple = ((0, None),) * 2  # of a method: (id, state) in its last two calls
        self.object_kinds: frozenset[type] = frozenset()  # of first arguments with such a method
        self.lock = new_lock()
        self.try_first(())  # plans for calls like some before, see ``quick_call``

    def call_generally(self, args: tuple, kwargs: dict, first: int = 0) -> Any:
        """Make a call by the quick calls from number ``first`` on, or by the key of its arguments.

        If ``first`` is not 0, ``args`` may contain ``Miss`` for arguments that are missing.
        """
        if first:
            args = tuple([arg for arg in args if arg is not Miss])
        if ACTIVE.get() is not None and active_trace() is not None:
            f = self.f  # a trace records the function itself [semantics.md B5]
            if type(f) is not FunctionType or str(f.__module__).startswith(IN_PYTHON):
                f = LATE_BOUND["recorded_function"](f)  # no code of the user names it
            return f(*args, **kwargs)
        failed = None
        for quick in self.quick[first:]:
            try:
                result = quick.run(args, kwargs)
            except BaseException as error:
                if not quick.is_open(error):
                    del args, kwargs  # a stored exception would keep them alive
                    raise
                failed = quick.tried_after(error)
                if quick.own_call is None:
                    self.try_first(self.quick)
                if not isinstance(error, GuardError):
                    break
            else:
                if result is not Miss:
                    if quick is not self.quick[0]:
                        promote_quick_call(self, quick)
                    quick.entry.used = next(self.calls)
                    LATEST.graph = quick.executed
                    return result
        # outside ``except``: a later error would get the caught one as its context
        return self.call_by_key(failed, args, kwargs)

    def try_first(self, quick: tuple) -> None:
        """Try these quick calls before keys are computed; the first one is the executor's call."""
        self.quick = quick
        call = call_of_executor(self)
        self.__call__ = call if self.held is None else functools.partial(call, self.bound)
        function = self.function()
        if function is not None:
            function.__call__ = self.__call__

    def call_by_key(self, failed: Callable | None, args: tuple, kwargs: dict) -> Any:
        """Make a call, finding its plan by the short key of its arguments.

        ``failed``: the reference to a plan that has been tried already.
        """
        restore_abandoned_state()
        if args and type(args[0]) in self.object_kinds:
            next(self.calls)
            return LATE_BOUND["call_on_first"](self, args, kwargs)
        leaves: Any = args
        is_python = self.as_python and any(fits(args, kwargs) for fits in self.as_python)
        key = None if is_python or kwargs or self.marker.is_needed else key_of_arrays(args)
        if key is None and not is_python:
            key, leaves = key_of_call(*self.marker.split_static(args, kwargs))
        record = self.known_call(key)
        try:
            number = next(self.calls)
            if record is None and not (is_python or self.runs_python):
                return self.call_by_spec(number, args, kwargs, key, leaves)
            entry, run, tree, executed, places = record or _NO_PLAN
            entry.used = number
            if run is None:
                self.note_python_kind(number, args, kwargs)
                return self.f(*args, **kwargs)
            results = None
            if executed is not failed:
                try:
                    results = run(dynamic_leaves(leaves, places), tries=True)
                except Exception as error:
                    if not may_run_again(error, entry, executed):
                        raise
            if results is None:  # outside ``except``: a later error would get this as its context
                return self.try_other_plans(number, args, kwargs, key, leaves, record)
            if number % _CALLS_BY_KEY == 0:
                add_quick_call(self, record, args, kwargs, leaves)
        except BaseException:
            del args, kwargs, leaves  # a stored exception would keep them alive
            raise
        LATEST.graph = executed
        if tree is not None:
            return tree.unflatten(results)
        return results[0] if len(results) == 1 else results

    def note_python_kind(self, number: int, args: tuple, kwargs: dict) -> None:
        """Count a call of the Python function; some calls add a test for arguments like these."""
        next(self.missed)
        if number % _CALLS_BY_KEY == 0:
            self.as_python = LATE_BOUND["python_kinds"](self, args, kwargs)
            self.try_first(self.quick)

    def try_other_plans(
        self,
        number: int,
        args: tuple,
        kwargs: dict,
        key: tuple,
        leaves: Sequence[Any],
        record: tuple,
    ) -> Any:
        """Try the other plans for the same spec, after a guard of the last one failed."""
        entry, _, _, executed, places = record
        for compiled in entry.plans:
            if compiled.executed is executed:
                continue
            try:
                results = compiled.run(dynamic_leaves(leaves, places), tries=True)
            except Exception as error:
                if not may_run_again(error, entry, compiled.executed):
                    raise
                continue
            promote_plan(entry, compiled)
            self.remember_key(key, entry, compiled, leaves)
            record = self.known_call(key)
            if record is not None:
                add_quick_call(self, record, args, kwargs, leaves)
            LATEST.graph = compiled.executed
            return nested_results(compiled.program, results)
        if self.runs_python:  # there will be no other plan
            next(self.missed)
            return run_python_function(self, args, kwargs)
        return self.call_by_spec(number, args, kwargs, key, leaves)

    def call_by_spec(
        self, n: int, args: tuple, kwargs: dict, key: tuple | None, leaves: Sequence[Any]
    ) -> Any:
        """Call number ``n``: find its plan by the full spec, or make one."""
        marked = self.marker.mark(args, kwargs)
        spec, arrays, refused = spec_or_error(marked)
        if refused is not None:
            return call_refused(self, args, kwargs, marked, refused)
        if has_tracer(arrays):
            return self.f(*args, **kwargs)
        if spec not in self.cache.entries:
            self.marker.check_count(args, kwargs)
        request = PlanRequest(n, spec, arrays, marked)
        try:
            entry, compiled, results = self.run_first_fitting(request)
        except BaseException:
            request.forget()
            del args, kwargs, leaves, marked, arrays
            raise
        if compiled is None:  # a recursive call while recording, or a plan that raised
            if entry.runs_python and key is not None and not entry.is_evicted:
                self.keys[key] = entry, None, None, None, None
            return run_python_function(self, args, kwargs)
        LATEST.graph = compiled.executed
        entry.runs_python |= compiled.runs_python_next
        if compiled.makes_generator:
            self.cache.remove(entry)
        elif key is not None:
            self.remember_key(key, entry, compiled, leaves)
            record = self.known_call(key)
            # each new size comes here until the plan for all sizes has a quick call
            if entry.key.has_names and n % _CALLS_BY_KEY == 0 and record and record[1]:
                add_quick_call(self, record, args, kwargs, leaves)
        return nested_results(compiled.program, results)

    def run_first_fitting(self, request: PlanRequest) -> tuple:
        """(entry, plan, results) of the first plan whose guards hold.

        The plan is None if the Python function has to be called: NumPy raises its own error there,
        at the user's line, and the function may catch it.
        """
        fresh: list[Compiled] = []
        failed: list[Any] = []
        missed, entry = False, None
        while True:
            entry = self.entry_for(request) if entry is None else entry
            entry.used, plans = request.number, entry.plans
            if plans and not entry.runs_python:
                ran = run_first_valid_plan(plans, entry, request, failed, self.f)
                if ran is not None:
                    return entry, *ran
            if fresh and fresh[-1] in failed:
                # its guards held when recorded, so a reassociated sum must have changed a guard
                results = fall_back(fresh[-1], request)
                return entry, None if results is None else fresh[-1], results
            # its guards held when recorded: another plan for all sizes would not run either
            if entry.key.has_names and (plans if missed else len(plans) >= _PLANS_NAMED):
                request.wants_fixed, entry = True, None
                continue
            if not missed:
                next(self.missed)
                missed = True
            if entry.runs_python or runs_as_python(self, entry, request):
                return entry, None, None
            try:
                make = functools.partial(make_plan, self, request, entry.key, fresh)
                if not self.cache.grow(entry, plans, make):
                    return entry, None, None
                # evicted since; an entry to which another thread has added plans can still be used
                if entry.plans is plans:
                    entry = None
            except NoSymbolicProgram as error:
                reason = LATE_BOUND["size_words"](self.f, request.marked, entry.key, str(error))
                self.families.note_refusal(request.spec, entry.key, error, reason)
                request.wants_fixed, entry = bool(plans), None
            except Exception as error:
                if not getattr(error, "letir_runs_python", False):
                    raise
                entry = self.cache.note_failure(request.number, error, entry)
                return entry, None, None  # in NumPy, the function may have written before it raises

    def entry_for(self, request: PlanRequest) -> Entry:
        """The entry for these sizes, or one for symbolic sizes that covers or may cover them."""
        entry = self.cache.entries.get(request.spec)
        if entry is not None or request.wants_fixed:
            return entry or self.cache.entry(request.spec)
        return self.cache.entry(self.families.named(request.spec) or request.spec)

    def remember_key(self, key: tuple, entry: Entry, compiled: Any, leaves: Sequence[Any]) -> None:
        """Store the plan for the short key of a call, by which the next call finds it."""
        if entry.is_evicted or self.options.profile or needs_log(compiled):
            return
        if entry.runs_python:
            self.keys[key] = entry, None, None, None, None
            return
        places = [i for i, leaf in enumerate(leaves) if not is_static(leaf)]
        is_compiled = type(compiled) is Compiled
        run = compiled.runner(leaves) if is_compiled else compiled.run
        tree = compiled.program.out_tree
        is_all = len(places) == len(leaves)
        self.keys[key] = entry, run, tree, compiled.executed, None if is_all else places

    def forget_keys(self) -> None:
        """Drop all short keys, which may lead to an evicted entry."""
        self.keys.clear()
        self.as_python = ()
        self.try_first(())

    def clear(self) -> None:
        """Drop all plans."""
        self.cache.clear()
        self.families.families.clear()
        self.runs_python, self.latest = False, None
        self.forget_keys()

    @property
    def counters(self) -> dict[str, int]:
        """See ``Jitted.counters``."""
        calls, missed = counter_value(self.calls) - 1, counter_value(self.missed)
        return {
            "executors": 1 + len(self.transformed),
            "invocations": calls,
            "hits": calls - missed,
            "misses": missed,
            "compiles": self.cache.compiles,
            "evictions": self.cache.evictions,
        }


_CALLING_PYTHON = Executor.call_generally, Executor.call_by_key, Executor.call_by_spec
leave_out_of_warnings(*_CALLING_PYTHON, Executor.try_other_plans)
