"""The reverse transform: from a program to its gradient program.

``Reverse`` visits a body forwards, remembering the binds through which a derivative flows, and from the return goes
back over these, one ``grad_of`` each. ``differentiate`` wraps it into a ``Gradient``; grad, vjp and all others stand
on that. The conventions are those of docs/semantics.md, D1 to D6.
"""

from collections.abc import Sequence

from letir.ad.captures import Captures
from letir.ad.gradient import Gradient
from letir.ad.rules import rule_body, strong, with_line
from letir.ad.zeros import specialized
from letir.ast.attrs import NO_ATTRS, Attrs
from letir.ast.builder import LetBuilder, Value
from letir.ast.collecting import paused_gc
from letir.ast.primitive import Absent
from letir.ast.terms import Arg, Bind, Const, Lambda, Let, Local, Ret
from letir.ast.types import Undef
from letir.errors import LetirError, ShapeError
from letir.ops.control import autograd_add, grad_of
from letir.visitors.visitor import ExprVisitor, TailCall

UNDEFINED = Const(Undef)


class Reverse(ExprVisitor):
    """Emits the gradient program of a body into ``emitter``, a builder or an executor.

    ``capture(local)`` gives the emitter's operand for a primal value, ``seeds`` the cotangents of the results by
    position, and ``late(local)`` the cotangent that a captured temporary has of its own, or None.
    """

    def __init__(self, emitter, capture, late, seeds):
        self.emitter, self.capture, self.late, self.seeds = emitter, capture, late, seeds
        self.cotangents: dict[Local, Arg] = {}

    def visit_let(self, let: Let, needed: set, trail: list):
        bind = let.bind
        if flows_through(bind) and not needed.isdisjoint(bind.args):
            needed.update(binder for binder in bind.binders if takes_cotangent(binder))
            trail.append(bind)
        return TailCall(let.body, needed, trail)

    def visit_ret(self, ret: Ret, needed: set, trail: list):
        for position, ct in self.seeds(ret, needed):
            self.contribute(ret.args[position], ct)
        for bind in reversed(trail):
            self.step(bind, needed)
        return self.cotangents

    def step(self, bind: Bind, needed: set) -> None:
        """Emit ``grad_of[bind.op]`` and give its results to the operands."""
        cts = self.cotangents
        if not any(binder in cts or self.late(binder) is not None for binder in bind.binders):
            return
        try:
            rule = rule_body("vjp", bind, None, pull)
        except LetirError as error:
            raise with_line(error, bind) from None
        if not rule.results:
            return
        self.emitter.source = bind.source
        places = bind.args + bind.binders
        captured = tuple([self.capture(places[i]) for i in rule.captured])
        operands = tuple([self.with_late(binder) for binder in bind.binders])
        attrs = Attrs(op=bind.op, n_cts=len(operands), body=rule.body)
        for position, ct in zip(rule.results, self.emitter.emit(grad_of, operands + captured, attrs), strict=True):
            if bind.args[position] in needed:
                self.contribute(bind.args[position], ct)

    def with_late(self, local: Local) -> Arg:
        """The full cotangent of ``local``: the vjp of the temporary that it is, and what was contributed."""
        late, ct = self.late(local), self.cotangents.pop(local, None)
        if late is None or ct is None:
            return (late if ct is None else ct) if late is not ct else UNDEFINED
        return self.emitter.emit(autograd_add, (late, ct), NO_ATTRS)[0]

    def contribute(self, local: Local, ct: Arg) -> None:
        """Add ``ct`` to the cotangent of ``local``."""
        previous = self.cotangents.get(local)
        if previous is not None:
            (ct,) = self.emitter.emit(autograd_add, (previous, ct), NO_ATTRS)
        self.cotangents[local] = ct


def takes_cotangent(local: Local) -> bool:
    """Whether it is floating or complex, as far as is known [D1]."""
    return local.type is None or local.type.inexact


def flows_through(bind: Bind) -> bool:
    """Whether a derivative can flow through it: unless it cannot have a rule, or has no floating result [D1]."""
    vjp = bind.op.vjp
    return not (type(vjp) is Absent and vjp.final) and any(takes_cotangent(binder) for binder in bind.binders)


