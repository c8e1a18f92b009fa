"""Passes that put a value or a body in the place of its bind: inline_bodies, without_barriers."""

from collections.abc import Sequence

from attrs import define, field

from letir.ast.bodies import all_bodies, map_bodies
from letir.ast.builder import LetBuilder
from letir.ast.gc_pause import paused_gc
from letir.ast.terms import Arg, Bind, Const, Lambda, Local, Ret
from letir.visitors.substitution import substitute

_GROWTH = 8  # times the binds of a program may be inlined: bodies that are shared may nest


@paused_gc()
def inline_bodies(fn: Lambda, *, keep_rules: bool = True) -> Lambda:
    """Put bodies in the place of the binds that hold them where it is known that they run, once:
    the branch that a constant chooses, the one branch of a ``switch``.

    With ``keep_rules=False``, for a program of which no derivative will be taken, also those of
    ``checkpoint``, ``custom_jvp``, ``custom_vjp`` and scripts, which are there for these only.
    Effects keep their order. Linear in the number of binds that come out, which are at most
    ``_GROWTH`` times as many.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[] {
    ...   %1: float64[] = cond(True, %0, on_true=lambda %2: float64[] {
    ...       %3: float64[] = exp(%2); return %3 },
    ...     on_false=lambda %4: float64[] { return %4 });
    ...   %5: float64[] = neg(%1);
    ...   return %5 }''')
    >>> print(inline_bodies(f).listing(), end="")
    %1 = exp %0
    %2 = neg %1
    return %2
    """
    inlining = _Inlining(keep_rules, _GROWTH * sum(map(len, all_bodies(fn))))
    return map_bodies(fn, inlining.program)


@define(eq=False)
class _Inlining:
    """One run through a program. ``room``: how many binds may still be inlined."""

    keep_rules: bool
    room: int
    names: dict[Local, Arg] = field(factory=dict)
    constants: dict[Local, object] = field(factory=dict)

    def program(self, fn: Lambda) -> Lambda:
        """``inline_bodies`` of the binds of ``fn`` itself."""
        if not any(map(self.may_inline, fn.binds)):
            return fn
        before, pending, done = self.room, list(reversed(fn.binds)), []
        while pending:
            bind = self.given_names(pending.pop())
            if bind.op.role == "constant":
                self.constants[bind.binders[0]] = bind.attrs["value"]
            found = bind.op.bodies.in_place(bind, self.number) if self.may_inline(bind) else None
            binds = None if found is None else self.inlined(bind, *found)
            if binds is None:
                done.append(bind)
            else:  # these are looked at again: of them more is known here
                pending += reversed(binds)
        if self.room == before:
            return fn
        return fn.replace(binds=done, ret=Ret(tuple(map(self.named, fn.ret.args))))

    def may_inline(self, bind: Bind) -> bool:
        """Whether a body may be put in the place of a bind, if it is known which."""
        layout = bind.op.bodies
        if layout is None or layout.in_place is None:
            return False
        return not (layout.is_for_derivatives and self.keep_rules)

    def number(self, arg: Arg):
        """The number that an operand is; None if that is not known."""
        return arg.value if type(arg) is Const else self.constants.get(arg)

    def inlined(self, bind: Bind, body: Lambda, operands: Sequence[Arg]) -> list[Bind] | None:
        """The binds of ``body`` for ``operands`` in the place of ``bind``; None if they do not fit
        there.
        """
        if self.room <= len(body.binds):
            return None
        builder = LetBuilder()
        builder.source = bind.source
        results = builder.inline(body, operands)
        pairs = list(zip(bind.binders, results, strict=True))
        if any(binder.type is not result.type for binder, result in pairs):
            return None
        self.room -= len(body.binds) + 1
        fresh = {local for made in builder.binds for local in made.binders}
        for binder, result in pairs:
            self.names[binder] = result
            if result in fresh and result.name is None:  # the user's name for it
                result.name = binder.name
        return builder.binds

    def named(self, arg: Arg) -> Arg:
        """What stands for an operand now."""
        while type(arg) is Local and arg in self.names:
            arg = self.names[arg]
        return arg

    def given_names(self, bind: Bind) -> Bind:
        """``bind`` with what stands for its operands now; itself if nothing does."""
        return bind.with_args(tuple(map(self.named, bind.args))) if self.names else bind


def without_barriers(fn: Lambda) -> Lambda:
    """Take out every ``barrier``: before a plan is made, as nothing is merged any more then.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0 { %1 = barrier(%0); %2 = exp(%1); return %2 }")
    >>> print(without_barriers(f).listing(), end="")
    %1 = exp %0
    return %1
    """
    return map_bodies(fn, _without_barriers)


def _without_barriers(fn: Lambda) -> Lambda:
    names: dict[Local, Arg] = {}
    for bind in fn.binds:
        if bind.op.role == "barrier":
            arg = bind.args[0]
            names[bind.binders[0]] = names.get(arg, arg) if type(arg) is Local else arg
    if not names:
        return fn
    kept = fn.with_binds([bind for bind in fn.binds if bind.op.role != "barrier"])
    return substitute(kept, names)
