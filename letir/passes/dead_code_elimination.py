"""Dead-code elimination: binds, results and operands that are not needed, also in bodies.

A bind with bodies loses its unused results, and the operands that its bodies no longer read. Its
record describes how operands correspond to the bodies' parameters (``BodyLayout``); without one the
bodies are cleaned and keep all their results.
"""

from collections.abc import Sequence

from attrs import define, field

from letir.ast import entry_point
from letir.ast.attrs import Attrs
from letir.ast.bodies import attrs_with, bodies_of, with_bodies
from letir.ast.liveness import has_effect
from letir.ast.record_fields import BodyLayout
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.types import Size


@define(eq=False)
class DeadResultElimination:
    """The elimination in one program. Shared bodies are processed once.

    ``cache`` maps (id of a body, choice of results) to (the body, its new form).
    """

    cache: dict = field(factory=dict)

    def prune_program(self, fn: Lambda, needed: tuple[int, ...] | None = None) -> Lambda:
        """``fn`` without the binds that its results (or only those at ``needed``) do not need."""
        ret = fn.ret if needed is None else Ret(tuple([fn.ret.args[i] for i in needed]))
        live, binds, changed = set(ret.locals()), [], False
        for bind in reversed(fn.binds):
            if not live.isdisjoint(bind.binders) or (
                bind.op.effect or (bind.op.holds_lambdas and has_effect(bind))
            ):
                pruned = self.prune_bind(bind, live) if bind.op.holds_lambdas else bind
                changed = changed or pruned is not bind
                live.update([arg for arg in pruned.args if type(arg) is Local])
                binds.append(pruned)
        if not changed and len(binds) == len(fn.binds):
            return fn if len(ret.args) == len(fn.ret.args) else fn.replace(ret=ret)
        return fn.replace(binds=tuple(reversed(binds)), ret=ret)

    def prune_body(self, body: Lambda, needed: tuple[int, ...] | None = None) -> Lambda:
        """The result of ``prune_program``, cached by body and choice of results."""
        key = id(body), needed
        if key not in self.cache:
            self.cache[key] = body, self.prune_program(body, needed)
        return self.cache[key][1]

    def prune_bind(self, bind: Bind, live: set[Local]) -> Bind:
        """``bind`` without dead results, and without the operands that only these need."""
        bodies = bodies_of(bind)
        if not bodies:  # a composite
            return bind
        layout = bind.op.bodies
        if layout is None or not layout.is_separable:
            return with_bodies(bind, list(map(self.prune_body, bodies)))
        needed = [i for i, binder in enumerate(bind.binders) if binder in live]
        if layout.loop:
            return self.prune_loop(bind, bodies, layout, needed)
        everything = len(needed) == len(bind.binders)
        pruned = [self.prune_body(body, None if everything else tuple(needed)) for body in bodies]
        return self.refit_bind(bind, pruned, layout, needed, self.remaining_params(bind, pruned))

    def remaining_params(self, bind: Bind, bodies: Sequence[Lambda]) -> list[int]:
        """The remaining parameters in their new order."""
        n_cts = bind.attrs.get("n_cts")
        if n_cts is not None:  # captures stay in the order of their first use, as printed
            reads = self.used_params(bodies[0])
            return [*range(n_cts), *(i for i in reads if i >= n_cts)]
        read = {i for body in bodies for i in self.used_params(body)}
        return sorted(read)

    def used_params(self, body: Lambda) -> tuple[int, ...]:
        """The positions of the parameters that a body uses, in order of first use."""
        key = id(body), "reads"
        if key not in self.cache:
            places = {param: i for i, param in enumerate(body.params)}
            terms: tuple[Bind | Ret, ...] = (*body.binds, body.ret)
            used = (arg for term in terms for arg in term.args)
            params = dict.fromkeys(places[a] for a in used if type(a) is Local and a in places)
            self.cache[key] = body, tuple(params)
        return self.cache[key][1]

    def refit_bind(
        self,
        bind: Bind,
        bodies: Sequence[Lambda],
        layout: BodyLayout,
        needed: list[int],
        stay: list[int],
    ) -> Bind:
        """``bind`` with other bodies, the wanted results, and the remaining parameters."""
        old = bodies_of(bind)
        is_whole = len(needed) == len(bind.binders) and stay == [*range(len(bodies[0].params))]
        if is_whole and all(a is b for a, b in zip(old, bodies, strict=True)):
            return bind
        new = [self.with_params(body, tuple(stay)) for body in bodies]
        attrs = Attrs({**attrs_with(bind.attrs, old, new), **layout.counts(bind, needed, stay)})
        operands = [bind.args[i + layout.ahead - layout.steps] for i in stay if i >= layout.steps]
        binders = tuple([bind.binders[i] for i in needed])
        return Bind(binders, bind.op, (*bind.args[: layout.ahead], *operands), attrs, bind.source)

    def with_params(self, body: Lambda, stay: tuple[int, ...]) -> Lambda:
        """``body`` with only these parameters."""
        if stay == tuple(range(len(body.params))):
            return body
        key = id(body), "params", stay
        if key not in self.cache:
            params = [body.params[i] for i in stay]
            self.cache[key] = body, Lambda(params, body.binds, body.ret, None, body.out_tree)
        return self.cache[key][1]

    def prune_loop(
        self, bind: Bind, bodies: Sequence[Lambda], layout: BodyLayout, needed: list[int]
    ) -> Bind:
        """A loop without the carried values on which no live result depends."""
        *tests, body = bodies  # the test of a while_loop stands before its body
        tests, n_carry, own = (
            list(map(self.prune_body, tests)),
            layout.n_carry(bind),
            layout.own(bind),
        )
        read = {i - layout.steps for test in tests for i in self.used_params(test)}
        read = {i for i in read if i < n_carry}
        read.update([i for i in needed if i < n_carry])
        read.update([i - own for i in needed if i >= n_carry + own])
        read.update(layout.reads_results(bind))
        carried = self.needed_carries(body, layout.steps, n_carry, read)
        results_kept = [
            i for i in range(len(body.ret.args)) if i in (carried if i < n_carry else read)
        ]
        is_whole = len(results_kept) == len(body.ret.args)
        body = self.prune_body(body, None if is_whole else tuple(results_kept))
        stay = self.remaining_loop_params(bind, (*tests, body), layout, carried)
        results = [i for i in results_kept if i < n_carry]
        results += [
            *range(n_carry, n_carry + own),
            *(i + own for i in results_kept if i >= n_carry),
        ]
        return self.refit_bind(bind, (*tests, body), layout, results, stay)

    def remaining_loop_params(
        self, bind: Bind, bodies: Sequence[Lambda], layout: BodyLayout, carried: set[int]
    ) -> list[int]:
        """The remaining parameters of a loop's bodies."""
        read = {i for fn in bodies for i in self.used_params(fn)}
        first, end = layout.steps, layout.steps + layout.n_carry(bind)
        return [
            i
            for i, param in enumerate(bodies[-1].params)
            if i < first
            or (i - first in carried if i < end else i in read or _needs_operand(bind, param))
        ]

    def needed_carries(self, body: Lambda, steps: int, n_carry: int, needed: set[int]) -> set[int]:
        """The carried values on which these results of the body of a loop depend."""
        result = _carries_read_by(body, steps, n_carry, needed)
        if not any(map(_has_separable_results, body.binds)):
            return result
        return self.refine_carries(body, steps, result, needed)

    def refine_carries(
        self, body: Lambda, steps: int, most: set[int], needed: set[int]
    ) -> set[int]:
        """The carried values that the results need, a subset of ``most``. Unlike
        ``_carries_read_by``, which computes ``most``, this analysis distinguishes the results of
        nested bodies.
        """
        result = most & needed
        while len(result) < len(most):
            places = range(len(body.ret.args))
            results = tuple([i for i in places if i in result or (i in needed and i not in most)])
            reads = self.used_params(self.prune_body(body, results))
            more = result | {i - steps for i in reads if i - steps in most}
            if more == result:
                break
            result = more
        return result