def differentiate(f: Lambda, requires_grad: Sequence[bool] | None = None) -> Gradient:
    """The gradient program of ``f`` for the parameters where ``requires_grad`` (default: all floating ones).

    Linear in the number of binds. Raises MissingRule with the user's line where an operation has no rule yet.

    >>> from letir.ast.parser import parse
    >>> print(differentiate(parse("lambda %0, %1 { %2 = mul(%0, %1); return %2 }")).df_text(), end="")
    df(%0 vjp of %2, %1 %0, %2 %1):
      %3, %4 = grad_of[mul](%0) { %5 = mul(%0, %2); %6 = mul(%0, %1) -> (%5, %6) }
      return (%3, %4)
    """
    if requires_grad is None:
        requires_grad = [True] * len(f.params)
    if len(requires_grad) != len(f.params):
        raise ShapeError(f"differentiate: {len(f.params)} parameters, {len(requires_grad)} flags in requires_grad")
    inputs = [i for i, p in enumerate(f.params) if requires_grad[i] and takes_cotangent(p)]
    with paused_gc():
        recording = _Recording(f)
        cotangents = recording.reverse.visit(f.body, {f.params[i] for i in inputs}, [])
        return recording.gradient(inputs, [cotangents.get(f.params[i], UNDEFINED) for i in inputs])


class _Recording:
    """The state of one ``differentiate``: a builder, the captures, and the vjp parameters by result position."""

    def __init__(self, f: Lambda):
        self.f, self.builder = f, LetBuilder()
        self.captures = Captures(f, self.builder)
        self.vjps: dict[int, Local] = {}  # of results and temporaries, by position
        self.late: dict[Local, Local] = {}  # of temporaries, by local
        self.reverse = Reverse(self.builder, self.capture, self.late.get, self.seeds)
        self.needed: set[Local] = set()

    def seeds(self, ret: Ret, needed: set):
        """One vjp parameter for each result position that requires grad [D2]."""
        self.needed = needed
        for position, arg in enumerate(ret.args):
            if type(arg) is Local and arg in needed:
                self.vjps[position] = Local(strong(arg.type))
                yield position, self.vjps[position]

    def capture(self, local: Local) -> Local:
        """The captured parameter; a new temporary that requires grad gets a vjp parameter of its own [D4]."""
        count = len(self.captures.results)
        param = self.captures.capture(local)
        if len(self.captures.results) > count and local in self.needed:
            self.vjps[count] = self.late[local] = Local(strong(local.type))
        return param

    def gradient(self, inputs: list[int], results: list[Arg]) -> Gradient:
        """The finished Gradient."""
        captures = self.captures
        self.builder.params = [*self.vjps.values(), *captures.params()]
        return Gradient(
            f=captures.primal(),
            df=self.builder.build(results),
            f_real_outputs=len(self.f.ret.args),
            df_input_vjps=tuple(self.vjps),
            df_input_captured_inputs=tuple(sorted(captures.inputs)),
            df_input_captured_outputs=tuple(sorted(captures.outputs)),
            df_output_vjps=tuple(inputs),
            out_tree=self.f.out_tree,
        )


def pull(fn: Lambda, args: list[Value], cts) -> tuple[Value | None, ...]:
    """The cotangents of ``args`` for those of the results of ``fn``, emitted where ``args`` are: for rules.

    ``cts``: one for each result, None for zero. Results: one for each argument, None for zero.
    """
    cts = cts if isinstance(cts, tuple | list) else (cts,)
    gradient = differentiate(fn)
    builder = next(v.emitter for v in (*args, *cts) if isinstance(v, Value))
    operands = [builder.enter(arg) for arg in args]
    outs = builder.inline(gradient.f, operands)
    given = {i: None if ct is None else builder.enter(ct) for i, ct in enumerate(cts)}
    found: list = [None] * len(args)
    for i, ct in zip(gradient.df_output_vjps, specialized(builder, gradient, operands, outs, given), strict=True):
        found[i] = Value(builder, ct) if type(ct) is Local else None
    return tuple(found)
