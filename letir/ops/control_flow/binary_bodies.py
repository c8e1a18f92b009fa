"""A binary operation of the user's, a closed body of two elements, applied to many at once.

An element is one or several arrays; the body's parameters are those of the first, those of the
second, then what it captures. ``fold`` and ``prefixes`` are the schemes of logarithmic depth that
``reduce`` and ``associative_scan`` stand for; ``known_ufunc`` says which bodies are NumPy's own.
"""

from collections.abc import Sequence

from attrs import frozen

from letir.ast.builder import Value
from letir.ast.liveness import has_effect, live_binds
from letir.ast.primitive import LATE_BOUND
from letir.ast.terms import Lambda
from letir.errors import LetirError
from letir.ops.autodiff.gradient_step_batching import mapped_body
from letir.ops.shape.shape_and_creation import reshape
from letir.ops.shape.transpose_join_split import concatenate, stack

# ufuncs that are associative, by the records that they compute
_ASSOCIATIVE = frozenset(
    ("add", "mul", "maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2")
) | frozenset(f"{how}_{name}" for how in ("bitwise", "logical") for name in ("and", "or", "xor"))


def known_ufunc(body: Lambda, n_xs: int) -> str | None:
    """The record whose ufunc the body is, of two elements of one array; None if it is another."""
    binds = live_binds(body) if n_xs == 1 else ()
    if len(binds) != 1:
        return None
    (bind,), (a, b) = binds, body.params[:2]
    if bind.op.name not in _ASSOCIATIVE or body.ret.args != bind.binders:
        return None
    if bind.args != (a, b) or a.type is not b.type or bind.binders[0].type is not a.type:
        return None  # b + a is not a + b where there are nans with signs
    return bind.op.name


@frozen
class _ForMany:
    """The analysis of a body that ``Lambda.memo`` keeps: the program for ``count`` pairs."""

    count: int
    mapped: tuple[bool, ...]

    def __call__(self, body: Lambda) -> Lambda:
        axes = [0 if there else None for there in self.mapped]
        every = [False] * len(body.ret.args)
        return mapped_body(body, axes, self.count, LATE_BOUND["batched"], every)


def for_many(body: Lambda, mapped: Sequence[bool], count: int) -> Lambda:
    """``body`` for ``count`` elements at once; each result has the batch as axis 0."""
    return body.memo(_ForMany(count, tuple(mapped)))


def can_batch(body: Lambda, mapped: Sequence[bool]) -> bool:
    """Whether all operations of the body have a rule for many at once, and none an effect."""
    if any(bind.op.random or has_effect(bind) for bind in body.binds):
        return False  # in the order of the elements
    try:
        program = for_many(body, mapped, 2)
    except LetirError:
        return False
    return all(bind.op.name != "looped" for bind in program.binds)


class Pairwise:
    """``body`` on arrays of elements, recorded where these are."""

    def __init__(self, body: Lambda, n_xs: int, captured: Sequence):
        self.body, self.n_xs, self.captured = body, n_xs, list(captured)

    def __call__(self, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        """The results for the pairs of elements of ``a`` and ``b``."""
        mapped = [True] * (2 * self.n_xs) + [False] * len(self.captured)
        program = for_many(self.body, mapped, a[0].shape[0])
        return list(a[0].emitter.call(program, [*a, *b, *self.captured]))

    def one(self, a: Sequence, b: Sequence) -> list:
        """The result for two elements."""
        emitter = next(v.emitter for v in (*a, *b) if isinstance(v, Value))
        return list(emitter.call(self.body, [*a, *b, *self.captured]))


def _joined(*parts: Sequence[Value]) -> list[Value]:
    """The elements of several arrays of elements, one after the other."""
    return [concatenate(list(arrays)) for arrays in zip(*parts, strict=True)]


def _picked(elements: Sequence[Value], item) -> list[Value]:
    """``elements[item]``."""
    return [x[item] for x in elements]


def fold(combine: Pairwise, elements: list[Value]) -> list[Value]:
    """All elements combined, at least one, in their order: neighbours first, then their results."""
    n = elements[0].shape[0]
    while n > 1:
        even = n - n % 2
        found = combine(_picked(elements, slice(0, even, 2)), _picked(elements, slice(1, even, 2)))
        elements = _joined(found, _picked(elements, slice(even, n))) if n % 2 else found
        n = elements[0].shape[0]
    return _picked(elements, 0)


def prefixes(combine: Pairwise, elements: list[Value]) -> list[Value]:
    """Each element combined with all before it.

    Pairs are combined, their prefixes are those of every second element, and the others lie one
    element further (Blelloch, Prefix sums and their applications, 1990, as in JAX).
    """
    levels = [elements]
    while (n := levels[-1][0].shape[0]) > 1:
        last, even = levels[-1], n - n % 2
        levels.append(combine(_picked(last, slice(0, even, 2)), _picked(last, slice(1, even, 2))))
    odd = levels.pop()
    while levels:
        last = levels.pop()
        n = last[0].shape[0]
        rest = _picked(last, slice(2, None, 2))
        even = _picked(last, slice(0, 1))
        if n > 2:
            before = odd if n % 2 else _picked(odd, slice(0, -1))
            even = _joined(even, combine(before, rest))
        odd = _alternating(even, odd)
    return odd


def _alternating(even: Sequence[Value], odd: Sequence[Value]) -> list[Value]:
    """The elements of ``even`` and ``odd`` in turns; ``even`` may have one more."""
    found = []
    for a, b in zip(even, odd, strict=True):
        n, shape = b.shape[0], b.shape[1:]
        both = reshape(stack([a[:n], b], 1), (2 * n, *shape))
        found.append(concatenate([both, a[n:]]) if a.shape[0] > n else both)
    return found
