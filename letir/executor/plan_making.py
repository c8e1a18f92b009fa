"""New plans of an executor: its function is recorded for a request, optimised and compiled."""

import functools
import logging
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from letir.ast import LATE_BOUND
from letir.ast.derivative_types import might_require_grad
from letir.ast.pytrees import flatten
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.errors import LetirError
from letir.eval.arguments import is_static, static_value
from letir.executor import autodiff
from letir.executor.argument_spec import ArgumentSpec
from letir.executor.calls import (
    Request,
    donated_positions,
    executor_name,
    with_types,
)
from letir.executor.compiled import Compiled, are_in_background, kernel_mode
from letir.executor.default_pipeline import optimize_program
from letir.executor.plan_cache import ActiveRecording, Entry, Pause
from letir.executor.reachable_state import captured_state, contents_of, is_unchanged
from letir.executor.symbolic_shapes import check_agrees, record_for_symbols
from letir.tracing.entry import WRITE_BACK, Recording, record
from letir.tracing.refusals import MustRunAsPython
from letir.tracing.trace_state import LAZY, LIFT_STATES

if TYPE_CHECKING:
    from letir.executor.executor import Executor

_LOG = logging.getLogger("letir.plan")
# a function is called as Python if its program has at least so many guards, and for each of them
# at most so many operations, and numbers computed by elementwise operations
_DECISIONS, _OPERATIONS_EACH, _NUMBERS_EACH = 200, 8, 64
PLANS_EACH = 16  # plans for one spec: a branch that differs each time would compile without end
_MOST_AFTER_ERRORS = 100_000  # objects that are searched after a recording that raises
_MOST_COMPILES = 20  # compiles of an executor, if at least half of its calls compile
_COMPILES = 8  # compiles from which on an executor may warn


def make_plan(executor: "Executor", request: Request, key: ArgumentSpec, fresh: list) -> Any:
    """A new plan for a request.

    ``key``: the spec of the request, or one with symbolic sizes. A plan for fixed sizes is appended
    to ``fresh``.
    """
    begun = time.perf_counter()
    reason = request.reason or _compile_reason(executor, request, key)
    if key.has_names:
        fn, lifted, takes_next = _record_for_symbols(executor, request, key), (), False
        is_first = False
    else:
        fn, lifted, takes_next, is_first = _record_with_state(executor, request)
    if lifted:
        is_plain = not (request.spec.has_variables or might_require_grad(fn))
        lifted = LATE_BOUND["generators_of"](lifted, is_plain)
    is_decisions = not key.has_names and _is_mostly_decisions(fn)
    version = _compile_plan(executor, fn, request, reason, simplify=not is_decisions)
    if lifted:
        version.generators = lifted
    version.is_once, version.is_first = takes_next or is_decisions, is_first
    executor.latest = request.spec
    if key.has_names:
        executor.families.remember_plan(request.spec, key)
    else:
        fresh.append(version)
    if not executor.has_warned and executor.cache.compiles >= _COMPILES:
        LATE_BOUND["warn_of_compiles"](
            executor, reason, executor.families.why_not(request.spec, list(executor.cache.entries))
        )
    _LOG.info(
        "%s: compiled for (%s) in %.3g ms, %d binds of %d, because %s",
        *(executor_name(executor.f), key, 1e3 * (time.perf_counter() - begun)),
        *(len(version.optimized), len(fn), reason),
    )
    return version


def _record_with_state(executor: "Executor", request: Request) -> tuple:
    """(program, captured generators, whether it took a value of an iterator outside of it, whether
    it made a generator that it keeps).

    Raises an error, after which the Python function is to be called, if the program depends on
    state that the function changes.
    """
    do = functools.partial(_recording, executor.f, request.marked)
    iterators, holders, is_all = captured_state(_search_roots(executor, request))
    before = [contents_of(holder) for holder in holders]
    try:
        if any(getattr(iterator, "gi_frame", None) is not None for iterator in iterators):
            raise MustRunAsPython  # traced values could not be taken back from its variables
        with ActiveRecording() as recording:
            found, taken = (
                LATE_BOUND["run_watching_iterators"](iterators, do) if iterators else (do(), False)
            )
            fn, lifted = found.fn, found.lifted
            if executor.watches_state and not all(map(is_unchanged, holders, before)):
                with Pause():
                    # another thread may change state at the same time, which is not this function's
                    if recording.is_alone():
                        LATE_BOUND["refuse_changes"](executor, request.marked, holders, before, fn)
    except MustRunAsPython:
        executor.runs_python = True
        LATE_BOUND["restore_state"](holders, before)
        raise
    except LetirError as error:
        is_outside = hasattr(error, "letir_changes_outside") and not isinstance(executor.f, type)
        if is_all and executor.watches_state and is_outside:
            LATE_BOUND["call_as_python"](executor, holders, before, error)
        if executor.changed_state:  # Python has called it and left values that cannot be recorded
            LATE_BOUND["refuse_changes"](executor, request.marked, holders, before, None)
        raise
    except Exception as error:
        if executor.watches_state and not hasattr(error, "letir_runs_python"):
            if not is_all:
                is_all, holders, before = _state_kept_by(do, _search_roots(executor, request))
            if is_all:
                LATE_BOUND["call_once_as_python"](executor, holders, before, error)
        raise
    return fn, lifted, taken, found.is_first


