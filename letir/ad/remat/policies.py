"""Rematerialisation policies: ``with_policy`` chooses the residuals of a Gradient.

"keep_all" is what ``differentiate`` makes: the residuals are all values that vjp rules read. The
other policies start from these and reduce their bytes in three sweeps over the program, each linear
in the number of binds:

1. ``replace_by_roots``: several residuals that are cheap to compute from one value are replaced by
it. 2. ``drop_recomputable``: a residual that is cheap to compute from other residuals is dropped.
3. ``replace_by_results``: a residual becomes the smaller values computed from it, such as masks.

Recomputing one value takes at most about the square root of the program's binds, so that the
recomputed values do not fill the memory that was saved. ``exact`` finds the fewest bytes instead,
as a minimum cut (``letir.ad.remat.min_cut``).
"""

import math
from collections.abc import Callable, Collection

from letir.ad.gradient_program import Gradient, Policy
from letir.ad.remat.cost_model import (
    CHEAP,
    EXPENSIVE,
    FREE,
    MODERATE,
    nominal_bytes,
    recomputation_cost,
)
from letir.ad.remat.min_cut import minimum_cut
from letir.ad.remat.recomputation import (
    SplitGradient,
    captured_locals,
    rebuild_gradient,
    split_gradient,
)
from letir.ast import LATE_BOUND
from letir.ast.derivative_types import carries_derivative
from letir.ast.process_state import paused_gc
from letir.ast.terms import Bind, Local, substitute_args
from letir.errors import LetirError

GRADES = {"recompute_cheap": CHEAP, "min_bytes": MODERATE}
_MIN_LIMIT = 24  # binds that may be recomputed for one value, however small the program is
_NO_EFFORT = (0, math.inf)


@paused_gc()
def with_policy(
    gradient: Gradient,
    policy: Policy,
    *,
    exact: bool = False,
    redifferentiate: Callable[[list[Local]], Gradient] | None = None,
) -> Gradient:
    """``gradient`` with the residuals that ``policy`` chooses; cotangents stay the same bit by bit.

    "keep_all" changes nothing. "recompute_cheap" recomputes sums, products, comparisons and views
    from other residuals. "min_bytes" recomputes everything but matrix products, loops, random
    numbers and effects, where that saves bytes. ``policy(bind)`` says whether the results of a bind
    of ``f`` are kept; others are recomputed, unless they are random or effects. ``exact`` finds the
    fewest bytes that "min_bytes" (or "recompute_cheap") can reach, as a minimum cut in segments of
    2,000 binds; needs networkx. ``redifferentiate(locals)`` differentiates ``f`` again with these
    locals as temporaries; without it, a Gradient whose cotangents may be undefined gets no new
    floating residuals.

    >>> import numpy as np
    >>> from letir import differentiate, trace
    >>> g = differentiate(trace(lambda x: np.tanh(x) * np.exp(-x), np.ones(3)))
    >>> len(g.df_input_captured_outputs), len(with_policy(g, "min_bytes").df_input_captured_outputs)
    (2, 0)
    """
    check_policy(policy, exact)
    if policy == "keep_all" and not exact:
        return gradient
    parts = split_gradient(gradient)
    choosing = ResidualChoice(parts, policy, anything=redifferentiate is not None)
    kept = choosing.choose_residuals(exact)
    # new temporaries need vjp parameters, which only the reverse transform can add
    missing = choosing.without_cotangent(kept)
    if not missing:
        return rebuild_gradient(parts, kept)
    after = split_gradient(redifferentiate(missing))
    required = ResidualChoice(after, policy).required_values(
        _keep_nothing, _translate_kept(kept, parts, after)
    )
    if callable(policy) or choosing.total(required) <= choosing.total(kept):
        return rebuild_gradient(after, required)
    # the cotangents of new temporaries need rules that read more bytes than the policy saved
    kept = ResidualChoice(parts, policy).choose_residuals(exact)
    other = with_policy(gradient, policy, redifferentiate=redifferentiate) if exact else None
    if other is None or choosing.total(kept) <= choosing.total(captured_locals(other)):
        return rebuild_gradient(parts, kept)
    return other


def _keep_nothing(bind: Bind) -> bool:
    """The policy that keeps only residuals that cannot be recomputed."""
    return False


def check_policy(policy: Policy, exact: bool = False) -> None:
    """Raise LetirError if ``policy`` is not one, or is a function and ``exact`` is set."""
    named = isinstance(policy, str) and (policy == "keep_all" or policy in GRADES)
    if not named and not callable(policy):
        names = ", ".join(map(repr, ("keep_all", *GRADES)))
        raise LetirError(
            f"policy: found {policy!r}, expected one of {names}, or a function of a bind that says "
            "whether its results are kept\n"
            "  name one of them, or decide for each bind: lambda bind: bind.op.name == 'matmul'"
        )
    if exact and callable(policy):
        raise LetirError(
            f"exact=True finds the fewest bytes, but {policy!r} itself decides "
            "which values are kept\n"
            "  leave exact out, or take the policy 'min_bytes'"
        )


