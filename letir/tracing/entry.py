"""``trace``: records a Python function as a Lambda."""

import functools
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, cast

import numpy as np
import optree
from attrs import frozen

from letir.ast import LATE_BOUND, F, entry_point, with_progress_bar
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.process_state import TemporaryChange, paused_gc
from letir.ast.pytrees import GENERATORS, Tree, flatten, texts_in_structure
from letir.ast.terms import Lambda
from letir.ast.types import PYTHON_NUMBERS, ShapeDtype
from letir.errors import DTypeError, TraceError, mark_unrecorded_code
from letir.eval.arguments import (
    NEVER_STATIC,
    TypedLeaf,
    mark_static,
    named_inputs,
    unflatten_arguments,
)
from letir.eval.array_modules import device_array_class, is_array, is_lazy, type_of
from letir.eval.float_warnings import restore_abandoned_state
from letir.tracing.callers import OWNING, REACHING
from letir.tracing.checks.hidden_random_state import Watch, needs_watch
from letir.tracing.mutation.views import Memory
from letir.tracing.numpy_protocols.dispatch import refresh_tables
from letir.tracing.operands import refuse_long_integer
from letir.tracing.refusals import (
    RecordAgain,
    escaped_error,
    noted_error,
    raise_clearer_error,
    settle_refusals,
    wrong_result_error,
)
from letir.tracing.stand_ins import end_stand_ins, start_stand_ins
from letir.tracing.trace_state import (
    ABSTRACT,
    ACTIVE,
    DRAW_AT_ONCE,
    EAGER,
    LIFT_STATES,
    REFUSE_DRAWS,
    Paused,
    Trace,
)
from letir.tracing.tracer import Tracer

WRITE_BACK, _STORE_PARTS, DISCARD_WRITES = "keep", "store", "drop"  # treatments of changes
IN_PYTHON = ("scipy.", "statistics")  # modules in Python whose functions have stand-ins
_NO_OBJECTS = NEVER_STATIC | {Tracer, TypedLeaf, ShapeDtype, bool, str, FunctionType}
_NO_ARRAYS = {Tracer, str, *PYTHON_NUMBERS}
_OPTIONS = frozenset(["static_argnums", "static_argnames", "abstract", "intercept", "check"])


@frozen
class Recording:
    """A recorded program and the nesting of its arguments.

    ``lifted``: the traced values of enclosing traces that the program uses; its last parameters
    stand for them, in this order. ``makes_generator``: the function has made a random generator
    that it keeps, so that its next call computes something else.
    """

    fn: Lambda
    tree: Tree
    leaves: list
    lifted: tuple[Value, ...]
    makes_generator: bool = False


def _refusing_ambiguous_options(function: F) -> F:
    @functools.wraps(function)
    def call(*args, **kwargs):
        if not _OPTIONS.isdisjoint(kwargs):
            LATE_BOUND["refuse_ambiguous_options"](args, kwargs, _OPTIONS)
        return function(*args, **kwargs)

    return cast(F, call)


@entry_point
@_refusing_ambiguous_options
def trace(
    f: Callable[..., Any],
    *args: Any,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    abstract: bool = False,
    intercept: bool = True,
    check: bool = False,
    **kwargs: Any,
) -> Lambda:
    """Record ``f(*args, **kwargs)`` as a closed Lambda.

    Arguments are pytrees of arrays, Python numbers (weak parameters) and static leaves: bool, str,
    None, sets, functions, classes, dtypes, slices and ranges, and the arguments named by
    ``static_argnums`` and ``static_argnames``, which are hashable.
    With concrete arguments a guard is recorded where Python asks for a truth value or an integer.
    With ``abstract``, and for values that depend on ``ShapeDtype`` arguments, nothing is computed
    and such a question raises TraceError. Traced values of an enclosing trace that ``f`` uses
    become further parameters at the end.

    Traced values may be written into arrays that ``f`` makes, as by ``np.zeros``, and
    ``math.sin(x)`` and ``float(x)`` are recorded, in all functions that ``f`` calls.
    ``intercept=False`` turns this off. ``check``: record ``f`` again, at these and at other values,
    and raise TraceError if the programs differ other than by a guard. See docs/guards.md.

    >>> import numpy as np
    >>> print(trace(lambda x, y: x * np.sin(y), 2.0, np.ones(3)).listing(), end="")
    %2 = sin %1
    %3 = mul %0, %2
    return %3
    """
    marked_args, marked_kwargs = mark_static(f, args, kwargs, static_argnums, static_argnames)
    mode: Any = ABSTRACT if abstract else EAGER
    recorded = functools.partial(record, f, mode=mode, writes=_STORE_PARTS, intercept=intercept)
    fn = recorded(marked_args, marked_kwargs).fn
    if check:
        leaves, spec = LATE_BOUND["flatten_objects"]((marked_args, marked_kwargs))
        call = functools.partial(unflatten_arguments, spec)
        LATE_BOUND["refuse_baked"](fn, leaves, lambda new: recorded(*call(new)).fn)
        if not abstract and ACTIVE.get() is None:
            LATE_BOUND["refuse_another_result"](f, fn, args, kwargs)
    return fn


