"""A counted loop as one that runs until a test fails: it carries the number of the iteration."""

from collections.abc import Sequence

from letir.ast.builder import LetBuilder, Value
from letir.ast.terms import Lambda, Local
from letir.ast.types import ArrayType
from letir.ops.casting import cast, weaken


def is_weak(kind: ArrayType | None) -> bool:
    """Whether it is the type of a Python number."""
    return kind is not None and kind.weak


def counting(body: Lambda, kind: ArrayType, n_carry: int, bound: ArrayType | None = None) -> Lambda:
    """The body of a counted loop as one that carries the number of the iteration, a value of type
    ``kind``, as its last; ``bound`` is the type of a further operand, which it does not read.
    """
    builder = LetBuilder()
    carry = [builder.param(param.type, param.name) for param in body.params[1 : 1 + n_carry]]
    index = builder.param(kind, body.params[0].name)
    captured = [builder.param(param.type, param.name) for param in body.params[1 + n_carry :]]
    if bound is not None:
        builder.param(bound)
    found = builder.call(body, [as_kind(index, body.params[0].type), *carry, *captured])
    return builder.build([*found, as_kind(index + 1, kind)])


def as_kind(number: Value, kind: ArrayType | None) -> Value:
    """An integer as a Python number, or as an array."""
    if number.type is kind or kind is None:
        return number
    return weaken(number) if kind.weak else cast(number, kind.dtype)


def below(params: Sequence[Local], n_carry: int) -> Lambda:
    """Whether the number of the iteration, after the carried values, is below the last operand."""
    builder = LetBuilder()
    given = [builder.param(param.type, param.name) for param in params]
    return builder.build([given[n_carry] < given[-1]])
