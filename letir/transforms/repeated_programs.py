"""Plans of the programs that transforms make, for functions that are recorded again and again.

A call such as ``grad(f)(x)`` or ``vjp(f, x)`` records ``f`` again, because its path may depend on
values. If the same binds were recorded before, the transformed program is the same, and so is its
plan. ``call_transformed`` is the call of all these transforms.
"""

import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any
from weakref import ref

import numpy as np
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.attrs import NO_ATTRS, Attrs, number_token
from letir.ast.bodies import bodies_in, holds_arrays
from letir.ast.bounded_cache import BoundedCache
from letir.ast.primitive import PRIMITIVES
from letir.ast.process_state import paused_gc, restore_abandoned
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Bind, Lambda, Local
from letir.errors import LetirError
from letir.eval.arguments import checked_arguments
from letir.eval.array_modules import ARRAY_CLASSES
from letir.eval.evaluator import compute, run_flat, run_unchecked
from letir.eval.memory_checks import copy_apart
from letir.plan.plan import Plan
from letir.tracing.trace_state import ACTIVE
from letir.transforms.program_call import (
    ProgramCall,
    copy_shared_results,
    kept_transform,
    record_call,
    tree_of_results,
)

_MAX_BINDS = 1 << 12  # binds of a program whose plan is kept
_MAX_BINDS_OF_ALL = 1 << 16  # binds of all programs whose plans are kept
_MAX_ARRAY_SIZE = 64  # elements of an array that is kept with a plan

_RUNS_BEFORE = 3  # of a function, before it is tested whether it must be recorded again
_MAX_ATTEMPTS = 6

_plans: dict[tuple | None, "RepeatedProgram"] = BoundedCache(1 << 9)
_functions: dict[tuple, "RepeatedFunction"] = BoundedCache(1 << 9)  # see ``repeated_function``
_seen: dict[int, None] = BoundedCache(1 << 12)  # hashes of keys that have been met


@frozen(eq=False)
class Transformed:
    """The program that a transform makes of a recorded function, and what it makes of the results.

    ``program``: takes the parameters of the function, then a tangent for each input of the
    ``Directions``. The value of the call is ``nest`` of the results, which are copied if they share
    memory; if that is None, it is ``finish`` of (the arguments of the program, the results).
    ``is_for_one_call``: whether ``finish`` may be wrong for other calls with the same program.
    """

    program: Lambda
    nest: Callable[[list], Any] | None = None
    finish: Callable[[list, tuple], Any] | None = None
    is_for_one_call: bool = False

    @classmethod
    def from_program(cls, program: Lambda) -> "Transformed":
        """A program whose results nest as its ``out_tree``."""
        tree = program.out_tree or tree_of_results(len(program.ret.args))
        return cls(program, nest=tree.spec.unflatten)

    def value(self, inputs: list, results: tuple) -> Any:
        """The value of a call."""
        if self.nest is not None:
            return self.nest(copy_shared_results(results))
        assert self.finish is not None, "a transform makes something of the results"
        return self.finish(inputs, results)


@frozen(eq=False)
class RepeatedProgram:
    """The plan of a transformed program, which takes the array constants of the recorded program as
    further arguments, before the tangents.

    ``arguments``: the number of arguments of the function; ``nest`` and ``value``: those of the
    ``Transformed``; ``sources``: the source lines whose ids are in the key.
    """

    plan: "Plan | _WithoutPlan"
    arguments: int
    nest: Callable[[list], Any] | None
    value: Callable[[list, tuple], Any]
    sources: tuple

    def run(self, leaves: list, constants: list) -> Any:
        """The value of a call; ``leaves``: the arguments of the function, then the tangents."""
        count = self.arguments
        inputs = [*leaves[:count], *constants, *leaves[count:]] if constants else leaves
        if self.nest is not None:
            return self.nest(copy_shared_results(self.plan.run(inputs)))
        results = self.plan.run(inputs[:])
        if constants:
            results = copy_apart(self.plan.ret.args, results, constants)
        return self.value(inputs, results)


class _WithoutPlan:
    """A program that is evaluated once: ``run`` and ``ret`` are those of a plan."""

    def __init__(self, program: Lambda) -> None:
        self.program, self.ret = program, program.ret

    def run(self, leaves: list) -> tuple:
        """The flat results; ``leaves`` is emptied."""
        return run_unchecked(self.program, leaves)


