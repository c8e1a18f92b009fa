"""Loops and branches in the reverse transform: they get further results, the residuals that their
vjp rules read. ``Reverse`` calls ``LoopResiduals.with_residuals`` before it looks up a rule.
"""

from itertools import chain

from attrs import define, field

from letir.ast import LATE_BOUND
from letir.ast.derivative_types import carries_derivative
from letir.ast.terms import Bind, Lambda, Local


@define(eq=False)
class LoopResiduals:
    """The loops of one program that return residuals, by the id of the binds that they replace.

    With ``fixed_shapes`` a loop returns residuals only if their shapes do not depend on values, so
    that an enclosing loop can stack them.
    """

    fixed_shapes: bool = False
    replaced: dict[int, Bind] = field(factory=dict)

    def with_residuals(self, bind: Bind, mask: tuple[bool, ...], needed: set[Local]) -> Bind:
        """The loop ``bind`` with its residuals as further results; it will replace ``bind``.

        ``mask``: which results of ``bind`` have a cotangent. ``needed``: the locals that require
        grad, to which floating residuals are added.
        """
        result = self.replaced.get(id(bind))
        if result is None:
            flags = [type(arg) is Local and arg in needed for arg in bind.args]
            result = bind.op.with_residuals(bind, flags, mask, LATE_BOUND["differentiate_body"])
            residuals = result.binders[len(bind.binders) :]
            if self.fixed_shapes and not all(map(LATE_BOUND["has_fixed_shape"], residuals)):
                result = bind
            self.replaced[id(bind)] = result
        # residuals are temporaries, which have cotangents in second derivatives [semantics.md D4]
        needed.update([binder for binder in result.binders if carries_derivative(binder)])
        return result

    def primal(self, fn: Lambda) -> Lambda:
        """``fn`` with the loops that return residuals in place of the original ones."""
        restored = LATE_BOUND["restore_number_results"]
        binds = [restored(self.replaced.get(id(bind), bind)) for bind in fn.binds]
        return fn.with_binds(list(chain.from_iterable(binds)))
