"""``Executor``: a Python function that is recorded and compiled once for each kind of arguments.

A call computes the spec of its arguments, looks up the plans for it, and runs the first one whose
guards hold. ``PlanCache`` holds the plans; ``symbolic_shapes`` decides on plans for all sizes.
"""

import functools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Concatenate, Generic, overload

from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache
from letir.ast.derivative_types import might_require_grad
from letir.ast.signatures import P, Q, R
from letir.ast.terms import Lambda
from letir.errors import DTypeError, GuardError
from letir.eval.arguments import nested_results
from letir.executor import autodiff
from letir.executor.argument_spec import (
    ArgumentSpec,
    has_tracer,
    key_of_arrays,
    key_of_call,
)
from letir.executor.calls import (
    ExecutorState,
    Request,
    attempt_plan,
    counter_value,
    donated_positions,
    dynamic_leaves,
    executor_name,
    executor_state,
    failed_guard,
    fall_back,
    may_run_again,
    needs_log,
    promote_plan,
    with_types,
)
from letir.executor.compiled import Compiled, kernel_mode
from letir.executor.default_pipeline import optimize_program
from letir.executor.plan_cache import Entry, PlanCache
from letir.executor.static_arguments import Options, StaticArguments, is_method_of, name_refused
from letir.executor.symbolic_shapes import NotNamed, ShapeFamilies, check_agrees, recorded_by_name
from letir.tracing.entry import KEEP, record
from letir.tracing.trace_state import ACTIVE, LAZY, LIFTED
from letir.transforms.jitted_functions import Transform

if TYPE_CHECKING:
    from letir.executor.methods import BoundExecutor

_LOG = logging.getLogger("letir.plan")
_PLANS_EACH = 16  # plans for one spec: a branch that differs each time would compile without end
_PLANS_NAMED = 8  # the same for one spec with symbolic sizes: then each size gets its own
_COMPILES = 8  # of one executor: from then on it may be warned of
_CALLS_BY_KEY = 8  # so often a plan found by key becomes the one that is tried first
_MOST_QUICK = 16  # times: of arguments that differ in each call nothing is gained
_MOST_COMPILES = 20  # of one executor, if they are half of its calls
_MOST_KEYS = 1 << 12  # short keys of calls: each size served by a symbolic plan has its own


class _Last(threading.local):
    """The last graph that this thread ran successfully."""

    graph: Callable = staticmethod(lambda: None)  # a weak reference


_LAST = _Last()


def last_executed_graph() -> Lambda | None:
    """The optimised program that an executor last ran successfully in this thread.

    None if there is none, or if it was freed. A failing call does not change it.

    >>> from letir import jit
    >>> f = jit(lambda x: (x + 1) * 2)
    >>> f(3)
    8
    >>> [bind.op.name for bind in last_executed_graph().binds if bind.op.name != "weaken"]
    ['add', 'mul']
    """
    return _LAST.graph()