class RepeatedFunction:
    """A function ``f`` that is transformed again and again, or functions that equal each other.

    ``calls``: the kinds of calls that need no recording, see ``executor.frequent_calls``;
    ``is_shared``: whether several functions have been transformed.
    """

    __slots__ = ("__weakref__", "attempts", "calls", "first", "is_shared", "of", "runs")

    def __init__(self, held_ref: Callable, first: Callable) -> None:
        self.of = held_ref  # gives f, or the code of the functions, while it exists
        self.first, self.is_shared = first, False  # ``first`` gives the first of them
        self.calls: tuple[Any, ...] = ()
        self.runs = self.attempts = 0

    def results(self, args: tuple, kwargs: dict) -> Any:
        """The value of a call that needs no recording; None for others, and under a debugger.

        ``args``: (primals, tangents) for a transform that takes tangents.
        """
        if ACTIVE.get() is not None or sys.gettrace() is not None:
            return None
        restore_abandoned()
        for call in self.calls:
            results = call.results(args, kwargs)
            if results is not None:
                return results
        return None

    def keeper(self, given: tuple, args: tuple, kwargs: dict, record: partial) -> Callable | None:
        """The function that adds calls like this one to ``calls`` after it has been recorded.

        ``given``: the ``args`` as ``results`` takes them; ``record``: records ``f``, its first
        argument. None in most calls: to find out what ``f`` reads takes longer than a recording.
        """
        if self.attempts >= _MAX_ATTEMPTS or ACTIVE.get() is not None:
            return None
        self.runs += 1
        if self.runs <= _RUNS_BEFORE << self.attempts:
            return None
        self.attempts += 1
        outside = LATE_BOUND["outside_state"](record.args[0], args, kwargs)
        return None if outside is None else partial(self._keep, outside, record, given, kwargs)

    def _keep(self, *recorded: Any) -> None:
        call = LATE_BOUND["repeated_call"](*recorded)
        self.calls += () if call is None else (call,)


_RECORDED_ALWAYS = RepeatedFunction(lambda: None, lambda: None)
_RECORDED_ALWAYS.attempts = _MAX_ATTEMPTS


def repeated_function(f: Callable, options: tuple | None) -> RepeatedFunction:
    """What is known of the calls of ``f`` under a transform with these ``options``.

    Functions of the same code and globals that have no further parts are one: a loop may make a new
    lambda in each iteration.
    """
    held: Any = f
    key: tuple = id(f), options
    if type(f) is FunctionType and not (
        f.__closure__ or f.__defaults__ or f.__kwdefaults__ or f.__dict__
    ):
        held = f.__code__
        key = id(held), id(f.__globals__), options
    found = _functions.get(key)
    if found is not None and found.of() is held:
        if found.first() is not f:
            found.is_shared = True
        return found
    if options is None or type(f) not in (FunctionType, partial):
        return _RECORDED_ALWAYS
    held_ref, first = [ref(value, partial(_forget, _functions, key)) for value in (held, f)]
    _functions[key] = result = RepeatedFunction(held_ref, first)
    return result


def _forget(functions: dict, key: tuple, gone: ref) -> None:
    """Drop what is known of a function that is gone, unless others of its code may follow."""
    known = functions.get(key)
    if known is not None and (gone is known.of or (known.calls and not known.is_shared)):
        functions.pop(key, None)  # not the global: it may be gone at the end of the process


def call_transformed(
    f: Callable,
    options: tuple | None,
    transform: Callable[..., Transformed],
    args: tuple,
    kwargs: dict,
) -> Any:
    """The value of ``transform(call)`` for a recording ``call`` of ``f`` at these arguments.

    ``options``: the options of the transform, None if its programs are not kept.
    """
    if type(f) is Lambda:
        options, transform = None, kept_transform(f, options, transform)
    known = repeated_function(f, options)
    if known.calls and (results := known.results(args, kwargs)) is not None:
        return results
    with paused_gc():
        record = partial(record_call, f, args, kwargs)
        keep = known.keeper(args, args, kwargs, record)
        call = record()
        run = prepared_run(call, None, options, transform, keep)
    return run()


def prepared_run(
    call: ProgramCall,
    directions: Any,
    options: tuple | None,
    transform: Callable[..., Transformed],
    keep: Callable | None,
) -> Callable[[], Any]:
    """A function that runs the transformed program on the arguments of the call.

    ``directions``: the ``Directions`` of a transform that takes tangents, else None.
    The plan of a program is made when the same program is recorded for the second time: a function
    that takes another path in every call would fill the memory with unused plans. ``keep`` is
    called with (call, directions, the ``RepeatedProgram``, constants) if the program has a plan.
    """
    fn, leaves = call.fn, call.leaves
    if directions is not None:
        transform = partial(transform, inputs=directions.inputs)
        options = None if options is None else (*options, *directions.inputs)
        leaves = [*leaves, *directions.values]
    key: tuple | None = None
    constants: list = []
    if (
        options is not None
        and len(fn.binds) <= _MAX_BINDS
        and ARRAY_CLASSES.issuperset(map(type, leaves))
    ):
        key, constants = _program_key(fn, options)
    program = _plans.get(key) or _program_for_all_constants(key, call, transform)
    if program is None:
        return partial(_run_once, transform(call), leaves, is_checked=options is None)
    if keep is not None and type(program.plan) is Plan:
        keep(call, directions, program, constants)
    return partial(program.run, leaves, constants)


def _run_once(transformed: Transformed, leaves: list, is_checked: bool) -> Any:
    """The value of a call of which nothing is kept.

    ``is_checked``: whether the arguments may be of other types than the parameters, because the
    function is a program.
    """
    if is_checked and ARRAY_CLASSES.issuperset(map(type, leaves)):
        leaves = checked_arguments(transformed.program, leaves)  # with floats in place of ints
    run = run_flat if is_checked else run_unchecked
    return transformed.value(leaves, run(transformed.program, leaves[:]))


