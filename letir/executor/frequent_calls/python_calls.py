"""Calls of the Python function in place of its plan, where the plan saves no time.

``call_of_python`` decides for certain argument types; ``python_kinds`` is for executors that have
stopped looking for plans. Neither changes a result: a plan whose results may differ from NumPy's
in the last bits is never replaced.
"""

import sys
import warnings
from collections.abc import Callable
from copy import deepcopy
from types import FrameType
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.bodies import bodies_of
from letir.ast.terms import Bind, Lambda
from letir.executor.active_recordings import WARN
from letir.executor.calls import executor_by_reference
from letir.executor.compiled import Compiled
from letir.executor.default_pipeline import optimize_program
from letir.executor.frequent_calls.argument_tests import NotPlain, tests_of_kind
from letir.executor.frequent_calls.external_values import EFFECTS_IN_PYTHON, ExternalValues
from letir.passes.pipeline import registered_passes
from letir.plan.effect_log import is_guard
from letir.plan.generated_calls import GeneratedCall, call_of_function, shortest_time

_SHOW: Any = getattr(warnings, "_showwarnmsg", warnings.showwarning)  # called by those in C, too
_MAX_AS_PYTHON = 4
_MAX_MADE = 32  # tests of an executor, those of its quick calls included
_MAX_BESIDE_DRAWS = 12  # operations that take less time than copying the state of a generator
_MAX_OPERATIONS = 64  # of a function that is not timed
_MAX_WORK = 1 << 22  # elements that are computed: timing runs the function several times


def call_of_python(
    executor: Any,
    compiled: Compiled,
    of_plan: GeneratedCall | Callable,
    call: tuple[tuple, dict],
    branches: bool,
) -> GeneratedCall | None:
    """The call of the Python function, if it takes less time than the plan; else None.

    ``of_plan``: the call of the plan, or a function of (args, kwargs) that makes it; ``call``: the
    present (args, kwargs).

    The times are compared if the plan gives the function's results to the bit. They are not
    compared if the function draws from a generator that it captures; a plan of few operations then
    takes longer, because it copies the generator's state. They need not be
    compared where a plan cannot be faster: it would have to raise and catch an exception, or it
    computes with numbers and the function ``branches`` on them, so that plans of other branches
    fail at their guards first. Where NumPy's scalars may have other last bits than the plan, the
    number of operations decides, so that no result depends on a time.
    """
    args, kwargs = call
    raises = any(bind.op.role == "guard_raised" for bind in compiled.plan.binds)
    numbers = isinstance(of_plan, GeneratedCall) and of_plan.gives_numbers and not compiled.changed
    if not raises and not numbers and not _may_be_timed(compiled):
        return None
    # a plan that raises is never run; any other sets NumPy's error state once
    more = {"effects": EFFECTS_IN_PYTHON} if raises else {}
    outside = LATE_BOUND["values_read"](executor.f, **more)
    if outside is None:
        return None  # its plan keeps the values that it read, and does not repeat its effects
    try:
        static = executor.marker.static_places(args, kwargs)
        tests = tests_of_kind(args, kwargs, is_brief=raises or numbers, static=static)
    except NotPlain:
        return None
    is_scipy = tests.uses_scipy or _is_decomposed(outside)
    if is_scipy and not (raises or numbers):
        return None
    for place in outside.places:
        tests.add_outside_value(*place)
    result = call_of_function(executor.f, tests.tests, tests.names, tests.count, bool(kwargs))
    if raises or (numbers and branches):
        return result
    is_wanted = _pays(compiled, result, of_plan, call)
    # the answer takes more time than the test before it
    return result if is_wanted and (numbers or _has_same_bits(compiled)) else None


def _pays(compiled: Compiled, of_python: GeneratedCall, of_plan: Any, call: tuple) -> bool:
    """Whether the Python function is called in place of a plan that gives the same results."""
    if compiled.generators:  # captured: timing would advance them
        return len(compiled.program) <= _MAX_BESIDE_DRAWS
    binds = compiled.program.binds
    if any(map(_rounds_scalars, binds)) or any(map(_warns_in_timing, binds)):
        return _is_of_same_length(compiled)
    try:
        call = deepcopy(call) if compiled.changed else call  # timing writes into the arguments
    except Exception:  # an argument cannot be copied
        return False
    return _is_faster(of_python, of_plan, call)


def _rounds_scalars(bind: Bind) -> bool:
    """Whether the last bit of the result may be another one if NumPy's scalars compute it."""
    avals = [binder.type for binder in bind.binders if bind.op.python.rounds_scalars]
    return any(
        aval is None
        or (not aval.shape and not aval.weak and aval.dtype.kind in bind.op.python.rounds_scalars)
        for aval in avals
    )


def _warns_in_timing(bind: Bind) -> bool:
    """Whether timing might repeat warnings: a block of ``np.errstate`` has its own error state."""
    return bind.op.role == "error_region" and any(
        mode in ("warn", "print", "call", "log")
        for mode in bind.attrs.values()
        if type(mode) is str
    )


def _is_of_same_length(compiled: Compiled) -> bool:
    """Whether the plan is short and saves hardly any of the function's operations."""
    count, of_plan = len(compiled.program), len(compiled.optimized)
    of_plan += sum(len(body) - 1 for bind in compiled.optimized.binds for body in bodies_of(bind))
    return count <= _MAX_OPERATIONS and 4 * of_plan >= 3 * count


