"""Activity analysis: the binds and locals through which derivatives flow [D1]."""

from collections.abc import Callable, Sequence

from attrs import define, field

from letir.ast.bodies import bodies_of
from letir.ast.body_layout import BodyLayout
from letir.ast.derivative_types import carries_derivative
from letir.ast.primitive import Absent
from letir.ast.terms import Bind, Lambda, Local


def is_differentiable(bind: Bind) -> bool:
    """Whether ``bind`` can be differentiated: its operation has a reverse rule (or a zero
    derivative), and so have all binds in its bodies.

    A ``grad_of`` is differentiable if its whole body is.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = greater(%1, 0.0); return (%1, %2) }")
    >>> [is_differentiable(bind) for bind in f.binds]
    [True, False]
    """
    if type(bind.op.vjp) is Absent:
        return False
    # strings, because an analysis that returns None would run again; once for each shared body
    return all(body.memo(_body) == "differentiable" for body in bodies_of(bind))


def _body(body: Lambda) -> str:
    return "differentiable" if all(map(has_derivative, body.binds)) else "not"


def has_derivative(bind: Bind) -> bool:
    """Whether ``bind`` is differentiable, or has a derivative of zero."""
    rule = bind.op.vjp
    return rule.final if type(rule) is Absent else is_differentiable(bind)


def propagate_requires_grad(
    fn: Lambda,
    requires_grad: Sequence[bool],
    *,
    introduces: Callable[[Bind], bool] = lambda bind: False,
) -> set[Local]:
    """The locals of ``fn`` that require grad, given ``requires_grad`` of its parameters [D1].

    A result requires grad if an operand does, the operation is differentiable, and its dtype is
    floating, complex or unknown; for conditionals and loops, if it does in a body, in any
    iteration. ``introduces(bind)``: whether the results of a bind require grad for any operands.
    Linear in the number of binds.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0:x, %1:y { %2:a = exp(%0); %3:b = mul(%1, 2.0); return (%2, %3) }")
    >>> sorted(local.name for local in propagate_requires_grad(f, [True, False]))
    ['a', 'x']
    """
    return _Requirements(introduces).locals(fn, tuple(requires_grad))


@define(eq=False)
class _Requirements:
    """The analysis of one program; each body is analysed once per set of active parameters."""

    introduces: Callable[[Bind], bool]
    known: dict = field(factory=dict)  # (id of a body, flags) -> (the body, flags of its results)

    def locals(self, fn: Lambda, flags: tuple[bool, ...]) -> set[Local]:
        """The locals of ``fn`` itself that require grad."""
        pairs = zip(fn.params, flags, strict=True)
        found = {param for param, requires in pairs if requires and carries_derivative(param)}
        for bind in fn.binds:
            if bind.op.is_differentiable:
                requires = [type(arg) is Local and arg in found for arg in bind.args]
                if self.introduces(bind):
                    found.update(filter(carries_derivative, bind.binders))
                elif True in requires:
                    results = self.results(bind, requires)
                    pairs = zip(bind.binders, results, strict=True)
                    found.update([b for b, there in pairs if there and carries_derivative(b)])
        return found

    def results(self, bind: Bind, requires: list[bool]) -> Sequence[bool]:
        """For each result of ``bind``, whether it requires grad."""
        bodies, layout = bodies_of(bind), bind.op.bodies
        if not bodies or layout is None or not layout.is_separable:
            return [True] * len(bind.binders)
        flags = [False] * layout.steps + requires[layout.ahead :]
        if layout.loop:
            n_carry = layout.n_carry(bind)
            found = self.loop(bodies[-1], flags, layout, n_carry)
            return [*found[:n_carry], *[False] * layout.own(bind), *found[n_carry:]]
        return [any(each) for each in zip(*[self.body(b, flags) for b in bodies], strict=True)]

    def loop(
        self, body: Lambda, flags: list[bool], layout: BodyLayout, n_carry: int
    ) -> Sequence[bool]:
        """The flags of a loop's results: the fixpoint over iterations of its carried values."""
        first, end = layout.steps, layout.steps + n_carry
        while True:  # flags only ever become true
            results = self.body(body, flags)
            grown = [a or b for a, b in zip(flags[first:end], results, strict=False)]
            if grown == flags[first:end]:
                return [*grown, *results[n_carry:]]
            flags = [*flags[:first], *grown, *flags[end:]]

    def body(self, body: Lambda, flags: Sequence[bool]) -> Sequence[bool]:
        """For each result of a body, whether it requires grad, given flags of its parameters."""
        key = id(body), tuple(flags)
        if key not in self.known:
            found = self.locals(body, key[1])
            results = [type(arg) is Local and arg in found for arg in body.ret.args]
            self.known[key] = body, results
        return self.known[key][1]
