"""``scipy_solve``: a call of a SciPy solver, such as ``brentq``, that calls functions of the user.

The functions are bodies. Roots have the derivative of the implicit function theorem: where
f(x, a) = 0, dx/da = -(df/dx)^-1 df/da. Other results have none.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ExportError, GuardError, MissingRule
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.ops.define.records import define, takes_gradient
from letir.ops.linalg.solve_inv_det import solve
from letir.ops.shape.concatenate_stack_split import stack
from letir.ops.shape.shape_and_creation import zeros_like
from letir.ops.special.define import scipy_or_cupy_function
from letir.ops.special.scipy_call import (
    CALL_OF_SCIPY,
    called_by_name,
    checked_leaves,
    writable_copy,
)
from letir.ops.special.scipy_functions import (
    SOLVERS,
    count_operands,
    fill_form,
    is_call,
    result_paths,
    result_types,
    split_name,
)
from letir.ops.special.vector_integral import only_cotangent, quad_jvp, quad_vjp

# the path of the root in the result of a solver, see ``result_paths``
_ROOTS = {
    **dict.fromkeys(
        ["bisect", "brenth", "brentq", "fsolve", "newton", "ridder", "toms748"],
        "",
    ),
    "root": "['x']",
    "root_scalar": "['root']",
}


def _scipy_solve_impl(xp, *operands, call, function, arguments, results, bodies, captures, returns):
    """The arrays and numbers in the result of SciPy's solver, as a tuple."""
    part, name = split_name(function, [SOLVERS])
    place = len(operands) - sum(captures)
    copies, functions = iter([writable_copy(x) for x in operands[:place]]), []
    for body, count, kind in zip(bodies, captures, returns, strict=True):
        functions.append(body_function(call, body, operands[place : place + count], kind))
        place += count
    calls = functools.partial(called_by_name, xp)
    positional, keywords = fill_form(arguments, copies, functions, calls)
    result = scipy_or_cupy_function(xp, part, name)(*positional, **keywords)
    return checked_leaves(function, result, results)


def body_function(call: Callable, body: Lambda, captured: tuple, returns: str) -> Any:
    """A body as the Python function that SciPy calls.

    ``call(body, values)`` gives the results. ``captured``: the values of the last parameters.
    ``returns``: whether the function returns a "tuple" or one "value".
    """
    avals = [param.type for param in body.params[: len(body.params) - len(captured)]]
    is_number = len(avals) == 1 and not avals[0].shape and avals[0].dtype == np.float64

    def function(*args):
        if is_number and len(args) == 1 and type(args[0]) in (float, np.float64):
            result = call(body, (np.float64(args[0]), *captured))
            return tuple(result) if returns == "tuple" else result[0]
        is_same = [np.shape(x) for x in args] == [aval.shape for aval in avals]
        if not is_same or not all(map(_may_cast, args, avals)):
            raise GuardError(
                f"SciPy calls a recorded function with other types than {avals}\n"
                "  trace again with these arguments, or call letir.jit(f), which does so"
            )
        # copies: SciPy writes into its own arrays
        values = [np.array(x, aval.dtype)[()] for x, aval in zip(args, avals, strict=True)]
        result = call(body, (*values, *captured))
        return tuple(result) if returns == "tuple" else result[0]

    names = [f"x{i}" for i in range(len(avals))]
    aval = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(n, aval) for n in names])
    vars(function)["__signature__"] = signature  # SciPy counts the parameters
    return function


def _may_cast(x: Any, aval: ArrayType) -> bool:
    """Whether ``x`` keeps its value as an array of this type, except for rounding."""
    return np.can_cast(np.asarray(x).dtype, aval.dtype, "same_kind")


def _scipy_solve_aval(*types, function, arguments, results, bodies, captures, returns):
    """The recorded types of the results."""
    split_name(function, [SOLVERS])
    counts = [len(part) for part in (captures, returns)] if is_call(arguments) else []
    if counts != [len(bodies)] * 2 or not all(type(n) is int and n >= 0 for n in captures):
        raise DTypeError(
            f"scipy_solve: {len(bodies)} bodies with captures={captures}, returns={returns}\n"
            "  record the program again with letir.trace"
        )
    if count_operands(arguments, len(bodies)) + sum(captures) != len(types):
        raise DTypeError(
            f"scipy_solve: the form of the arguments {arguments!r} has another number of operands "
            f"than {len(types)}\n  record the program again with letir.trace"
        )
    return tuple(result_types(results))


