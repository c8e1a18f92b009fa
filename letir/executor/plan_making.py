"""New plans of an executor: its function is recorded for a request, optimised and compiled."""

import builtins
import datetime
import functools
import logging
import time
from array import array
from collections import deque
from collections.abc import Callable
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.attrs import PLAIN_TYPES, digest_of, same_value
from letir.ast.builder import Value
from letir.ast.derivative_types import might_require_grad
from letir.ast.pytrees import flatten
from letir.ast.terms import Lambda
from letir.errors import LetirError
from letir.eval.arguments import is_static, static_value
from letir.executor.active_recordings import ActiveRecording, EndOfRecording, numpy_settings
from letir.executor.argument_spec import ArgumentSpec, classes_of_nodes, named_places, names_in_code
from letir.executor.calls import PlanRequest, counter_value, donated_positions, executor_name
from letir.executor.compiled import Compiled, are_in_background, compile_reason, kernel_mode
from letir.executor.default_pipeline import (
    computes_nothing,
    has_compiler,
    is_faster_in_python,
    optimize_program,
    with_limit,
)
from letir.tracing.callers import attributes_of, is_class_of_user, is_user_module
from letir.tracing.entry import WRITE_BACK, Recording, record
from letir.tracing.refusals import MustRunAsPython
from letir.tracing.trace_state import LAZY, LIFT_STATES

if TYPE_CHECKING:
    from letir.executor.executor import Executor

_LOG = logging.getLogger("letir.plan")
_MAX_OBJECTS = 1_000  # objects that are searched for state before a recording
_MAX_OF_OBJECTS = 4_000  # the same of a method, which often changes some
_PLAIN_EACH = 4  # plain values for each of these objects
_BYTES_EACH = 1 << 20  # of a larger array, a digest is kept, not a copy
_BUFFERS = (np.ndarray, bytearray, array)  # of numbers, which are not searched
_HOLDERS = (list, dict, set, deque, *_BUFFERS)
_GENERATORS = ("Generator", "RandomState", "Random")  # classes of random generators
_WITH_STATE: tuple[str, ...] = (  # modules of objects that hold values
    *("_contextvars", "_csv", "_thread", "argparse", "collections", "queue", "threading"),
    *("multiprocessing.synchronize", "types", "unittest.mock", "weakref"),
)
_WITH_CLOCKS = frozenset(map(id, (datetime, datetime.date, datetime.datetime)))
_PARTS: dict[type, tuple[str, ...]] = {  # the attributes that hold what others are made of
    MethodType: ("__func__", "__self__"),
    BuiltinMethodType: ("__self__",),  # such as rng.normal
    MethodWrapperType: ("__self__",),  # such as iterator.__next__
    memoryview: ("obj",),
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    functools.cached_property: ("func",),
}
_CALLED = ("func", "args", "keywords", "__wrapped__")  # by a partial, cached or compiled function
_UNSET = object()
_BUILTINS = vars(builtins)  # in each namespace of a module; no function keeps its state there
PLANS_EACH = 16  # plans for one spec


class Globals(NamedTuple):
    """Globals of a module that a function names."""

    space: dict
    names: tuple[str, ...]


class Slots(NamedTuple):
    """Attributes that an object keeps in slots."""

    value: Any
    names: tuple[str, ...]


def make_plan(executor: "Executor", request: PlanRequest, key: ArgumentSpec, fresh: list) -> Any:
    """A new plan for a request.

    ``key``: the spec of the request, or one with symbolic sizes. A plan for fixed sizes is appended
    to ``fresh``.
    """
    begun = time.perf_counter()
    reason = request.reason or compile_reason(executor, request, key)
    lifted, takes_next, makes_generator = (), False, False
    if key.has_names:
        fn = LATE_BOUND["record_for_sizes"](executor, request, key)
    else:
        fn, lifted, takes_next, makes_generator = _record_with_state(executor, request)
    if lifted:
        is_plain = not (request.spec.has_variables or might_require_grad(fn))
        lifted = LATE_BOUND["generators_of"](lifted, is_plain)
    may_be_python = not (key.has_names or request.spec.is_on_device)
    is_empty = may_be_python and computes_nothing(fn)
    is_python = is_empty or (may_be_python and is_faster_in_python(executor.f, fn))
    executor.runs_python |= is_empty and executor.is_plain
    compiled = _compile_plan(executor, fn, request, reason, simplify=not is_python)
    if lifted:
        compiled.generators = lifted
    compiled.runs_python_next, compiled.makes_generator = takes_next or is_python, makes_generator
    executor.latest = request.spec
    executor.cache.last_compile = request.number, counter_value(executor.missed)
    if key.has_names:
        executor.families.remember_plan(request.spec, key)
    else:
        fresh.append(compiled)
    _LOG.info(
        "%s: compiled for (%s) in %.3g ms, %d binds of %d, because %s",
        *(executor_name(executor.f), key, 1e3 * (time.perf_counter() - begun)),
        *(len(compiled.optimized), len(fn), reason),
    )
    return compiled