def _is_faster(of_python: GeneratedCall, of_plan: Any, call: tuple[tuple, dict]) -> bool:
    """Whether calling the Python function takes less time than the plan."""
    is_whole = isinstance(of_plan, GeneratedCall)
    try:
        with np.errstate(all="ignore"):  # timing must not repeat the warnings of the call
            if _would_warn(of_python.run, call):
                return True  # as where a plan warns of floating-point errors
            time = of_python.shortest_time(*call)
            if not is_whole:
                return time < shortest_time(of_plan, *call)
    except Exception:
        return False
    try:
        return time < of_plan.shortest_time(*call)
    except Exception:  # it warns or leaves a step to the plan, and NumPy computes all again
        return True


class _Warns(BaseException):
    """Raised where a function is about to warn."""


def _stop_at_warning(frame: FrameType, event: str, arg: Any) -> None:
    """A profile function that raises ``_Warns`` before a warning is noted or shown."""
    if (event == "c_call" and arg is WARN) or (event == "call" and frame.f_code is _SHOW.__code__):
        raise _Warns


def _would_warn(run: Callable, call: tuple[tuple, dict]) -> bool:
    """Whether this call warns of more than floating-point errors, as of the mean of no elements.

    It is made up to the warning. True, without a call, while a profiler runs.
    """
    if sys.getprofile() is not None:
        return True
    sys.setprofile(_stop_at_warning)  # of this thread only
    try:
        run(*call)
    except _Warns:
        return True
    finally:
        sys.setprofile(None)
    return False


def _may_be_timed(compiled: Compiled) -> bool:
    """Whether a plan may run several times with NumPy's bits: it is short, and changes only its
    arguments.
    """
    is_changed = any(map(registered_passes, ("before", "after", "gradient")))
    if is_changed or compiled.plan.has_kernels:
        return False
    is_repeatable = all(map(_is_repeatable, compiled.plan.binds))
    return is_repeatable and _work_of(compiled.optimized) <= _MAX_WORK


def _is_repeatable(bind: Bind) -> bool:
    """Whether the timing may compute ``bind`` again: it has no effect, and the same bits each
    time.
    """
    op = bind.op
    if op.role in ("own_draw", "own_seed"):  # timing uses copies of the arguments
        return True
    is_effect = op.effect and not is_guard(bind) and op.role not in ("guard_computed", "write_back")
    has_other_bits = hasattr(op.impl, "call")  # an einsum that BLAS computes
    return not (is_effect or op.random or op.is_user_defined or has_other_bits)


def _work_of(fn: Lambda) -> int:
    """The number of elements that are computed, as far as it is known; more than ``_MAX_WORK`` for
    loops.
    """
    work = 0
    for bind in fn.binds:
        if bind.op.bodies is not None and bind.op.bodies.loop:
            return _MAX_WORK + 1
        if bind.op.memory == "view":
            continue
        # a write in place computes the new part only
        made = bind.args[1:2] if bind.op.update is not None else bind.binders
        for arg in made:
            size = getattr(arg.type, "size", 1)
            work += size if type(size) is int else 0
    return work


def _has_same_bits(compiled: Compiled) -> bool:
    """Whether the results are NumPy's to the bit: ``exact=True`` would give the same program."""
    exact = optimize_program(compiled.program, exact=True, kernels=compiled.options[-1])
    return exact == compiled.optimized


def _is_decomposed(outside: ExternalValues) -> bool:
    """Whether functions of SciPy may be computed by operations that are not SciPy's."""
    if not outside.uses_scipy:
        return False
    decomposed = LATE_BOUND["functions_decomposed"]()
    return not outside.is_complete or not decomposed.isdisjoint(outside.read)


# ---- executors that have given up plans ----


@frozen(eq=False)
class PythonKind:
    """Argument types for which an executor calls the Python function, tested without a key.

    ``match(args, kwargs)`` is true for such arguments. ``own_call``: the function that replaces the
    executor's general call if this is its first kind and it has no quick calls.
    """

    match: Callable[[tuple, dict], Any]
    own_call: Callable

    def __call__(self, args: tuple, kwargs: dict) -> Any:
        return self.match(args, kwargs)


def python_kinds(executor: Any, args: tuple, kwargs: dict) -> tuple[PythonKind, ...]:
    """The kinds for which an executor calls Python, with the kind of these arguments added.

    None is added any more after many: if each call is of another kind, a test gains nothing.
    """
    if executor.quick_made >= _MAX_MADE:
        return executor.as_python
    executor.quick_made += 1
    try:
        static = executor.marker.static_places(args, kwargs)
        tests = tests_of_kind(args, kwargs, is_brief=False, static=static, takes_objects=True)
    except NotPlain:
        return executor.as_python
    call = call_of_function(executor.f, tests.tests, tests.names, tests.count, bool(kwargs))
    own_call = call.function(
        EXECUTOR=executor_by_reference(executor),
        CALLS=zip(executor.calls, executor.missed, strict=True),
    )
    tests.leaf_texts.append("True")  # so that the test gives a true value without arrays too
    return (PythonKind(tests.make_function(), own_call), *executor.as_python)[:_MAX_AS_PYTHON]


LATE_BOUND["python_kinds"] = python_kinds