@with_progress_bar("recording")
@paused_gc()  # a trace may make millions of objects, but no garbage
def record(
    f: Callable,
    args: tuple,
    kwargs: dict,
    mode: str,
    writes: str | None = None,
    lifts_variables: bool = False,
    intercept: bool = True,
    draws: str = REFUSE_DRAWS,
) -> Recording:
    """Record ``f`` on arguments in which static ones are ``StaticLeaf``s.

    ``writes``: what the program does with changes of arguments. ``WRITE_BACK``: it writes into the
    arrays that it gets; ``_STORE_PARTS``: it stores parts of lists, dicts and objects, too;
    ``DISCARD_WRITES``: it only computes with the new values; None: writes are an error.
    ``lifts_variables``: eager Variables that ``f`` uses become parameters, like traced values of an
    enclosing trace. ``intercept``: NumPy's array makers and math's functions record. ``draws``: the
    treatment of draws from generators that are not arguments, see ``random_draws``; with
    ``DRAW_AT_ONCE`` those among the arguments draw themselves, too.
    """
    restore_abandoned_state()
    leaves, spec = flatten((args, kwargs))  # fills ``GENERATORS``
    if draws == DRAW_AT_ONCE and GENERATORS:
        leaves, spec = LATE_BOUND["flatten_marking_generators"]((args, kwargs))
    if has_others := not _NO_OBJECTS.issuperset(map(type, leaves)):
        leaves, spec = LATE_BOUND["argument_leaves"](leaves, spec, draws)
    names, inputs, statics, tree = named_inputs(f, leaves, spec)
    try:
        with trace_for(inputs, names, mode) as (new, tracers):
            new.writes, new.lifts_variables = writes is not None, lifts_variables
            new.draws, new.intercepts = draws, new.intercepts and intercept
            filled = LATE_BOUND["with_static_leaves"](new, statics, tracers) if statics else tracers
            call = spec.unflatten(filled)  # positional and keyword arguments
            call = LATE_BOUND["joined_call"](call) if has_others and tree.refers else call
            given = {WRITE_BACK: (), _STORE_PARTS: (args, kwargs)}.get(writes or "")
            is_plain = not statics and spec.num_nodes == len(leaves) + 3  # args, kwargs, the pair
            result = _guarded_result(f, new, call, filled, None if is_plain else given)
            if given is not None:
                new.write_back(inputs)
            else:
                new.discard_writes(inputs)
            fn, lifted = finish_trace(new, result, None if is_plain and not kwargs else tree)
            if new.watch is not None:
                new.watch.check(fn)
            keeps = "made_generators" in vars(new) and LATE_BOUND["keeps_generator"](new)
            return Recording(fn, tree, inputs, lifted, keeps)
    except RecordAgain as found:
        options = (found.mode, writes, lifts_variables, intercept, draws)
        record_again = functools.partial(record, f, args, kwargs, *options)
        return LATE_BOUND["recorded_again"](found, f, record_again, draws == LIFT_STATES)