# ---- derivatives of roots ----


def _place_of_root(function: str, results: Any) -> int:
    """The number of the result that is the root. Raises MissingRule if there is none."""
    paths = result_paths(results, "")
    path = _ROOTS.get(function.rpartition(".")[2])
    place = next((i for i, p in enumerate(paths) if path is not None and p in (path, "[0]")), None)
    if place is None:
        raise MissingRule(
            f"scipy.{function} has no derivative with respect to these results: only roots have\n"
            "  letir.stop_gradient(x) treats a result as a constant; solve for the zero of the "
            "gradient with\n  scipy.optimize.root, or write letir.custom_vjp"
        )
    return place


def _scipy_solve_vjp(
    cts, outs, *args, function, arguments, results, bodies, captures, returns, transform
):
    """The cotangents of the values that the first function captures, by the implicit function
    theorem, or the rule of Leibniz for an integral.
    """
    if function == "integrate.quad":
        first = len(args) - sum(captures)
        return quad_vjp(cts, args, first, arguments, bodies[0], transform)
    place = _place_of_root(function, results)
    root, ct = outs[place], only_cotangent(function, cts, place)
    first = len(args) - sum(captures)
    captured = args[first : first + captures[0]]
    nothing = [None] * len(args)
    if ct is None or not any(map(takes_gradient, captured)):
        return tuple(nothing)
    point = [_as_first(root, bodies[0]), *captured]
    rest = [None] * (len(bodies[0].ret.args) - 1)
    rows = [transform(bodies[0], point, [unit, *rest])[0] for unit in _unit_vectors(point[0])]
    step = _solve_columns(rows, ct.reshape(point[0].shape))  # of the transposed system
    pulled = transform(bodies[0], point, [-step, *rest])[1:]
    return (*nothing[:first], *pulled, *nothing[first + captures[0] :])


def _scipy_solve_jvp(
    tangents, outs, *args, function, arguments, results, bodies, captures, returns, transform
):
    """The tangent of the root, by the implicit function theorem, or of an integral."""
    if function == "integrate.quad":
        first = len(args) - sum(captures)
        return quad_jvp(tangents, outs, args, first, arguments, bodies[0], transform)
    place = _place_of_root(function, results)
    root, first = outs[place], len(args) - sum(captures)
    captured = args[first : first + captures[0]]
    along = list(tangents[first : first + captures[0]])
    result = [
        _tangent_of_other(*pair) for pair in zip(outs, result_paths(results, ""), strict=True)
    ]
    if any(g is not None for g in along):
        point = [_as_first(root, bodies[0]), *captured]
        none = [None] * len(captured)
        columns = [
            transform(bodies[0], point, [unit, *none])[0] for unit in _unit_vectors(point[0])
        ]
        change = transform(bodies[0], point, [None, *along])[0]
        result[place] = _solve_columns(columns, -change).reshape(root.shape)
    else:
        result[place] = None
    return tuple(result)


def _tangent_of_other(out: Value, path: str) -> Value | None:
    """The tangent of a result other than the root: nan, because it is not known."""
    # the value of the function at the root stays zero
    return None if path == "['fun']" or not out.type.inexact else zeros_like(out) + np.nan


def _as_first(root: Value, body) -> Value:
    """The root in the shape of the body's first parameter."""
    return root.reshape(body.params[0].type.shape)


def _unit_vectors(like: Value) -> list:
    """The unit vectors of the shape of ``like``; for a number, one."""
    if not like.shape:
        return [zeros_like(like) + 1.0]
    return [zeros_like(like) + row for row in np.eye(like.shape[0])]


def _solve_columns(columns: list, right: Value) -> Value:
    """The solution of the linear system with these columns."""
    if not right.shape:
        return right / columns[0]
    zero = zeros_like(right)
    matrix = stack([zero if column is None else column for column in columns])
    return solve(matrix.T, right)


def _scipy_solve_source(write, *operands, **_):
    raise ExportError(
        "to_source: a solver of SciPy with recorded functions has no form in NumPy\n"
        "  save the program with letir.save"
    )


scipy_solve: Primitive = define(
    "scipy_solve",
    _scipy_solve_impl,
    _scipy_solve_aval,
    vjp=_scipy_solve_vjp,
    jvp=_scipy_solve_jvp,
    batch=LoopOverExamples(lambda: scipy_solve),
    holds_lambdas=True,
    role="solver",
    source=_scipy_solve_source,
    **CALL_OF_SCIPY,
)
