"""``decomposition``: the program of operations that a composite stands for, cached by types."""

from collections.abc import Callable

from letir.ast.attrs import NO_ATTRS, Attrs
from letir.ast.bodies import bodies_in, holds_arrays
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import LetBuilder
from letir.ast.primitive import Primitive
from letir.ast.terms import Arg, Lambda, Local
from letir.ast.types import ArrayType
from letir.errors import ShapeError

_MOST = 1 << 10
_MOST_BINDS = 20_000
_decompositions = BoundedCache(_MOST)


def decomposition(decompose: Callable, types: tuple, attrs: dict) -> Lambda:
    """The program that a composite stands for on operands of these types.

    The type of an operand that is None is None, and the program has no parameter for it.
    """
    key = (decompose, types, Attrs(attrs))  # Attrs distinguishes 1 from True
    found = _decompositions.get(key)
    if found is not None:
        return found
    table = _decompositions
    if holds_arrays(key[-1]):
        # cached on the body that holds the arrays, and freed with it; the table would keep them
        # forever
        bodies = bodies_in(attrs.values())
        table = bodies[0].memo(_own_decompositions) if bodies else {}
    found = table.get(key)
    if found is None:
        found = table[key] = _record_decomposition(decompose, types, attrs)
    return found


class _BoundedBuilder(LetBuilder):
    """A builder that refuses a program of more binds than anyone would wait for.

    A rule may unroll over a size, and a type may claim any.
    """

    def emit(
        self,
        op: Primitive,
        args: tuple[Arg, ...],
        attrs: Attrs = NO_ATTRS,
        types: tuple[ArrayType | None, ...] | None = None,
    ) -> tuple[Local, ...]:
        """``LetBuilder.emit``. Raises ShapeError beyond the limit."""
        if len(self.binds) > _MOST_BINDS:
            raise ShapeError(
                f"an operation stands for more than {_MOST_BINDS} others, on operands of this size"
                "\n  write a loop, such as letir.scan"
            )
        return super().emit(op, args, attrs, types)


def _own_decompositions(body: Lambda) -> BoundedCache:
    """The cached decompositions of operations that hold this body."""
    return BoundedCache(_MOST)


def _record_decomposition(decompose: Callable, types: tuple, attrs: dict) -> Lambda:
    builder = _BoundedBuilder()
    operands = [builder.param(kind) if kind is not None else None for kind in types]
    out = decompose(*operands, **attrs)
    return builder.build(out if isinstance(out, tuple) else (out,))
