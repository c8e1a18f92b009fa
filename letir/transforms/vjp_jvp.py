"""vjp, jvp and linearize: the results at the primals, and the linear map of the derivative."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np
from attrs import frozen

from letir.ad.differentiation import differentiate
from letir.ad.forward import jvp_program, linear_program
from letir.ad.gradient_program import Gradient, Policy, zeros_for
from letir.ast import entry_point
from letir.ast.builder import Value
from letir.ast.derivative_types import carries_derivative, type_carries_derivative
from letir.ast.primitive import PRIMITIVES
from letir.ast.pytrees import Tree, flatten
from letir.ast.signatures import A, R, dir_of
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError
from letir.eval.arguments import fits_type
from letir.eval.array_modules import array_module, is_array, type_of
from letir.eval.evaluator import run_flat
from letir.passes.dead_code_elimination import dead_code
from letir.tracing.source_locations import at_user
from letir.transforms.program_call import (
    ProgramCall,
    arguments_of,
    copy_shared_results,
    keep_residuals,
    nested_example,
    record_call,
)


@frozen(eq=False)
class LinearMap:
    """The linear function that ``vjp`` and ``linearize`` return, with its ``program``.

    The parameters of the program are the flattened arguments, then the ``captured`` primal values.
    """

    program: Lambda
    captured: tuple
    flat: Callable[..., list]  # nested arguments -> leaves
    nested: Callable[..., Any]  # leaves -> nested results
    __dir__ = dir_of("captured", "program")

    @entry_point
    def __call__(self, *args: Any) -> Any:
        leaves = [*self.flat(args), *self.captured]
        return self.nested(copy_shared_results(run_flat(self.program, leaves[:]), leaves))


@overload
def vjp(
    f: Callable[..., R],
    *primals: Any,
    has_aux: Literal[False] = False,
    policy: Policy = "keep_all",
    exact: bool = False,
    copy: bool = True,
) -> tuple[R, LinearMap]: ...
@overload
def vjp(
    f: Callable[..., tuple[R, A]],
    *primals: Any,
    has_aux: Literal[True],
    policy: Policy = "keep_all",
    exact: bool = False,
    copy: bool = True,
) -> tuple[R, LinearMap, A]: ...
@entry_point
def vjp(
    f: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    policy: Policy = "keep_all",
    exact: bool = False,
    copy: bool = True,
) -> tuple[Any, ...]:
    """(f(*primals), pull): ``pull(ct)`` returns the cotangents of the primals, as a tuple.

    ``ct`` nests as the result. With ``has_aux``, ``f`` returns (out, aux), and ``vjp`` returns
    (out, pull, aux). A primal that is not floating has the cotangent None. ``pull.program`` is the
    Lambda that ``pull`` runs. ``policy`` and ``exact`` choose the residuals, as in ``grad``.
    ``pull`` keeps copies of the primals and results that it needs; with ``copy=False`` it shares
    their memory, so that writing into them changes the cotangents.

    >>> out, pull = vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> out, pull(1.0)
    (12.0, (np.float64(4.0), np.float64(3.0)))
    """
    call = record_call(f, primals, {})
    count = len(call.fn.ret.args)
    if has_aux:
        _check_pair(nested_example(call.out_tree))
    out_tree = Tree.from_pytree(nested_example(call.out_tree)[0]) if has_aux else call.out_tree
    defined = [i < out_tree.arrays for i in range(count)]
    gradient = differentiate(call.fn, defined=defined, policy=policy, exact=exact)
    inputs = list(call.leaves)
    results = run_flat(gradient.f, call.leaves)
    captured = _captured_by_pull(gradient, inputs, results)
    if copy:
        captured = keep_residuals(captured, [*inputs, *results[:count]])
    xp = array_module(inputs)

    def flat(args) -> list:
        leaves = out_tree.leaves_of(_only_cotangent(args), "pull")
        return [
            as_direction(leaves[i], gradient.f.ret.args[i].type, "cotangent")
            for i in gradient.df_input_vjps
        ]

    def nested(cts) -> tuple:
        by_input = dict(zip(gradient.df_output_vjps, cts, strict=True))
        leaves = [
            zeros_for(p, by_input[i], xp) if i in by_input else None
            for i, p in enumerate(call.fn.params)
        ]
        return call.tree.nest(leaves)[0]

    pull = LinearMap(gradient.df, tuple(captured), flat, nested)
    out = call.out_tree.unflatten(results[:count])
    return (out[0], pull, out[1]) if has_aux else (out, pull)


def _captured_by_pull(gradient: Gradient, inputs: list, results: Sequence) -> list:
    """The primals and results of the forward program that the backward program reads."""
    captured = [inputs[i] for i in gradient.df_input_captured_inputs]
    return captured + [results[i] for i in gradient.df_input_captured_outputs]


def _only_cotangent(args: tuple) -> Any:
    """The argument of ``pull``. Raises DTypeError unless there is one."""
    if len(args) != 1:
        raise DTypeError(
            f"pull takes one cotangent, nested as the result; {len(args)} were given"
            f"{at_user()}\n  pass several in a tuple: pull((ct, other))"
        )
    return args[0]


def _check_pair(out: Any) -> None:
    """Raise ShapeError unless a function with ``has_aux`` returned a pair."""
    if not (isinstance(out, tuple) and len(out) == 2):
        raise ShapeError(
            f"has_aux: the function must return (value, aux), found {Tree.from_pytree(out)}\n"
            "  return a pair, or leave has_aux out"
        )


def as_direction(value: Any, aval: ArrayType | None, role: str) -> Any:
    """A cotangent or tangent of type ``aval``. Raises ShapeError or DTypeError if it differs."""
    if not hasattr(value, "dtype"):  # a Python number takes the expected dtype
        try:
            value = np.asarray(value, None if aval is None else aval.dtype)[()]
        except (TypeError, ValueError):
            raise DTypeError(
                f"a {role} of type {aval} is expected, found {value!r}\n"
                "  pass an array of that type"
            ) from None
    found_type = value.type if hasattr(value, "emitter") else type_of(value)
    if aval is None or found_type is None:  # unknown types are checked by the operations
        return value
    if (
        found_type.weak
        and aval.shape == ()
        and np.can_cast(found_type.dtype, aval.dtype, "same_kind")
    ):
        return PRIMITIVES["cast"](value, aval.dtype)  # traced, or of a variable
    if fits_type(
        found_type, ArrayType(aval.dtype, aval.shape), {}
    ):  # a symbolic size fits any number
        return value
    error = ShapeError if found_type.shape != aval.shape else DTypeError
    remedy = "give it the shape" if error is ShapeError else "convert it with .astype to the dtype"
    raise error(
        f"a {role} of type {ArrayType(aval.dtype, aval.shape)} is expected, found {found_type}\n"
        f"  {remedy} of the value that it belongs to"
    )


@overload
def jvp(
    f: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    f: Callable[..., tuple[R, A]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[R, R, A]: ...
@entry_point
def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """(f(*primals), tangent of the result), for tangents that nest as the primals.

    None stands for a zero tangent, the only floating one of an integer. A result that does not
    depend on the primals, or is not floating, has zeros as its tangent. With ``has_aux``, ``f``
    returns (out, aux), and ``jvp`` returns (out, tangent of out, aux); what only ``aux`` depends
    on needs no derivative.

    >>> jvp(lambda x: x**2, (3.0,), (1.0,))
    (9.0, np.float64(6.0))
    """
    primals, tangents = (
        entries_of(primals, "jvp", "primals"),
        entries_of(tangents, "jvp", "tangents"),
    )
    call = record_call(f, primals, {})
    inputs, directions = directions_of(call, primals, tangents)
    first = call.out_tree  # the nesting of the results that are differentiated
    if has_aux:
        _check_pair(nested_example(first))
        first = Tree.from_pytree(nested_example(first)[0])
    program, outputs = jvp_program(call.fn, inputs, first.arrays if has_aux else None)
    xp = array_module(call.leaves)
    # dead_code: some emitted tangents reach no result
    results = run_flat(dead_code(program), [*call.leaves, *directions])
    count = len(call.fn.ret.args)
    by_output = dict(zip(outputs, results[count:], strict=True))
    out = call.out_tree.unflatten(results[:count])
    pushed = first.unflatten(
        [tangent_of(r, by_output.get(i), xp) for i, r in enumerate(results[: first.arrays])]
    )
    return (out[0], pushed, out[1]) if has_aux else (out, pushed)


def entries_of(values: Any, function: str, name: str) -> tuple:
    """The tuple or list with one entry for each argument, as a tuple.

    Raises DTypeError for an array, which would be taken apart.
    """
    if type(values) is list or issubclass(type(values), tuple):
        return tuple(values)
    types_text = _found_type(values)
    raise DTypeError(
        f"{function}: the {name} are a tuple with an entry for each argument, found {types_text}"
        f"{at_user()}\n  write {function}(f, (x,), (v,)) for a function of one argument"
    )


def _found_type(values: Any) -> str:
    """An array or a traced value by its type, another object by the name of its class."""
    aval = getattr(values, "type", None) or (type_of(values) if is_array(values) else None)
    return str(aval) if isinstance(aval, ArrayType) else type(values).__name__


def tangent_of(result: Any, tangent: Any, xp: Any) -> Any:
    """``tangent``, or zeros like ``result`` if it is None; float zeros for integers."""
    if tangent is not None:
        return tangent
    if hasattr(result, "emitter"):
        return result * 0  # the shape of a traced value may be unknown
    dtype = result.dtype if hasattr(result, "dtype") and result.dtype.kind in "fc" else float
    return xp.zeros(np.shape(result), dtype)[()]


def directions_of(
    call: ProgramCall, primals: tuple, tangents: tuple, caller: str = "jvp"
) -> tuple[list[int], list]:
    """(parameter positions, tangents) of the floating primals. Raises if tangents do not fit.

    ``caller`` names the function that takes the tangents, in errors.
    """
    if len(primals) != len(tangents):
        raise ShapeError(
            f"{caller}: the number of primals is {len(primals)}, of tangents {len(tangents)}\n"
            "  pass one tangent for each primal"
        )
    positions, _ = arguments_of(call.tree, tuple(range(len(primals))))
    leaves = call.tree.leaves_of((_fill_missing_tangents(tangents, primals), {}), caller)
    inputs, directions = [], []
    for i, leaf in zip(positions, leaves, strict=True):
        aval = call.fn.params[i].type
        if leaf is _MISSING:
            continue
        if type_carries_derivative(aval):
            inputs.append(i)
            directions.append(as_direction(leaf, aval, "tangent"))
        elif not isinstance(leaf, Value) and np.result_type(leaf).kind in "fc" and np.any(leaf):
            raise DTypeError(
                f"the tangent of a primal of type {aval}, which has no derivative, is not 0"
                f"{at_user()}\n  pass floats, 3.0 instead of 3, or None as its tangent"
            )
    return inputs, directions


class _Missing:
    """The type of ``_MISSING``, a tangent that was not given."""


_MISSING = _Missing()


def _fill_missing_tangents(tangents: tuple, primals: tuple) -> tuple:
    """The tangents with a tree of ``_MISSING`` for a primal whose tangent is None."""
    filled = []
    for tangent, primal in zip(tangents, primals, strict=True):
        leaves, spec = flatten(primal)
        # None is not a leaf of a pytree, so it cannot stand for the tangent of an array
        filled.append(spec.unflatten([_MISSING] * len(leaves)) if tangent is None else tangent)
    return tuple(filled)


@entry_point
def linearize(f: Callable[..., R], *primals: Any, copy: bool = True) -> tuple[R, LinearMap]:
    """(f(*primals), lin): ``lin(*tangents)`` is the tangent of the result; it does not rerun ``f``.

    ``lin.program`` is the linear Lambda that it runs. ``lin`` keeps copies of the primals and
    results that it needs; with ``copy=False`` it shares their memory, so that writing into them
    changes the tangents.

    >>> out, lin = linearize(lambda x: x**2, 3.0)
    >>> out, lin(1.0), lin(2.0)
    (9.0, np.float64(6.0), np.float64(12.0))
    """
    call = record_call(f, primals, {})
    inputs = [i for i, p in enumerate(call.fn.params) if carries_derivative(p)]
    positions, _ = arguments_of(call.tree, tuple(range(len(primals))))
    inputs = [i for i in inputs if i in set(positions)]
    pair = linear_program(call.fn, inputs)
    arguments = list(call.leaves)
    results = run_flat(pair.f, call.leaves)
    count, xp = len(call.fn.ret.args), array_module(arguments)

    def flat(tangents) -> list:
        places, directions = directions_of(call, primals, tangents, "linearize")
        by_position = dict(zip(places, directions, strict=True))
        return [by_position.get(i, _MISSING) for i in inputs]

    def nested(tangents):
        by_position = dict(zip(pair.outputs, tangents, strict=True))
        return call.out_tree.unflatten(
            [tangent_of(r, by_position.get(i), xp) for i, r in enumerate(results[:count])]
        )

    captured = pair.captured(arguments, results)
    if copy:
        captured = keep_residuals(captured, [*arguments, *results[:count]])
    pushed = LinearMap(pair.linear, tuple(captured), flat, nested)
    return call.out_tree.unflatten(results[:count]), pushed
