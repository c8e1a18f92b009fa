"""The programs that composites stand for, and the numerics and rules that follow from them.

``decomposition`` records the program of a composite, cached by types; the composite is computed and
differentiated by it unless its record has an ``impl`` or rules of its own.
"""

from collections.abc import Callable
from typing import Any

from letir.ast.attrs import NO_ATTRS, Attrs
from letir.ast.bodies import bodies_in, holds_arrays
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import Primitive
from letir.ast.source import name_operation
from letir.ast.terms import Arg, Lambda, Local
from letir.ast.types import WEAK, ArrayType
from letir.errors import DTypeError, LetirError, ShapeError

_MAX_DECOMPOSITIONS = 1 << 10
_MAX_BINDS = 10_000
_TOO_LARGE = object()
_decompositions = BoundedCache(_MAX_DECOMPOSITIONS)


def decomposition(decompose: Callable, types: tuple, attrs: dict) -> Lambda:
    """The program that a composite stands for on operands of these types.

    The type of an operand that is None is None, and the program has no parameter for it.
    """
    key = (decompose, types, Attrs(attrs))  # Attrs distinguishes 1 from True
    result = _decompositions.get(key)
    if result is None:
        result = _decomposition_of(key, attrs)
    if result is _TOO_LARGE:
        raise ShapeError(
            f"an operation stands for more than {_MAX_BINDS} others, on operands of this size"
            "\n  write a loop, such as letir.scan"
        )
    return result


def _decomposition_of(key: tuple, attrs: dict) -> Any:
    """``decomposition``, or ``_TOO_LARGE``, from the table of the body that holds arrays."""
    table = _decompositions
    if holds_arrays(key[-1]):
        # cached on the body that holds the arrays, and freed with it; the table would keep them
        # forever
        bodies = bodies_in(attrs.values())
        table = bodies[0].memo(_own_decompositions) if bodies else {}
    result = table.get(key)
    if result is None:
        result = table[key] = _record_decomposition(key[0], key[1], attrs)
    return result


class _TooManyBinds(Exception):
    """Raised by ``_BoundedBuilder``."""


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
        """``LetBuilder.emit``. Raises _TooManyBinds beyond the limit."""
        if len(self.binds) > _MAX_BINDS:
            raise _TooManyBinds
        return super().emit(op, args, attrs, types)


def _own_decompositions(body: Lambda) -> BoundedCache:
    """The cached decompositions of operations that hold this body."""
    return BoundedCache(_MAX_DECOMPOSITIONS)


def _record_decomposition(decompose: Callable, types: tuple, attrs: dict) -> Any:
    """The program; ``_TOO_LARGE`` is cached in its place, as making one takes long."""
    builder = _BoundedBuilder()
    operands = [builder.param(aval) if aval is not None else None for aval in types]
    try:
        out = decompose(*operands, **attrs)
    except _TooManyBinds:
        return _TOO_LARGE
    return builder.build(out if isinstance(out, tuple) else (out,))


def composite_numerics(
    decompose: Callable, several: bool, name: str = ""
) -> tuple[Callable, Callable]:
    """(impl, aval) of a composite; errors of its decomposition get its ``name``."""

    def stands_for(types, attrs):
        try:
            return decomposition(decompose, types, attrs)
        except LetirError as error:
            name_operation(error, name)
            raise

    def impl(xp, *args, call, **attrs):
        # types of the arrays at hand: the recorded types may have symbolic sizes
        types = tuple(
            ArrayType(a.dtype, a.shape) if hasattr(a, "dtype") else _number_type(a, i, name)
            for i, a in enumerate(args)
        )
        out = call(stands_for(types, attrs), [a for a in args if a is not None])
        return out if several else out[0]

    def aval(*types, **attrs):
        result = tuple(out.type for out in stands_for(types, attrs).ret.args)
        return result if several else result[0]

    return impl, aval


def _number_type(number: Any, i: int, name: str) -> ArrayType | None:
    """The type of a Python number, None for None. Raises DTypeError for other values."""
    kind = WEAK.get(type(number))
    if kind is None and number is not None:
        raise DTypeError(
            f"{name}: operand {i} must be an array or a number, found {number!r} of type "
            f"{type(number).__name__}\n  pass arrays as operands, the rest by keyword"
        )
    return kind


def composite_rules(decompose: Callable, several: bool) -> tuple[Callable, Callable]:
    """(vjp, jvp) of a composite: the derivatives of its decomposition, by the given transform."""

    def stands_for(args, attrs):
        return decomposition(
            decompose, tuple(None if arg is None else type_of_operand(arg) for arg in args), attrs
        )

    def decomposed_vjp(ct, out, *args, transform, wanted=None, **attrs):
        positions = [i for i, arg in enumerate(args) if arg is not None]
        # a number is a parameter of the decomposition too, but nothing reads its cotangent
        needed = [isinstance(args[i], Value) and (wanted is None or wanted[i]) for i in positions]
        program = stands_for(args, attrs)
        result = iter(transform(program, [args[i] for i in positions], ct, wanted=needed))
        return tuple(None if arg is None else next(result) for arg in args)

    def decomposed_jvp(tangents, out, *args, transform, **attrs):
        directions = [t for t, arg in zip(tangents, args, strict=True) if arg is not None]
        result = transform(stands_for(args, attrs), [a for a in args if a is not None], directions)
        return result if several else result[0]

    return decomposed_vjp, decomposed_jvp


def type_of_operand(arg: Any) -> ArrayType | None:
    """The type of an operand of a rule, which is a Value or a Python number."""
    return arg.type if isinstance(arg, Value) else WEAK[type(arg)]


_MADE_IMPL, _ = composite_numerics(None, False)
_MADE_VJP, _ = composite_rules(None, False)


def is_computed_by_parts(record: Primitive) -> bool:
    """Whether a composite is computed by its decomposition and not by a NumPy function."""
    return getattr(record.impl, "__code__", None) is _MADE_IMPL.__code__


def is_derived_by_parts(record: Primitive) -> bool:
    """Whether a composite has no derivative rule of its own and is differentiated by its
    decomposition.
    """
    return getattr(record.vjp, "__code__", None) is _MADE_VJP.__code__
