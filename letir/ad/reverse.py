"""The reverse transform: from a program to its gradient program.

``Reverse`` visits a body in order and puts the binds through which a derivative flows on a tape;
from the return it goes back over the tape and emits a ``grad_of`` for each. ``Direct`` emits the
vjp rules themselves, for when it is known which cotangents are defined. ``differentiate`` wraps the
result into a ``Gradient``, which grad, vjp and the others use. See D1 to D6 in docs/semantics.md.
"""

from collections.abc import Callable

from letir.ad.rule_cache import RuleBody, rule_body
from letir.ad.symbolic_zeros import UNDEFINED
from letir.ast.attrs import NO_ATTRS
from letir.ast.derivative_types import carries_derivative, strong_type
from letir.ast.primitive import Primitive
from letir.ast.source import error_at_bind
from letir.ast.terms import Arg, Bind, Let, Local, Ret
from letir.errors import LetirError, MissingRule
from letir.ops.autodiff.gradient_steps import autograd_add, grad_of
from letir.ops.elementwise.ufuncs import add
from letir.visitors.visitor import ExprVisitor, TailCall

DEFINED = (True,)


class Reverse(ExprVisitor):
    """Emits the gradient program of a body into ``emitter``, a builder or an executor.

    ``capture(local)``: the emitter's operand for a primal value. ``residual_cotangent(local)``: the
    cotangent parameter of a temporary, or None. ``with_residuals(bind, mask, needed)``: a loop with
    its residuals as further results. ``visit(body, needed, tape, seeds)`` returns the cotangents by
    local; ``needed``: the locals that require grad; ``seeds(ret)``: pairs (local, cotangent) of the
    results.
    """

    sum: Primitive = autograd_add
    with_residuals: Callable | None = None

    def __init__(self, emitter, capture, residual_cotangent, with_residuals=None):
        self.emitter, self.capture = emitter, capture
        self.residual_cotangent, self.with_residuals = residual_cotangent, with_residuals
        self.needed: set[Local] = set()
        self.cotangents: dict[Arg, Arg] = {}

    def visit_let(self, let: Let, needed: set, tape: list, seeds: Callable) -> TailCall:
        bind = let.bind
        if bind.op.is_differentiable:
            # a loop, not any(...): a generator would be a Python frame for every bind
            for arg in bind.args:
                if type(arg) is Local and arg in needed:
                    results = list(filter(carries_derivative, bind.binders))
                    if results:
                        needed.update(results)
                        tape.append(bind)
                    break
        return TailCall(let.body, needed, tape, seeds)

    def visit_ret(self, ret: Ret, needed: set, tape: list, seeds: Callable) -> dict[Arg, Arg]:
        self.needed = needed
        for local, ct in seeds(ret):
            self.contribute(local, ct)
        # in reverse, so that all uses of a value are visited before the bind that defines it
        for bind in reversed(tape):
            self.propagate(bind)
        return self.cotangents

    def propagate(self, bind: Bind) -> None:
        """Emit the vjp of ``bind`` and add its results to the cotangents of the operands."""
        if not self.has_cotangent(bind):
            return
        try:
            if bind.op.with_residuals is not None and self.with_residuals is not None:
                bind = self.with_residuals(bind, self.mask(bind), self.needed)
            rule = self.rule(bind)
            for position, reason in rule.missing:
                # a missing rule is an error only if that operand requires grad
                if bind.args[position] in self.needed:
                    raise MissingRule(reason)
        except LetirError as error:
            raise error_at_bind(error, bind) from None
        if not rule.results:  # all cotangents of operands that require grad are zero
            return
        self.emitter.source = bind.source
        cotangents = self.emit(rule, bind, self.captured(rule, bind))
        args, needed = bind.args, self.needed
        for position, ct in zip(rule.results, cotangents, strict=True):
            arg = args[position]
            if arg in needed:
                self.contribute(arg, ct)

    def has_cotangent(self, bind: Bind) -> bool:
        """Whether any result of ``bind`` has a cotangent."""
        cts, seeded, binders = self.cotangents, self.residual_cotangent, bind.binders
        if len(binders) == 1:
            return binders[0] in cts or seeded(binders[0]) is not None
        return any(binder in cts or seeded(binder) is not None for binder in binders)

    def mask(self, bind: Bind) -> tuple[bool, ...]:
        """Which results may have a cotangent."""
        return tuple([carries_derivative(binder) for binder in bind.binders])

    def captured(self, rule: RuleBody, bind: Bind) -> list:
        """The primal values that the rule reads."""
        # map, not a comprehension: before Python 3.12 that is a Python frame for every bind
        return list(map(self.capture, map((bind.args + bind.binders).__getitem__, rule.captured)))

    def rule(self, bind: Bind) -> RuleBody:
        """The vjp rule of ``bind`` where any cotangent may be undefined when the program runs."""
        return rule_body("vjp", bind, None, None)

    def emit(self, rule: RuleBody, bind: Bind, captured: list) -> tuple:
        """Emit a ``grad_of[bind.op]`` that holds the rule, and return its results."""
        operands = [self.cotangent(binder) for binder in bind.binders]
        return self.emitter.emit(grad_of, (*operands, *captured), rule.attrs, rule.types)

    def cotangent(self, local: Local) -> Arg:
        """The sum of all contributions, and of the parameter if ``local`` is a temporary."""
        seed, ct = self.residual_cotangent(local), self.cotangents.pop(local, None)
        if seed is None:
            return UNDEFINED if ct is None else ct
        if ct is None:
            return seed
        return self.emitter.emit(self.sum, (seed, ct), NO_ATTRS, (strong_type(local.type),))[0]

    def contribute(self, local: Arg, ct: Arg) -> None:
        """Add ``ct`` to the cotangent of ``local``."""
        previous = self.cotangents.get(local)  # the left operand: fixes the rounding
        if previous is not None:
            (ct,) = self.emitter.emit(
                self.sum, (previous, ct), NO_ATTRS, (strong_type(local.type),)
            )
        self.cotangents[local] = ct


class Direct(Reverse):
    """Emits the vjp rules themselves, only for defined cotangents and operands that require grad.

    ``specialize_undef`` and dead-code elimination turn the result of ``Reverse`` into this program.
    """

    sum: Primitive = add

    def rule(self, bind: Bind) -> RuleBody:
        """The vjp rule for the defined cotangents and the operands that require grad."""
        return rule_body("vjp", bind, self.mask(bind), self.needed)

    def mask(self, bind: Bind) -> tuple[bool, ...]:
        """Which results have a cotangent."""
        cts, binders = self.cotangents, bind.binders
        # with one result, ``propagate`` has tested that it has a cotangent
        return DEFINED if len(binders) == 1 else tuple([binder in cts for binder in binders])

    def emit(self, rule: RuleBody, bind: Bind, captured: list) -> tuple:
        """Emit the binds of the rule and return its results."""
        cts, operands = self.cotangents, []
        for binder in bind.binders:
            if binder in cts:
                operands.append(cts.pop(binder))
        return rule.emit(self.emitter, operands + captured)
