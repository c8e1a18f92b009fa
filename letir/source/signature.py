"""The signature of a generated function: arguments and results nested as in the user's function.

Tuples, lists, dicts and named tuples are unpacked at the top and built again at the end; attrs
classes and dataclasses are unpacked. Other nestings become flat, as a comment says.
"""

import dataclasses
import itertools
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import optree
from attrs import define, field

from letir.ast.pytrees import Static, Text, keys_in_order
from letir.ast.terms import Lambda, Local
from letir.errors import ExportError
from letir.source.numpy_literals import literal_text, printable_line
from letir.source.writer import Writer

_SEQUENCES = (tuple, list, deque)
_MAPPINGS = (dict, OrderedDict)
_PLAIN_KINDS = {None, type(None), *_SEQUENCES, *_MAPPINGS}
_PLAIN = ("'", '"', "True", "False", *"-0123456789")  # first characters of static leaves' texts


# ---- parameters ----


@define(eq=False)
class Signature:
    """The parameters of a function, and the statements that unpack them."""

    writer: Writer
    names: dict[Local, str]
    head: list[str] = field(factory=list)
    later: deque = field(factory=deque)  # (structure, leaves, name) still to be unpacked

    def argument(self, spec: optree.PyTreeSpec, leaves: list, keyword: str | None = None) -> None:
        """Add an argument and the statements that unpack it. A ``keyword`` keeps its name."""
        writer = self.writer
        if spec.type is None and type(leaves[0]) is Local:
            name = writer.parameter(leaves[0], keyword or self.names[leaves[0]], keyword)
        else:
            name = keyword or writer.names.fresh(_common_name(leaves, f"arg{len(self.head)}", 1))
            # the name must be assigned before its value is unpacked
            self.later.append((spec, leaves, name))
        self.head.append(name)
        while self.later:
            self.unpack_value(*self.later.popleft())

    def unpack_value(self, spec: optree.PyTreeSpec, leaves: list, name: str) -> None:
        """Statements that unpack the value called ``name``."""
        rest = iter(leaves)
        if spec.type is None:
            self.check(leaves[0], name)
        elif _is_pattern(spec) and leaves:
            self.writer.line(f"{without_brackets(self.target(spec, rest))} = {name}")
        else:
            for child, key in zip(spec.children(), spec.entries(), strict=True):
                if child.num_leaves:
                    is_item = spec.type in _MAPPINGS
                    part = f"{name}[{literal_text(key)}]" if is_item else f"{name}.{key}"
                    self.writer.line(f"{self.target(child, rest)} = {part}")

    def target(self, spec: optree.PyTreeSpec, leaves: Iterator, name: str | None = None) -> str:
        """The assignment target for a structure; parts that need more are added to ``later``."""
        if not spec.num_leaves:  # an empty container in a pattern has nothing to name
            return "_"
        if _is_pattern(spec):
            targets = [
                self.target(child, leaves, field if child.type is None else None)
                for child, field in zip(spec.children(), _fields_of(spec), strict=True)
            ]
            return f"({', '.join(targets)}{',' if len(targets) == 1 else ''})"
        own = [next(leaves) for _ in range(spec.num_leaves)]
        if spec.type is None and type(own[0]) is Local:
            return self.writer.parameter(own[0], name or self.names[own[0]])
        name = self.writer.names.fresh(name or _common_name(own, "static"))
        self.later.append((spec, own, name))
        return name

    def check(self, static: Static, name: str) -> None:
        """Write a check that a static argument has its recorded value, where that is possible."""
        if static.text.startswith(_PLAIN):
            expected = literal_text(f"this source is for {name} = {static.text}, found ")
            with self.writer.block(f"if {name} != {static.text}:"):
                self.writer.line(f"raise ValueError({expected} + repr({name}))")
        else:
            self.writer.line(f"# recorded for {name} = {printable_line(static.text)}")


def _is_pattern(spec: optree.PyTreeSpec) -> bool:
    """Whether an assignment can unpack a structure."""
    aval = spec.type
    return aval in _SEQUENCES or (aval is not None and optree.is_namedtuple_class(aval))