class ResidualChoice:
    """The choice of residuals for one Gradient: what may be recomputed, and what a residual costs.

    ``anything``: floating values that are not captured now may become residuals even if cotangents
    may be undefined.
    """

    def __init__(self, parts: SplitGradient, policy: Policy, *, anything: bool = False):
        self.parts, self.policy = parts, policy
        grade = "min_bytes" if policy == "keep_all" else policy
        self.max_grade = GRADES.get(grade, EXPENSIVE) if isinstance(grade, str) else EXPENSIVE
        self.inputs = {p for p in parts.captured if p not in parts.producers}
        self.limit = max(_MIN_LIMIT, math.isqrt(parts.lifted))  # square root: Chen et al., 2016
        self.graded = [
            (bind, recomputation_cost(bind)) for bind in parts.primal_binds[: parts.lifted]
        ]
        # binds lifted out of ``df`` ran in the backward pass anyway
        self.graded += [(bind, CHEAP) for bind in parts.primal_binds[parts.lifted :]]
        self.closing = parts.is_raw and not anything  # whether new floating residuals are excluded
        self.captured = set(parts.captured)

    def allows(self, grade: int | None) -> bool:
        """Whether the policy recomputes binds of this cost grade."""
        return grade is not None and grade <= self.max_grade

    def may_keep(self, local: Local) -> bool:
        """Whether a value can become a residual: a floating one needs a vjp parameter."""
        if not self.closing or local in self.captured or local not in self.parts.producers:
            return True
        return local.type is not None and not local.type.inexact

    def weight(self, local: Local) -> int:
        """The bytes of a value, estimated where sizes are symbolic or unknown."""
        bind = self.parts.producers.get(local)
        return nominal_bytes(local, None if bind is None else bind.op)

    def total(self, kept: Collection[Local]) -> int:
        """The sum of the weights of several values."""
        return sum(map(self.weight, kept))

    def choose_residuals(self, exact: bool) -> set[Local]:
        """The residuals, captured inputs included."""
        if callable(self.policy):
            return self.required_values(self.policy)
        kept = set(self.parts.captured)
        if self.max_grade > CHEAP:
            kept = self.replace_by_roots()
        kept, _ = self.parts.needed(self.replace_by_results(self.drop_recomputable(kept)))
        return self.parts.needed(minimum_cut(self, kept))[0] if exact else kept

    def replace_by_roots(self) -> set[Local]:
        """The residuals, each group that one smaller value can reproduce replaced by that value."""
        roots = self.find_roots()
        groups: dict[Local, list[Local]] = {}
        for local in self.parts.captured:
            if roots[local] is not None:
                groups.setdefault(roots[local], []).append(local)
        kept = set(self.inputs)
        for root, members in groups.items():
            total = self.total(members)
            is_input = root not in self.parts.producers
            # an input of the same size is better: the caller holds it anyway
            is_better = self.weight(root) <= total if is_input else self.weight(root) < total
            if is_better and self.may_keep(root):
                kept.add(root)
            else:
                kept.update(members)
        return kept

    def find_roots(self) -> dict[Local, Local | None]:
        """The root of each value of ``f``: the single value from which it can be recomputed.

        None if captured inputs suffice; the value itself if it needs two roots or too many binds.
        """
        roots: dict[Local, Local | None] = {p: p for p in self.parts.gradient.f.params}
        roots.update(dict.fromkeys(self.inputs))
        efforts = dict.fromkeys(roots, _NO_EFFORT)
        for place, (bind, grade) in enumerate(self.graded[: self.parts.lifted]):
            member_roots = {roots[a] for a in bind.locals()} - {None}
            effort = _effort_of(place, bind, grade, efforts)
            if self.allows(grade) and len(member_roots) < 2 and effort[0] <= self.limit:
                root = member_roots.pop() if member_roots else None
                roots.update(dict.fromkeys(bind.binders, root))
                efforts.update(dict.fromkeys(bind.binders, effort))
            else:
                roots.update((b, b) for b in bind.binders)
                efforts.update(dict.fromkeys(bind.binders, _NO_EFFORT))
        return roots

    def drop_recomputable(self, kept: set[Local]) -> set[Local]:
        """``kept`` without the values that a few binds can recompute from the others."""
        efforts = dict.fromkeys(kept.difference(self.parts.producers), _NO_EFFORT)
        kept = set(kept)
        for place, (bind, grade) in enumerate(self.graded[: self.parts.lifted]):
            reached = self.allows(grade) and all(a in efforts for a in bind.locals())
            effort = _effort_of(place, bind, grade, efforts) if reached else None
            if reached and effort[0] <= self.limit:
                kept.difference_update(bind.binders)
                efforts.update(dict.fromkeys(bind.binders, effort))
            else:
                # other values cannot be recomputed from residuals
                efforts.update((b, _NO_EFFORT) for b in bind.binders if b in kept)
        return kept

    def replace_by_results(self, kept: set[Local]) -> set[Local]:
        """``kept`` with values replaced by results computed from them that are not larger."""
        parts = self.parts
        needed, recomputed = parts.needed(kept)
        uses: dict[Local, list[Bind]] = {}
        for bind in recomputed.values():
            for local in dict.fromkeys(bind.locals()):
                uses.setdefault(local, []).append(bind)
        kept = set(needed)
        # in program order, so that a replacement may be replaced in turn
        for local in (*self.inputs, *[b for bind in parts.primal_binds for b in bind.binders]):
            if local not in kept or local in parts.read:
                continue
            results = {b for bind in uses.get(local, ()) for b in bind.binders} - kept
            results = {b for b in results if b in uses or b in parts.read}
            if self.may_replace(local, results):
                kept.remove(local)
                kept.update(results)
        return kept

    def may_replace(self, local: Local, results: set[Local]) -> bool:
        """Whether ``results`` may replace the residual ``local``: they have to be smaller, or of
        the same size and save a computation. An input is replaced by its sizes only.
        """
        if not all(map(self.may_keep, results)):
            return False
        consumers = [self.parts.producers[b] for b in results]
        if local in self.inputs and not all(bind.op.reads_sizes_only for bind in consumers):
            return False
        less = self.weight(local) - self.total(results)
        return less > 0 or (
            less == 0 and all(recomputation_cost(bind) != FREE for bind in consumers)
        )

    def required_values(
        self, keeps: Callable[[Bind], bool], kept: Collection[Local] = ()
    ) -> set[Local]:
        """The residuals that the gradient needs from three sets: ``kept``, the results of binds for
        which ``keeps`` returns True, and the results of binds that must not be recomputed.
        """
        grades = {id(bind): grade for bind, grade in self.graded}
        lifted = {id(bind) for bind in self.parts.primal_binds[self.parts.lifted :]}
        kept, result, visited = set(kept), set(), set()
        stack = list(self.parts.read)
        while stack:
            local = stack.pop()
            bind = self.parts.producers.get(local)
            if bind is None or local in kept:
                result.add(local)
            elif id(bind) not in visited:
                visited.add(id(bind))
                if not self.allows(grades[id(bind)]) or (id(bind) not in lifted and keeps(bind)):
                    kept.update(bind.binders)
                    result.add(local)
                else:
                    stack += bind.locals()
        return result

    def without_cotangent(self, kept: set[Local]) -> list[Local]:
        """The residuals in ``kept`` that are new floating temporaries without a cotangent."""
        if not self.parts.is_raw:
            return []
        values = [b for bind in self.parts.primal_binds for b in bind.binders if b in kept]
        return [
            local for local in values if local not in self.captured and carries_derivative(local)
        ]


