"""Python functions as the bodies of one bind: recorded abstractly, closed over the same values.

A control-flow function calls ``record_body`` for each of its functions, ``close_bodies`` for the
bodies and their common captures, and ``results_of`` to compute or record the bind. Errors name the
path of a leaf whose type differs.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.pytrees import Tree, flatten
from letir.ast.terms import Arg, Const, Lambda, Local, Source
from letir.ast.types import ArrayType, ShapeDtype
from letir.errors import DTypeError, TraceError
from letir.eval.array_modules import type_of
from letir.eval.evaluator import run_flat
from letir.ops.define.records import PYTHON_TYPES, result_dtype
from letir.ops.elementwise.casting import weaken
from letir.tracing.entry import DISCARD_WRITES, Recording, record
from letir.tracing.source_locations import error_at_user_line
from letir.tracing.trace_state import ABSTRACT


@frozen(eq=False)
class Body:
    """A recorded function: ``fn`` takes its own leaves, then one parameter for each value in
    ``lifted``; ``tree`` is the nesting of its results.
    """

    fn: Lambda
    tree: Tree
    lifted: tuple

    @property
    def types(self) -> list[ArrayType]:
        """The types of the results."""
        return [arg.type for arg in self.fn.ret.args]

    @property
    def own(self) -> tuple[Local, ...]:
        """The parameters without those for lifted values."""
        return self.fn.params[: len(self.fn.params) - len(self.lifted)]


def record_abstractly(caller: str, f: Callable, args: tuple) -> Recording:
    """The recording of ``f`` on abstract arguments; ``caller`` is as in ``record_body``."""
    try:
        return record(f, args, {}, ABSTRACT, DISCARD_WRITES, lifts_variables=True)
    except TraceError as error:
        LATE_BOUND["explain_abstract"](error, f"{caller} is recorded once, without values")
        raise


def record_body(caller: str, f: Callable, args: tuple) -> Body:
    """``f`` recorded on abstract arguments, a pytree of ``ShapeDtype``s.

    ``caller``: the words for ``f`` in errors, such as "fori_loop: body".
    """
    # here, because the recording would not name the loop
    LATE_BOUND["refuse_call"](TypeError(), f, args, {}, f"{caller}: ")
    recording = record_abstractly(caller, f, args)
    fn = recording.fn
    tree = fn.out_tree
    if tree is None:  # one result, or a tuple of them
        tree = _tree_of(len(fn.ret.args))
    return Body(Lambda(fn.params, fn.binds, fn.ret), tree, recording.lifted)


def _tree_of(count: int) -> Tree:
    """One leaf, or a tuple of them."""
    return Tree(flatten(0 if count == 1 else (0,) * count)[1])


def close_bodies(bodies: Sequence[Body]) -> tuple[list[Lambda], list]:
    """(programs, captured): each program takes its own leaves, then all captured values."""
    captured = {value.arg: value for body in bodies for value in body.lifted}  # by origin
    programs = []
    for body in bodies:
        own, places = body.own, {value.arg: i for i, value in enumerate(body.lifted)}
        lifted = body.fn.params[len(own) :]
        params = [
            lifted[places[origin]] if origin in places else Local(value.type, _user_name(value))
            for origin, value in captured.items()
        ]
        programs.append(Lambda([*own, *params], body.fn.binds, body.fn.ret))
    return programs, list(captured.values())


def results_of(op: Primitive, attrs: dict, leaves: list, source: Source | None) -> list:
    """The results of ``op``, recorded if a leaf is traced, else computed; ``leaves`` is emptied."""
    builder = LetBuilder()
    builder.source = source
    params = tuple([builder.param(type_of(leaf), _user_name(leaf)).arg for leaf in leaves])
    return run_program(builder.build(builder.emit(op, params, op.complete(attrs))), leaves)


def run_program(program: Lambda, leaves: list) -> list:
    """The results of ``program``, recorded if a leaf is traced, else computed."""
    traced: Any = next(
        (leaf for leaf in leaves if isinstance(leaf, Value) and _is_traced(leaf)), None
    )
    # together with a traced value, a Variable is an ordinary operand
    return list(
        run_flat(program, leaves) if traced is None else traced.__letir_run__(program, leaves)
    )


def _is_traced(value: Value) -> bool:
    """Whether a leaf is a traced value (not a Variable)."""
    return isinstance(value.emitter, LetBuilder)


def _user_name(leaf) -> str | None:
    """The user's name for a traced value."""
    return getattr(leaf.arg, "name", None) if isinstance(leaf, Value) else None