def _record_with_state(executor: "Executor", request: PlanRequest) -> tuple:
    """(program, captured generators, whether it took a value of an iterator outside of it or had
    an effect there, whether it made a generator that it keeps).

    Raises an error, after which the Python function is to be called, if the program depends on
    state that the function changes, or has effects outside.
    """
    do = with_limit(executor, request, functools.partial(_recording, executor.f, request.marked))
    max_objects = _MAX_OF_OBJECTS if hasattr(executor.f, "letir_reaches") else _MAX_OBJECTS
    iterators, holders, is_all = captured_state(search_roots(executor, request), max_objects)
    before = [contents_of(holder) for holder in holders]
    searched, settings = (do, (is_all, holders, before)), numpy_settings()
    try:
        if any(getattr(iterator, "gi_frame", None) is not None for iterator in iterators):
            raise MustRunAsPython  # traced values could not be taken back from its variables
        if iterators and executor.iterators is None:
            LATE_BOUND["watch_iterators"](executor, iterators)
        with ActiveRecording() as recording:
            if executor.watches_state and not request.spec.is_on_device:
                recording.state = holders, before, is_all
            first, has_taken = (
                LATE_BOUND["run_watching_iterators"](iterators, do) if iterators else (do(), False)
            )
            if recording.has_ended:  # the function has caught the end of its recording
                raise EndOfRecording
            has_taken |= bool(recording.effect) or numpy_settings() != settings
            if not has_taken:  # a value cannot be put back: such a plan is for this call alone
                state = holders, before, first.fn
                has_taken = not refuse_changed_state(executor, request, recording, state)
    except EndOfRecording:
        LATE_BOUND["raise_has_effects"](executor, recording.effect, holders, before)
    except MustRunAsPython as error:
        executor.runs_python |= not hasattr(error, "letir_is_python_kind")
        LATE_BOUND["restore_state"](holders, before)
        raise
    except LetirError as error:
        LATE_BOUND["retry_refused"](executor, request, searched, error)
        raise
    except Exception as error:
        LATE_BOUND["retry_raising"](executor, request, searched, error)
        raise
    return first.fn, first.lifted, has_taken, first.makes_generator


def record_function(f: Callable, marked: tuple[tuple, dict]) -> tuple[Lambda, tuple]:
    """The function recorded for these arguments, and the random generators that it captures."""
    recording = _recording(f, marked)
    return recording.fn, recording.lifted


def _recording(f: Callable, marked: tuple[tuple, dict]) -> Recording:
    return record(f, *marked, LAZY, WRITE_BACK, draws=LIFT_STATES)


def search_roots(executor: "Executor", request: PlanRequest) -> list:
    """The objects and classes from which the search for state starts: the function's, and those
    of the arguments, whose methods it may call.
    """
    leaves, spec = flatten(request.marked)
    classes = classes_of_nodes(spec)
    if len({*classes}) < len(classes):
        LATE_BOUND["refuse_tests_of_identity"](executor)
    values = [static_value(x) for x in leaves if is_static(x)]
    return [executor.f, *classes, *[getattr(value, "reached", value) for value in values]]


