"""The bodies of a bind: Lambdas among its attributes, alone or in tuples (``branches`` of a
``switch``).

Bodies are closed and may be shared by many binds. The functions here visit each body once, however
many binds share it, and use no Python frame per level of nesting.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from letir.ast.attrs import Attrs
from letir.ast.terms import Bind, Lambda

_MAX_CACHED_SIZE = 64  # elements: larger arrays must not be kept alive by a cache

# the attributes that hold programs; in a well-formed program no others do
BODY_ATTRIBUTES = frozenset(
    (
        *("body", "bodies", "branches", "test", "on_true", "on_false", "f", "df"),
        *("primal", "rule", "forward", "backward"),
    )
)


def bodies_of(bind: Bind) -> tuple[Lambda, ...]:
    """The Lambdas among the attributes of ``bind``, also those in tuples, in order.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0 { %1 = grad_of[neg](%0) { %2 = neg(%0) -> (%2) }; return %1 }")
    >>> print(bodies_of(f.binds[0])[0].listing(), end="")
    %1 = neg %0
    return %1
    """
    return bodies_in(bind.attrs.values()) if bind.op.holds_lambdas else ()


def holds_programs(bind: Bind) -> bool:
    """Whether a bind holds programs that passes enter, such as a loop's; a group does not count."""
    return bind.op.bodies is not None and bind.op.role != "fused"


def body_names(bind: Bind) -> list[str]:
    """The names of a bind's bodies: their attributes, with an index in a tuple."""
    result = []
    for name, value in bind.attrs.items():
        inside = bodies_in((value,))
        result += [name] if type(value) is Lambda else [f"{name}[{i}]" for i in range(len(inside))]
    return result


def first_body(bind: Bind, number: Callable | None = None) -> tuple[Lambda, tuple]:
    """(the first body of ``bind``, the operands that it takes: the leading ones of the bind).

    The ``in_place`` rule of operations that run their first body once; ``number`` is unused.
    """
    body = bodies_of(bind)[0]
    return body, bind.args[: len(body.params)]


def bodies_in(values: Iterable) -> tuple[Lambda, ...]:
    """The Lambdas among attributes, also those in tuples."""
    result: list[Lambda] = []
    for value in values:
        kind = type(value)
        if kind is Lambda:
            result.append(value)
        elif kind is tuple:
            result += bodies_in(value)
    return tuple(result)


def holds_arrays(attrs: Attrs) -> bool:
    """Whether attributes keep large arrays alive, directly or as constants of bodies.

    Caches must not use such attributes as keys.
    """
    return any(map(_is_large, attrs.values()))


def _is_large(value) -> bool:
    kind = type(value)
    if kind is np.ndarray:
        return value.size > _MAX_CACHED_SIZE
    if kind is Lambda:
        return value.memo(_has_large_constants)
    return kind is tuple and any(map(_is_large, value))


def _has_large_constants(fn: Lambda) -> bool:
    return any(bind.attrs and holds_arrays(bind.attrs) for bind in fn.binds)


def with_bodies(bind: Bind, new: Sequence[Lambda]) -> Bind:
    """``bind`` with ``bodies_of(bind)`` replaced by these Lambdas; itself if they are the same."""
    attrs = attrs_with(bind.attrs, bodies_of(bind), new)
    if attrs is bind.attrs:
        return bind
    return bind.replace(attrs=attrs)


def attrs_with(attrs: Attrs, old: Sequence[Lambda], new: Sequence[Lambda]) -> Attrs:
    """``attrs`` with the bodies ``old`` replaced by ``new``, in order."""
    if all(a is b for a, b in zip(old, new, strict=True)):
        return attrs
    following = iter(new)
    return Attrs({name: _replace_bodies(value, following) for name, value in attrs.items()})


def _replace_bodies(value, following: Iterator[Lambda]):
    """``value`` with each Lambda in it replaced by the next one of ``following``."""
    if type(value) is Lambda:
        return next(following)
    if type(value) is tuple:
        return tuple([_replace_bodies(item, following) for item in value])
    return value


def _with_changed(fn: Lambda, replacements: dict[int, Lambda]) -> Lambda:
    """``fn`` with each body of its binds replaced by its entry in ``replacements``."""
    attrs: dict[int, Attrs] = {}  # by id: binds that share attributes keep sharing them
    binds, changed = list(fn.binds), False
    for i, bind in enumerate(binds):
        if bind.op.holds_lambdas:
            new_attrs = attrs.get(id(bind.attrs))
            if new_attrs is None:
                old = bodies_of(bind)
                new_attrs = attrs_with(bind.attrs, old, [replacements[id(body)] for body in old])
                attrs[id(bind.attrs)] = new_attrs
            if new_attrs is not bind.attrs:
                binds[i] = bind.replace(attrs=new_attrs)
                changed = True
    return fn.with_binds(tuple(binds)) if changed else fn


def has_bodies(fn: Lambda) -> bool:
    """Whether a bind of ``fn`` holds a program."""
    for bind in fn.binds:  # noqa: SIM110  # one call: passes ask this of every program
        if bind.op.holds_lambdas:
            return True
    return False


def map_bodies(fn: Lambda, change: Callable[[Lambda], Lambda]) -> Lambda:
    """``change`` applied to every body in ``fn`` at any depth, innermost first, then to ``fn``.

    ``change`` handles one level: inner bodies have been changed already. It runs once for each
    body, however many binds share it; ``fn`` itself is returned if nothing changes.
    """
    if not has_bodies(fn):  # the common case
        return change(fn)
    result: dict[int, Lambda] = {}
    for body in reversed(all_bodies(fn)):
        result[id(body)] = change(_with_changed(body, result))
    return result[id(fn)]


def all_bodies(fn: Lambda) -> list[Lambda]:
    """``fn`` and every Lambda in it at any depth, once each, outer ones before inner ones."""
    order: list[Lambda] = []
    done: set[int] = set()
    stack: list[tuple[Lambda, bool]] = [(fn, False)]
    while stack:  # depth first: a body is added after all that it holds, in reverse
        body, is_finished = stack.pop()
        if is_finished:
            order.append(body)
        elif id(body) not in done:
            done.add(id(body))
            stack.append((body, True))
            inner = [inner_body for bind in body.binds for inner_body in bodies_of(bind)]
            stack.extend(
                [
                    (inner_body, False)
                    for inner_body in reversed(inner)
                    if id(inner_body) not in done
                ]
            )
    order.reverse()
    return order
