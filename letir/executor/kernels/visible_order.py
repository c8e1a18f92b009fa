"""Which values of a program may have another memory order than NumPy gives them.

The order of an array in memory is visible in the results of a program: elementwise operations and
reductions lay out their results like their operands. Where no result of the program shows it,
matrix products choose the order in which BLAS writes and reads them fastest. A kernel with several
results gives all of them the order of all its operands.
"""

from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.lib.stride_tricks import as_strided

from letir.ast.bounded_cache import BoundedCache
from letir.ast.process_state import float_errors
from letir.ast.terms import Arg, Bind, Lambda, Local
from letir.eval.memory_checks import empty_like_ufunc
from letir.kernels.scalar_lowering import has_c_order

_MAX_BINDS = 1 << 18  # binds, counted once for each product
_MAX_STEPS_OF_ORDER = 100  # calls by which an order is derived from those of other values


@frozen(eq=False)
class DerivedOrder:
    """The memory order in which NumPy has a value, derived from the orders of other values.

    ``compute(*operands)``: an array in this order, from small arrays in the orders ``operands``.
    Each of these is a product, another DerivedOrder, or a Local for an array of the program.
    ``sources``: the products and the Locals on which the order depends. ``steps``: the number of
    calls of ``compute`` for an array in this order. ``axes``: the axes of the value from the
    outermost to the innermost in memory, for sources in the orders of the key.
    """

    compute: Callable
    operands: tuple[Any, ...]
    sources: tuple[Any, ...] = field(init=False)
    steps: int = field(init=False)
    axes: BoundedCache = field(init=False, factory=partial(BoundedCache, 64))

    @sources.default
    def _sources(self) -> tuple[Any, ...]:
        found = [x.sources if type(x) is DerivedOrder else (x,) for x in self.operands]
        return tuple(dict.fromkeys([x for part in found for x in part]))

    @steps.default
    def _steps(self) -> int:
        return 1 + sum([x.steps for x in self.operands if type(x) is DerivedOrder])

    def axes_after(self, arrays: dict[Local, np.ndarray]) -> tuple[int, ...]:
        """The axes of the value after this thread's latest products, with these other arrays."""
        key = tuple(
            [arrays[x].strides if x in arrays else x.thread_local.order for x in self.sources]
        )
        result = self.axes.get(key)
        if result is None:
            result = self.axes[key] = axis_order(self.small_array(arrays))
        return result

    def small_array(self, arrays: dict[Local, np.ndarray]) -> np.ndarray:
        """An array with the axes of the value, each at most 2 long, in NumPy's order."""
        small = []
        for x in self.operands:
            is_array = type(x) is Local
            cut = arrays[x][(slice(2),) * arrays[x].ndim] if is_array else x.small_array(arrays)
            small.append(cut)
        return self.compute(*small)


def _order_of(bind: Bind, known: dict[Arg, Any], unknown: Container[Arg]) -> Any:
    """The order of the results of a bind whose operands have these orders; None if not known.

    An operand with several long axes has part in it, also one that is broadcast along others.
    """
    with_long_axes = [x for x in bind.args if _long_axes(x) != 1]
    if any(_long_axes(x) is None for x in (*with_long_axes, *bind.binders)):
        return None
    if any(x in unknown and x not in known for x in with_long_axes):
        return None
    operands = tuple(dict.fromkeys([known.get(x, x) for x in with_long_axes]))
    if bind.op.elementwise:
        shape = bind.binders[0].type.shape
        if len(operands) == 1 and any(x.type.shape == shape for x in with_long_axes):
            return operands[0]
        small = [min(2, n) for n in shape]
        result = DerivedOrder(lambda *cuts: empty_like_ufunc(cuts, [bool], small)[0], operands)
    elif len(bind.args) > 1 or not (bind.op.reduction is not None or _has_only_axes(bind)):
        return None
    else:
        result = DerivedOrder(partial(bind.op.impl, np, **bind.attrs), operands)
    return result if result.steps <= _MAX_STEPS_OF_ORDER else None


def _has_only_axes(bind: Bind) -> bool:
    """Whether a bind adds, drops or permutes axes, whatever their sizes are."""
    if bind.op.memory != "view":
        return False
    if bind.op.role == "index":
        item = bind.attrs["item"]
        items = item if type(item) is tuple else (item,)
        return all(x is None or (type(x) is slice and x == slice(None)) for x in items)
    return {*bind.attrs} <= {"axis", "axes"}


