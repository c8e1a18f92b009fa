"""grad and value_and_grad, of Lambdas and of Python functions.

A Lambda gives a Lambda. A function gives a function that records ``f`` at its arguments, transforms
the program, and runs the result, or inlines it into the active trace if arguments are traced.
"""

import functools
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, overload

import numpy as np

from letir import passes
from letir.ad.differentiation import differentiate_lowered
from letir.ad.gradient_program import Gradient, Policy
from letir.ad.symbolic_zeros import zeros_of_type
from letir.ast import LATE_BOUND
from letir.ast.builder import LetBuilder
from letir.ast.process_state import paused_gc
from letir.ast.pytrees import LEAF, Tree
from letir.ast.signatures import P, R
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError
from letir.ops.shape.shape_and_creation import ones
from letir.passes.dead_code_elimination import dead_code
from letir.transforms.jitted_functions import option_token, shared_with_executors
from letir.transforms.program_call import (
    ProgramCall,
    as_program,
    differentiated_arguments,
    nested_example,
    result_and_aux,
    tree_of_arguments,
    tree_of_results,
)
from letir.transforms.repeated_programs import Transformed, call_transformed

_is_inlined = attrgetter("op.inlined")


@overload
def grad(
    f: Lambda | Gradient,
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    policy: Policy = "keep_all",
    exact: bool = False,
) -> Lambda: ...
@overload
def grad(
    f: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    policy: Policy = "keep_all",
    exact: bool = False,
) -> Callable[P, Any]: ...
@shared_with_executors
def grad(
    f: Any,
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    policy: Policy = "keep_all",
    exact: bool = False,
) -> Callable[..., Any]:
    """The gradient of a scalar function ``f`` with respect to the positional arguments ``argnums``.

    A function gives a function of the same arguments, a Lambda gives a Lambda. The gradient nests
    as the argument: with respect to a dict of arrays it is a dict of arrays.

    - ``argnums``: the position of an argument; for several positions the result is a tuple.
    - ``has_aux``: ``f`` returns (value, aux), and the result is (gradient, aux).
    - ``holomorphic``: ``f`` is holomorphic, with complex arguments and a complex result. Otherwise
      the gradient for z = x + iy is df/dx - i df/dy, as in JAX and autograd.
    - ``policy``: the residuals, which are the values that the backward pass keeps instead of
      recomputing them: "keep_all", "recompute_cheap", "min_bytes", or a function of a bind.
    - ``exact``: find the residuals of fewest bytes.

    Raises DTypeError for integer arguments, ShapeError if the result is not a scalar, MissingRule
    for an operation without a derivative.

    >>> grad(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
    array([ 3., 12.])
    >>> grad(lambda params, x: params["w"] * x + params["b"] ** 2)({"w": 2.0, "b": 1.0}, 3.0)
    {'w': np.float64(3.0), 'b': np.float64(2.0)}

    The gradient of a program is a program:

    >>> from letir import trace
    >>> print(grad(trace(lambda x: x * x, 3.0)).listing(), end="")
    %1 = ones (), float64
    %2 = mul %1, %0
    %3 = add %2, %2
    return %3
    """
    return _gradient_transform(f, argnums, has_aux, holomorphic, (policy, exact), with_value=False)


@overload
def value_and_grad(
    f: Lambda | Gradient,
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    policy: Policy = "keep_all",
    exact: bool = False,
) -> Lambda: ...
@overload
def value_and_grad(
    f: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    policy: Policy = "keep_all",
    exact: bool = False,
) -> Callable[P, tuple[R, Any]]: ...
@shared_with_executors
def value_and_grad(
    f: Any,
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
    policy: Policy = "keep_all",
    exact: bool = False,
) -> Callable[..., Any]:
    """``grad`` with the value: (value, gradient), or ((value, aux), gradient) with ``has_aux``.

    Arguments, options and errors are those of ``grad``. Both come from one program, which computes
    the forward part once.

    >>> value_and_grad(lambda x: x * x)(3.0)
    (9.0, np.float64(6.0))
    >>> value_and_grad(lambda x: (x * x, "seen"), has_aux=True)(3.0)
    ((9.0, 'seen'), np.float64(6.0))
    """
    return _gradient_transform(f, argnums, has_aux, holomorphic, (policy, exact), with_value=True)


def _gradient_transform(
    f, argnums, has_aux: bool, holomorphic: bool, residuals: tuple, *, with_value: bool
) -> Callable:
    policy, exact = residuals
    keeping = functools.partial(differentiate_lowered, policy=policy, exact=exact)

    def program(call: ProgramCall) -> Lambda:
        positions, tree = differentiated_arguments(call.tree, argnums)
        check_inputs(call.fn, positions)
        check_result(call.fn, holomorphic)
        outs = _tree_of_outputs(call, tree, has_aux, with_value)
        flat = gradient_program(call.fn, positions, with_value, keeping)
        # the gradient takes the arguments of f
        return Lambda(flat.params, flat.binds, flat.ret, call.fn.in_tree, outs)

    if type(argnums) is not int:
        LATE_BOUND["refuse_argnums"]("value_and_grad" if with_value else "grad", argnums)
    f = as_program(f)
    if isinstance(f, Lambda):
        return program(ProgramCall(f, tree_of_arguments(f), []))

    def transform(call: ProgramCall) -> Transformed:
        return Transformed.from_program(program(call))

    options = None  # a user's policy may decide differently about the same bind next time
    if not callable(policy):
        options = option_token((argnums, has_aux, holomorphic, policy, exact, with_value))

    @functools.wraps(f)
    def gradient(*args, **kwargs):
        try:
            return call_transformed(f, options, transform, args, kwargs)
        except BaseException as error:
            LATE_BOUND["shorten_traceback"](error)
            raise

    return gradient