def _state_kept_by(do: Callable, roots: list) -> tuple[bool, list, list]:
    """(whether a recording that raises changes none of the objects that its function reaches, these
    objects, what they hold). ``do`` records once more, because a search for so many objects would
    take long before each recording.
    """
    iterators, holders, is_all = captured_state(roots, _MOST_AFTER_ERRORS)
    before = [contents_of(holder) for holder in holders]
    if iterators or not is_all:
        return False, holders, before
    with suppress(Exception), ActiveRecording():
        do()
    is_kept = all(map(is_unchanged, holders, before))
    if not is_kept:
        LATE_BOUND["restore_state"](holders, before)
    return is_kept, holders, before


def record_function(f: Callable, marked: tuple[tuple, dict]) -> tuple[Lambda, tuple]:
    """The function recorded for these arguments, and the random generators that it captures."""
    found = _recording(f, marked)
    return found.fn, found.lifted


def _recording(f: Callable, marked: tuple[tuple, dict]) -> Recording:
    return record(f, *marked, LAZY, WRITE_BACK, draws=LIFT_STATES)


def _search_roots(executor: "Executor", request: Request) -> list:
    """The objects from which the search for the function's iterators starts."""
    leaves = [static_value(x) for x in flatten(request.marked)[0] if is_static(x)]
    return [executor.f, *[getattr(leaf, "kept", leaf) for leaf in leaves]]


def _record_for_symbols(executor: "Executor", request: Request, key: ArgumentSpec) -> Lambda:
    """The function recorded with symbolic sizes; NoSymbolicProgram if it needs fixed sizes."""
    fn = record_for_symbols(
        lambda kinds: record_function(executor.f, with_types(request.marked, kinds))[0], key
    )
    check_agrees(fn, record_function(executor.f, request.marked)[0], request.leaves)
    return fn


def _is_mostly_decisions(fn: Lambda) -> bool:
    """Whether a program makes many decisions between few operations on few numbers.

    A plan would be no faster than Python, and other arguments would need another plan.
    """
    guards = sum([bind.op.role == "guard" for bind in fn.binds])
    if guards < _DECISIONS or len(fn.binds) > _OPERATIONS_EACH * guards:
        return False
    kinds = [binder.type for bind in fn.binds for binder in bind.binders]
    if any(type(kind) is not ArrayType or not has_static_shape(kind) for kind in kinds):
        return False
    numbers = sum([bind.binders[0].type.size for bind in fn.binds if bind.op.elementwise])
    return numbers <= _NUMBERS_EACH * guards


def _compile_plan(
    executor: "Executor", fn: Lambda, request: Request, reason: str, simplify: bool
) -> Any:
    """The plan of a program. Without ``simplify`` only required passes run."""
    options: dict[str, Any] = {
        "optimize": executor.options.optimize and simplify,
        "exact": executor.options.exact,
    }
    if request.spec.has_variables or might_require_grad(fn):
        return autodiff.compile_differentiable(fn, request.spec.requires_grad, reason, **options)
    if executor.options.profile:
        optimize = functools.partial(optimize_program, **options)
        return LATE_BOUND["profiled_plan"](fn, optimize, executor.options.profile, reason)
    places = donated_positions(request.marked[0], executor.options.donate_argnums)
    mode = kernel_mode(executor.options.kernels, **options)
    made = optimize_program(fn, **options, kernels=mode)
    if not are_in_background(executor.options.kernels):
        return Compiled(fn, made, reason, places, mode)
    version = Compiled(fn, made, reason, places, mode, later=True)
    known = weakref.ref(executor)

    def forget() -> None:
        found = known()
        if found is not None:
            found.quick_made = 0
            found.forget_keys()

    version.on_swap = forget
    if not version.is_waiting:  # the background thread has finished already
        forget()
    return version


def _compile_reason(executor: "Executor", request: Request, key: ArgumentSpec) -> str:
    """A readable reason why a plan is made."""
    if executor.latest is None:
        return "it is the first call"
    if key.has_names:
        return "the sizes differ from the call before, and become symbols"
    return LATE_BOUND["spec_difference"](executor.f, request.marked, key, executor.latest)


def gives_up_plans(executor: "Executor", entry: Entry, request: Request) -> bool:
    """Whether calls for this entry run the Python function, as most of them need a new plan."""
    compiles = executor.cache.compiles
    is_many = compiles >= 2 * _MOST_COMPILES
    is_full = len(entry.plans) == PLANS_EACH and compiles >= _MOST_COMPILES
    # effects of a plan that failed must not happen again
    if (is_many or is_full) and 2 * compiles >= request.number and not request.log.done:
        entry.runs_python = True
        executor.runs_python = is_many
        if not entry.plans:  # calls in other threads come this far before they see the flag
            executor.cache.remove(entry)
        executor.forget_keys()
        _LOG.info("%s: called as Python from now on", executor_name(executor.f))
    return entry.runs_python
