"""Instances of the classes that a tree names: of trusted classes, else plain records.

A text may name any class of this process. A name alone therefore never selects a class, whose
methods a program's caller would run.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from keyword import iskeyword
from operator import itemgetter
from typing import Any

import attrs

from letir.ast.bounded_cache import BoundedCache
from letir.ast.tree_nodes.record_classes import bare_instance, init_arguments
from letir.errors import DTypeError

MAX_CLASSES = 1000  # different ones in a text: each takes memory and a tenth of a millisecond
_known_classes = BoundedCache(1 << 8)  # (name, fields) -> class


class PlainRecord(tuple):
    """A named tuple without a class of the user: the fields that a text names, and nothing else.

    Its classes are made by ``_record_class``, without ``eval``.
    """

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __new__(cls, *values):
        if len(values) != len(cls._fields):
            raise TypeError(f"{cls.__qualname__} has {len(cls._fields)} fields")
        return super().__new__(cls, values)

    @classmethod
    def _make(cls, values: Iterable) -> "PlainRecord":
        return cls(*values)  # optree tells a named tuple by this method and the next

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __getattr__(self, name: str) -> Any:
        try:
            return self[self._fields.index(name)]  # a name with an underscore: no attribute of it
        except ValueError:
            raise AttributeError(f"{self!r} has no field {name!r}", name=name, obj=self) from None

    def __repr__(self):
        inside = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
        return f"{type(self).__qualname__}({inside})"


def _record_class(name: str, fields: tuple[str, ...]) -> type[PlainRecord]:
    """The class of plain records with this name and these fields; the same one for equal arguments.

    Raises ValueError for a name that cannot be a field.
    """
    result = _known_classes.get((name, fields))
    if result is None:
        for field in fields:
            is_own = field.startswith("__") or field in ("_fields", "_make", "_asdict")
            if is_own or not field.isidentifier() or iskeyword(field):
                raise ValueError(f"{field!r} cannot be a field")
        # only public names enter the class: a special method would be called
        shown = {f: property(itemgetter(i)) for i, f in enumerate(fields) if f[0] != "_"}
        members = {**shown, "__slots__": (), "_fields": fields, "__qualname__": name}
        result = type(name.rpartition(".")[2] or name, (PlainRecord,), members)
        _known_classes[name, fields] = result
    return result


def classes_by_name(classes: Iterable[type]) -> dict[str, type]:
    """Trusted classes by the names that texts give them. Raises DTypeError for other objects.

    >>> import dataclasses
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: float
    >>> classes_by_name([Point])
    {'Point': <class 'letir.ast.text.named_nodes.Point'>}
    """
    if not isinstance(classes, tuple | list | set | frozenset):
        raise DTypeError(
            f"classes: expected a tuple of classes, found {type(classes).__name__}\n"
            "  write classes=(Point,)"
        )
    for cls in classes:
        if not isinstance(cls, type) or not (
            dataclasses.is_dataclass(cls) or attrs.has(cls) or _is_named_tuple(cls)
        ):
            raise DTypeError(
                f"classes: {cls!r} is not a dataclass, attrs class or named tuple\n"
                "  pass the classes of the arguments and results of the program"
            )
    return {cls.__qualname__: cls for cls in classes}


def _is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def named_node(name: str, fields: Mapping[str, Any], trusted: Mapping[str, type]) -> Any:
    """An instance of the trusted class called ``name``, else a plain record; no constructor runs.

    Raises ValueError if the fields are not those of the class.
    """
    cls = trusted.get(name)
    if cls is None:
        return tuple.__new__(_record_class(name, tuple(fields)), fields.values())
    is_tuple = _is_named_tuple(cls)
    expected = cls._fields if is_tuple else tuple(init_arguments(cls))  # type: ignore[attr-defined]
    others = set(fields).difference(expected)  # attributes that are not fields
    if (
        (others and is_tuple)
        or not fields.keys() >= {*expected}
        or any(
            not name.isidentifier() or name.startswith("__") or callable(getattr(cls, name, None))
            for name in others
        )
    ):
        raise ValueError(f"its class has the fields {', '.join(expected)}")
    if is_tuple:
        return tuple.__new__(cls, [fields[field] for field in expected])
    return bare_instance(cls, fields)