def _has_separable_results(bind: Bind) -> bool:
    """Whether unused results of the bodies can be dropped."""
    layout = bind.op.bodies
    return layout is not None and layout.is_separable


def _carries_read_by(body: Lambda, steps: int, n_carry: int, needed: set[int]) -> set[int]:
    """The carried values on which these results and the effects of a loop depend in any iteration,
    a least fixpoint.
    """
    carry = {param: i for i, param in enumerate(body.params[steps : steps + n_carry])}
    makers = {binder: bind for bind in body.binds for binder in bind.binders}
    result = {i for i in needed if i < n_carry}
    stack = [body.ret.args[i] for i in needed if i < len(body.ret.args)]
    stack += [local for bind in body.binds if has_effect(bind) for local in bind.locals()]
    visited: set = set()
    while stack:
        local = stack.pop()
        if type(local) is not Local or local in visited:
            continue
        visited.add(local)
        if local in makers:
            bind = makers[local]
            visited.update(bind.binders)
            stack += bind.args
        elif local in carry:
            result.add(carry[local])
            stack.append(body.ret.args[carry[local]])
    return result


def _needs_operand(bind: Bind, param: Local) -> bool:
    """Whether a loop needs an operand that its body does not read: for its trip count, or for the
    size of a result.
    """
    if not bind.op.bodies.needs_sizes:
        return False
    return bind.attrs.get("length", 0) is None or any(
        type(n) is Size for n in (param.type.shape if param.type else ())
    )


@entry_point
def dead_code(fn: Lambda) -> Lambda:
    """Drop every bind that has no effect and none of whose binders is used.

    Unused results of conditionals, gradient steps and loops are dropped too [semantics.md F4], with
    the binds that only they need in the bodies; a carried value is dropped if no live result
    depends on it. Linear in the number of binds. Keeps binders, order, effects, parameters and
    results; a program without dead code is returned unchanged.

    >>> from letir import parse
    >>> print(dead_code(parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); return %1 }")))
    lambda %0 {
      %1 = exp(%0)
      return %1
    }
    """
    return DeadResultElimination().prune_program(fn)
