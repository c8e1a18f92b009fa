"""``np.einsum`` of two arrays, computed by matrix products of BLAS.

``np.einsum`` itself takes several times as long, because it does not use BLAS here.
"""

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast import LATE_BOUND
from letir.ast.bodies import map_bodies
from letir.ast.primitive import Primitive
from letir.ast.process_state import float_errors
from letir.ast.record_fields import never
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Bind, Lambda, Local
from letir.errors import ShapeError
from letir.executor.kernels.visible_order import DerivedOrder, axis_order, free_result_orders
from letir.ops.linalg.matmul_einsum import parse_subscripts

_MIN_WORK = 1 << 15  # the fewest multiplications for which matrix products are faster
_MIN_MATRIX = 512  # the fewest multiplications of one product of a batch
_MIN_REUSE = 4  # the fewest multiplications per element of the operands and the result
_BLOCK, _MIN_ROWS = 1 << 15, 16  # elements, and the fewest rows, that are multiplied together
_NO_RULE = never("products are chosen after derivatives are taken")


def with_einsum_products(fn: Lambda) -> Lambda:
    """``fn``, also in bodies, with large sums of products computed by BLAS, in another order."""
    return map_bodies(fn, _einsum_level)


def _einsum_level(fn: Lambda) -> Lambda:
    """``fn`` with its own einsum binds replaced by the products that compute them."""
    calls = {
        bind.binders[0]: call
        for bind in fn.binds
        if bind.op.product == "subscripts" and (call := _products_of(bind)) is not None
    }
    if not calls:
        return fn
    free_result_orders(fn, calls)
    return fn.with_binds(
        [
            _with_products(bind, calls[bind.binders[0]]) if bind.binders[0] in calls else bind
            for bind in fn.binds
        ]
    )


def _with_products(bind: Bind, call: "Products") -> Bind:
    """The bind, with matrix products as its implementation."""

    def impl(xp: Any, x: Any, y: Any, *others: Any, **attrs: Any) -> Any:
        return call(x, y, *others) if xp is np else bind.op.impl(xp, x, y, **attrs)

    facts: Any = impl  # an attribute of the function
    facts.call = call
    aval = bind.binders[0].type
    op = Primitive(
        "einsum", impl, lambda *kinds, **_: aval, _NO_RULE, _NO_RULE, no_float_errors=True
    )
    return bind.replace(op=op, args=(*bind.args, *call.others))


def _products_of(bind: Bind) -> "Products | None":
    """The matrix products for an einsum of two arrays; None if these are impossible or slower."""
    avals = [arg.type for arg in (*bind.args, *bind.binders)]
    if (
        len(bind.args) != 2
        or any(type(x) is not Local for x in bind.args)
        or bind.attrs["optimize"]
    ):
        return None
    if any(aval is None or not has_static_shape(aval) or aval.weak for aval in avals):
        return None
    if len({aval.dtype for aval in avals}) > 1 or avals[0].dtype.char not in "fd":
        return None
    try:
        (a, b), out = parse_subscripts(bind.attrs["subscripts"], [k.ndim for k in avals[:2]])
    except ShapeError:
        return None
    pairs = [*zip(a, avals[0].shape, strict=True), *zip(b, avals[1].shape, strict=True)]
    sizes = dict(pairs)
    is_plain = len(set(a)) == len(a) and len(set(b)) == len(b) and len(set(out)) == len(out)
    if not is_plain or any(sizes[label] != n for label, n in pairs) or 0 in sizes.values():
        return None
    if any((label in a) + (label in b) + (label in out) < 2 for label in sizes):
        return None
    result = Products(bind.op.impl, bind.attrs["subscripts"], a, b, out, sizes, avals[0].dtype)
    return result if result.is_faster else None