def _effort_of(place: int, bind: Bind, grade: int | None, efforts: dict) -> tuple[int, float]:
    """(binds that it takes to recompute ``bind`` from residuals, position of the first of them).

    The count is an upper bound: the smaller of the sum over the operands and the distance from the
    first bind.
    """
    before = [efforts[local] for local in dict.fromkeys(bind.locals())]
    own = grade != FREE
    size = sum(size for size, _ in before) + own
    first = min([place if own else math.inf, *(start for _, start in before)])
    # the sum counts a bind that two operands share twice: without the distance, the effort of a
    # chain of diamonds would look exponential
    return (size, first) if first == math.inf else (min(size, place - first + 1), first)


def _translate_kept(kept: set[Local], before: SplitGradient, after: SplitGradient) -> set[Local]:
    """``kept`` with the corresponding sizes and masks of another recording of the gradient."""
    binders_by_call: dict = {}
    for bind in before.primal_binds[before.lifted :]:
        binders_by_call.setdefault((bind.op, bind.args, bind.attrs.token), bind.binders)
    names: dict[Local, Local] = {}
    for bind in after.primal_binds[after.lifted :]:
        args = substitute_args(bind.args, names)
        same = binders_by_call.get((bind.op, args, bind.attrs.token), ())
        names.update(zip(bind.binders, same, strict=False))
    return {*kept, *[new for new, old in names.items() if old in kept]}


LATE_BOUND["with_policy"] = with_policy