# ---- types ----


def example_of(leaf: Any, caller: str) -> ShapeDtype:
    """The abstract stand-in for ``leaf`` while a body is recorded."""
    try:
        aval = type_of(leaf)
    except DTypeError as error:
        raise error_at_user_line(DTypeError(f"{caller}: {error}")) from None
    if aval is None:
        raise error_at_user_line(
            DTypeError(
                f"{caller}: its type is known only when the program runs\n"
                "  give it a shape that does not depend on values"
            )
        )
    return ShapeDtype(aval.shape, aval.dtype, aval.weak)


def examples_of(tree: Any, caller: str) -> Any:
    """The types of the leaves of ``tree``, with the same nesting."""
    leaves, spec = flatten(tree)  # not tree_map: errors would name its line as the user's
    return spec.unflatten([example_of(leaf, caller) for leaf in leaves])


def common_type(avals: Sequence[ArrayType]) -> ArrayType | None:
    """The common type by NumPy's promotion if the types differ only in that some are Python
    numbers; else None.
    """
    strong = [aval for aval in avals if not aval.weak]
    if all(aval is avals[0] for aval in avals):
        return avals[0]
    dtype = result_dtype(*avals)
    shapes = {aval.shape for aval in avals}
    fits = len(shapes) == 1 and all(aval.dtype == dtype for aval in strong)
    return ArrayType(dtype, avals[0].shape) if fits else None


def as_type(leaf: Any, aval: ArrayType) -> Any:
    """A number, or a traced number, converted to this type; other values unchanged."""
    if type_of(leaf) is aval and type(leaf) is not bool:
        return leaf
    if not aval.weak:
        return _number_in_dtype(leaf, aval.dtype)
    traced = isinstance(leaf, Value)
    return (
        weaken(_number_in_dtype(leaf, aval.dtype))
        if traced
        else PYTHON_TYPES[aval.dtype.kind](leaf)
    )


def return_arrays(fn: Lambda, avals: Sequence[ArrayType]) -> Lambda:
    """``fn`` with results that are Python numbers converted to the types in ``avals``."""
    args = fn.ret.args
    if not any(_is_recast(*pair) for pair in zip(args, avals, strict=True)):
        return fn
    builder = LetBuilder()
    params = [builder.param(param.type, param.name) for param in fn.params]
    results = builder.call(fn, params)
    return builder.build(
        [
            _number_in_dtype(value, aval.dtype) if _is_recast(arg, aval) else value
            for value, arg, aval in zip(results, args, avals, strict=True)
        ]
    )


def _is_recast(arg: Arg, aval: ArrayType) -> bool:
    """Whether a result must be converted to an array of this type."""
    # exactly bool: a Python bool has the type of NumPy's booleans, but is not an array
    return arg.type is not aval or (type(arg) is Const and type(arg.value) is bool)


def _number_in_dtype(value, dtype: np.dtype):
    """A number, or a traced number, converted to this dtype."""
    if isinstance(value, Value):
        return PRIMITIVES["cast"](value, dtype)
    return np.asarray(value, dtype)[()]


def leaf_path(tree: Tree, place: int) -> str:
    """The path of leaf number ``place`` of ``tree`` in Python syntax; "" if it is the whole."""
    path = optree.treespec_accessors(tree.spec)[place]
    return path.codify("")