class Executor(Generic[P, R]):
    """A function that is recorded and compiled for each kind of arguments, see ``jit``."""

    def __init__(self, f: Callable[P, R], options: Options):
        functools.update_wrapper(self, f, updated=())
        self.f, self.options = f, options
        self.marker = StaticArguments(f, options.static_argnums, options.static_argnames)
        self.cache = PlanCache(options.max_plans, _PLANS_EACH, self.forget_keys)
        self.families = ShapeFamilies(options.static_shapes, options.max_plans)
        # the plan for the short key of a call, see ``remember``
        self.keys = BoundedCache(_MOST_KEYS)
        self.known_call = self.keys.get  # bound once: as fast as the get of a dict
        self.quick: tuple | None = None  # the plan for calls like one before, see ``quick_call``
        self.quick_made = 0
        self.calls, self.missed = count(1), count()  # next() is atomic, += is not
        self.latest: ArgumentSpec | None = None
        self.has_warned = False  # that it compiles again and again
        self.transformed: dict = {}  # executors of the transformed function, by transform
        self.method: Executor | None = None  # for methods: takes the arrays of the object
        self.lock = threading.Lock()

    # ---- calls ----

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if ACTIVE.get() is not None:
            return self.f(*args, **kwargs)  # a trace records the function itself [B5]
        failed = None
        if self.quick is not None:
            match, run, nest, entry, executed = self.quick
            arrays = match(args, kwargs)
            if arrays is not None:
                entry.used = next(self.calls)
                try:
                    results = run(arrays)
                except BaseException as error:
                    # KeyboardInterrupt is not an Exception
                    is_open = isinstance(error, Exception) and may_run_again(error, entry, executed)
                    if not is_open:
                        del args, kwargs, arrays  # a stored exception would keep them alive
                        LATE_BOUND["fold"](error)
                        raise
                    failed = executed
                else:
                    _LAST.graph = executed
                    return nest(results)
        # outside ``except``: a later error would get that one as its context
        return self.call_by_key(failed, args, kwargs)

    def call_by_key(self, failed: Callable | None, args: tuple, kwargs: dict) -> Any:
        """A call that finds its plan by the key of its arguments.

        ``failed``: the reference by which a plan is known that has been tried.
        """
        leaves: Any = args
        key = None if kwargs or self.marker.is_needed else key_of_arrays(args)
        if key is None:
            key, leaves = key_of_call(*self.marker.apart(args, kwargs))
        known = self.known_call(key)
        try:
            if known is None:
                return self.choose(next(self.calls), args, kwargs, key, leaves)
            entry, run, tree, executed, places = known
            entry.used = number = next(self.calls)
            if run is None:
                next(self.missed)
                return self.f(*args, **kwargs)
            results = None
            if executed is not failed:
                try:
                    results = run(dynamic_leaves(leaves, places), tries=True)
                except Exception as error:
                    if not may_run_again(error, entry, executed):
                        raise
            if results is None:  # outside ``except``: a later error would get this as its context
                return self.other_branch(number, args, kwargs, key, leaves, known)
            if number % _CALLS_BY_KEY == 0 and self.quick_made < _MOST_QUICK:
                self.make_quick(known, args, kwargs, leaves)
        except BaseException as error:
            del args, kwargs, leaves  # a stored exception would keep them alive
            LATE_BOUND["fold"](error, inner_frames=1)
            raise
        _LAST.graph = executed
        if tree is None:
            return results[0] if len(results) == 1 else results
        return tree.unflatten(results)

    def make_quick(self, known: tuple, args: tuple, kwargs: dict, leaves: Sequence) -> None:
        """Try the plan of such calls first from now on."""
        if not self.marker.is_needed:
            self.quick_made += 1
            self.quick = LATE_BOUND["quick_call"](known, args, kwargs, leaves)

    def other_branch(
        self,
        number: int,
        args: tuple,
        kwargs: dict,
        key: tuple,
        leaves: Sequence[Any],
        known: tuple,
    ) -> Any:
        """Try the other plans for the same spec, after a guard of the last one failed."""
        entry, _, _, executed, places = known
        for version in entry.plans:
            if version.executed is executed:
                continue
            try:
                results = version.run(dynamic_leaves(leaves, places), tries=True)
            except Exception as error:
                if not may_run_again(error, entry, version.executed):
                    raise
                continue
            promote_plan(entry, version)
            self.remember(key, entry, version, leaves)
            self.quick = None  # its plan may be the one that failed
            _LAST.graph = version.executed
            return nested_results(version.program, results)
        return self.choose(number, args, kwargs, key, leaves)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> "Executor[P, R]": ...
    @overload
    def __get__(
        self: "Executor[Concatenate[Any, Q], R]", instance: object, owner: type | None = None
    ) -> "BoundExecutor[Q, R]": ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if 0 in self.options.static_argnums:  # the user declares the object as static
            return functools.partial(self, instance)
        return LATE_BOUND["bound_executor"](self, Executor, instance)

    def choose(
        self, n: int, args: tuple, kwargs: dict, key: tuple | None, leaves: Sequence[Any]
    ) -> Any:
        """Call number ``n``: find its plan by the full spec, or make one."""
        marked = self.marker.mark(args, kwargs)
        try:
            spec, arrays = ArgumentSpec.of(*marked)
        except DTypeError as error:
            if is_method_of(self, args):  # called as Class.method(object, ...)
                return self.__get__(args[0])(*args[1:], **kwargs)
            raise name_refused(self.f, marked, error) from None
        if has_tracer(arrays):
            return self.f(*args, **kwargs)
        if spec not in self.cache.entries:
            self.marker.check_count(args, kwargs)
        request = Request(n, spec, arrays, marked)
        try:
            entry, version, results = self.executed(request)
        except BaseException:
            request.forget()
            del args, kwargs, leaves, marked, arrays
            raise
        if version is None:  # a recursive call while recording, or a plan that raised
            if entry.is_pythons and key is not None and not entry.gone:
                self.keys[key] = entry, None, None, None, None
            return self.f(*args, **kwargs)
        _LAST.graph = version.executed
        if key is not None:
            self.remember(key, entry, version, leaves)
        return nested_results(version.program, results)

    def executed(self, request: Request) -> tuple:
        """(entry, plan, results) of the first plan whose guards hold.

        The plan is None if the Python function has to be called: NumPy raises its own error there,
        at the user's line, and the function may catch it.
        """
        fresh: list[Compiled] = []
        tried: list[Any] = []
        missed, entry = False, None
        while True:
            entry = self.entry_for(request) if entry is None else entry
            entry.used, plans = request.number, entry.plans
            for version in () if entry.is_pythons else plans:
                if version in tried:
                    continue
                try:
                    results = attempt_plan(version, list(request.leaves), request.log)
                except GuardError as error:
                    tried.append(version)
                    request.reason = failed_guard(error, version)
                    continue
                except Exception as error:
                    if not may_run_again(error, entry, version.executed):
                        raise
                    # as text: a stored log record would keep the frames of the error alive
                    _LOG.info("%s: called as Python, for %s", executor_name(self.f), repr(error))
                    return entry, None, None
                promote_plan(entry, version)
                return entry, version, results
            if fresh and fresh[-1] in tried:
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
            if entry.is_pythons or self.compiles_nearly_always(entry, request):
                return entry, None, None
            try:
                make = functools.partial(self.make, request, entry.key, fresh)
                if not self.cache.grow(entry, plans, make):
                    return entry, None, None
                # evicted meanwhile; an entry that another thread gave new plans can still be used
                if entry.plans is plans:
                    entry = None
            except NotNamed as error:
                told = LATE_BOUND["size_words"](self.f, request.marked, entry.key, str(error))
                self.families.refuse(request.spec, entry.key, error, told)
                request.wants_fixed, entry = bool(plans), None
            except Exception as error:
                if not getattr(error, "letir_changed_arguments", False):
                    raise
                return entry, None, None  # the Python function writes before it raises

    def compiles_nearly_always(self, entry: Entry, request: Request) -> bool:
        """Whether plans for an entry are given up: most calls needed another one."""
        is_full = len(entry.plans) == _PLANS_EACH and self.cache.compiles >= _MOST_COMPILES
        # effects of a plan that failed must not happen again
        if is_full and 2 * self.cache.compiles >= request.number and not request.log.done:
            entry.is_pythons = True
            self.forget_keys()
            _LOG.info("%s: called as Python from now on", executor_name(self.f))
        return entry.is_pythons

    def entry_for(self, request: Request) -> Entry:
        """The entry for these sizes, or one for symbolic sizes that covers or may cover them."""
        known = self.cache.entries.get(request.spec)
        if known is not None or request.wants_fixed:
            return known or self.cache.entry(request.spec)
        return self.cache.entry(self.families.named(request.spec) or request.spec)

    def __letir_transformed__(self, transform: Transform) -> "Executor":
        """The executor of the transformed function, the same one each time."""
        return LATE_BOUND["transformed_executor"](self, transform)

    def like(self, f: Callable, options: Options) -> "Executor":
        """An executor of another function, with the same class and bound arrays."""
        found: Any = object.__new__(type(self))
        found.__dict__.update(self.__dict__)  # the arrays that a partial has bound
        Executor.__init__(found, f, options)
        return found

    # ---- compiling ----

    def make(self, request: Request, key: ArgumentSpec, fresh: list) -> Any:
        """A new plan for a request; ``key``: its spec, or one with symbolic sizes."""
        begun = time.perf_counter()
        reason = request.reason or self.reason(request, key)
        if key.has_names:
            fn, lifted = self.recorded_by_name(request, key), ()
        else:
            fn, lifted = self.recorded(request.marked)
        if lifted:
            is_plain = not (request.spec.has_variables or might_require_grad(fn))
            lifted = LATE_BOUND["generators_of"](lifted, is_plain)
        version = self.compiled(fn, request, reason)
        if lifted:
            version.generators = lifted
        self.latest = request.spec
        if key.has_names:
            self.families.keep(request.spec, key)
        else:
            fresh.append(version)
        if not self.has_warned and self.cache.compiles >= _COMPILES:
            LATE_BOUND["warn_of_compiles"](self, reason, self.families.why_not(request.spec))
        _LOG.info(
            "%s: compiled for (%s) in %.3g ms, %d binds of %d, because %s",
            *(executor_name(self.f), key, 1e3 * (time.perf_counter() - begun)),
            *(len(version.optimized), len(fn), reason),
        )
        return version

    def recorded(self, marked: tuple[tuple, dict]) -> tuple[Lambda, tuple]:
        """The function recorded at these arguments, and the generators outside that it uses."""
        recording = record(self.f, *marked, LAZY, KEEP, draws=LIFTED)
        return recording.fn, recording.lifted

    def recorded_by_name(self, request: Request, key: ArgumentSpec) -> Lambda:
        """The program for symbolic sizes. Raises NotNamed if there is none."""
        fn = recorded_by_name(
            lambda kinds: self.recorded(with_types(request.marked, kinds))[0], key
        )
        check_agrees(fn, self.recorded(request.marked)[0], request.leaves)
        return fn

    def compiled(self, fn: Lambda, request: Request, reason: str) -> Any:
        """The plan of a program."""
        options: dict[str, Any] = {"optimize": self.options.optimize, "exact": self.options.exact}
        if request.spec.has_variables or might_require_grad(fn):
            return autodiff.compile_differentiable(
                fn, request.spec.requires_grad, reason, **options
            )
        if self.options.profile:
            optimize = functools.partial(optimize_program, **options)
            return LATE_BOUND["profiled_plan"](fn, optimize, self.options.profile, reason)
        places = donated_positions(request.marked[0], self.options.donate_argnums)
        mode = kernel_mode(self.options.kernels, **options)
        return Compiled(fn, optimize_program(fn, **options), reason, places, mode)

    def reason(self, request: Request, key: ArgumentSpec) -> str:
        """A readable reason why a plan is made."""
        if self.latest is None:
            return "it is the first call"
        if key.has_names:
            return "other sizes came, which get names"
        return LATE_BOUND["spec_difference"](self.f, request.marked, key, self.latest)

    def remember(self, key: tuple, entry: Entry, version: Any, leaves: Sequence[Any]) -> None:
        """Store the plan for the short key of a call, so that the next call finds it at once."""
        if entry.gone or self.options.profile or needs_log(version):
            return
        places = [i for i, leaf in enumerate(leaves) if type(leaf) not in (bool, str)]
        is_plain = type(version) is Compiled and not version.changed
        run = version.plan.run if is_plain else version.run
        tree = version.program.out_tree
        self.keys[key] = (
            *(entry, run, tree, version.executed),
            places if len(places) < len(leaves) else None,
        )

    def forget_keys(self) -> None:
        """Drop all short keys, after an entry was evicted."""
        self.keys.clear()
        self.quick = None

    def clear(self) -> None:
        """Drop all plans."""
        self.cache.clear()
        self.families.families.clear()
        self.keys.clear()
        self.quick = None
        self.latest = None

    # ---- what is known of it ----

    @property
    def counters(self) -> dict[str, int]:
        """Exact counts of calls, hits, misses, compiles, failures and evictions.

        ``executors`` counts this executor and those of its transforms.
        """
        calls, missed = counter_value(self.calls) - 1, counter_value(self.missed)
        return {
            "executors": 1 + len(self.transformed),
            "invocations": calls,
            "hits": calls - missed,
            "misses": missed,
            "compiles": self.cache.compiles,
            "evictions": self.cache.evictions,
        }

    def debug_state(self) -> ExecutorState:
        """The plans with their programs, and the counters.

        >>> import numpy as np
        >>> from letir import jit
        >>> f = jit(lambda x: x * 2.0)
        >>> f(np.ones(2))
        array([2., 2.])
        >>> len(f.debug_state().plans), f.debug_state().counters["compiles"]
        (1, 1)
        """
        return executor_state(self, executor_name(self.f))

    def __reduce__(self):
        return executor_name(self.f)  # pickled by name, like a function: a copy is the same object

    def __repr__(self):
        return f"<jit of {executor_name(self.f)}>"