def _is_new(key: tuple) -> bool:
    """Whether a key occurs for the first time."""
    known_as = hash(key)
    is_new = known_as not in _seen
    _seen[known_as] = None
    return is_new


def _program_for_all_constants(
    key: tuple | None, call: ProgramCall, transform: Callable
) -> RepeatedProgram | None:
    """The transformed program for all values of the constants, which is kept if its ``key`` has
    been met before. None if the program is transformed with its constants.
    """
    if key is None:
        return None
    fn = call.fn
    try:
        made = transform(ProgramCall(_constants_as_params(fn), call.tree, call.leaves))
    except LetirError:  # impossible with constants as arguments, whose values are unknown
        return None
    is_kept = not (_is_new(key) or made.is_for_one_call)
    plan: Plan | _WithoutPlan = _WithoutPlan(made.program)
    if is_kept:
        # results that ``finish`` gets may be views, which must not be of arrays of all calls
        plan = Plan(made.program if made.nest is None else _with_known_arrays(made.program))
    sources = tuple([bind.source for bind in fn.binds])
    value = made.finish or made.value
    result = RepeatedProgram(plan, len(fn.params), made.nest, value, sources)
    if is_kept:
        kept_binds = sum([len(kept.sources) for kept in list(_plans.values())])
        if kept_binds + len(fn.binds) > _MAX_BINDS_OF_ALL:
            _plans.clear()
        _plans[key] = result
    return result


def _program_key(fn: Lambda, options: tuple) -> tuple[tuple | None, list]:
    """(a key that is equal for programs of the same binds, the array constants).

    Programs of one key have equal types, attributes and numbers, and were recorded by the same
    expressions, so that errors name the right lines; only their array constants may differ. The key
    is None if an attribute holds a body or a large array.
    """
    key: list = [options]
    for tree in (fn.in_tree, fn.out_tree):
        if tree is None:
            key.append(None)
        else:  # not the tree itself, whose comparison is slow
            key += (tree.spec, tree.statics)
    places: dict[Local, int] = {}
    constants: list = []
    for param in fn.params:
        places[param] = len(places)
        key += (param.type, param.name)
    for bind in fn.binds:
        op, attrs = bind.op, bind.attrs
        key += (op, id(bind.source))
        if op.role == "constant":
            constants.append(attrs["value"])
        elif attrs is not NO_ATTRS:
            if attrs is not op.default_attrs and (
                holds_arrays(attrs) or (op.holds_lambdas and bodies_in(attrs.values()))
            ):
                return None, constants
            key.append(attrs.token)
        for arg in bind.args:
            key.append(places[arg] if type(arg) is Local else number_token(arg.value))
        for binder in bind.binders:
            places[binder] = len(places)
            key.append(binder.type)
    for result in fn.ret.args:
        key.append(places[result] if type(result) is Local else number_token(result.value))
    return tuple(key), constants


def _constants_as_params(fn: Lambda) -> Lambda:
    """``fn`` with its array constants as further parameters at the end, and without guards.

    The guards hold because a program with the same key was just recorded, unless a user's operation
    returns something else when it runs again.
    """
    constants = [bind.binders[0] for bind in fn.constants]
    others = [op for op in {bind.op for bind in fn.binds} if op.role != "guard"]
    is_pure = not any(op.effect or op.random or op.is_user_defined for op in others)
    dropped = ("constant", "guard") if is_pure else ("constant",)
    binds = [bind for bind in fn.binds if bind.op.role not in dropped]
    return Lambda((*fn.params, *constants), binds, fn.ret, fn.in_tree, fn.out_tree)


def _with_known_arrays(fn: Lambda) -> Lambda:
    """``fn`` with small arrays that depend on no argument, and views of them, as constants.

    An example is the cotangent of the result, the number 1.0, broadcast to the shape of a sum.
    """
    arrays: dict[Local, Any] = {}
    binds = []
    for bind in fn.binds:
        array = _known_array(bind, arrays)
        if array is not None:
            array.flags.writeable = False
            arrays[bind.binders[0]] = array
            op, attrs = PRIMITIVES["constant"], Attrs(value=array)
            bind = bind.replace(op=op, args=(), attrs=attrs)  # noqa: PLW2901
        binds.append(bind)
    return fn.with_binds(binds)


def _known_array(bind: Bind, arrays: dict[Local, Any]) -> np.ndarray | None:
    """The result of a bind if it is a small array of one number or a view of a known array."""
    op, locals_ = bind.op, set(bind.locals())
    if op.cost != "free" or op.casts_operands or not arrays.keys() >= locals_:
        return None
    aval = bind.binders[0].type
    if aval is None or not is_static_shape(aval.shape):
        return None
    if op.memory != "view" and (locals_ or aval.size > _MAX_ARRAY_SIZE):
        return None
    result = compute(
        op, [arrays[a] if type(a) is Local else a.value for a in bind.args], bind.attrs
    )
    is_small = isinstance(result, np.ndarray) and (
        result.base is not None or result.size <= _MAX_ARRAY_SIZE
    )
    return result if is_small else None