@define(eq=False)
class Products:
    """An einsum of two arrays with these labels.

    ``einsum``: its implementation, for views that are broadcast or reversed. ``orders``: see
    ``order``. ``new_array(shape, dtype)`` makes the array of the result. ``is_free``: the result
    may have any memory order. ``like``: for each operand that depends on a result with a free order
    the einsum with that result, or a DerivedOrder, in whose order NumPy has the operand; None for
    other operands. ``others``: the arrays that these orders depend on.
    ``thread_local.order``: the axes of this thread's latest result in NumPy's order.
    """

    einsum: Callable
    subscripts: str
    a: str
    b: str
    out: str
    sizes: dict[str, int]
    dtype: np.dtype
    orders: dict[tuple, str] = field(factory=dict)
    new_array: Callable = np.empty
    is_free: bool = False
    like: tuple[Any, Any] = (None, None)
    others: tuple[Local, ...] = ()
    thread_local: Any = field(factory=threading.local)

    @property
    def batch(self) -> str:
        return "".join([c for c in self.out if c in self.a and c in self.b])

    @property
    def inner(self) -> str:
        return "".join([c for c in self.a if c not in self.out])

    @property
    def left(self) -> str:
        return "".join([c for c in self.out if c not in self.b])

    @property
    def right(self) -> str:
        return "".join([c for c in self.out if c not in self.a])

    def size(self, labels: str) -> int:
        return math.prod([self.sizes[label] for label in labels])

    def shape(self, labels: str) -> tuple[int, ...]:
        return tuple([self.sizes[label] for label in labels])

    @property
    def is_faster(self) -> bool:
        """Whether products save time: each element is used several times."""
        if len(self.left) != 1 or len(self.right) != 1 or not self.inner:
            return False
        matrix = self.size(self.left) * self.size(self.right) * self.size(self.inner)
        work = matrix * self.size(self.batch)
        elements = self.size(self.a) + self.size(self.b) + self.size(self.out)
        is_large = work >= _MIN_WORK and matrix >= _MIN_MATRIX
        return is_large and work >= _MIN_REUSE * elements

    def __call__(self, x: np.ndarray, y: np.ndarray, *others: np.ndarray) -> np.ndarray:
        if 0 in x.strides or 0 in y.strides or min(*x.strides, *y.strides) < 0:
            result = self.einsum(np, x, y, subscripts=self.subscripts, optimize=False)
            self.thread_local.order = axis_order(result)
            return result
        batch, left, right, inner = self.batch, self.left, self.right, self.inner
        order = self.order(*[self.numpys_order(n, x, y, others) for n in (0, 1)])
        if self.is_free:
            self.thread_local.order, order = tuple([self.out.index(c) for c in order]), self.out
        a, b = (x, self.a), (y, self.b)
        if order.index(left) > order.index(right):  # rows of the product are rows in memory
            left, right, a, b = right, left, b, a
        rows = _transpose_view(*a, batch + left + inner)
        columns = _transpose_view(*b, batch + inner + right)
        rows = rows.reshape(*self.shape(batch + left), self.size(inner))
        columns = columns.reshape(*self.shape(batch), self.size(inner), *self.shape(right))
        result = self.new_result(order)
        with float_errors(all="ignore"):  # np.einsum has no floating-point errors
            _multiply_blocks(rows, columns, _transpose_view(result, self.out, batch + left + right))
        return result

    def new_result(self, order: str) -> np.ndarray:
        """A new array with the labels of the result, which lie in memory in this order."""
        if self.new_array is np.empty and order != self.out:  # it owns its memory: it is no view
            like = _small_array(self.shape(self.out), tuple([self.out.index(c) for c in order]))
            return np.empty_like(like, self.dtype, "K", shape=self.shape(self.out))
        return _transpose_view(self.new_array(self.shape(order), self.dtype), order, self.out)

    def numpys_order(self, n: int, *operands: Any) -> tuple[int, ...]:
        """The axes of operand ``n`` in the memory order that it has in NumPy."""
        x, like = operands[n], self.like[n]
        if type(like) is DerivedOrder:
            return like.axes_after(dict(zip(self.others, operands[2], strict=True)))
        return axis_order(x) if like is None else like.thread_local.order

    def small_array(self, arrays: Any = None) -> np.ndarray:
        """A small array in the order in which NumPy has this thread's latest result."""
        return _small_array(self.shape(self.out), self.thread_local.order)

    def order(self, *orders: tuple[int, ...]) -> str:
        """The labels of the result in the order in which ``np.einsum`` lays out its axes.

        ``orders``: the axes of the operands in the order of memory.
        """
        if orders not in self.orders:
            shapes = map(self.shape, (self.a, self.b))
            result = np.einsum(self.subscripts, *map(_small_array, shapes, orders))
            axes = sorted(range(result.ndim), key=lambda n: (-result.strides[n], n))
            self.orders[orders] = "".join([self.out[n] for n in axes])
        return self.orders[orders]


