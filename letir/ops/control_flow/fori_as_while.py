"""``fori_loop`` as a loop that carries its iteration number: a ``scan`` or a ``while_loop``."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.derivative_types import strong_type
from letir.ast.terms import Lambda, Local
from letir.ast.types import WEAK, ArrayType
from letir.ops.elementwise.casting import cast, weaken


def is_weak(aval: ArrayType | None) -> bool:
    """Whether ``aval`` is the type of a Python number."""
    return aval is not None and aval.weak


def counting_body(
    body: Lambda, aval: ArrayType, n_carry: int, bound: ArrayType | None = None
) -> Lambda:
    """The body of a ``fori_loop``, changed to carry the iteration number as its last carried value.

    ``aval``: the type of the iteration number. ``bound``: the type of the upper bound, a last
    operand that the body does not read; without it the result is a body for ``scan``, in which
    Python numbers are carried as arrays.
    """
    builder, own = LetBuilder(), body.params[1 : 1 + n_carry]
    avals = [param.type if bound is not None else strong_type(param.type) for param in own]
    inputs = [builder.param(*pair) for pair in zip(avals, [p.name for p in own], strict=True)]
    carry = [convert_number(x, param.type) for x, param in zip(inputs, own, strict=True)]
    index = builder.param(aval, body.params[0].name)
    captured = [builder.param(param.type, param.name) for param in body.params[1 + n_carry :]]
    if bound is not None:
        builder.param(bound)
    next_carry = builder.call(body, [convert_number(index, body.params[0].type), *carry, *captured])
    last = [convert_number(x, aval) for x, aval in zip(next_carry, avals, strict=True)]
    return builder.build([*last, convert_number(index + 1, aval)])


def convert_number(x: Any, aval: ArrayType | None) -> Any:
    """A scalar as a Python number if ``aval`` is weak, else as an array; other values unchanged."""
    actual = x.type if isinstance(x, Value) else WEAK[type(x)]
    if aval is None or actual is None or actual.weak == aval.weak or aval.shape:
        return x
    if not isinstance(x, Value):
        return np.asarray(x, aval.dtype)[()]
    return weaken(x) if aval.weak else cast(x, aval.dtype)


def bound_test(params: Sequence[Local], n_carry: int) -> Lambda:
    """The loop test ``iteration number < upper bound``, for operands like ``params``.

    The iteration number comes after ``n_carry`` carried values; the upper bound comes last.
    """
    builder = LetBuilder()
    inputs = [builder.param(param.type, param.name) for param in params]
    return builder.build([inputs[n_carry] < inputs[-1]])
