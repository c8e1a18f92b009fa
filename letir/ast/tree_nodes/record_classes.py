"""Attrs classes, dataclasses and namespaces as nodes of trees, registered when first seen."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import attrs
import optree

from letir.ast import LATE_BOUND
from letir.ast.pytrees import GENERATORS, NAMESPACE, NODES, is_generator_class, is_namespace


def init_arguments(cls: type) -> dict[str, str]:
    """{field: parameter of ``__init__``} of an attrs class or a dataclass."""
    if attrs.has(cls):
        # alias: a field _x is the argument x
        return {f.name: f.alias for f in attrs.fields(cls) if f.init}
    return {f.name: f.name for f in dataclasses.fields(cls) if f.init}


def register_class(cls: type) -> None:
    """Register an attrs class or a dataclass as a node of trees whose children are its fields, and
    the other attributes that an instance has.

    An instance is rebuilt without ``__init__``, which may compute with its arguments.
    """
    if is_generator_class(cls):
        LATE_BOUND["generator_node"](cls)
        NODES.add(cls)
        GENERATORS.add(cls)
        return
    if is_namespace(cls):
        _register_namespace(cls)
        return
    names = list(init_arguments(cls))  # once: fields of a class do not change

    def children(instance):
        others = other_attributes(instance, names)
        keys = (*names, *others)
        return [getattr(instance, key) for key in keys], others, keys

    def rebuild(others, values):
        return bare_instance(cls, dict(zip((*names, *others), values, strict=True)))

    optree.register_pytree_node(cls, children, rebuild, namespace=NAMESPACE)
    NODES.add(cls)


def other_attributes(instance: Any, names: Collection[str]) -> tuple[str, ...]:
    """The attributes of an instance of an attrs class or dataclass other than ``names``, sorted.

    Those are fields that ``__init__`` does not take, and attributes that are not fields.
    """
    slots = [f.name for f in getattr(instance, "__attrs_attrs__", ())]
    slots += getattr(instance, "__dataclass_fields__", ())
    found = {name for name in slots if hasattr(instance, name)}
    return tuple(sorted((found | getattr(instance, "__dict__", {}).keys()).difference(names)))


def _register_namespace(cls: type) -> None:
    """Register a class as a node of trees whose children are each instance's own attributes."""

    def children(instance):
        names = tuple(sorted(vars(instance)))
        return [getattr(instance, name) for name in names], names, names

    def rebuild(names, values):
        return cls(**dict(zip(names, values, strict=True)))

    optree.register_pytree_node(cls, children, rebuild, namespace=NAMESPACE)
    NODES.add(cls)


def bare_instance(cls: type, fields: Mapping) -> Any:
    """An instance with these fields, made without its ``__init__``."""
    try:
        result: Any = object.__new__(cls)
    except TypeError:  # a subclass of a class in C, such as Exception
        result = cls.__new__(cls)  # type: ignore[call-overload]
    for name, value in fields.items():
        object.__setattr__(result, name, value)  # a frozen class refuses setattr
    return result


LATE_BOUND["register_class"] = register_class