def free_result_orders(fn: Lambda, calls: dict[Local, Any]) -> None:
    """Set ``is_free``, ``like`` and ``others`` of the products that compute these values.

    Nothing is set in long programs with many products: it takes linear time for each of them.
    """
    if len(calls) * len(fn.binds) > _MAX_BINDS:
        return
    for value, call in calls.items():
        followers = _OrderFollowers(fn, calls, value)
        if not followers.are_visible():
            call.is_free = True
            for product, n, order in followers.readers:
                like = [*product.like]
                like[n] = order
                product.like = tuple(like)
                if type(order) is DerivedOrder:
                    arrays = [x for x in order.sources if type(x) is Local]
                    product.others = tuple(dict.fromkeys((*product.others, *arrays)))


class _OrderFollowers:
    """The values whose memory order follows from the result ``value`` of a product.

    ``carriers``: these values. ``orders``: the orders in which NumPy has them, where known.
    ``readers``: (product, operand number, order) of the products that read one of these values, and
    whose results keep NumPy's order.
    """

    def __init__(self, fn: Lambda, calls: dict[Local, Any], value: Local):
        self.fn, self.calls, self.value = fn, calls, value
        self.carriers: set[Arg] = {value}
        self.orders: dict[Arg, Any] = {value: calls[value]}
        self.readers: list[tuple[Any, int, Any]] = []

    def are_visible(self) -> bool:
        """Whether a result of the program may show the order."""
        for bind in self.fn.binds:
            if not self.carriers.isdisjoint(bind.args) and not self.follow(bind):
                return True
        return not self.carriers.isdisjoint(self.fn.ret.args)

    def follow(self, bind: Bind) -> bool:
        """Note what a bind's results show of the order; False if that is not known."""
        call = self.calls.get(bind.binders[0])
        if call is not None:
            places = [n for n, arg in enumerate(bind.args) if arg in self.carriers]
            self.readers += [(call, n, self.orders.get(bind.args[n])) for n in places]
            return all(bind.args[n] in self.orders and call.like[n] is None for n in places)
        if _is_in_c_order(bind):
            return True
        is_elementwise = bind.op.elementwise or bind.op.role == "fused"
        is_view = bind.op.memory == "view" and bind.attrs.get("order", "C") == "C"
        if not (is_elementwise or bind.op.reduction is not None or is_view):
            return False
        with_long_axes = [binder for binder in bind.binders if is_view or _long_axes(binder) != 1]
        self.carriers.update(with_long_axes)
        self.orders.update(self.orders_of(bind))
        return all(_long_axes(binder) is not None for binder in bind.binders)

    def orders_of(self, bind: Bind) -> dict[Arg, Any]:
        """The orders of the results of a bind, of those for which they are known."""
        if bind.op.role != "fused":
            order = _order_of(bind, self.orders, self.carriers)
            return {} if order is None else dict.fromkeys(bind.binders, order)
        body = bind.attrs["body"]
        orders: dict[Arg, Any] = {}
        for param, x in zip(body.params, bind.args, strict=True):
            if x in self.orders or x not in self.carriers:
                orders[param] = self.orders.get(x, x)
        inside = {*body.params, *[x for inner in body.binds for x in inner.binders]}
        for inner in body.binds:
            if (order := _order_of(inner, orders, inside)) is not None:
                orders.update(dict.fromkeys(inner.binders, order))
        pairs = zip(bind.binders, body.ret.args, strict=True)
        return {x: orders[y] for x, y in pairs if y in orders}


def visible_orders(fn: Lambda) -> set[Arg]:
    """The values of a program whose memory order a result may show."""
    shown = {arg for arg in fn.ret.args if _long_axes(arg) != 1}
    for bind in reversed(fn.binds):
        if not shown.isdisjoint(bind.binders) and not _is_in_c_order(bind):
            shown.update([arg for arg in bind.args if _long_axes(arg) != 1])
    return shown


def operands_of_mixed_order(
    body: Lambda, results: Sequence[Local], shown: set[Arg]
) -> tuple[list[int], bool]:
    """(positions of operands, whether these must be in C order) of a group whose kernel gives its
    ``results`` NumPy's order only for these operands in one order; no positions for any operands.

    The kernel gives all results the order of all operands. A result with a visible order
    (``shown``) may depend on some of them only, or on a value that NumPy makes in C order because
    all its operands are broadcast.
    """
    with_long_axes = [n for n, param in enumerate(body.params) if _long_axes(param) != 1]
    read: dict[Arg, int] = {body.params[n]: 1 << n for n in with_long_axes}  # a bit each
    every, broadcast = sum([1 << n for n in with_long_axes]), 1 << len(body.params)
    for bind in body.binds:
        total = 0
        for arg in bind.args:
            total |= read.get(arg, 0)
        total |= broadcast if total != every and _is_of_broadcast_operands(bind) else 0
        read.update(dict.fromkeys(bind.binders, total))
    outs = zip(results, body.ret.args, strict=True)
    found = [read.get(arg) for out, arg in outs if out in shown]
    in_c_order = any(bits is not None and bits & broadcast for bits in found)
    return (with_long_axes if any(bits != every for bits in found) else []), in_c_order


