"""Sums of matrix products over the steps of a loop, as one product after it.

The cotangent of a matrix that all steps multiply with is the sum of one product a step, often of a
column with a row. It is the product of all columns with all rows, which costs less than to add up
a matrix in each step.
"""

from collections.abc import Sequence

from attrs import frozen

from letir.ast.builder import Value
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Bind, Local
from letir.ops.define.records import add_terms
from letir.ops.shape.shape_and_creation import reshape
from letir.ops.shape.transpose_join_split import transpose

_WIDER = 4  # as the gates of a recurrent cell are than its state


@frozen
class _Product:
    """A product ``a.T @ b`` of a step: ``a`` of shape (k, m) and ``b`` of shape (k, n), or without
    the first axis where k is 1; ``made`` is its result.
    """

    made: Local
    a: Local
    b: Local
    turned: bool  # whether a is (m, k) instead

    @property
    def is_small(self) -> bool:
        """Whether to stack ``b`` takes not much more room than ``a`` takes, which steps stack."""
        m, n = self.made.type.shape
        return n <= _WIDER * m

    def of_all(self, a: Value, b: Value) -> Value:
        """The sum of the products of all steps, for the stacked factors."""
        if self.turned:
            a = transpose(a, (0, 2, 1))
        (*_, m), (*_, n) = a.shape, b.shape
        steps = a.size // m
        return transpose(reshape(a, (steps, m))) @ reshape(b, (steps, n))


def products(total: Local, made: dict[Local, Bind]) -> tuple[list[_Product], list[Local]]:
    """(products, other terms) of which ``total`` is the sum."""
    found, rest, todo = [], [], [total]
    while todo:
        local = todo.pop()
        bind = made.get(local)
        if bind is not None and bind.op.name == "add" and _alike(bind):
            todo += reversed(bind.args)
            continue
        product = None if bind is None else _product_of(bind, made)
        if product is None:
            rest.append(local)
        else:
            found.append(product)
    return found, rest


def _alike(bind: Bind) -> bool:
    """Whether all operands have the type of the result."""
    return all(type(arg) is Local and arg.type is bind.binders[0].type for arg in bind.args)


def _product_of(bind: Bind, made: dict[Local, Bind]) -> _Product | None:
    """The product that a bind is, if to stack its factors takes no more room than to add it up."""
    if bind.op.name != "matmul" or not all(_has_sizes(arg, 2) for arg in bind.args):
        return None
    a, b = bind.args
    (m, k), (_, n) = a.type.shape, b.type.shape
    if k > m or 0 in (m, k, n) or a.type.dtype != b.type.dtype:
        return None
    left, right, (result,) = made.get(a), made.get(b), bind.binders
    if _is_op(right, "expand_dims", axis=-2):
        (b,) = right.args
    if _is_op(left, "expand_dims", axis=-1):
        return _Product(result, left.args[0], b, turned=False)
    if _is_op(left, "transpose", axes=(1, 0)) or _is_op(left, "transpose", axes=None):
        return _Product(result, left.args[0], b, turned=False)
    return _Product(result, a, b, turned=True)


def _is_op(bind: Bind | None, name: str, **attrs) -> bool:
    """Whether a bind is this operation with these attributes."""
    return bind is not None and bind.op.name == name and dict(bind.attrs) == attrs


def _has_sizes(arg, ndim: int) -> bool:
    """Whether it is an array of so many axes, whose sizes are numbers."""
    kind = arg.type if type(arg) is Local else None
    return has_static_shape(kind) and kind.ndim == ndim


def summed(terms: Sequence[_Product], stacked: dict[Local, Value]) -> Value | None:
    """The sum of products over all steps, given the stacked factors; None if there is none."""
    return add_terms(term.of_all(stacked[term.a], stacked[term.b]) for term in terms)