def _guarded_result(f: Callable, new: Trace, call: Any, leaves: list, given: tuple | None) -> Any:
    """The result of ``f`` on arguments with these leaves while ``new`` records, with its guards.

    ``given``: the caller's arguments if the program changes containers in them, () if it cannot.
    Raises ``RecordAgain`` or ``MustRunAsPython`` if it does not do what ``f`` does.
    """
    snapshot = LATE_BOUND["argument_snapshot"](call, leaves) if given is not None else None
    if needs_watch(f, new.draws):
        new.watch = Watch(f, new.draws)
    is_function = type(f) is FunctionType
    run = _call_recorded if is_function else LATE_BOUND["settling_owner"](_call_recorded, f, new)
    result = run(f, new, *call)
    if "takes_lists" in vars(new):
        LATE_BOUND["learn_function_of_lists"](new, f)
    if new.reads_errors or snapshot is not None:
        result = LATE_BOUND["with_stores"](new, snapshot, result, given)
    if type(result) is not Tracer:  # the usual case needs none
        result = with_result_guards(new, result)
    if new.failed is not None:  # raised too late for the user's handlers
        raise RecordAgain(EAGER)
    return result


def _call_recorded(f: Callable, new: Trace, args: tuple, kwargs: dict) -> Any:
    """The result of ``f`` on traced values while the trace ``new`` records.

    None if ``f`` raised because the trace had failed before, see ``Trace.failed``.
    """
    new.root = sys._getframe().f_code
    with _recording_functions(f, new):
        try:
            if not _CONTAINERS.isdisjoint(map(type, args)):
                LATE_BOUND["watch_list_arguments"](f, args)
            is_users = type(f) is FunctionType and not str(f.__module__).startswith(IN_PYTHON)
            result = (f if is_users else LATE_BOUND["recorded_function"](f))(*args, **kwargs)
            if new.raised:
                settle_refusals(new)
            return result
        except Exception as error:
            settle_refusals(new)
            if type(error) is ValueError:
                LATE_BOUND["note_function_of_object"](error)
            if "takes_lists" in vars(new):
                LATE_BOUND["learn_function_of_lists"](new, f)
            raise_clearer_error(new, error, f, args, kwargs)
            if new.failed is None:
                raise
            return None


class _recording_functions(TemporaryChange):
    """A context in which functions that record stand in for NumPy's, math's and generators'."""

    __slots__ = ("f", "new", "started")

    def __init__(self, f: Callable, new: Trace) -> None:
        self.f, self.new = f, new
        self.started: list = []  # the stand-ins that are put in place

    def make(self) -> None:
        if self.new.watch is not None:
            self.new.watch.start()
        start_stand_ins(self.f, self.started, self.new.has_sizes, self.new.functions)
        if REACHING:
            LATE_BOUND["start_held_stand_ins"](self.f, self.started)
        if OWNING:
            LATE_BOUND["start_owning"](self.f, self.new, self.started)

    def undo(self) -> None:
        if "owns_results" in vars(self.new):
            LATE_BOUND["end_owning"](self.started)
        end_stand_ins(self.started)
        if self.new.watch is not None:
            self.new.watch.end()


_CONTAINERS = frozenset([list, tuple, dict])


class trace_for(TemporaryChange):
    """A context with (trace, traced values): a new trace with parameters for ``inputs``, closed at
    the end, whatever fails.
    """

    __slots__ = ("inputs", "mode", "names", "new", "outer")

    def __init__(self, inputs: list, names: list, mode: str) -> None:
        self.inputs, self.names, self.mode = inputs, names, mode
        self.new: Trace | None = None

    def make(self) -> tuple[Trace, list[Tracer]]:
        self.outer = ACTIVE.get()
        self.new = new = open_trace(self.mode)
        ACTIVE.set(new)
        pairs = zip(self.inputs, self.names, strict=True)
        return new, [add_parameter(new, leaf, name) for leaf, name in pairs]

    def undo(self) -> None:
        if self.new is not None:
            ACTIVE.set(self.outer)
            self.new.close()


def open_trace(mode: str) -> Trace:
    """A new trace inside the active one."""
    refresh_tables()  # operations may have been defined since the last trace
    active = ACTIVE.get()
    parent = active.trace if isinstance(active, Paused) else active
    return Trace(Tracer, parent, mode)


_TYPED = (ShapeDtype, Tracer)


