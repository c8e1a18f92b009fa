"""Symbolic sizes: whether a shape has any (``is_static_shape``), their values for given types
(``given_sizes``), and attributes with these values substituted (``resize_attrs``).
"""

from collections.abc import Iterable

from letir.ast.attrs import Attrs
from letir.ast.types import ArrayType, Size


def is_static_shape(shape: Iterable | None) -> bool:
    """Whether a shape is known and all its sizes are numbers, none a ``Size``.

    >>> is_static_shape((2, 3)), is_static_shape((Size.named("n"), 3)), is_static_shape(None)
    (True, False, False)
    """
    return shape is not None and all(type(n) is int for n in shape)


def has_static_shape(kind: ArrayType | None) -> bool:
    """Whether a type is known, and every size in its shape is a number."""
    return kind is not None and all(type(n) is int for n in kind.shape)


def given_sizes(declared: Iterable, given: Iterable) -> dict:
    """{symbol: size} that maps the symbols in ``declared`` types to sizes of ``given`` ones.

    Symbols that are nowhere a size by themselves are left out, and so are sizes that do not fit.
    """
    found: dict = {}
    for old, new in zip(declared, given, strict=True):
        if old is new or getattr(old, "shape", None) is None or not hasattr(new, "shape"):
            continue
        if len(old.shape) == len(new.shape):
            for size, n in zip(old.shape, new.shape, strict=True):
                if type(size) is Size and len(size.terms) == 1 and size.terms[0][1] == 1:
                    names = size.terms[0][0]
                    if len(names) == 1:
                        found.setdefault(names[0], n)
    return {name: n for name, n in found.items() if n != Size.named(name)}


def resize_attrs(attrs: Attrs, sizes: dict) -> Attrs:
    """``attrs`` with symbolic sizes substituted; itself if there are none."""
    if not any(type(value) is tuple and _has_size(value) for value in attrs.values()):
        return attrs
    return Attrs({name: _resize_value(value, sizes) for name, value in attrs.items()})


def _has_size(value: tuple) -> bool:
    return any(type(n) is Size or (type(n) is tuple and _has_size(n)) for n in value)


def _resize_value(value, sizes: dict):
    if type(value) is tuple:
        return tuple([_resize_value(item, sizes) for item in value])
    if type(value) is not Size or value.names.isdisjoint(sizes):
        return value
    total = 0
    for names, factor in value.terms:
        product = factor
        for name in names:
            product = product * sizes.get(name, Size.named(name))
        total = total + product
    return total
