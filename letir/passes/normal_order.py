"""normalize_order: one order for all programs that compute the same graph."""

from attrs import define, field

from letir.ast.bodies import map_bodies
from letir.ast.gc_pause import paused_gc
from letir.ast.liveness import has_effect
from letir.ast.terms import Bind, Lambda, Local
from letir.ops.effects.writes_to_arguments import changed_params


@paused_gc()
def normalize_order(fn: Lambda) -> Lambda:
    """Put the binds in the order in which the effects, then the results, ask for them: operands
    first, from left to right; in bodies too.

    Programs that differ only in the order of binds are equal then. Effects keep their order, and
    nothing that stands behind one moves before it [C5]; what nobody needs comes last. A program
    that changes its arguments stays as it is. For comparing: no other pass changes an order [A2].
    Linear in the number of binds.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = sin(%0); %3 = sub(%2, %1); return %3 }")
    >>> print(normalize_order(f).listing(), end="")
    %1 = sin %0
    %2 = exp %0
    %3 = sub %1, %2
    return %3
    """
    return map_bodies(fn, _order_binds)


def _order_binds(fn: Lambda) -> Lambda:
    """``normalize_order`` of the binds of ``fn`` itself."""
    if changed_params(fn):
        return fn
    order = _Order({binder: bind for bind in fn.binds for binder in bind.binders})
    for bind in fn.binds:
        if bind.op.effect or (bind.op.holds_lambdas and has_effect(bind)):
            order.demand(bind)
    makers = [order.producers.get(arg) for arg in fn.ret.args if type(arg) is Local]
    for bind in (*makers, *fn.binds):
        if bind is not None and id(bind) not in order.opened:
            order.demand(bind)
    if all(a is b for a, b in zip(order.binds, fn.binds, strict=True)):
        return fn
    return fn.with_binds(tuple(order.binds))


@define(eq=False)
class _Order:
    """The ``binds`` so far; ``opened``: the ids of those that have been asked for."""

    producers: dict[Local, Bind]
    binds: list[Bind] = field(factory=list)
    opened: set[int] = field(factory=set)

    def demand(self, bind: Bind) -> None:
        """Add ``bind`` behind what its operands need, depth first, with a stack of our own."""
        producer, opened, stack = self.producers.get, self.opened, [(bind, False)]
        while stack:
            bind, is_ready = stack.pop()
            if is_ready:
                self.binds.append(bind)
            elif id(bind) not in opened:
                opened.add(id(bind))
                stack.append((bind, True))
                for arg in reversed(bind.args):
                    maker = producer(arg) if type(arg) is Local else None
                    if maker is not None and id(maker) not in opened:
                        stack.append((maker, False))
