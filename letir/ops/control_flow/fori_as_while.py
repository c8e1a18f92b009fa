"""A counted loop as one that runs until a test fails: it carries the number of the iteration."""

from collections.abc import Sequence

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.terms import Lambda, Local
from letir.ast.types import WEAK, ArrayType
from letir.ops.elementwise.casting import cast, weaken


def is_weak(kind: ArrayType | None) -> bool:
    """Whether it is the type of a Python number."""
    return kind is not None and kind.weak


def counting(body: Lambda, kind: ArrayType, n_carry: int, bound: ArrayType | None = None) -> Lambda:
    """The body of a counted loop as one that carries the number of the iteration, a value of type
    ``kind``, as its last; ``bound`` is the type of a further operand, which it does not read.

    Without one it is the body of a ``scan``, which carries no Python numbers.
    """
    builder, own = LetBuilder(), body.params[1 : 1 + n_carry]
    kinds = [param.type if bound is not None else _strong(param.type) for param in own]
    given = [builder.param(*pair) for pair in zip(kinds, [p.name for p in own], strict=True)]
    carry = [as_kind(x, param.type) for x, param in zip(given, own, strict=True)]
    index = builder.param(kind, body.params[0].name)
    captured = [builder.param(param.type, param.name) for param in body.params[1 + n_carry :]]
    if bound is not None:
        builder.param(bound)
    found = builder.call(body, [as_kind(index, body.params[0].type), *carry, *captured])
    last = [as_kind(x, kind) for x, kind in zip(found, kinds, strict=True)]
    return builder.build([*last, as_kind(index + 1, kind)])


def _strong(kind: ArrayType | None) -> ArrayType | None:
    """The type of an array where ``kind`` is that of a Python number."""
    return ArrayType(kind.dtype, kind.shape) if is_weak(kind) else kind


def as_kind(x, kind: ArrayType | None):
    """A number as one of Python, or as an array; other values as they are."""
    found = x.type if isinstance(x, Value) else WEAK[type(x)]
    if kind is None or found is None or found.weak == kind.weak or kind.shape:
        return x
    if not isinstance(x, Value):
        return np.asarray(x, kind.dtype)[()]
    return weaken(x) if kind.weak else cast(x, kind.dtype)


def below(params: Sequence[Local], n_carry: int) -> Lambda:
    """Whether the number of the iteration, after the carried values, is below the last operand."""
    builder = LetBuilder()
    given = [builder.param(param.type, param.name) for param in params]
    return builder.build([given[n_carry] < given[-1]])