def refuse_changed_state(
    executor: "Executor", request: PlanRequest, recording: ActiveRecording, state: tuple
) -> bool:
    """Raise an error, after which the Python function is to be called, if the recorded program
    depends on state that this recording or an earlier one has changed.

    Returns False if the recording has changed an array of which there is no copy. ``state``: the
    objects that hold state, their contents before the recording, and the program.
    """
    holders, before, _ = state
    is_changed = executor.earlier_changes or not all(map(is_unchanged, holders, before))
    if not (executor.watches_state and is_changed):
        return True
    return LATE_BOUND["refuse_changes_of"](recording, executor, request.marked, *state)


def _compile_plan(
    executor: "Executor", fn: Lambda, request: PlanRequest, reason: str, simplify: bool
) -> Any:
    """The plan of a program. Without ``simplify`` only required passes run."""
    optimize, exact = executor.options.optimize and simplify, executor.options.exact
    options: dict[str, Any] = {"optimize": optimize, "exact": exact}
    if request.spec.has_variables or might_require_grad(fn):
        compile_differentiable = LATE_BOUND["compile_differentiable"]
        return compile_differentiable(fn, request.spec.requires_grad, reason, **options)
    if executor.options.profile:
        make = functools.partial(optimize_program, **options)
        return LATE_BOUND["profiled_plan"](fn, make, executor.options.profile, reason)
    places = donated_positions(request.marked[0], executor.options.donate_argnums)
    mode = kernel_mode(executor.options.kernels, **options)
    optimized = optimize_program(fn, **options, kernels=mode)
    later = are_in_background(executor.options.kernels)
    compiled = Compiled(
        fn, optimized, reason, places, mode, later=later, on_device=request.spec.is_on_device
    )
    if later and mode != "off" and has_compiler():
        LATE_BOUND["forget_keys_after_swap"](executor, compiled)
    return compiled


# ---- state outside of the function ----


def _attributes_of_object(value: Any, holders: list) -> list:
    """The class and the attributes of a user's object, whose slots are added to ``holders``."""
    kind = type(value)
    names = [name for base in kind.__mro__ for name in _slots_of(base)]
    # a derived class may have a property of that name
    slots = tuple([n for n in names if type(getattr(kind, n, None)) is MemberDescriptorType])
    holders += [Slots(value, slots)] if slots else []
    return [attributes_of(value), kind, *[getattr(value, n, None) for n in slots]]


def _values_of_namespace(value: type | ModuleType, holders: list) -> list:
    """What a user's class, or a module that has such a class, holds, and bases; [] for others."""
    space = vars(value)
    if isinstance(value, type):
        if not is_class_of_user(value):
            return []
        holders.append(value)
        return [*space.values(), *[b for b in value.__bases__ if b is not object], type(value)]
    if not is_class_of_user(type(value)):
        return []
    names = tuple([name for name in space if not name.startswith("__")])
    holders.append(Globals(space, names))
    return [type(value), *[space[name] for name in names]]


def captured_state(roots: list, max_objects: int = _MAX_OBJECTS) -> tuple[list, list, bool]:
    """(iterators, objects that hold values, whether no more than ``max_objects`` were visited).

    Among the iterators are also locks, context variables and clocks that functions use.
    """
    iterators: list = []
    holders: list = []
    visited, todo = set[int](), list(roots)
    for value in todo:  # each value appends what it refers to; a user's list may define +=
        if len(visited) > max_objects or len(todo) > _PLAIN_EACH * max_objects:
            break
        # not isinstance, which raises ReferenceError for a weakref.proxy whose object is gone
        if issubclass(type(value), Value):  # of an earlier recording, such as an array in a cache
            value = getattr(value, "held_value", None)  # noqa: PLW2901
        kind = type(value)
        if kind in PLAIN_TYPES or id(value) in visited or value is _BUILTINS:
            continue
        visited.add(id(value))
        if issubclass(kind, _HOLDERS):  # traced values claim to be arrays
            holders.append(value)
            if not issubclass(kind, _BUFFERS):
                todo.extend(dict.values(value) if isinstance(value, dict) else value)
        if issubclass(kind, tuple):
            todo.extend(tuple.__iter__(value))
        elif kind is FunctionType:
            todo += _values_of_function(value, holders)
        elif kind in _PARTS:
            todo += [getattr(value, name, None) for name in _PARTS[kind]]
        elif is_generator(kind):
            holders.append(value)
        elif hasattr(kind, "__next__") or kind.__name__ == "SeedSequence":
            iterators.append(value)
        elif issubclass(kind, type | ModuleType):
            todo += _values_of_namespace(value, holders)
        elif is_class_of_user(kind):
            todo += _attributes_of_object(value, holders)
        elif kind.__module__ in _WITH_STATE:  # a namespace, a queue, a context variable
            todo += LATE_BOUND["values_of_library_object"](value, holders, iterators)
        elif callable(value) and kind.__module__.startswith(("functools", "letir.")):
            todo += _parts_of_callable(value)
    if iterators or not _WITH_CLOCKS.isdisjoint(visited):
        iterators = LATE_BOUND["iterators_in_use"](iterators, todo, roots)
    is_all = len(visited) <= max_objects and len(todo) <= _PLAIN_EACH * max_objects
    return iterators, holders, is_all


