"""``trace``: records a Python function as a Lambda."""

import functools
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import optree
from attrs import frozen

from letir.ast import LATE_BOUND, entry_point
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import Value
from letir.ast.gc_pause import paused_gc
from letir.ast.primitive import PRIMITIVES
from letir.ast.pytrees import Static, Tree, flatten, with_texts
from letir.ast.terms import Lambda
from letir.ast.types import PYTHON_NUMBERS, ArrayType, ShapeDtype
from letir.errors import DTypeError, TraceError
from letir.eval.array_modules import is_array, type_of
from letir.tracing.checks.hidden_random_state import Watch, names_draws
from letir.tracing.mutation.views import Memory
from letir.tracing.numpy_protocols.dispatch import refresh_tables
from letir.tracing.refusals import escaped_error
from letir.tracing.source_locations import at_user
from letir.tracing.stand_ins import end_stand_ins, start_stand_ins
from letir.tracing.trace_state import (
    ABSTRACT,
    ACTIVE,
    AT_ONCE,
    EAGER,
    REFUSED,
    Paused,
    Trace,
)
from letir.tracing.tracer import Tracer

KEEP, DROP = "keep", "drop"  # how writes into arguments are treated, see ``record``
_OPTIONS = ("static_argnums", "static_argnames", "abstract", "intercept", "check")


@frozen
class Recording:
    """A recorded program and the nesting of its arguments.

    ``lifted``: the traced values of enclosing traces that it uses; its last parameters stand for
    them, in this order.
    """

    fn: Lambda
    tree: Tree
    leaves: list
    lifted: tuple[Value, ...]


