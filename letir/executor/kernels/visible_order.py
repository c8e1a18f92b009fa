"""Which values of a program may have another memory order than NumPy gives them.

The order of an array in memory is visible in the results of a program: elementwise operations and
reductions lay out their results like their operands. Where no result of the program shows it,
matrix products choose the order in which BLAS writes and reads them fastest. A kernel with several
results gives all of them the order of all its operands.
"""

from typing import Any

import numpy as np

from letir.ast.terms import Arg, Bind, Lambda, Local

_MAX_STEPS = 1 << 18  # binds, counted once for each product


def free_result_orders(fn: Lambda, calls: dict[Local, Any]) -> None:
    """Set ``is_free`` and ``like`` of the products that compute these values of a program.

    Nothing is set in long programs with many products: it takes linear time for each of them.
    """
    if len(calls) * len(fn.binds) > _MAX_STEPS:
        return
    for value, call in calls.items():
        followers = _OrderFollowers(fn, calls, value)
        if not followers.are_visible():
            call.is_free = True
            for product, n in followers.readers:
                like = [*product.like]
                like[n] = call
                product.like = tuple(like)


class _OrderFollowers:
    """The values whose memory order follows from the result ``value`` of a product.

    ``alike``: the values with the same axes in the same order. ``readers``: (product, operand
    number) of the products that read one of them, and whose results keep NumPy's order.
    """

    def __init__(self, fn: Lambda, calls: dict[Local, Any], value: Local):
        self.fn, self.calls, self.value = fn, calls, value
        self.carriers: set[Arg] = {value}
        self.alike: set[Arg] = {value}
        self.readers: list[tuple[Any, int]] = []

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
            self.readers += [(call, n) for n in places]
            return all(bind.args[n] in self.alike and call.like[n] is None for n in places)
        if _is_in_c_order(bind):
            return True
        is_elementwise = bind.op.elementwise or bind.op.role == "fused"
        is_view = bind.op.memory == "view" and bind.attrs.get("order", "C") == "C"
        if not (is_elementwise or bind.op.reduction is not None or is_view):
            return False
        wide = [binder for binder in bind.binders if is_view or _long_axes(binder) != 1]
        self.carriers.update(wide)
        if is_elementwise and self.is_like_operands(bind):
            self.alike.update(wide)
        return all(_long_axes(binder) is not None for binder in bind.binders)

    def is_like_operands(self, bind: Bind) -> bool:
        """Whether all operands with all axes of the result have the order of the product."""
        shape = getattr(bind.binders[0].type, "shape", None)
        full = [x for x in bind.args if getattr(x.type, "shape", None) == shape]
        return bool(full) and all(x in self.alike for x in full)


def visible_orders(fn: Lambda) -> set[Arg]:
    """The values of a program whose memory order a result may show."""
    shown = {arg for arg in fn.ret.args if _long_axes(arg) != 1}
    for bind in reversed(fn.binds):
        if not shown.isdisjoint(bind.binders) and not _is_in_c_order(bind):
            shown.update([arg for arg in bind.args if _long_axes(arg) != 1])
    return shown


def operands_of_mixed_order(group: Bind, shown: set[Arg]) -> list[int]:
    """The operands of a fused bind with several axes, if a result with a visible order (``shown``)
    depends on some of them only. The kernel would give it the order of all of them.
    """
    body: Lambda = group.attrs["body"]
    wide = [n for n, param in enumerate(body.params) if _long_axes(param) != 1]
    read: dict[Arg, int] = {body.params[n]: 1 << n for n in wide}  # a bit each
    for bind in body.binds:
        total = 0
        for arg in bind.args:
            total |= read.get(arg, 0)
        read.update(dict.fromkeys(bind.binders, total))
    every = sum([1 << n for n in wide])
    outs = zip(group.binders, body.ret.args, strict=True)
    return wide if any(out in shown and read.get(arg) != every for out, arg in outs) else []


def axis_order(x: np.ndarray) -> tuple[int, ...]:
    """The axes of an array from the outermost to the innermost in memory."""
    return tuple(sorted(range(x.ndim), key=lambda n: (-x.strides[n], n)))


def _is_in_c_order(bind: Bind) -> bool:
    """Whether the result of a bind is in C order, whatever the order of its operands is."""
    return bind.op.product == "matrix" and all(_long_axes(arg) == 2 for arg in bind.args)


def _long_axes(value: Any) -> int | None:
    """The number of axes longer than 1, at least 1; None if it is not known."""
    shape = getattr(value.type, "shape", None)
    if shape is None or any(type(n) is not int for n in shape):
        return None
    return max(1, sum([n != 1 for n in shape]))