def _parts_of_callable(value: Any) -> list:
    """The function of a partial, cached, jitted or compiled function, and what it holds besides."""
    if hasattr(type(value), "__letir_transformed__"):  # a jitted function or method
        return [value.__letir_held__, vars(value)]
    return [getattr(value, name, None) for name in _CALLED]


def _slots_of(kind: type) -> tuple[str, ...]:
    """The attributes for which a class has slots."""
    result = vars(kind).get("__slots__", ())
    return (result,) if type(result) is str else tuple(result)


def is_generator(kind: type) -> bool:
    """Whether a class is a random generator of NumPy or of Python."""
    return kind.__name__ in _GENERATORS and kind.__module__.startswith(("numpy.", "random"))


def contents_of(holder: Any, whole: bool = False) -> Any:
    """A copy of the contents of an object, which does not change when the object does.

    Of an array of more than 1 MiB a digest, unless ``whole``.
    """
    kind = type(holder)
    if kind is CellType:
        try:
            return [holder.cell_contents]
        except ValueError:  # a variable that is not assigned yet
            return []
    if issubclass(kind, np.ndarray):
        holder = np.asarray(holder)  # also of a subclass, such as np.memmap
        if holder.dtype.hasobject:
            return list(holder.flat)
        return holder.tobytes() if whole or holder.nbytes <= _BYTES_EACH else digest_of(holder)
    if kind is Globals:
        space = holder.space
        return {name: space[name] for name in holder.names if name in space}
    if is_generator(kind):
        return LATE_BOUND["generator_position"](holder)
    if kind is Slots:
        values = {name: getattr(holder.value, name, _UNSET) for name in holder.names}
        return {name: value for name, value in values.items() if value is not _UNSET}
    if isinstance(holder, type):
        contents = dict(vars(holder))
        contents.pop("__slotnames__", None)  # a cache of Python's, made when an object is copied
        return contents
    bases: Any = _HOLDERS
    return next(
        holder[:] if base is array else base(holder) for base in bases if isinstance(holder, base)
    )


def is_unchanged(holder: Any, before: Any) -> bool:
    """Whether an object still has the contents ``before``: the same arrays, the same objects.

    Random generators count as unchanged: other code refuses draws that advance them.
    """
    if is_generator(type(holder)):
        return True
    now = contents_of(holder, whole=type(before) is bytes)
    if type(now) is dict:
        is_same = map(same_value, now.values(), map(before.get, now))
        in_order = not isinstance(holder, dict) or list(now) == list(before)
        return in_order and now.keys() == before.keys() and all(is_same)
    if type(now) in (list, deque):
        return len(now) == len(before) and all(map(same_value, now, before))
    return now == before


def _values_of_function(function: FunctionType, holders: list) -> list:
    """The values of a function's closure, defaults, attributes, and the globals that it names."""
    result = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    result += [value for _, _, value in named_places(function, ())]
    holders += function.__closure__ or ()
    space = function.__globals__
    if is_user_module(space):
        names = names_in_code(function.__code__)
        spaces = [space]
        for inner in spaces:  # a module of the user's appends its own globals: config.n += 1
            names_read = tuple([name for name in names if name in inner])
            values = [inner[name] for name in names_read]
            holders.append(Globals(inner, names_read))
            result += values
            for value in values:
                if type(value) is ModuleType and is_user_module(vars(value)):
                    spaces += [] if any(vars(value) is s for s in spaces) else [vars(value)]
        result.append(vars(function))
    return result
