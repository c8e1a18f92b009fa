"""The reverse transform: from a program to its gradient program.

``Reverse`` visits a body forwards, remembering the binds through which a derivative flows, and from
the return goes back over these, one ``grad_of`` each; ``Direct`` emits the rules themselves, where
it is known which cotangents there are. ``differentiate`` wraps them into a ``Gradient``; grad, vjp
and all others stand on that. The conventions are those of docs/semantics.md, D1 to D6.
"""

from collections.abc import Callable

from letir.ad.rule_cache import RuleBody, rule_body
from letir.ad.symbolic_zeros import UNDEFINED
from letir.ast.attrs import NO_ATTRS
from letir.ast.derivative_types import carries_derivative, strong_type
from letir.ast.error_locations import error_at_bind
from letir.ast.primitive import Primitive
from letir.ast.terms import Arg, Bind, Let, Local, Ret
from letir.errors import LetirError, MissingRule
from letir.ops.autodiff.gradient_steps import autograd_add, grad_of
from letir.ops.elementwise.ufuncs import add
from letir.visitors.visitor import ExprVisitor, TailCall

DEFINED = (True,)


class Reverse(ExprVisitor):
    """Emits the gradient program of a body into ``emitter``, a builder or an executor.

    ``capture(local)`` gives the emitter's operand for a primal value, ``late(local)`` the cotangent
    that a captured temporary has of its own, or None; ``saved(bind, mask, needed)`` the loop that
    also gives what its rule reads of the steps. ``visit(body, needed, trail, seeds)`` returns the
    cotangents by local: ``needed`` are the locals that require grad, ``seeds(ret)`` gives (local,
    cotangent) of the results.
    """

    sum: Primitive = autograd_add
    saved: Callable | None = None

    def __init__(self, emitter, capture, late, saved=None):
        self.emitter, self.capture, self.late, self.saved = emitter, capture, late, saved
        self.needed: set[Local] = set()
        self.cotangents: dict[Local, Arg] = {}

    def visit_let(self, let: Let, needed: set, trail: list, seeds):
        bind = let.bind
        if bind.op.is_differentiable:
            # a loop, not any(...): a generator would be a Python frame for every bind
            for arg in bind.args:
                if type(arg) is Local and arg in needed:
                    made = list(filter(carries_derivative, bind.binders))
                    if made:
                        needed.update(made)
                        trail.append(bind)
                    break
        return TailCall(let.body, needed, trail, seeds)

    def visit_ret(self, ret: Ret, needed: set, trail: list, seeds):
        self.needed = needed
        for local, ct in seeds(ret):
            self.contribute(local, ct)
        # so that every user of a value comes before the bind that makes it
        for bind in reversed(trail):
            self.step(bind)
        return self.cotangents

    def step(self, bind: Bind) -> None:
        """Emit the rule of ``bind`` for the cotangents of its results, and give what comes out to
        its operands.
        """
        if not self.has_cotangent(bind):
            return
        try:
            if bind.op.saving is not None and self.saved is not None:
                bind = self.saved(bind, self.mask(bind), self.needed)
            rule = self.rule(bind)
            for position, reason in rule.missing:
                # an error only where that cotangent is wanted
                if bind.args[position] in self.needed:
                    raise MissingRule(reason)
        except LetirError as error:
            raise error_at_bind(error, bind) from None
        if not rule.results:  # a rule that answers zero for all that need one
            return
        self.emitter.source = bind.source
        found = self.emit(rule, bind, self.captured(rule, bind))
        args, needed = bind.args, self.needed
        for position, ct in zip(rule.results, found, strict=True):
            arg = args[position]
            if arg in needed:
                self.contribute(arg, ct)

    def has_cotangent(self, bind: Bind) -> bool:
        """Whether any result of ``bind`` has a cotangent."""
        cts, late, binders = self.cotangents, self.late, bind.binders
        if len(binders) == 1:
            return binders[0] in cts or late(binders[0]) is not None
        return any(binder in cts or late(binder) is not None for binder in binders)

    def mask(self, bind: Bind) -> tuple[bool, ...]:
        """Which results may have a cotangent."""
        return tuple([carries_derivative(binder) for binder in bind.binders])

    def captured(self, rule: RuleBody, bind: Bind) -> list:
        """The primal values that the rule reads."""
        # no comprehension: before Python 3.12 each is a frame, for every bind
        return list(map(self.capture, map((bind.args + bind.binders).__getitem__, rule.captured)))

    def rule(self, bind: Bind) -> RuleBody:
        """The rule for whatever cotangents the run will find."""
        return rule_body("vjp", bind, None, None)

    def emit(self, rule: RuleBody, bind: Bind, captured: list) -> tuple:
        """``grad_of[bind.op]``."""
        operands = [self.cotangent(binder) for binder in bind.binders]
        return self.emitter.emit(grad_of, (*operands, *captured), rule.attrs, rule.types)

    def cotangent(self, local: Local) -> Arg:
        """The full cotangent of ``local``: the vjp of the temporary that it is, and what was
        contributed.
        """
        late, ct = self.late(local), self.cotangents.pop(local, None)  # complete now, and read once
        if late is None:
            return UNDEFINED if ct is None else ct
        if ct is None:
            return late
        return self.emitter.emit(self.sum, (late, ct), NO_ATTRS, (strong_type(local.type),))[0]

    def contribute(self, local: Local, ct: Arg) -> None:
        """Add ``ct`` to the cotangent of ``local``."""
        previous = self.cotangents.get(local)  # previous first: the order of rounding [D3]
        if previous is not None:
            (ct,) = self.emitter.emit(
                self.sum, (previous, ct), NO_ATTRS, (strong_type(local.type),)
            )
        self.cotangents[local] = ct


class Direct(Reverse):
    """Emits the rules themselves, for the cotangents that there are and the operands that need one.

    What ``specialize_undef`` and dead-code removal would make of the other form.
    """

    sum: Primitive = add

    def rule(self, bind: Bind) -> RuleBody:
        """The rule for these cotangents and operands."""
        return rule_body("vjp", bind, self.mask(bind), self.needed)

    def mask(self, bind: Bind) -> tuple[bool, ...]:
        """Which results have a cotangent."""
        cts, binders = self.cotangents, bind.binders
        # one result: ``step`` has seen its cotangent
        return DEFINED if len(binders) == 1 else tuple([binder in cts for binder in binders])

    def emit(self, rule: RuleBody, bind: Bind, captured: list) -> tuple:
        """The rule's binds."""
        cts, operands = self.cotangents, []
        for binder in bind.binders:
            if binder in cts:
                operands.append(cts.pop(binder))
        return rule.emit(self.emitter, operands + captured)
