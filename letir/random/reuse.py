"""``reused_keys``: which random keys a program uses more than once."""

from typing import Any

from attrs import frozen

from letir.ast import entry_point
from letir.ast.attrs import token
from letir.ast.bodies import all_bodies
from letir.ast.terms import Bind, Lambda, Local


@frozen
class Reuse:
    """A key that two or more binds use: their numbers are equal, or depend on each other.

    >>> import letir
    >>> from letir import random
    >>> twice = lambda key: random.normal(key, (2,)) + random.uniform(key, (2,))
    >>> (found,) = reused_keys(letir.trace(twice, random.key(0)))
    >>> print(str(found).splitlines()[0])
    the random key %key: uint64[2] is used 2 times
    """

    key: Local
    binds: tuple[Bind, ...]

    def __str__(self) -> str:
        lines = [f"  {b.op.name} at {b.source}" if b.source else f"  {b}" for b in self.binds]
        head = f"the random key {self.key!r} is used {len(self.binds)} times"
        return "\n".join([head, *lines, "  give each a key of its own: letir.random.split(key)"])


@entry_point
def reused_keys(fn: Lambda) -> tuple[Reuse, ...]:
    """The keys that ``fn``, or a body in it, uses for more than one draw or split.

    ``fold_in`` of different numbers does not count as a use. A row of an array of keys is a key of
    its own; a use of the whole array is a use of each row. Numbers that derivative rules draw again
    are ignored. Each body is analysed by itself: a loop that uses one key in every step is not
    found. Linear in the number of binds.

    >>> import letir, numpy as np
    >>> from letir import random
    >>> twice = lambda k: random.normal(k, (2,)) + random.uniform(k, (2,))
    >>> (found,) = reused_keys(letir.trace(twice, random.key(0)))
    >>> [bind.op.name for bind in found.binds]
    ['random_normal', 'random_uniform']
    """
    return tuple([reuse for body in all_bodies(fn) for reuse in _reused_in_body(body)])


def _reused_in_body(fn: Lambda) -> list[Reuse]:
    """The keys that the binds of ``fn`` itself use more than once."""
    same: dict[Any, Local] = {}  # a local -> the first local with the same key
    first: dict[tuple, Local] = {}  # (parent key, row or number) -> first key derived so
    whole: dict[Local, Any] = {}  # a key -> the array of keys of which it is a row
    uses: dict[Local, list[Bind]] = {}
    for bind in fn.binds:
        derivation = _derivation_of(bind)
        if derivation is not None:
            source = same.get(bind.args[0], bind.args[0])
            first_key = first.setdefault((source, derivation), bind.binders[0])
            same[bind.binders[0]] = first_key
            if bind.op.role == "index":
                whole[first_key] = source
        elif bind.op.random and bind.op.key_operand is not None:
            key = bind.args[bind.op.key_operand]
            if type(key) is Local:
                uses.setdefault(same.get(key, key), []).append(bind)
    result = []
    for key, binds in uses.items():
        every = (*uses.get(whole.get(key), ()), *binds)
        if len(every) > 1:
            result.append(Reuse(key, every))
    return result


def _derivation_of(bind: Bind) -> tuple | None:
    """(parent key, row or number) if ``bind`` derives one key from another, else None."""
    if not bind.args or type(bind.args[0]) is not Local:
        return None
    if bind.op.role == "index" and len(bind.args) == 1:
        item, aval = bind.attrs["item"], bind.args[0].type
        if type(item) is int and item < 0 and aval is not None and type(aval.shape[0]) is int:
            item += aval.shape[0]
        return "index", token(item)
    if bind.op.role == "fold_in":
        data: Any = bind.args[1]
        return "fold_in", data if type(data) is Local else token(data.value)
    return None