@entry_point
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
    None, and the arguments named by ``static_argnums`` and ``static_argnames``, which are hashable.
    With concrete arguments a guard is recorded where Python asks for a truth value or an integer.
    With ``abstract``, and for values that depend on ``ShapeDtype`` arguments, nothing is computed
    and such a question raises TraceError. Traced values of an enclosing trace that ``f`` uses
    become further parameters at the end.

    Arrays that ``f`` makes, as by ``np.zeros``, take traced values, and ``math.sin(x)`` and
    ``float(x)`` of traced values are recorded, in all functions that ``f`` calls; not so with
    ``intercept=False``. ``check``: ``f`` is recorded
    again at these and at other values; TraceError if the programs differ other than by a guard. See
    docs/guards.md.

    >>> import numpy as np
    >>> print(trace(lambda x, y: x * np.sin(y), 2.0, np.ones(3)).listing(), end="")
    %2 = sin %1
    %3 = mul %0, %2
    return %3
    """
    _refuse_ambiguous_options(f)
    marked_args, marked_kwargs = mark_static(f, args, kwargs, static_argnums, static_argnames)
    mode = ABSTRACT if abstract else EAGER
    fn = record(f, marked_args, marked_kwargs, mode, KEEP, intercept=intercept).fn
    if check:
        leaves, spec = flatten((marked_args, marked_kwargs))

        def again(new: list) -> Lambda:
            return record(f, *_arguments(spec, new), mode, KEEP, intercept=intercept).fn

        LATE_BOUND["refuse_baked"](fn, leaves, again)
        if mode is EAGER and ACTIVE.get() is None:
            LATE_BOUND["refuse_another_result"](f, fn, args, kwargs)
    return fn


def _arguments(spec: optree.PyTreeSpec, leaves: list) -> tuple[tuple, dict]:
    """The positional and keyword arguments with these leaves."""
    arguments: Any = spec.unflatten(leaves)
    return arguments


@paused_gc()  # a trace makes objects by the million and no garbage
def record(
    f: Callable,
    args: tuple,
    kwargs: dict,
    mode: str,
    writes: str | None = None,
    lifts_variables: bool = False,
    intercept: bool = True,
    draws: str = REFUSED,
) -> Recording:
    """Record ``f`` on arguments in which static ones are ``StaticLeaf``s.

    ``writes``: the treatment of writes into arguments. ``KEEP``: the program writes into the arrays
    that it gets; ``DROP``: it only computes with the new values; None: they are an error.
    ``lifts_variables``: eager Variables that ``f`` uses become parameters, like traced values of an
    enclosing trace. ``intercept``: NumPy's array makers and math's functions record, see
    ``stand_ins``. ``draws``: the treatment of draws from generators that are not arguments, see
    ``random_draws``.
    """
    leaves, spec = flatten((args, kwargs))
    (names, tree), inputs, statics = _names_and_tree(positional_names(f), spec), leaves, {}
    if not _STATIC_CLASSES.isdisjoint(map(type, leaves)):
        statics = {i: leaf for i, leaf in enumerate(leaves) if type(leaf) in _STATIC_CLASSES}
        names = [name for i, name in enumerate(names) if i not in statics]
        inputs = [leaf for i, leaf in enumerate(leaves) if i not in statics]
        tree = Tree(spec, _static_leaves(statics))
    with trace_for(inputs, names, mode) as (new, tracers):
        new.writes, new.lifts_variables = writes is not None, lifts_variables
        new.root, new.draws = sys._getframe().f_code, draws
        filled = _with_static(statics, tracers) if statics else tracers
        call_args, call_kwargs = spec.unflatten(filled)
        new.intercepts = new.intercepts and intercept
        if draws != AT_ONCE or names_draws(f):
            new.watch = Watch(f, draws)
        started: list = []  # the stand-ins that are put in place
        try:
            if new.watch is not None:
                new.watch.start()
            start_stand_ins(f, started, new.has_sizes)
            result = f(*call_args, **call_kwargs)
        except Exception as error:
            result = None
            LATE_BOUND["refuse_call"](error, f, call_args, call_kwargs)
            LATE_BOUND["note_error"](new, error)
            if new.failed is None:
                LATE_BOUND["refuse_static"](error, f, call_args, call_kwargs)
                # for buffer[0] = x NumPy replaces it
                if isinstance(error, ValueError) and isinstance(error.__cause__, TraceError):
                    raise error.__cause__ from None
                raise
        finally:
            end_stand_ins(started)
            if new.watch is not None:
                new.watch.end()
        if new.failed is not None:  # it raised too late for a handler around it: compute at once
            return record(f, args, kwargs, EAGER, writes, lifts_variables, intercept, draws)
        if writes is KEEP:
            new.write_back()
        else:  # loops carry NumPy's booleans
            new.python_bools.clear()
        # each argument an array: one node for each, and three for their tuple, the keywords, both
        is_flat = not statics and spec.num_leaves == len(args) == spec.num_nodes - 3
        fn, lifted = finish_trace(new, result, None if is_flat else tree)
        if new.watch is not None:
            new.watch.check(fn)
        return Recording(fn, tree, inputs, lifted)


@frozen(eq=False)
class StaticLeaf:
    """A static argument, to whose value the program is specialised."""

    value: object


@frozen(eq=False)
class TypedLeaf:
    """An array with a type of its own, whose sizes may be symbolic."""

    type: ArrayType
    value: object


# exactly bool: np.bool_ is an array for NumPy, and becomes a parameter
_STATIC_CLASSES = frozenset([StaticLeaf, bool, str])


def _static_leaves(statics: dict[int, object]) -> tuple[tuple[int, Static], ...]:
    """The static arguments by their positions among the leaves."""
    return tuple([(i, Static.of(getattr(leaf, "value", leaf))) for i, leaf in statics.items()])


def _with_static(statics: dict[int, object], tracers: Sequence) -> list:
    """The arguments of the call: traced values, with the static ones in their positions."""
    rest = iter(tracers)
    found = [statics[i] if i in statics else next(rest) for i in range(len(statics) + len(tracers))]
    return [leaf.value if type(leaf) is StaticLeaf else leaf for leaf in found]


def mark_static(
    f: Callable[..., Any],
    args: tuple,
    kwargs: dict,
    argnums: int | Sequence[int],
    argnames: str | Sequence[str],
) -> tuple[tuple, dict]:
    """The arguments with the static ones wrapped. Raises TraceError for a missing one."""
    if argnums == () == argnames:
        return args, kwargs
    return LATE_BOUND["with_static"](f, args, kwargs, argnums, argnames)


def unmark_arguments(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments as the user gave them."""
    leaves, spec = flatten((args, kwargs))
    if not any(type(leaf) is StaticLeaf for leaf in leaves):
        return args, kwargs
    return _arguments(spec, [x.value if type(x) is StaticLeaf else x for x in leaves])