def add_parameter(new: Trace, leaf: Any, name: str | None) -> Tracer:
    """A parameter of the type of ``leaf``, with its value unless the trace is abstract."""
    kind = type(leaf)  # isinstance raises for a weakref.proxy whose object is gone
    if issubclass(kind, Tracer) and (
        leaf.emitter not in new.enclosing() or not leaf.emitter.is_open
    ):
        raise escaped_error(leaf)
    if kind is TypedLeaf:
        return new.parameter(leaf.type, name, leaf.value)
    if issubclass(kind, _TYPED):
        return new.parameter(leaf.type, name, leaf)
    try:
        if type(leaf) is int:
            refuse_long_integer(leaf, 1 << 63)
        aval = type_of(leaf)
        if type(leaf) is not np.ndarray and is_lazy(leaf):  # no value is known while recording
            leaf = ShapeDtype(aval.shape, aval.dtype)
        result = new.parameter(aval, name, leaf)
        is_array_object = isinstance(leaf, np.ndarray) or type(leaf) is device_array_class()
        if is_array_object and not result.shape:
            result.sharing = Memory(result.arg)  # marks an array, even without a value
        return result
    except DTypeError as error:
        error.args = (f"argument {name}: {error}" if name else str(error),)
        raise


def with_result_guards(new: Trace, result: Any) -> Any:
    """``result`` with known keys in its dicts, after the guards that its keys and texts need.

    Before ``Trace.write_back``, because a guard that fails must find the arguments unchanged.
    """
    noted = vars(new)
    if "has_keys" in noted:
        result = LATE_BOUND["with_known_keys"](result)
    if "printed" in noted and any(type(leaf) is str for leaf in flatten(result)[0]):
        LATE_BOUND["guard_printed"](new)
    return result


def finish_trace(new: Trace, result: Any, in_tree: Tree | None) -> tuple[Lambda, tuple[Value, ...]]:
    """(program that returns the leaves of ``result``, traced values lifted into it)."""
    if new.refusal is not None:
        raise noted_error(
            new,
            "the function caught an error of its recording, and then took another path than with "
            f"NumPy:\n  {new.refusal}\n  or do not catch this error",
        )
    out_tree = None
    if type(result) is Tracer:  # the usual case
        args: list[Any] = [_result_arg(new, result)]
    else:
        leaves, spec = flatten(result)
        if new.draws != LIFT_STATES and not _NO_OBJECTS.issuperset(map(type, leaves)):
            of_class = None if hasattr(type(result), "__letir_stores__") else Tracer
            leaves, spec = LATE_BOUND["objects_flattened"](leaves, spec, of_class)
        if not _NO_ARRAYS.issuperset(map(type, leaves)):
            leaves = LATE_BOUND["with_returned_views"](new, leaves)
        args = [_result_arg(new, leaf) for leaf in leaves]
        if None in args:  # a string has no argument: it is part of the tree
            leaves, spec = texts_in_structure(leaves, spec)
            args = [arg for arg in args if arg is not None]
        row: Any = tuple(leaves)
        # a tuple of one result needs its tree, because (y,) is not y
        in_a_row = len(leaves) != 1 and spec == optree.tree_structure(row)
        out_tree = None if optree.treespec_is_leaf(spec) or in_a_row else Tree(spec)
    lifted = tuple([outer for outer, _ in new.lifted.values()]) if new.lifted else ()
    for at_end in vars(new).get("at_end", ()):  # such as ``stop_gradients``
        at_end(new, args)
    # the tree of arguments does not describe lifted values, which are further parameters
    return new.build(args, None if lifted else in_tree, out_tree), lifted


def _result_arg(new: Trace, leaf):
    """A result as an argument of Ret, None for a string. TraceError unless it is one, an array, a
    number, or a string without traced values in it.
    """
    is_lifted = new.lifts_variables and isinstance(leaf, Value)
    if isinstance(leaf, Tracer) and leaf.arg in new.python_bools:
        leaf = PRIMITIVES["weaken"](leaf)  # so that it replays as a Python bool
    if isinstance(leaf, Tracer) or type(leaf) in PYTHON_NUMBERS or is_lifted:
        return new.enter(leaf)
    if is_array(leaf):
        try:
            return new.enter(leaf)
        except DTypeError as error:
            refusal = TraceError(f"result of the traced function: {error}")
            raise mark_unrecorded_code(refusal) from None
    if type(leaf) is str and "Traced(%" not in leaf:
        return None
    raise wrong_result_error(leaf)
