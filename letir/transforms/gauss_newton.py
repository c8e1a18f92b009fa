"""ggnvp: products of the generalised Gauss-Newton matrix with a direction."""

import functools
from collections.abc import Callable
from typing import Any, overload

from attrs import frozen

from letir.ad.forward import linear_program
from letir.ad.gradient_program import Gradient, zeros_for
from letir.ast import LATE_BOUND, entry_point
from letir.ast.derivative_types import strong_type
from letir.ast.pytrees import Tree
from letir.ast.terms import Lambda, Local
from letir.ast.types import ShapeDtype, Undef
from letir.errors import ShapeError
from letir.eval.array_modules import array_module
from letir.eval.evaluator import run_flat
from letir.tracing.entry import record
from letir.tracing.trace_state import ABSTRACT
from letir.transforms.derivative_maps import LinearProgram
from letir.transforms.directions import call_along, holds_functions, tangent_of
from letir.transforms.hessians import (
    argument_entries,
    floating_positions,
    product_function,
    product_with_hessian,
    tree_of_products,
)
from letir.transforms.program_call import (
    ProgramCall,
    as_program,
    copy_shared_results,
    nested_results,
)
from letir.transforms.repeated_programs import Transformed
from letir.transforms.transposition import transposed_program


@overload
def ggnvp(
    f: Lambda | Gradient, g: Callable[..., Any], primals: None = None, tangents: None = None
) -> Lambda: ...
@overload
def ggnvp(
    f: Callable[..., Any], g: Callable[..., Any], primals: None = None, tangents: None = None
) -> Callable[..., Any]: ...
@overload
def ggnvp(f: Callable[..., Any], g: Callable[..., Any], primals: Any, tangents: Any) -> Any: ...
@entry_point
def ggnvp(
    f: Any,
    g: Callable[..., Any],
    primals: Any = None,
    tangents: Any = None,
) -> Any:
    """The product of the generalised Gauss-Newton matrix J'HJ of ``g(f(...))`` with ``tangents``.

    J is the Jacobian of ``f``, H the Hessian of the scalar function ``g`` of its result. J'HJ is
    the Hessian of ``g(f(...))`` without the curvature of ``f``, and positive semidefinite if ``g``
    is convex. ``f`` is evaluated once. Arguments and results as in ``hvp`` (Schraudolph, Fast
    curvature matrix-vector products for second-order gradient descent, Neural Computation, 2002).

    >>> import numpy as np
    >>> f, g = lambda x: np.exp(x), lambda y: 0.5 * (y**2).sum()
    >>> ggnvp(f, g, (np.zeros(2),), (np.array([1.0, 2.0]),))
    array([1., 2.])
    """
    f = as_program(f)
    LATE_BOUND["refuse_unless_function"]("ggnvp", g)
    if primals is None:
        return product_function(
            f, functools.partial(ggnvp, f, g), functools.partial(_ggn_product_program, g=g)
        )
    primals, tangents = argument_entries("ggnvp", primals, tangents)
    options = ("ggnvp",)
    parts = call_along(f, options, _ggn_parts, primals, tangents, "ggnvp")
    return parts.tree.unflatten(copy_shared_results(parts.products(g)))


@frozen(eq=False)
class _GaussNewtonParts:
    """The results of ``f``, their tangent, and the functions that finish the product.

    ``pull``: the nested cotangents -> the flat products; ``tree``: the nesting of the products.
    """

    out: Any
    tangent: Any
    pull: Callable[[Any], tuple]
    tree: Tree

    def products(self, g: Callable) -> tuple:
        """The flat products with the Gauss-Newton matrix of ``g(f(...))``."""
        caller = "ggnvp: the Hessian of g"
        bent = product_with_hessian(caller, as_program(g), (self.out,), (self.tangent,))
        return self.pull(bent)


def _ggn_parts(call: ProgramCall, inputs: list[int]) -> Transformed:
    """The program of the results and residuals of ``f``, of which ``_GaussNewtonParts`` are made.

    ``inputs``: the positions of the parameters that have a tangent.
    """
    whole, xp, params = call.out_tree, array_module(call.leaves), call.fn.params
    count, positions = len(call.fn.ret.args), floating_positions(call)
    kinds = {i: Local(strong_type(params[i].type)) for i in positions}
    pair, places = linear_program(call.fn, positions), {i: k for k, i in enumerate(inputs)}
    linear = LinearProgram(pair.linear)
    # the transpose of the jvp, because the vjp of f would evaluate f again
    transpose = LinearProgram(transposed_program(pair.linear, list(range(len(positions)))))
    tree = tree_of_products(call)

    def finish(values: list, results: tuple) -> _GaussNewtonParts:
        # the only evaluation of f: the jvp and the transpose below read its captured values
        captured, given = pair.captured(values, results), values[len(params) :]
        directions = [
            zeros_for(kind, given[places[i]] if i in places else Undef, xp)
            for i, kind in kinds.items()
        ]
        pushed = dict(zip(pair.outputs, linear.run([*directions, *captured]), strict=True))
        tangents = [tangent_of(r, pushed.get(k), xp) for k, r in enumerate(results[:count])]

        def pull(bent: Any) -> tuple:
            cts = whole.spec.flatten_up_to(bent)
            return transpose.run([*[cts[k] for k in pair.outputs], *captured])

        out = nested_results(whole, results[:count])
        return _GaussNewtonParts(out, nested_results(whole, tangents), pull, tree)

    tangent_params = [Local(strong_type(params[i].type)) for i in inputs]
    program = Lambda([*pair.f.params, *tangent_params], pair.f.binds, pair.f.ret)
    return Transformed(program, finish=finish, is_for_one_call=holds_functions(call.tree))


def _ggn_product_program(call: ProgramCall, positions: list[int], g: Callable) -> Lambda:
    """The program of ``ggnvp`` with a tangent for each floating argument."""
    count, types = len(call.fn.params), [param.type for param in call.fn.params]
    if None in types:
        raise ShapeError(
            "ggnvp: the types of the parameters must be known\n"
            "  give the program types: letir.retype"
        )
    examples = [ShapeDtype(t.shape, t.dtype, t.weak) for t in types]
    directions = [ShapeDtype(types[i].shape, types[i].dtype) for i in positions]

    def products(*leaves):
        parts = _ggn_parts(ProgramCall(call.fn, call.tree, list(leaves[:count])), positions)
        results = run_flat(parts.program, list(leaves))
        return tuple(parts.value(list(leaves), results).products(g))

    return record(products, (*examples, *directions), {}, ABSTRACT).fn