def _small_array(shape: tuple[int, ...], order: tuple[int, ...]) -> np.ndarray:
    """An array in this memory order, with the axes of a larger one of this shape."""
    return np.zeros([min(2, shape[n]) for n in order]).transpose(np.argsort(order))


def _multiply_blocks(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    """``np.matmul(x, y, out=out)`` in blocks that fit into the processor's cache.

    The rows of one matrix may lie far apart in memory, with rows of the other matrices between
    them: then each block has some rows of all matrices.
    """
    n_rows, n_inner, n_columns = x.shape[-2], *y.shape[-2:]
    if n_columns > max(n_rows, n_inner):
        transposed = [a.swapaxes(-1, -2) for a in (y, x, out)]
        return _multiply_blocks(*transposed)
    if n_inner > n_rows:
        blocks = _axis_blocks(n_inner, x, x.swapaxes(-1, -2), y)
        _add_blocks(x, y, out, blocks)
    else:
        blocks = _axis_blocks(n_rows, x, x, out)
        _write_blocks(x, y, out, blocks)


def _axis_blocks(length: int, x: np.ndarray, *operands: np.ndarray) -> list[slice]:
    """The blocks of a long axis, the second last of these operands; one if these need no blocks."""
    size = max(_MIN_ROWS, _BLOCK * length // x.size)
    is_between = any(a.strides[-2] > min(a.strides[:-2], default=a.strides[-2]) for a in operands)
    if not is_between or length < 2 * size:
        return [slice(None)]
    return [slice(start, start + size) for start in range(0, length, size)]


def _write_blocks(x: np.ndarray, y: np.ndarray, out: np.ndarray, blocks: list[slice]) -> None:
    """Compute blocks of the rows of a product."""
    if len(blocks) == 1:
        np.matmul(x, y, out=out)
        return
    y = np.ascontiguousarray(y)  # each block reads it
    is_direct = out.itemsize in out.strides[-2:]  # BLAS writes rows or columns without gaps
    rows = blocks[0].stop
    memory = None if is_direct else np.empty((*out.shape[:-2], rows, out.shape[-1]), out.dtype)
    for block in blocks:
        part = out[..., block, :]
        if memory is None:
            np.matmul(x[..., block, :], y, out=part)
        else:
            target = memory[..., : part.shape[-2], :]
            part[...] = np.matmul(x[..., block, :], y, out=target)


def _add_blocks(x: np.ndarray, y: np.ndarray, out: np.ndarray, blocks: list[slice]) -> None:
    """Add the products of blocks of columns of ``x`` and of rows of ``y``."""
    if len(blocks) == 1:
        np.matmul(x, y, out=out)
        return
    total = np.matmul(x[..., blocks[0]], y[..., blocks[0], :])
    part = np.empty_like(total)
    for block in blocks[1:]:
        total += np.matmul(x[..., block], y[..., block, :], out=part)
    out[...] = total


def _transpose_view(x: np.ndarray, labels: str, order: str) -> np.ndarray:
    """A view of an array with its axes in another order; the array itself if that is the same."""
    if labels == order:
        return x
    return x.transpose([labels.index(label) for label in order])


LATE_BOUND["with_einsum_products"] = with_einsum_products