def operands_that_decide_orders(
    body: Lambda, results: Sequence[Local], shown: set[Arg]
) -> tuple[int, ...]:
    """The positions of the operands of a group on whose memory order that of a result in ``shown``
    may depend.

    A kernel that gives all ``results`` in C order needs these operands in C order.
    """
    outs = zip(results, body.ret.args, strict=True)
    deciding = {inner for outer, inner in outs if outer in shown and _long_axes(outer) != 1}
    for bind in reversed(body.binds):
        if not deciding.isdisjoint(bind.binders) and not _is_in_c_order(bind):
            deciding.update([arg for arg in bind.args if _long_axes(arg) != 1])
    return tuple([n for n, param in enumerate(body.params) if param in deciding])


def are_in_c_order(places: Sequence[int], operands: Sequence) -> bool:
    """Whether the operands at these positions are in C order."""
    return all(map(has_c_order, [operands[n] for n in places]))


def are_in_one_order(places: Sequence[int], operands: Sequence) -> bool:
    """Whether the operands at these positions have the same memory order."""
    if are_in_c_order(places, operands):
        return True
    first, *others = [operands[n] for n in places]
    return all(x.shape == first.shape and axis_order(x) == axis_order(first) for x in others)


@frozen(eq=False)
class NumpyOrders:
    """The memory orders in which NumPy has the results of a group, whose kernel gives C order.

    ``places``: the operands that decide. ``by_numpy``: computes the group for a list of operands.
    ``patterns``: for the strides of these operands, an array like each result, None for C order.
    """

    places: Sequence[int]
    by_numpy: Callable
    patterns: BoundedCache = field(init=False, factory=partial(BoundedCache, 64))

    def laid_out(self, results: Any, operands: Sequence) -> Any:
        """The results of the kernel, one or a tuple, as arrays in NumPy's orders."""
        key = tuple([operands[n].strides for n in self.places])
        patterns = self.patterns.get(key)
        if patterns is None:
            with float_errors(all="ignore"):
                computed = self.by_numpy([*operands], np)
            patterns = self.patterns[key] = [*map(_pattern_of, computed)]
        if type(results) is not tuple:
            return _copied_to_pattern(results, patterns[0])
        return tuple(map(_copied_to_pattern, results, patterns))


def _pattern_of(result: Any) -> np.ndarray | None:
    """An array with the strides of a result, without memory; None if the result is in C order."""
    if has_c_order(result):
        return None
    return as_strided(np.empty(1, result.dtype), result.shape, result.strides)


def _copied_to_pattern(result: Any, pattern: np.ndarray | None) -> Any:
    """A result in the memory order of a pattern."""
    if pattern is None:
        return result
    copied = np.empty_like(pattern)
    copied[...] = result
    return copied


def axis_order(x: np.ndarray) -> tuple[int, ...]:
    """The axes of an array from the outermost to the innermost in memory."""
    return tuple(sorted(range(x.ndim), key=lambda n: (-abs(x.strides[n]), n)))


def _is_of_broadcast_operands(bind: Bind) -> bool:
    """Whether a result has more axes that are longer than 1 than any operand has."""
    counts = [_long_axes(x) for x in (*bind.binders, *bind.args)]
    if None in counts:
        return True
    n = len(bind.binders)
    return max(counts[:n]) > max(counts[n:], default=1)  # type: ignore[type-var]


def _is_in_c_order(bind: Bind) -> bool:
    """Whether the result of a bind is in C order, whatever the order of its operands is."""
    return bind.op.product == "matrix" and all(_long_axes(arg) == 2 for arg in bind.args)


def _long_axes(value: Any) -> int | None:
    """The number of axes longer than 1, at least 1; None if it is not known."""
    shape = getattr(value.type, "shape", None)
    if shape is None or any(type(n) is not int for n in shape):
        return None
    return max(1, sum([n != 1 for n in shape]))