def parameters_of(f: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of ``f`` by name, if its signature is known."""
    try:
        return dict(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        return {}


def positional_names(f: Callable[..., Any]) -> list[str]:
    """The names of the positional parameters of ``f``, if its signature is known."""
    # the usual kinds without inspect.signature, which takes as long as a small recording
    if type(f) is FunctionType and "__signature__" not in f.__dict__:
        if "__wrapped__" in f.__dict__:
            return positional_names(f.__dict__["__wrapped__"])
        return list(f.__code__.co_varnames[: f.__code__.co_argcount])
    if type(f) is MethodType:
        return positional_names(f.__func__)[1:]
    if type(f) is functools.partial and not f.keywords:
        return positional_names(f.func)[len(f.args) :]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters_of(f).values() if p.kind in kinds]


def _refuse_ambiguous_options(f) -> None:
    bound = f.keywords if isinstance(f, functools.partial) else ()
    clash = [name for name in parameters_of(f) if name in _OPTIONS and name not in bound]
    if clash:
        raise TraceError(
            f"{clash[0]!r} is an option of trace and a parameter of the function: "
            "a keyword would go to trace\n"
            f"  bind it first: functools.partial(f, {clash[0]}=...)"
        )


def leaf_names(f: Callable[..., Any], args: tuple, kwargs: dict) -> list[str | None]:
    """A name for each leaf: its parameter followed by its path; None if unknown."""
    given: Any = (args, kwargs)
    return _names_and_tree(positional_names(f), flatten(given)[1])[0]


def _names_and_tree(names: list[str], spec: optree.PyTreeSpec) -> tuple[list[str | None], Tree]:
    """(a name for each leaf of the arguments, their tree), for positional parameters ``names``."""
    key = *names, spec
    known = _known_structures.get(key)
    if known is None:
        known = _leaf_names(names, spec), Tree(spec)
        if not known[1].notes_classes:  # by being made, for texts with the names of classes
            _known_structures[key] = known
    return known


_known_structures = BoundedCache(1 << 10)  # (names of parameters, spec) -> (names, tree)


def _leaf_names(names: list[str], spec: optree.PyTreeSpec) -> list[str | None]:
    found: list[str | None] = []
    for kind, place, *rest in spec.paths():
        key = place  # by keyword
        if kind == 0:  # by position
            key = names[place] if place < len(names) else f"arg{place}"
        name = re.sub(r"\W", "_", str(key))
        if rest:
            name = ".".join([name, *[re.sub(r"\W", "_", str(part)) for part in rest]])
        found.append(name if re.fullmatch(r"[A-Za-z_][\w.]*", name) else None)
    return found


class trace_for:
    """A context with (trace, traced values): a new trace with parameters for ``inputs``.

    The trace is closed at the end, whatever fails.
    """

    __slots__ = ("inputs", "mode", "names", "new", "outer")

    def __init__(self, inputs: list, names: list, mode: str) -> None:
        self.inputs, self.names, self.mode = inputs, names, mode

    def __enter__(self) -> tuple[Trace, list[Tracer]]:
        self.outer = ACTIVE.get()
        self.new = new = open_trace(self.mode)
        try:
            ACTIVE.set(new)
            pairs = zip(self.inputs, self.names, strict=True)
            return new, [add_parameter(new, leaf, name) for leaf, name in pairs]
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error) -> None:
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
    if isinstance(leaf, Tracer) and (
        leaf.emitter not in new.enclosing() or not leaf.emitter.is_open
    ):
        raise escaped_error(leaf)
    if type(leaf) is TypedLeaf:
        return new.parameter(leaf.type, name, leaf.value)
    if isinstance(leaf, _TYPED):
        return new.parameter(leaf.type, name, leaf)
    try:
        made = new.parameter(type_of(leaf), name, leaf)
        if not made.shape and isinstance(leaf, np.ndarray):
            made.sharing = Memory(made.arg)  # known to be an array, even without a value
        return made
    except DTypeError as error:
        error.args = (f"argument {name}: {error}" if name else str(error),)
        raise


def finish_trace(new: Trace, result: Any, in_tree: Tree | None) -> tuple[Lambda, tuple[Value, ...]]:
    """(program that returns the leaves of ``result``, traced values lifted into it)."""
    if new.refusal is not None:
        raise TraceError(
            "the function caught an error of its recording, and went on differently than with "
            f"NumPy:\n  {new.refusal}\n  or let the error through"
        )
    out_tree = None
    if type(result) is Tracer:  # by most functions
        args: list[Any] = [_result_arg(new, result)]
    else:
        if "has_keys" in vars(new):
            result = LATE_BOUND["with_known_keys"](result)
        leaves, spec = flatten(result)
        args = [_result_arg(new, leaf) for leaf in leaves]
        if None in args:  # a string, which is part of the tree
            if "printed" in vars(new):
                LATE_BOUND["guard_printed"](new)
            leaves, spec = flatten(with_texts(result))
            args = [arg for arg in args if arg is not None]
        row: Any = tuple(leaves)
        # (y,) is not y: a tuple of one needs its tree
        in_a_row = len(leaves) != 1 and spec == optree.tree_structure(row)
        out_tree = None if optree.treespec_is_leaf(spec) or in_a_row else Tree(spec)
    lifted = tuple([outer for outer, _ in new.lifted.values()]) if new.lifted else ()
    if "stopped" in vars(new):  # values that were made inside of no_grad()
        LATE_BOUND["stop_gradients"](new, args)
    # lifted values are further parameters, which the tree of arguments does not describe
    return new.build(args, None if lifted else in_tree, out_tree), lifted


def _result_arg(new: Trace, leaf):
    """A result as an argument of Ret, None for a string.

    Raises TraceError unless it is an array, a number, or a string without traced values in it.
    """
    is_lifted = new.lifts_variables and isinstance(leaf, Value)
    if isinstance(leaf, Tracer) and leaf.arg in new.python_bools:
        leaf = PRIMITIVES["weaken"](leaf)  # Python's True, not NumPy's
    if isinstance(leaf, Tracer) or type(leaf) in PYTHON_NUMBERS or is_lifted:
        return new.enter(leaf)
    if is_array(leaf):
        try:
            return new.enter(leaf)
        except DTypeError as error:
            raise TraceError(f"result of the traced function: {error}") from None
    if type(leaf) is str and "Traced(%" not in leaf:
        return None
    remedy = "return arrays and numbers, nested in tuples, lists and dicts"
    if type(leaf) is str:
        remedy = "return the traced value itself, and make a text of the result"
    if type(leaf).__name__ in ("generator", "async_generator", "coroutine"):
        leaf.close() if hasattr(leaf, "close") else None  # else Python warns that nothing awaits it
        remedy = "return a list of what it yields; call a plain function, not an async one"
    raise TraceError(
        f"the traced function returned {leaf!r}, of type {type(leaf).__name__}{at_user()}\n"
        f"  {remedy}"
    )
