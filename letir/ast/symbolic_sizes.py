"""Shapes with symbolic sizes: whether a shape has any (``is_static_shape``), their values for given
types (``given_sizes``), and attributes with these values substituted (``resize_attrs``).
"""

import math
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.sizes.size import Size, sizes_differ, terms_of
from letir.ast.sizes.size_reads import SIZE_READS
from letir.errors import ShapeError

if TYPE_CHECKING:
    from letir.ast.terms import Bind
    from letir.ast.types import ArrayType


def is_static_shape(shape: Iterable | None) -> bool:
    """Whether a shape is known and all its sizes are numbers, none a ``Size``.

    >>> is_static_shape((2, 3)), is_static_shape((Size.named("n"), 3)), is_static_shape(None)
    (True, False, False)
    """
    return shape is not None and all(type(n) is int for n in shape)


def has_static_shape(aval: "ArrayType | None") -> bool:
    """Whether a type is known, and every size in its shape is a number."""
    return aval is not None and all(type(n) is int for n in aval.shape)


def elementwise_size(binds: Iterable["Bind"]) -> float:
    """The number of elements that the elementwise ones of these binds compute; infinity if the size
    of a result of any of them is not known.
    """
    result = 0
    for bind in binds:
        for binder in bind.binders:
            if not is_static_shape(getattr(binder.type, "shape", None)):
                return math.inf
        result += bind.binders[0].type.size if bind.op.elementwise else 0
    return result


def is_same_size(n: Size | int, m: Size | int) -> bool:
    """Whether two sizes are equal.

    If that depends on the values of names, the answer for the present values is recorded as a
    guard; ShapeError if there are no values.
    """
    size, other = (n, m) if type(n) is Size else (m, n)
    if type(size) is not Size:
        return n == m
    difference = size - other
    if type(difference) is int:
        return not difference
    reads, answer = SIZE_READS.get(), sizes_differ(size, other)
    if answer is None and reads is not None and reads.is_guarded:
        equal = LATE_BOUND["answer_by_guard"](size, operator.eq, other)
        answer = None if equal is None else not equal
    if answer is None:
        raise ShapeError(
            f"cannot tell whether the sizes {n} and {m} are equal\n"
            "  give both the same name, or pass numbers"
        )
    return not answer


def smaller_size(n: Size | int, m: Size | int) -> Size | int:
    """The smaller of two sizes. Raises ShapeError if that depends on the values of names."""
    if type(n) is int:
        n, m = m, n
    return m if n >= m else n


def given_sizes(declared: Iterable, given: Iterable) -> dict:
    """{symbol: size} that maps the symbols in ``declared`` types to sizes of ``given`` ones.

    Their values follow from sizes with one symbol, such as ``n`` or ``2*n+1``. Symbols without such
    a size, and symbols whose given size does not fit, are left out.
    """
    numbers: dict = {}
    later: list = []
    for old, new in zip(declared, given, strict=True):
        if old is new or getattr(old, "shape", None) is None or not hasattr(new, "shape"):
            continue
        if len(old.shape) == len(new.shape):
            for size, n in zip(old.shape, new.shape, strict=True):
                match size.terms if type(size) is Size else ():
                    case (((name,), 1),):
                        numbers.setdefault(name, n)
                    case (((name,), factor),) | (((name,), factor), ((), _)):
                        later.append((name, factor, n - dict(size.terms).get((), 0)))
    for name, factor, n in later:
        if not _leaves_rest(n, factor):
            numbers.setdefault(name, n // factor)
    return {name: n for name, n in numbers.items() if n != Size.named(name)}


def _leaves_rest(size: Any, by: int) -> bool:
    """Whether dividing a size by ``by`` may leave a remainder."""
    return any(c % by for _, c in terms_of(size))


def resize_attrs(attrs: Attrs, sizes: dict) -> Attrs:
    """``attrs`` with symbolic sizes substituted; itself if there are none."""
    if not any(map(has_size, attrs.values())):
        return attrs
    return Attrs({name: _resize_value(value, sizes) for name, value in attrs.items()})


def has_size(value: Any) -> bool:
    """Whether an attribute is, or contains, a symbolic size."""
    kind = type(value)
    if kind is tuple:
        return any(map(has_size, value))
    if kind is slice:
        return Size in (type(value.start), type(value.stop), type(value.step))
    return kind is Size


def has_sizes(attrs: Any, names: tuple[str, ...]) -> bool:
    """Whether one of the attributes with these names is, or contains, a symbolic size."""
    return any(has_size(attrs.get(name)) for name in names)


def _resize_value(value, sizes: dict):
    kind = type(value)
    if kind is tuple:
        return tuple([_resize_value(item, sizes) for item in value])
    if kind is slice:
        ends = value.start, value.stop, value.step
        return slice(*[_resize_value(n, sizes) for n in ends])
    if kind is not Size or value.names.isdisjoint(sizes):
        return value
    return value.substitute(sizes)
