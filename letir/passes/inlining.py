"""Inlining of bodies into the surrounding program, and removal of barriers."""

from collections.abc import Sequence

from attrs import define, field

from letir.ast import entry_point
from letir.ast.bodies import all_bodies, map_bodies
from letir.ast.builder import LetBuilder
from letir.ast.process_state import paused_gc
from letir.ast.terms import Arg, Bind, Const, Lambda, Local, Ret
from letir.visitors.substitution import substitute

_GROWTH = 8  # the most inlined binds per bind of the program: shared bodies may be nested


@entry_point
@paused_gc()
def inline_bodies(fn: Lambda, *, keep_rules: bool = True) -> Lambda:
    """Inline bodies that certainly run exactly once: the branch selected by a constant, the only
    branch of a ``switch``.

    With ``keep_rules=False``, for programs that will not be differentiated, also the bodies of
    ``checkpoint``, ``custom_jvp``, ``custom_vjp`` and scripts. Effects keep their order. Linear in
    the number of resulting binds, which are at most ``_GROWTH`` times as many.

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
    """The inlining in one program. ``room``: the number of binds that may still be inlined."""

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
            bind = self.with_current_args(pending.pop())
            if bind.op.role == "constant":
                self.constants[bind.binders[0]] = bind.attrs["value"]
            chosen = (
                bind.op.bodies.in_place(bind, self.known_number) if self.may_inline(bind) else None
            )
            binds = None if chosen is None else self.inline_body(bind, *chosen)
            if binds is None:
                done.append(bind)
            else:  # the inlined binds are processed again: more of their operands are known here
                pending += reversed(binds)
        if self.room == before:
            return fn
        return fn.replace(binds=done, ret=Ret(tuple(map(self.current_arg, fn.ret.args))))

    def may_inline(self, bind: Bind) -> bool:
        """Whether a bind may be replaced by a body, if it is known which."""
        layout = bind.op.bodies
        if layout is None or layout.in_place is None:
            return False
        return not (layout.is_for_derivatives and self.keep_rules)

    def known_number(self, arg: Arg):
        """The value of an operand that is a known number; None otherwise."""
        return arg.value if type(arg) is Const else self.constants.get(arg)

    def inline_body(self, bind: Bind, body: Lambda, operands: Sequence[Arg]) -> list[Bind] | None:
        """The binds of ``body`` on ``operands`` in place of ``bind``; None if types do not fit."""
        if self.room <= len(body.binds):
            return None
        builder = LetBuilder()
        builder.source = bind.source
        results = builder.inline(body, operands)
        pairs = list(zip(bind.binders, results, strict=True))
        if any(binder.type is not result.type for binder, result in pairs):
            return None
        self.room -= len(body.binds) + 1
        fresh = {local for new in builder.binds for local in new.binders}
        for binder, result in pairs:
            self.names[binder] = result
            if type(result) is Local and result in fresh and result.name is None:
                result.name = binder.name  # the user's name for it
        return builder.binds

    def current_arg(self, arg: Arg) -> Arg:
        """The current replacement of an operand."""
        while type(arg) is Local and arg in self.names:
            arg = self.names[arg]
        return arg

    def with_current_args(self, bind: Bind) -> Bind:
        """``bind`` with its operands replaced; ``bind`` itself if none changes."""
        return bind.with_args(tuple(map(self.current_arg, bind.args))) if self.names else bind


@entry_point
def without_barriers(fn: Lambda) -> Lambda:
    """Remove every ``barrier``: the last pass before a plan, after which nothing is merged.

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
    result = fn.with_binds([bind for bind in fn.binds if bind.op.role != "barrier"])
    return substitute(result, names)
