"""Activity analysis: the values through which derivatives flow, also in bodies [semantics.md D1].

Executors use it for programs, the derivative rules of loops and branches for their bodies.
"""

from collections.abc import Callable, Sequence

from attrs import define, field

from letir.ast.bodies import bodies_of
from letir.ast.derivative_types import carries_derivative
from letir.ast.terms import Bind, Lambda, Local


def propagate_requires_grad(
    fn: Lambda,
    requires_grad: Sequence[bool],
    *,
    introduces: Callable[[Bind], bool] | None = None,
) -> set[Local]:
    """The locals of ``fn`` that require grad, given ``requires_grad`` of its parameters.

    A result requires grad if an operand does, the operation is differentiable, and its dtype is
    floating, complex or unknown; for conditionals and loops, if it does in a body, in any
    iteration. ``introduces(bind)``: whether the results of a bind require grad for any operands.
    Linear in the number of binds.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0:x, %1:y { %2:a = exp(%0); %3:b = mul(%1, 2.0); return (%2, %3) }")
    >>> sorted(local.name for local in propagate_requires_grad(f, [True, False]))
    ['a', 'x']
    """
    return _Activity(introduces).locals(fn, tuple(requires_grad))


def results_requiring_grad(body: Lambda, requires_grad: Sequence[bool]) -> list[bool]:
    """Which results of a body require grad, given ``requires_grad`` of its parameters.

    >>> from letir.ast.text.parser import parse
    >>> body = parse("lambda %0, %1 { %2 = exp(%0); return (%2, %1) }")
    >>> results_requiring_grad(body, [True, False])
    [True, False]
    """
    return list(_Activity().results_of_body(body, requires_grad))


def carry_requiring_grad(body: Lambda, requires_grad: Sequence[bool], n_carry: int) -> list[bool]:
    """``requires_grad`` of the parameters of a loop body whose first ``n_carry`` are the carry,
    extended by the carried values that require grad in any iteration.
    """
    flags, _ = _Activity().fixpoint(body, list(requires_grad), slice(n_carry))
    return flags


@define(eq=False)
class _Activity:
    """The analysis of one program; each body is analysed once per set of active parameters."""

    introduces: Callable[[Bind], bool] | None = None
    cache: dict = field(factory=dict)  # (id of a body, flags) -> (the body, flags of its results)

    def locals(self, fn: Lambda, flags: tuple[bool, ...]) -> set[Local]:
        """The locals of ``fn`` itself that require grad."""
        pairs = zip(fn.params, flags, strict=True)
        result = {param for param, requires in pairs if requires and carries_derivative(param)}
        for bind in fn.binds:
            if bind.op.is_differentiable:
                requires = [type(arg) is Local and arg in result for arg in bind.args]
                if self.introduces is not None and self.introduces(bind):
                    result.update(filter(carries_derivative, bind.binders))
                elif True in requires:
                    results = self.results(bind, requires)
                    pairs = zip(bind.binders, results, strict=True)
                    result.update(
                        [b for b, is_required in pairs if is_required and carries_derivative(b)]
                    )
        return result

    def results(self, bind: Bind, requires: list[bool]) -> Sequence[bool]:
        """For each result of ``bind``, whether it requires grad."""
        bodies, layout = bodies_of(bind), bind.op.bodies
        if not bodies or layout is None or not layout.is_separable:
            return [True] * len(bind.binders)
        flags = [False] * layout.steps + requires[layout.ahead :]
        if layout.loop:
            n_carry = layout.n_carry(bind)
            carry = slice(layout.steps, layout.steps + n_carry)
            flags, active = self.fixpoint(bodies[-1], flags, carry)
            return [*flags[carry], *[False] * layout.own(bind), *active[n_carry:]]
        rows = [self.results_of_body(body, flags) for body in bodies]
        return [any(each) for each in zip(*rows, strict=True)]

    def fixpoint(
        self, body: Lambda, flags: list[bool], carry: slice
    ) -> tuple[list[bool], Sequence[bool]]:
        """(flags of a loop body's parameters in any iteration, flags of its results in the last).

        ``carry``: the positions of the carried values among the parameters.
        """
        while True:  # flags only ever become true
            results = self.results_of_body(body, flags)
            grown = [a or b for a, b in zip(flags[carry], results, strict=False)]
            if grown == flags[carry]:
                return flags, results
            flags = [*flags]
            flags[carry] = grown

    def results_of_body(self, body: Lambda, flags: Sequence[bool]) -> Sequence[bool]:
        """For each result of a body, whether it requires grad, given flags of its parameters."""
        key = id(body), tuple(flags)
        if key not in self.cache:
            active = self.locals(body, key[1])
            results = [type(arg) is Local and arg in active for arg in body.ret.args]
            self.cache[key] = body, results
        return self.cache[key][1]
