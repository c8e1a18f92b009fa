"""Plans of the programs that transforms make, for functions that are recorded again and again.

A call such as ``grad(f)(x)`` records ``f`` again, because its path may depend on values. If the
same binds were recorded before, the transformed program is the same, and so is its plan.
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
from letir.ast.process_state import paused_gc
from letir.ast.pytrees import Tree
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Bind, Lambda, Local
from letir.errors import LetirError
from letir.eval.array_modules import ARRAY_CLASSES
from letir.eval.evaluator import compute, run_unchecked
from letir.plan.plan import Plan
from letir.tracing.trace_state import ACTIVE
from letir.transforms.program_call import (
    ProgramCall,
    copy_shared_results,
    record_call,
    tree_of_results,
)

_MAX_BINDS = 1 << 12  # binds of a program whose plan is kept
_MAX_BINDS_OF_ALL = 1 << 16  # binds of all programs whose plans are kept
_MAX_ARRAY_SIZE = 64  # elements of an array that is kept with a plan

_RUNS_BEFORE = 3  # of a function, before it is tested whether it must be recorded again
_MAX_ATTEMPTS = 6

_plans: dict[tuple | None, "RepeatedProgram"] = BoundedCache(1 << 9)
_functions: dict[tuple, "RepeatedFunction"] = BoundedCache(1 << 9)  # by (id of f, options)
_seen: dict[int, None] = BoundedCache(1 << 12)  # hashes of keys that have been met


@frozen(eq=False)
class RepeatedProgram:
    """The plan of a transformed program, which takes the array constants of the recorded program
    as further arguments.

    ``tree``: the nesting of its results; ``sources``: the source lines whose ids are in the key.
    """

    plan: Plan
    tree: Tree
    sources: tuple


class RepeatedFunction:
    """A function ``f`` of which a transform takes the gradient again and again.

    ``calls``: the kinds of calls that need no recording, see ``executor.frequent_calls``.
    """

    __slots__ = ("__weakref__", "attempts", "calls", "of", "runs")

    def __init__(self, of: Callable) -> None:
        self.of = of  # gives f while f exists
        self.calls: tuple[Any, ...] = ()
        self.runs = self.attempts = 0

    def results(self, args: tuple, kwargs: dict) -> Any:
        """The results of a call that needs no recording; None for others, and under a debugger."""
        if ACTIVE.get() is not None or sys.gettrace() is not None:
            return None
        for call in self.calls:
            results = call.results(args, kwargs)
            if results is not None:
                return results
        return None

    def keeper(self, args: tuple, kwargs: dict) -> Callable | None:
        """The function that adds calls like this one to ``calls`` after it has been recorded.

        None in most calls: to find out what ``f`` reads takes longer than a recording.
        """
        self.runs += 1
        if self.runs <= _RUNS_BEFORE << self.attempts or self.attempts == _MAX_ATTEMPTS:
            return None
        self.attempts += 1
        is_alone = ACTIVE.get() is None
        outside = LATE_BOUND["outside_state"](self.of(), args, kwargs) if is_alone else None
        return None if outside is None else partial(self._keep, outside, args, kwargs)

    def _keep(self, outside: Any, args: tuple, kwargs: dict, *recorded: Any) -> None:
        call = LATE_BOUND["repeated_call"](outside, args, kwargs, *recorded)
        if call is not None and not _computes_exceptional(self.of(), args, kwargs):
            self.calls += (call,)


def _computes_exceptional(f: Callable, args: tuple, kwargs: dict) -> bool:
    """Whether a recording divides by zero, overflows ... itself, with arrays that ``f`` reads.

    NumPy warns or raises then, or stays silent: ``np.errstate`` may change between calls.
    """
    found = []
    with np.errstate(all="call", call=lambda *error: found.append(error)):
        record_call(f, args, kwargs)
    return bool(found)


_RECORDED_ALWAYS = RepeatedFunction(lambda: None)
_RECORDED_ALWAYS.attempts = _MAX_ATTEMPTS


def _repeated_function(f: Callable, options: tuple | None) -> RepeatedFunction:
    """What is known of the calls of ``f`` under a transform with these ``options``."""
    key = id(f), options
    found = _functions.get(key)
    if found is not None and found.of() is f:
        return found
    if options is None or type(f) not in (FunctionType, partial):
        return _RECORDED_ALWAYS
    _functions[key] = result = RepeatedFunction(ref(f, partial(_forget, _functions, key)))
    return result


def _forget(functions: dict, key: tuple, _: Any) -> None:
    """Drop a function that is gone. At the end of the process, globals may be gone before it."""
    functions.pop(key, None)


def run_transformed(
    f: Callable,
    options: tuple | None,
    transform: Callable[[ProgramCall], Lambda],
    args: tuple,
    kwargs: dict,
) -> Any:
    """The nested results of the program that ``transform`` makes of a recording of ``f``.

    ``options``: see ``_transformed_run``.
    """
    known = _repeated_function(f, options)
    if known.calls and (results := known.results(args, kwargs)) is not None:
        return results
    with paused_gc():
        keep = known.keeper(args, kwargs)
        call = record_call(f, args, kwargs)
        run, tree = _transformed_run(call, options, transform, keep)
    return tree.unflatten(copy_shared_results(run()))


def _transformed_run(
    call: ProgramCall,
    options: tuple | None,
    transform: Callable[[ProgramCall], Lambda],
    keep: Callable | None = None,
) -> tuple[Callable[[], tuple], Tree]:
    """(a function that runs ``transform(call)`` on the arguments, the nesting of its results).

    ``options``: the options of the transform, None if its programs are not kept. The plan of a
    program is made when the same program is recorded for the second time: a function that takes
    another path in every call would fill the memory with unused plans. ``keep`` is called with
    (call, the ``RepeatedProgram``, constants) if the program has been met before.
    """
    fn, leaves = call.fn, call.leaves
    key: tuple | None = None
    constants: list = []
    if (
        options is not None
        and len(fn.binds) <= _MAX_BINDS
        and ARRAY_CLASSES.issuperset(map(type, leaves))
    ):
        key, constants = _program_key(fn, options)
    program = _plans.get(key)
    if program is None:
        if key is None or _is_new(key):
            transformed = transform(call)
            tree = transformed.out_tree or tree_of_results(len(transformed.ret.args))
            return partial(run_unchecked, transformed, leaves), tree
        try:
            transformed = transform(ProgramCall(_constants_as_params(fn), call.tree, leaves))
            program = _keep_plan(key, transformed, fn)
        except LetirError:  # impossible with constants as arguments, whose values are unknown
            transformed = transform(call)
            tree = transformed.out_tree or tree_of_results(len(transformed.ret.args))
            return partial(run_unchecked, transformed, leaves), tree
    if keep is not None:
        keep(call, program, constants)
    return partial(program.plan.run, [*leaves, *constants]), program.tree


def _is_new(key: tuple) -> bool:
    """Whether a key occurs for the first time."""
    known_as = hash(key)
    is_new = known_as not in _seen
    _seen[known_as] = None
    return is_new


def _keep_plan(key: tuple, transformed: Lambda, fn: Lambda) -> RepeatedProgram:
    """Keep the plan of the program ``transformed`` of ``fn`` under a key."""
    tree = transformed.out_tree or tree_of_results(len(transformed.ret.args))
    plan = Plan(_with_known_arrays(transformed))
    result = RepeatedProgram(plan, tree, tuple([bind.source for bind in fn.binds]))
    if (
        sum([len(plan_kept.sources) for plan_kept in list(_plans.values())]) + len(fn.binds)
        > _MAX_BINDS_OF_ALL
    ):
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
