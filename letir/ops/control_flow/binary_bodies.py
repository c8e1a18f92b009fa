"""Binary operations that users give to ``reduce`` and ``associative_scan``, applied to many pairs.

An operation is a closed body that combines two elements; an element is one array or several. The
parameters of the body are the arrays of the first element, the arrays of the second, then the
captured values. ``reduce_by_halves`` and ``compute_prefixes`` are the algorithms of logarithmic
depth; ``known_ufunc`` recognises the bodies that are one of NumPy's ufuncs.
"""

from collections.abc import Sequence

from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.liveness import has_effect, live_binds
from letir.ast.terms import Lambda
from letir.errors import LetirError
from letir.ops.autodiff.gradient_step_batching import mapped_body
from letir.ops.shape.concatenate_stack_split import concatenate, stack
from letir.ops.shape.reshape_and_ravel import reshape

# associative ufuncs, by the name of the record
_ASSOCIATIVE = frozenset(
    ("add", "mul", "maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2")
) | frozenset(f"{how}_{name}" for how in ("bitwise", "logical") for name in ("and", "or", "xor"))


def known_ufunc(body: Lambda, n_xs: int) -> str | None:
    """The name of the record that the body consists of, if it is an associative ufunc; else None.

    ``n_xs``: the number of arrays in an element; only elements of one array have ufuncs.
    """
    binds = live_binds(body) if n_xs == 1 else ()
    if len(binds) != 1:
        return None
    (bind,), (a, b) = binds, body.params[:2]
    if bind.op.name not in _ASSOCIATIVE or body.ret.args != bind.binders:
        return None
    if bind.args != (a, b) or a.type is not b.type or bind.binders[0].type is not a.type:
        return None  # not b + a either: the sign of a nan depends on the order of operands
    return bind.op.name


@frozen
class _BatchedBody:
    """An analysis for ``Lambda.memo``: the body batched over ``count`` pairs of elements."""

    count: int
    mapped: tuple[bool, ...]

    def __call__(self, body: Lambda) -> Lambda:
        axes = [0 if is_mapped else None for is_mapped in self.mapped]
        every = [False] * len(body.ret.args)
        return mapped_body(body, axes, self.count, LATE_BOUND["batch_program"], every)


def batch_body(body: Lambda, mapped: Sequence[bool], count: int) -> Lambda:
    """``body`` batched over ``count`` elements; each result has the batch as axis 0."""
    return body.memo(_BatchedBody(count, tuple(mapped)))


def can_batch(body: Lambda, mapped: Sequence[bool]) -> bool:
    """Whether all operations of the body have a batching rule, and none has an effect."""
    if any(bind.op.random or has_effect(bind) for bind in body.binds):
        return False  # draws and effects happen in the order of the elements
    try:
        program = batch_body(body, mapped, 2)
    except LetirError:
        return False
    return all(bind.op.name != "looped" for bind in program.binds)


class PairwiseBody:
    """A binary body that can be called on arrays of elements, where these are recorded."""

    def __init__(self, body: Lambda, n_xs: int, captured: Sequence):
        self.body, self.n_xs, self.captured = body, n_xs, list(captured)

    def __call__(self, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        """The results for the pairs of elements of ``a`` and ``b``."""
        mapped = [True] * (2 * self.n_xs) + [False] * len(self.captured)
        program = batch_body(self.body, mapped, a[0].shape[0])
        return list(a[0].emitter.call(program, [*a, *b, *self.captured]))

    def combine_single(self, a: Sequence, b: Sequence) -> list:
        """The body's results for two single elements."""
        emitter = next(v.emitter for v in (*a, *b) if isinstance(v, Value))
        return list(emitter.call(self.body, [*a, *b, *self.captured]))


def _concatenate_elements(*parts: Sequence[Value]) -> list[Value]:
    """The elements of all ``parts``, concatenated."""
    return [concatenate(list(arrays)) for arrays in zip(*parts, strict=True)]


def _select_elements(elements: Sequence[Value], item) -> list[Value]:
    """``elements[item]``."""
    return [x[item] for x in elements]


def reduce_by_halves(combine: PairwiseBody, elements: list[Value]) -> list[Value]:
    """All elements combined in their order, by a tree: neighbours first, then their results.

    There must be at least one element.
    """
    n = elements[0].shape[0]
    while n > 1:
        even = n - n % 2
        combined = combine(
            _select_elements(elements, slice(0, even, 2)),
            _select_elements(elements, slice(1, even, 2)),
        )
        elements = (
            _concatenate_elements(combined, _select_elements(elements, slice(even, n)))
            if n % 2
            else combined
        )
        n = elements[0].shape[0]
    return _select_elements(elements, 0)


def compute_prefixes(combine: PairwiseBody, elements: list[Value]) -> list[Value]:
    """Each element combined with all elements before it (an inclusive scan).

    Neighbours are combined in pairs. The prefixes of the pairs are the prefixes at odd places; one
    more combination with the next element gives each prefix at an even place (Blelloch, Prefix sums
    and their applications, 1990; JAX's ``associative_scan`` does the same).
    """
    levels = [elements]
    while (n := levels[-1][0].shape[0]) > 1:
        last, even = levels[-1], n - n % 2
        levels.append(
            combine(
                _select_elements(last, slice(0, even, 2)), _select_elements(last, slice(1, even, 2))
            )
        )
    odd = levels.pop()
    while levels:
        last = levels.pop()
        n = last[0].shape[0]
        rest = _select_elements(last, slice(2, None, 2))
        even = _select_elements(last, slice(0, 1))
        if n > 2:
            before = odd if n % 2 else _select_elements(odd, slice(0, -1))
            even = _concatenate_elements(even, combine(before, rest))
        odd = _interleave_elements(even, odd)
    return odd


def _interleave_elements(even: Sequence[Value], odd: Sequence[Value]) -> list[Value]:
    """The elements of ``even`` and ``odd`` alternating; ``even`` may have one element more."""
    result = []
    for a, b in zip(even, odd, strict=True):
        n, shape = b.shape[0], b.shape[1:]
        both = reshape(stack([a[:n], b], 1), (2 * n, *shape))
        result.append(concatenate([both, a[n:]]) if a.shape[0] > n else both)
    return result
