"""``with_varying_numbers``: steps of an unrolled loop share kernels, whatever their numbers are.

A number in the source of a kernel, such as the step size ``0.1 / (k + 1)`` of the step ``k``, would
give each step a kernel of its own.
"""

from collections import defaultdict
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ast.types import ArrayType
from letir.ops.shape.shape_and_creation import constant
from letir.passes.fusion.fusing import fused_level
from letir.passes.fusion.regrouping import without_groups

_MAX_NUMBERS = 8  # different numbers at one place of the code, for which kernels are compiled


def with_varying_numbers(fn: Lambda) -> Lambda:
    """``fn`` with arrays without axes in place of the numbers that differ between operations of
    one line of code, if there are more than a few.

    Groups are made anew if there are some. Results keep their bits. Linear in the number of binds.
    """
    if not any(map(_numbers_of, _elementwise_binds(fn))):
        return fn
    flat = without_groups(fn)
    numbers: dict[tuple, set[bytes]] = defaultdict(set)
    for bind in flat.binds:
        for n, value in _numbers_of(bind):
            numbers[_place_of(bind, n)].add(value.tobytes())
    varying = {place for place, found in numbers.items() if len(found) > _MAX_NUMBERS}
    if not varying:
        return fn
    result = _Rewriting(varying).run(flat)
    return result if flat is fn else fused_level(result)


def _elementwise_binds(fn: Lambda) -> list[Bind]:
    groups = [bind.attrs["body"].binds for bind in fn.binds if bind.op.role == "fused"]
    return [*fn.binds, *[bind for binds in groups for bind in binds]]


def _numbers_of(bind: Bind) -> list[tuple[int, np.ndarray]]:
    """(position, array) for each number that an array without axes can replace as an operand."""
    if not bind.op.elementwise or bind.op.cost != "cheap":
        return []
    values = [(n, arg.value) for n, arg in enumerate(bind.args) if type(arg) is Const]
    if not values:
        return []
    types = [x.type for x in bind.locals()]
    if not all(type(aval) is ArrayType and not aval.weak for aval in types):
        return []
    dtype, *others = {aval.dtype for aval in types if aval.dtype != bool} or {np.dtype(bool)}
    if others or dtype.kind != "f":
        return []
    return [(n, np.array(value, dtype)) for n, value in values if _is_exact(value)]


def _is_exact(value: Any) -> bool:
    """Whether an operand is a number of moderate size, whose conversion raises no warning."""
    return type(value) in (int, float) and abs(value) < 1e30


def _place_of(bind: Bind, n: int) -> tuple:
    """The line of code, operation, operand and dtype."""
    source = bind.source
    place = None if source is None else (source.file, source.line)
    return place, bind.op, n, bind.binders[0].type.dtype


@define(eq=False)
class _Rewriting:
    """The replacement of numbers at these places."""

    varying: set[tuple]
    made: dict[tuple, Local] = field(factory=dict)
    binds: list[Bind] = field(factory=list)

    def run(self, fn: Lambda) -> Lambda:
        for bind in fn.binds:
            args: list[Arg] = list(bind.args)
            for n, value in _numbers_of(bind):
                if _place_of(bind, n) in self.varying:
                    args[n] = self.array(value, bind)
            self.binds.append(bind.with_args(tuple(args)))
        return fn.with_binds(self.binds)

    def array(self, value: np.ndarray, bind: Bind) -> Local:
        """The local for a number; its bind is made at the first use."""
        key = value.dtype, value.tobytes()
        if key not in self.made:
            self.made[key] = result = Local(ArrayType(value.dtype, ()))
            attrs = constant.complete({"value": value})
            self.binds.append(Bind((result,), constant, (), attrs, bind.source))
        return self.made[key]
