"""``decomposition``: the program of operations that a composite stands for, cached by types."""

from collections.abc import Callable

from letir.ast.attrs import Attrs
from letir.ast.bodies import bodies_in, holds_arrays
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import LetBuilder
from letir.ast.terms import Lambda

_MOST = 1 << 10
_decompositions = BoundedCache(_MOST)


def decomposition(decompose: Callable, types: tuple, attrs: dict) -> Lambda:
    """The program that a composite stands for on operands of these types.

    The type of an operand that is None is None, and the program has no parameter for it.
    """
    key = (decompose, types, Attrs(attrs))  # Attrs: 1 and True are two keys
    found = _decompositions.get(key)
    if found is not None:
        return found
    table = _decompositions
    if holds_arrays(key[-1]):
        # kept with the body that holds the arrays, and freed with it; the table would never free
        # them
        bodies = bodies_in(attrs.values())
        table = bodies[0].memo(_own_decompositions) if bodies else {}
    found = table.get(key)
    if found is None:
        found = table[key] = _record_decomposition(decompose, types, attrs)
    return found


def _own_decompositions(body: Lambda) -> BoundedCache:
    """The cached decompositions of operations that hold this body."""
    return BoundedCache(_MOST)


def _record_decomposition(decompose: Callable, types: tuple, attrs: dict) -> Lambda:
    builder = LetBuilder()
    operands = [builder.param(kind) if kind is not None else None for kind in types]
    out = decompose(*operands, **attrs)
    return builder.build(out if isinstance(out, tuple) else (out,))
