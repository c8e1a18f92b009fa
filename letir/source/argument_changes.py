"""The statements of a generated function that store results in its arguments, as a program does.

Written for lists, dicts, attrs classes and dataclasses; other programs return what they store.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import optree

from letir.ast.terms import Lambda
from letir.ast.tree_nodes.stored_results import Place, SameAs, parse_place
from letir.source.numpy_literals import literal_text
from letir.source.signature import can_build, can_unpack, structure_expression
from letir.source.writer import Writer


def can_store(fn: Lambda) -> bool:
    """Whether a generated function can store what the program stores in its arguments."""
    if fn.in_tree is None or not can_unpack(fn.in_tree.spec):
        return False
    spec, arguments = fn.out_tree.spec, fn.in_tree.example()
    roots = dict(zip(("args", "kwargs"), arguments, strict=True))
    places = map(parse_place, spec.entries()[1:])
    return all(_can_write(child, roots) for child in spec.children()) and all(
        place.action != "extend" or type(_container_at(roots, place)) is list for place in places
    )


def _can_write(spec: optree.PyTreeSpec, roots: dict) -> bool:
    """Whether an expression can make a value with containers of the arguments in it."""
    if spec.type is SameAs:
        return _place_of(spec).root in roots
    children = spec.children()
    return can_build(spec) or (
        spec.type in (tuple, list, dict) and all(_can_write(child, roots) for child in children)
    )


def _place_of(spec: optree.PyTreeSpec) -> Place:
    """The place of a ``SameAs``."""
    node: Any = spec.unflatten(())
    return parse_place(node.place)


def _container_at(roots: dict, place: Place) -> Any:
    """The container that a change at ``place`` concerns, in an example of the arguments."""
    container = roots[place.root]
    for is_name, key in place.steps[:-1]:
        container = getattr(container, key) if is_name else container[key]
    return container


def write_stores(writer: Writer, fn: Lambda, texts: Sequence[str], head: Sequence[str]) -> str:
    """Write the statements that store results; returns the expression of the function's result.

    ``head``: the names of the parameters. Values are computed before the first change.
    """
    spec, rest = fn.out_tree.spec, iter(texts)
    of_args, of_kwargs = fn.in_tree.spec.children()
    names: dict = {("args", i): name for i, name in enumerate(head[: of_args.num_children])}
    names |= {("kwargs", word): word for word in of_kwargs.entries()}
    places = [parse_place(text) for text in spec.entries()[1:]]
    result, *values = [_expression(writer, child, rest, names) for child in spec.children()]
    owners = [_owner(place, names) for place in places]
    if len(places) > 1 or _refers(spec):  # the first change may move what the next ones concern
        owners = [_named(writer, owner) for owner in owners]
        result, *values = [_named(writer, value) for value in (result, *values)]
    for owner, place, value in zip(owners, places, values, strict=True):
        target = f"{owner}{_last_step(place)}"
        writer.line(f"del {target}" if place.action == "delete" else f"{target} = {value}")
    return result


def _refers(spec: optree.PyTreeSpec) -> bool:
    """Whether containers of the arguments are in a value."""
    return spec.type is SameAs or any(map(_refers, spec.children()))


def _named(writer: Writer, value: str) -> str:
    """A name for the value of an expression."""
    if value.isidentifier():
        return value
    name = writer.names.fresh("stored")
    writer.line(f"{name} = {value}")
    return name


def _expression(writer: Writer, spec: optree.PyTreeSpec, texts: Iterator[str], names: dict) -> str:
    """The expression of a value with containers of the arguments in it."""
    if spec.type is SameAs:
        place = _place_of(spec)
        is_root = len(place.steps) == 1
        return _owner(place, names) + ("" if is_root else _last_step(place))
    if not _refers(spec):
        return structure_expression(writer, spec, texts)
    children = [_expression(writer, child, texts, names) for child in spec.children()]
    if spec.type is dict:
        keys = map(literal_text, spec.entries())
        return f"{{{', '.join(f'{k}: {v}' for k, v in zip(keys, children, strict=True))}}}"
    inside = ", ".join(children)
    if spec.type is list:
        return f"[{inside}]"
    return f"({inside}{',' if len(children) == 1 else ''})"


def _owner(place: Place, names: dict) -> str:
    """The expression of the container that a change at a place concerns, or of an argument."""
    (_, first), *steps = place.steps
    ends = [f".{key}" if is_name else f"[{literal_text(key)}]" for is_name, key in steps[:-1]]
    return f"{names[place.root, first]}{''.join(ends)}"


def _last_step(place: Place) -> str:
    """The text of the last step to a place."""
    is_name, key = place.steps[-1]
    if is_name:
        return f".{key}"
    return f"[{key}:]" if place.action == "extend" else f"[{literal_text(key)}]"
