"""hessian and hvp: second derivatives, as a matrix and as products with a direction."""

import functools
from collections.abc import Callable
from typing import Any, overload

from letir.ad.differentiation import differentiate
from letir.ad.forward import jvp_program
from letir.ad.gradient_program import Gradient
from letir.ad.symbolic_zeros import zeros_of_type
from letir.ast import LATE_BOUND, entry_point
from letir.ast.builder import LetBuilder
from letir.ast.derivative_types import strong_type, type_carries_derivative
from letir.ast.process_state import paused_gc
from letir.ast.pytrees import LEAF, Tree
from letir.ast.signatures import P
from letir.ast.terms import Lambda, Local
from letir.errors import DTypeError, MissingRule, ShapeError
from letir.passes.dead_code_elimination import dead_code
from letir.transforms.directions import call_along, entries_of, holds_functions
from letir.transforms.gradients import check_result, gradient_program
from letir.transforms.jacobians import Argnums, jacfwd, jacrev
from letir.transforms.jitted_functions import shared_with_executors
from letir.transforms.program_call import (
    ProgramCall,
    arguments_of,
    as_program,
    tree_of_arguments,
    tree_of_results,
)
from letir.transforms.repeated_programs import Transformed


@overload
def hessian(
    f: Lambda | Gradient, argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Lambda: ...
@overload
def hessian(
    f: Callable[P, Any], argnums: Argnums = 0, *, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
@shared_with_executors
def hessian(
    f: Any,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The Hessian of ``f``: its second derivatives with respect to the arguments ``argnums``.

    Computed forward over reverse, or reverse over reverse if an operation has no forward rule. For
    a result of shape s and arguments of shapes t and u, the Hessian has shape s + t + u; it nests
    as the result, then the arguments, then the arguments again. Options as in ``jacrev``.

    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    options = {"has_aux": has_aux, "holomorphic": holomorphic}
    inner = jacrev(f, argnums, **options)

    def apply_outer(outer: Callable) -> Callable:
        return outer(inner, argnums, **options)

    if isinstance(inner, Lambda):
        return _first_that_works(lambda: apply_outer(jacfwd), lambda: apply_outer(jacrev))

    # a function is recorded when it is called, so missing rules are found only then
    @entry_point
    @functools.wraps(inner)
    def hessian_of(*args, **kwargs):
        return _first_that_works(
            lambda: apply_outer(jacfwd)(*args, **kwargs),
            lambda: apply_outer(jacrev)(*args, **kwargs),
        )

    return hessian_of


def _first_that_works(first: Callable, second: Callable):
    """``first()``, or ``second()`` if that raises MissingRule."""
    try:
        return first()
    except MissingRule:
        return second()


@overload
def hvp(f: Lambda | Gradient, primals: None = None, tangents: None = None) -> Lambda: ...
@overload
def hvp(
    f: Callable[..., Any], primals: None = None, tangents: None = None
) -> Callable[..., Any]: ...
@overload
def hvp(f: Callable[..., Any], primals: Any, tangents: Any) -> Any: ...
@entry_point
def hvp(f: Any, primals: Any = None, tangents: Any = None) -> Any:
    """The Hessian-vector product: the Hessian of a scalar ``f`` at ``primals`` times ``tangents``.

    ``primals`` and ``tangents`` are tuples with one entry for each argument, or one array. The
    product nests as the primals, without the tuple if there is a single one. A tangent None stands
    for zero; the product for an argument that is not floating is None. Without primals, ``hvp(f)``
    is a function of the arguments followed by their tangents, or a Lambda if ``f`` is one. Forward
    over reverse, at the cost of about two gradients (Pearlmutter, Fast exact multiplication by the
    Hessian, Neural Computation, 1994).

    >>> import numpy as np
    >>> x, v = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    >>> f = lambda x: (x**3).sum()
    >>> hvp(f, (x,), (v,))
    array([6., 0.])
    >>> hvp(f)(x, v)
    array([6., 0.])
    """
    f = as_program(f)
    LATE_BOUND["refuse_unless_function"]("hvp", f)
    if primals is None:
        return product_function(f, functools.partial(hvp, f), _product_program)
    return product_with_hessian("hvp", f, primals, tangents)


def product_with_hessian(caller: str, f: Callable, primals: Any, tangents: Any) -> Any:
    """``hvp(f, primals, tangents)``; ``caller``: the function that an error names."""
    primals, tangents = argument_entries(caller, primals, tangents)
    options = ("hvp", caller)
    transform = functools.partial(_transformed_product, caller=caller)
    return call_along(f, options, transform, primals, tangents, caller)


def _transformed_product(call: ProgramCall, inputs: list[int], caller: str) -> Transformed:
    """The program of ``hvp`` for tangents of the parameters ``inputs``."""
    positions = floating_positions(call)
    program = _hvp_program(call.fn, positions, inputs, caller)
    nest = tree_of_products(call).spec.unflatten
    return Transformed(program, nest, is_for_one_call=holds_functions(call.tree))


# ---- arguments and results ----


def argument_entries(caller: str, primals: Any, tangents: Any) -> tuple[tuple, tuple]:
    """(primals, tangents) as tuples with one entry for each argument."""
    if tangents is None:
        raise DTypeError(
            f"{caller}: primals need tangents, found none\n"
            f"  write {caller}(f, (x,), (v,)), or {caller}(f)(x, v)"
        )
    if type(primals) is tuple:
        return primals, entries_of(tangents, caller, "tangents")
    is_single = type(tangents) is not tuple or len(tangents) != 1
    return (primals,), (tangents,) if is_single else tangents


def floating_positions(call: ProgramCall) -> list[int]:
    """The positions of the floating parameters that belong to positional arguments."""
    args, _ = call.tree.example()
    positions, _ = arguments_of(call.tree, tuple(range(len(args))))
    types = [call.fn.params[i].type for i in positions]
    return [i for i, aval in zip(positions, types, strict=True) if type_carries_derivative(aval)]


def tree_of_products(call: ProgramCall) -> Tree:
    """The nesting of the products: as the positional arguments, None for those not floating."""
    spots = _argument_spots(call)
    return Tree.from_pytree(spots[0] if len(spots) == 1 else spots)


def _argument_spots(call: ProgramCall) -> tuple:
    """The positional arguments with ``LEAF`` for floating arrays, None for others."""
    leaves = dict.fromkeys(floating_positions(call), LEAF)
    return call.tree.nest([leaves.get(i) for i in range(call.tree.arrays)])[0]


def product_function(f: Callable, product: Callable, program: Callable) -> Callable:
    """A function, or a Lambda for a Lambda, of arguments followed by tangents."""
    if isinstance(f, Lambda):
        return _product_lambda(f, program)

    @entry_point
    @functools.wraps(f)
    def product_of(*args):
        if len(args) % 2:
            raise ShapeError(
                f"found {len(args)} arguments, expected as many tangents as primals\n"
                "  pass the arguments of the function, then a tangent for each of them"
            )
        half = len(args) // 2
        return product(args[:half], args[half:])

    return product_of


@paused_gc()
def _product_lambda(fn: Lambda, program: Callable) -> Lambda:
    """The program of ``fn``'s positional arguments, their tangents, and its keyword arguments."""
    call = ProgramCall(fn, tree_of_arguments(fn), [])
    args, kwargs = call.tree.example()
    positions = floating_positions(call)
    flat = program(call, positions)
    count, ends = len(fn.params), Tree.from_pytree(args).arrays
    # keyword arguments stay last; ``ends``: their first position among the parameters of f
    params = [*flat.params[:ends], *flat.params[count:], *flat.params[ends:count]]
    out = tree_of_products(call)
    in_tree = Tree.from_pytree(((*args, *_argument_spots(call)), kwargs))
    plain = out == tree_of_results(len(positions))  # the number of results determines the nesting
    return Lambda(params, flat.binds, flat.ret, in_tree, None if plain else out)


# ---- Hessian ----


def _product_program(call: ProgramCall, positions: list[int]) -> Lambda:
    """The program of ``hvp`` with a tangent for each floating argument."""
    return _hvp_program(call.fn, positions, positions)


@paused_gc()
def _hvp_program(
    fn: Lambda, positions: list[int], inputs: list[int], caller: str = "hvp"
) -> Lambda:
    """(parameters of ``fn``, tangents of ``inputs``) -> products for ``positions``.

    Linear in the number of binds.
    """
    if len(fn.ret.args) != 1:
        raise ShapeError(
            f"{caller} needs a function that returns one scalar, "
            f"found {len(fn.ret.args)} results\n"
            "  return one scalar: sum the results"
        )
    check_result(fn, holomorphic=False, caller=caller)
    # without the value, because only the gradient is differentiated again
    gradients = gradient_program(fn, positions, with_value=False)
    builder, products = _first_that_works(
        lambda: _forward_product(gradients, inputs),
        lambda: reverse_product(gradients, positions, inputs),
    )
    results = [
        products[k] if type(products.get(k)) is Local else zeros_of_type(builder, fn.params[i])
        for k, i in enumerate(positions)
    ]
    return dead_code(builder.build(results))


def _forward_product(gradients: Lambda, inputs: list[int]) -> tuple[LetBuilder, dict]:
    """(builder, {position: tangent of that gradient}), forward over reverse."""
    program, outputs = jvp_program(gradients, inputs)
    builder = LetBuilder()
    # its locals can be reused, because no other program contains them
    builder.params, builder.binds = list(program.params), list(program.binds)
    return builder, dict(zip(outputs, program.ret.args[len(gradients.ret.args) :], strict=True))


def reverse_product(
    gradients: Lambda, positions: list[int], inputs: list[int]
) -> tuple[LetBuilder, dict]:
    """Like ``_forward_product``, in reverse mode, because the Hessian is symmetric."""
    params, needed, input_set = gradients.params, set(positions), set(inputs)
    mask = [i in needed for i in range(len(params))]
    second = differentiate(gradients, mask, defined=[i in input_set for i in positions])
    at = dict(zip(second.df_input_vjps, second.df.params, strict=False))  # captured params follow
    place = {i: at.get(k) for k, i in enumerate(positions)}
    builder = LetBuilder()
    # a direction on which no product depends is a parameter too
    directions = [place[i] or Local(strong_type(params[i].type)) for i in inputs]
    builder.params = [*params, *directions]
    builder.binds = [*second.f.binds, *second.df.binds]  # df captures locals of f
    cotangents = dict(zip(second.df_output_vjps, second.df.ret.args, strict=True))
    return builder, {k: cotangents.get(i) for k, i in enumerate(positions)}
