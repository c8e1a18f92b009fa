"""Plans of the programs that transforms make, for functions that are recorded again and again.

A call such as ``grad(f)(x)`` records ``f`` again, because its path may depend on values. If the
same binds were recorded before, the transformed program is the same, and so is its plan.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast.attrs import NO_ATTRS, Attrs, number_token
from letir.ast.bodies import bodies_in, holds_arrays
from letir.ast.bounded_cache import BoundedCache
from letir.ast.primitive import PRIMITIVES
from letir.ast.pytrees import Tree
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Bind, Lambda, Local
from letir.errors import LetirError
from letir.eval.array_modules import ARRAY_CLASSES
from letir.eval.evaluator import compute, run_unchecked
from letir.plan.plan import Plan
from letir.transforms.program_call import ProgramCall, tree_of_results

_MAX_BINDS = 1 << 12  # binds of a program whose plan is kept
_MAX_BINDS_OF_ALL = 1 << 16  # binds of all programs whose plans are kept
_MAX_ARRAY_SIZE = 64  # elements of an array that is kept with a plan

_plans: dict[tuple | None, "RepeatedProgram"] = BoundedCache(1 << 9)
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


def transformed_run(
    call: ProgramCall, options: tuple | None, transform: Callable[[ProgramCall], Lambda]
) -> tuple[Callable[[], tuple], Tree]:
    """(a function that runs ``transform(call)`` on the arguments, the nesting of its results).

    ``options``: the options of the transform, None if its programs are not kept. The plan of a
    program is made when the same program is recorded for the second time: a function that takes
    another path in every call would fill the memory with unused plans.
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
    key += [places[a] if type(a) is Local else number_token(a.value) for a in fn.ret.args]
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