def without_brackets(pattern: str) -> str:
    """A pattern of several names, without the brackets around it."""
    return pattern if pattern.endswith(",)") or "\n" in pattern else pattern[1:-1]


def _fields_of(spec: optree.PyTreeSpec) -> Sequence[str | None]:
    """The field names of a named tuple."""
    return getattr(spec.type, "_fields", None) or [None] * spec.num_children


def _common_name(leaves: list, otherwise: str, most: int | None = None) -> str:
    """The user's name for a structure: the common prefix of its leaves' paths, shortened."""
    paths = [leaf.name.split(".") for leaf in leaves if type(leaf) is Local and leaf.name]
    if not paths:
        return otherwise
    shared = [parts[0] for parts in itertools.takewhile(_is_one, zip(*paths, strict=False))]
    return ".".join(((shared[:-1] if len(paths) == 1 else shared) or paths[0])[:most])


def _is_one(parts: tuple) -> bool:
    """Whether all items of a tuple are equal."""
    return len(set(parts)) == 1


def parameter_names(fn: Lambda) -> dict[Local, str]:
    """A name for each parameter: the last part of its path, or the whole path if that is not a
    unique name.
    """
    paths = {param: param.name or f"x{i}" for i, param in enumerate(fn.params, start=1)}
    ends = Counter(path.rpartition(".")[2] for path in paths.values())
    roots = {path.partition(".")[0] for path in paths.values() if "." in path}
    names = {}
    for param, path in paths.items():
        end = path.rpartition(".")[2]
        plain = end.isidentifier() and ends[end] == 1 and end not in roots
        names[param] = end if plain else path
    return names


def _kinds_of(spec: optree.PyTreeSpec) -> set:
    """The kinds of containers in a structure; None stands for its leaves."""
    kinds, pending = set(), [spec]
    while pending:
        spec = pending.pop()
        kinds.add(spec.type)
        pending += spec.children()
    return kinds


def _has_plain_keys(spec: optree.PyTreeSpec) -> bool:
    """Whether the keys of all dicts in a structure can be written."""
    pending = [spec]
    while pending:
        spec = pending.pop()
        pending += spec.children()
        if spec.type in _MAPPINGS and not all(map(_is_plain, spec.entries())):
            return False
    return True


def _is_plain(key) -> bool:
    """Whether a key can be written."""
    try:
        return bool(literal_text(key)) and key == key  # a nan is found by identity only
    except ExportError:
        return False


def can_unpack(spec: optree.PyTreeSpec) -> bool:
    """Whether a generated function can take arguments of this structure."""
    return _has_plain_keys(spec) and all(
        aval in _PLAIN_KINDS
        or optree.is_namedtuple_class(aval)
        or attrs.has(aval)
        or dataclasses.is_dataclass(aval)
        for aval in _kinds_of(spec)
    )


# ---- results ----


def can_build(spec: optree.PyTreeSpec) -> bool:
    """Whether a generated function can return results of this structure."""
    return _has_plain_keys(spec) and all(
        aval in _PLAIN_KINDS or aval is Text or optree.is_namedtuple_class(aval)
        for aval in _kinds_of(spec)
    )


def structure_expression(writer: Writer, spec: optree.PyTreeSpec, texts: Iterator[str]) -> str:
    """The expression of a structure of these leaves."""
    kind: Any = spec.type
    if kind is None:
        return next(texts)
    if kind is Text:
        return literal_text(str(spec.unflatten(())))
    children = [structure_expression(writer, child, texts) for child in spec.children()]
    inside = ", ".join(children)
    if kind is type(None):
        return "None"
    if kind is tuple:
        return f"({inside}{',' if len(children) == 1 else ''})"
    if kind is list:
        return f"[{inside}]"
    if kind in _MAPPINGS:
        values = dict(zip(spec.entries(), children, strict=True))
        items = [f"{literal_text(key)}: {values[key]}" for key in keys_in_order(spec)]
        inside = f"{{{', '.join(items)}}}"
        if kind is dict:
            return inside
    if kind in (OrderedDict, deque):
        inside = f"[{inside}]" if kind is deque else inside
        return f"{writer.module.imported('collections', kind.__name__)}({inside})"
    return f"{writer.module.namedtuple(kind.__name__, kind._fields)}({inside})"
