"""vjp, jvp and linearize: the results at the primals, and the linear map of the derivative."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, overload

from letir.ad.differentiation import differentiate
from letir.ad.forward import jvp_program, linear_program
from letir.ad.gradient_program import Policy, zeros_for
from letir.ast import entry_point
from letir.ast.derivative_types import carries_derivative
from letir.ast.pytrees import Tree
from letir.ast.signatures import A, R
from letir.ast.types import Undef
from letir.eval.array_modules import array_module
from letir.passes.dead_code_elimination import dead_code
from letir.transforms.derivative_maps import (
    LinearMap,
    LinearProgram,
    cotangents_of,
    nest_cotangents,
)
from letir.transforms.directions import (
    call_along,
    directions_of,
    entries_of,
    holds_functions,
    tangent_of,
)
from letir.transforms.program_call import (
    ProgramCall,
    arguments_of,
    as_program,
    keep_residuals,
    nested_example,
    nested_results,
    result_and_aux,
)
from letir.transforms.repeated_programs import Transformed, call_transformed


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
    f = as_program(f)
    # a user's policy may decide differently about the same bind next time
    options = ("vjp", has_aux, policy, exact, copy) if type(policy) is str else None
    transform = partial(_vjp_program, has_aux=has_aux, policy=policy, exact=exact, copies=copy)
    return call_transformed(f, options, transform, primals, {})


def _vjp_program(
    call: ProgramCall, has_aux: bool, policy: Policy, exact: bool, copies: bool
) -> Transformed:
    """The program of the results and residuals of ``vjp``, which makes ``pull`` of them."""
    tree, whole, params = call.tree, call.out_tree, call.fn.params
    count, arrays, xp = len(call.fn.ret.args), tree.arrays, array_module(call.leaves)
    first = _differentiated_results(whole, has_aux)
    gradient = differentiate(
        call.fn,
        [i < arrays for i in range(len(params))],
        defined=[i < first.arrays for i in range(count)],
        policy=policy,
        exact=exact,
    )
    types = [gradient.f.ret.args[i].type for i in gradient.df_input_vjps]
    flat = partial(cotangents_of, first, gradient.df_input_vjps, types)
    by_place = {i: k for k, i in enumerate(gradient.df_output_vjps)}
    nested = partial(nest_cotangents, tree, params[:arrays], by_place, xp)
    linear = LinearProgram(gradient.df)
    captured_inputs = gradient.df_input_captured_inputs
    captured_results = gradient.df_input_captured_outputs

    def finish(inputs: list, results: tuple) -> tuple:
        captured = [inputs[i] for i in captured_inputs] + [results[i] for i in captured_results]
        captured = _own_residuals(captured, inputs, arrays, results[:count], copies)
        pull = LinearMap(linear, tuple(captured), flat, nested)
        out = nested_results(whole, results[:count])
        return (out[0], pull, out[1]) if has_aux else (out, pull)

    return Transformed(gradient.f, finish=finish)


def _own_residuals(
    captured: list, inputs: list, arrays: int, results: Sequence, copies: bool
) -> list:
    """The captured values, copied where they share memory with constants of the function, and if
    ``copies``, with values that the caller has: ``results`` and the first ``arrays`` inputs.
    """
    if copies:
        return keep_residuals(captured, [*inputs, *results])
    constants = [value for value in inputs[arrays:] if not hasattr(value, "emitter")]
    return keep_residuals(captured, constants) if constants else captured


def _differentiated_results(tree: Tree, has_aux: bool) -> Tree:
    """The nesting of the results that are differentiated: the first of a pair if ``has_aux``."""
    if not has_aux:
        return tree
    return Tree.from_pytree(result_and_aux(nested_example(tree))[0])


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
    primals = entries_of(primals, "jvp", "primals")
    tangents = entries_of(tangents, "jvp", "tangents")
    f = as_program(f)
    options = ("jvp", has_aux)
    transform = partial(_jvp_program, has_aux=has_aux)
    return call_along(f, options, transform, primals, tangents, "jvp")


def _jvp_program(call: ProgramCall, inputs: list[int], has_aux: bool) -> Transformed:
    """The program of the results of ``jvp``, for tangents of the parameters ``inputs``."""
    whole, count, xp = call.out_tree, len(call.fn.ret.args), array_module(call.leaves)
    first = _differentiated_results(whole, has_aux)
    program, outputs = jvp_program(call.fn, inputs, first.arrays if has_aux else None)

    def finish(_: list, results: tuple) -> tuple:
        by_output = dict(zip(outputs, results[count:], strict=True))
        out = nested_results(whole, results[:count])
        tangents = [
            tangent_of(r, by_output.get(i), xp) for i, r in enumerate(results[: first.arrays])
        ]
        pushed = nested_results(first, tangents)
        return (out[0], pushed, out[1]) if has_aux else (out, pushed)

    # dead_code: some emitted tangents reach no result
    return Transformed(
        dead_code(program), finish=finish, is_for_one_call=holds_functions(call.tree)
    )


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
    f = as_program(f)
    options = ("linearize", copy)
    return call_transformed(f, options, partial(_linearized, copies=copy), primals, {})


def _linearized(call: ProgramCall, copies: bool) -> Transformed:
    """The program of the results and residuals of ``linearize``, which makes ``lin`` of them."""
    fn, tree, whole, xp = call.fn, call.tree, call.out_tree, array_module(call.leaves)
    count, arrays = len(fn.ret.args), tree.arrays
    primals, _ = tree.example()
    positions = set(arguments_of(tree, tuple(range(len(primals))))[0])
    inputs = [i for i, p in enumerate(fn.params) if carries_derivative(p) and i in positions]
    pair, nesting = linear_program(fn, inputs), ProgramCall(fn, tree, [])
    linear = LinearProgram(pair.linear)

    def flat(tangents: tuple) -> list:
        found = directions_of(nesting, primals, tangents, "linearize")
        by_position = dict(zip(found.inputs, found.values, strict=True))
        return [zeros_for(fn.params[i], by_position.get(i, Undef), xp) for i in inputs]

    def finish(arguments: list, results: tuple) -> tuple:
        captured = pair.captured(arguments, results)
        captured = _own_residuals(captured, arguments, arrays, results[:count], copies)
        rest = {i: r for i, r in enumerate(results[:count]) if i not in pair.outputs}

        def nested(tangents: Sequence) -> Any:
            by_position = dict(zip(pair.outputs, tangents, strict=True))
            pushed = [tangent_of(rest.get(i), by_position.get(i), xp) for i in range(count)]
            return nested_results(whole, pushed)

        pushed = LinearMap(linear, tuple(captured), flat, nested)
        return nested_results(whole, results[:count]), pushed

    return Transformed(pair.f, finish=finish, is_for_one_call=holds_functions(tree))