def _tree_of_outputs(call: ProgramCall, tree: Tree, has_aux: bool, with_value: bool) -> Tree | None:
    """The nesting of the results of a gradient, whose gradients nest like ``tree``."""
    is_plain = call.fn.out_tree is None and len(call.fn.ret.args) == 1
    if is_plain and tree is tree_of_results(1) and not has_aux:
        return None
    return _nested_outputs(nested_example(call.out_tree), nested_example(tree), has_aux, with_value)


def _nested_outputs(out, gradients, has_aux: bool, with_value: bool) -> Tree | None:
    """The nesting of value, gradients and aux; None for a single array or a tuple of arrays."""
    first, aux = result_and_aux(out) if has_aux else (out, None)
    if first is None:
        raise ShapeError(
            "grad needs a function that returns one scalar, but the function returned None\n"
            "  end it with return"
        )
    if first is not LEAF:
        nesting = Tree.from_pytree(out).text
        raise ShapeError(
            f"grad needs a function that returns one scalar, found {nesting}\n"
            "  return the scalar first, and pass has_aux=True for a further result"
        )
    nested = (out, gradients) if with_value else (gradients, aux) if has_aux else gradients
    tree = Tree.from_pytree(nested)
    return None if tree == tree_of_results(tree.spec.num_leaves) else tree


def check_inputs(fn: Lambda, positions: list[int], caller: str = "grad") -> None:
    """Raise DTypeError for an argument that is not floating or complex."""
    for i in positions:
        aval = fn.params[i].type
        if aval is not None and not aval.inexact:
            name = fn.params[i].name or f"argument {i}"
            remedy = (
                "pass a float, 3.0 instead of 3,"
                if aval.weak
                else "convert it with .astype(float),"
            )
            raise DTypeError(
                f"{caller}: {name} is {aval}, which has no derivative\n"
                f"  {remedy} or leave it out of argnums"
            )


def check_result(fn: Lambda, holomorphic: bool, caller: str = "grad") -> None:
    """Raise unless the first result is a real scalar, or a complex one and ``holomorphic``."""
    aval = fn.ret.args[0].type if fn.ret.args else None
    if not isinstance(aval, ArrayType):  # the type is unknown before the program runs
        return
    if aval.shape != () and any(type(n) is not int or n != 1 for n in aval.shape):
        raise ShapeError(
            f"{caller} needs a scalar, but the function returns {aval}\n"
            "  sum it, or use letir.jacobian or letir.vjp"
        )
    if aval.dtype.kind == "c" and not holomorphic:
        raise DTypeError(
            f"{caller}: the function returns {aval}\n  take .real or abs, or pass holomorphic=True"
        )
    if not aval.inexact:
        raise DTypeError(
            f"{caller}: the function returns {aval}, which has no derivative\n"
            "  return a floating number"
        )


@paused_gc()
def gradient_program(
    fn: Lambda,
    positions: list[int],
    with_value: bool,
    keeping: Callable[..., Gradient] = differentiate_lowered,
) -> Lambda:
    """A program of the gradient of the first result with respect to the parameters ``positions``.

    With ``with_value`` it returns all results of ``fn``, then the gradients; without it, the
    gradients, then the further results. ``keeping``: ``differentiate_lowered`` with a policy. The
    binds of the gradient program follow those of ``fn``, whose locals they read.
    """
    if any(map(_is_inlined, fn.binds)):
        fn = passes.without_combinators(fn)  # before, because the gradient program reads its locals
    mask = list(map(set(positions).__contains__, range(len(fn.params))))
    defined = [True] + [False] * (len(fn.ret.args) - 1)  # further results are aux
    gradient = keeping(fn, mask, defined=defined)
    count = len(gradient.df_input_vjps)
    cts, captured = gradient.df.params[:count], gradient.df.params[count:]
    # without the value, only residuals and aux have to be computed
    results = (*captured, *(fn.ret.args if with_value else fn.ret.args[1:]))
    primal = Lambda(fn.params, gradient.f.binds, Ret(results))
    primal = primal if with_value else dead_code(primal)
    builder = LetBuilder()
    builder.params, builder.binds = list(fn.params), list(primal.binds)
    for ct in cts:
        shape, dtype = ((), np.dtype(float)) if ct.type is None else (ct.type.shape, ct.type.dtype)
        attrs = ones.complete({"shape": shape, "dtype": dtype})
        builder.binds.append(Bind((ct,), ones, (), attrs))  # the seed, instead of a parameter
    builder.binds += gradient.df.binds
    cotangents = dict(zip(gradient.df_output_vjps, gradient.df.ret.args, strict=True))
    gradients = [
        cotangents[i] if type(cotangents.get(i)) is Local else zeros_of_type(builder, fn.params[i])
        for i in positions
    ]
    return builder.build(
        [*fn.ret.args, *gradients] if with_value else [*gradients, *fn.ret.args[1:]]
    )
