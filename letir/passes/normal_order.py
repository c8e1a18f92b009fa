"""``normalize_order``: a unique order of binds for programs with the same graph."""

from attrs import define, field

from letir.ast import entry_point
from letir.ast.bodies import map_bodies
from letir.ast.liveness import has_effect
from letir.ast.process_state import paused_gc
from letir.ast.terms import Bind, Lambda, Local
from letir.ops.effects.writes_to_arguments import changed_params


@entry_point
@paused_gc()
def normalize_order(fn: Lambda) -> Lambda:
    """Sort the binds in the order in which effects, then results, need them; also in bodies. The
    operands of a bind come before it, from left to right.

    Programs that differ only in the order of binds become equal. Effects keep their order, and no
    bind moves before an effect that it follows [semantics.md C5]; dead binds come last. A program
    that writes to its arguments does not change. For comparisons only: other passes preserve the
    order [semantics.md A2]. Linear in the number of binds.

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
    """The sorted ``binds`` so far; ``opened``: the ids of visited binds."""

    producers: dict[Local, Bind]
    binds: list[Bind] = field(factory=list)
    opened: set[int] = field(factory=set)

    def demand(self, bind: Bind) -> None:
        """Append ``bind`` after the binds of its operands, depth first with an explicit stack."""
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
