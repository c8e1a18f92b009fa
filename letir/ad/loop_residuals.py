"""Loops in the reverse transform: which of them give residuals, further results that their rules
read. ``Reverse`` asks ``LoopResiduals.saved`` before it looks for a rule.
"""

from itertools import chain

from attrs import define, field

from letir.ast.derivative_types import carries_derivative
from letir.ast.primitive import LATE_BOUND
from letir.ast.terms import Bind, Lambda, Local
from letir.ops.control_flow.loop_analysis import has_fixed_shape, restore_number_results


@define(eq=False)
class LoopResiduals:
    """The loops of one program that give their residuals, by the id of their binds.

    With ``fixed_shapes`` a loop does so only if its residuals have the same shape each time that
    the program runs, so that a loop around it can stack them.
    """

    fixed_shapes: bool = False
    replaced: dict[int, Bind] = field(factory=dict)

    def saved(self, bind: Bind, mask: tuple[bool, ...], needed: set[Local]) -> Bind:
        """The loop with its residuals as further results, which takes its place in the program.

        ``mask``: which of its results have a cotangent; the residuals join ``needed``.
        """
        found = self.replaced.get(id(bind))
        if found is None:
            flags = [type(arg) is Local and arg in needed for arg in bind.args]
            found = bind.op.saving(bind, flags, mask, LATE_BOUND["differentiate_body"])
            residuals = found.binders[len(bind.binders) :]
            if self.fixed_shapes and not all(map(has_fixed_shape, residuals)):
                found = bind
            self.replaced[id(bind)] = found
        # a residual may get a cotangent of its own [D4]
        needed.update([binder for binder in found.binders if carries_derivative(binder)])
        return found

    def primal(self, fn: Lambda) -> Lambda:
        """``fn`` with these loops in their places."""
        binds = [restore_number_results(self.replaced.get(id(bind), bind)) for bind in fn.binds]
        return fn.with_binds(list(chain.from_iterable(binds)))
