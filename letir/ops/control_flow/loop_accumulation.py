"""Sums of matrix products over the steps of a loop, computed as one product after the loop.

The cotangent of a matrix by which every step multiplies is a sum of one product per step, often the
outer product of a column and a row. Stacking the columns and the rows and multiplying the stacks
once costs less than adding up a matrix in each step.
"""

from collections.abc import Sequence

from attrs import frozen

from letir.ast.builder import Value
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Arg, Bind, Local
from letir.ops.define.records import add_terms
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.transpose import transpose

_WIDER = 4  # the gates of a recurrent cell are four times as wide as its state


@frozen
class _Product:
    """A product ``a.T @ b`` in a loop step: ``a`` has shape (k, m), ``b`` (k, n).

    The first axis may be missing where k is 1. ``result`` is their product.
    """

    result: Local
    a: Arg
    b: Arg
    is_turned: bool  # whether ``a`` has shape (m, k) instead

    @property
    def is_small(self) -> bool:
        """Whether stacking ``b`` takes little more memory than ``a``, which is stacked anyway."""
        m, n = self.result.type.shape
        return n <= _WIDER * m

    def sum_over_steps(self, a: Value, b: Value) -> Value:
        """The sum of the products of all steps, from the stacked factors."""
        if self.is_turned:
            a = transpose(a, (0, 2, 1))
        (*_, m), (*_, n) = a.shape, b.shape
        steps = a.size // m
        return transpose(reshape(a, (steps, m))) @ reshape(b, (steps, n))


def split_products(total: Arg, makers: dict[Arg, Bind]) -> tuple[list[_Product], list[Arg]]:
    """(products, other terms) whose sum is ``total``; ``makers`` maps locals to their binds."""
    result, rest, todo = [], [], [total]
    while todo:
        local = todo.pop()
        bind = makers.get(local)
        if bind is not None and bind.op.name == "add" and _keeps_type(bind):
            todo += reversed(bind.args)
            continue
        product = None if bind is None else _product_of(bind, makers)
        if product is None:
            rest.append(local)
        else:
            result.append(product)
    return result, rest


def _keeps_type(bind: Bind) -> bool:
    """Whether all operands have the type of the result (no broadcast, no promotion)."""
    return all(type(arg) is Local and arg.type is bind.binders[0].type for arg in bind.args)


def _product_of(bind: Bind, makers: dict[Arg, Bind]) -> _Product | None:
    """The product that ``bind`` computes; None if stacking its factors takes more memory."""
    if bind.op.name != "matmul" or not all(_has_sizes(arg, 2) for arg in bind.args):
        return None
    a, b = bind.args
    (m, k), (_, n) = a.type.shape, b.type.shape
    if k > m or 0 in (m, k, n) or a.type.dtype != b.type.dtype:
        return None
    left, right, (result,) = makers.get(a), makers.get(b), bind.binders
    if _is_op(right, "expand_dims", axis=-2):
        (b,) = right.args
    if _is_op(left, "expand_dims", axis=-1):
        return _Product(result, left.args[0], b, is_turned=False)
    if _is_op(left, "transpose", axes=(1, 0)) or _is_op(left, "transpose", axes=None):
        return _Product(result, left.args[0], b, is_turned=False)
    return _Product(result, a, b, is_turned=True)


def _is_op(bind: Bind | None, name: str, **attrs) -> bool:
    """Whether ``bind`` is the operation ``name`` with exactly these attributes."""
    return bind is not None and bind.op.name == name and dict(bind.attrs) == attrs


def _has_sizes(arg, ndim: int) -> bool:
    """Whether ``arg`` is an array with ``ndim`` axes and a static shape."""
    aval = arg.type if type(arg) is Local else None
    return has_static_shape(aval) and aval.ndim == ndim


def sum_products(terms: Sequence[_Product], stacked: dict[Arg, Value]) -> Value | None:
    """The sum of the products over all steps, from the stacked factors; None without products."""
    return add_terms(term.sum_over_steps(stacked[term.a], stacked[term.b]) for term in terms)
