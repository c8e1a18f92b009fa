"""The reverse transform: from a program to its gradient program.

``Reverse`` visits a body forwards, remembering the binds through which a derivative flows, and from
the return goes back over these, one ``grad_of`` each; ``Direct`` emits the rules themselves, where
it is known which cotangents there are. ``differentiate`` wraps them into a ``Gradient``; grad, vjp
and all others stand on that. The conventions are those of docs/semantics.md, D1 to D6.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter

from letir.ad.gradient_program import Captures, Gradient, Policy
from letir.ad.loop_residuals import LoopResiduals
from letir.ad.rule_cache import RuleBody, rule_body
from letir.ad.symbolic_zeros import UNDEFINED
from letir.ast.attrs import NO_ATTRS
from letir.ast.builder import LetBuilder
from letir.ast.derivative_types import carries_derivative, strong_type
from letir.ast.error_locations import error_at_bind
from letir.ast.gc_pause import paused_gc
from letir.ast.primitive import LATE_BOUND, Primitive
from letir.ast.terms import Arg, Bind, Lambda, Let, Local, Ret
from letir.errors import LetirError, MissingRule, ShapeError
from letir.ops.autodiff.gradient_steps import autograd_add, grad_of
from letir.ops.elementwise.ufuncs import add
from letir.passes.lowering import lowered
from letir.passes.memory.aliases import copy_outliving_views
from letir.passes.peephole_rules.negation_sinking import sink_negations
from letir.passes.peephole_rules.sum_merging import combine_sums
from letir.visitors.visitor import ExprVisitor, TailCall

DEFINED = (True,)
_op_of, _may_update = attrgetter("op"), attrgetter("op.update")


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


def differentiate(
    f: Lambda,
    requires_grad: Sequence[bool] | None = None,
    *,
    defined: Sequence[bool] | None = None,
    policy: Policy = "keep_all",
    exact: bool = False,
) -> Gradient:
    """The gradient program of ``f`` for the parameters where ``requires_grad`` (default: all
    floating ones).

    Where it is known which results have a cotangent, ``defined`` says so: then ``df`` takes these
    cotangents only, none of temporaries, and has no ``grad_of``. ``policy`` and ``exact`` say what
    is kept and what is computed again (``letir.ad.remat.policies``). Linear in the number of binds.
    Raises MissingRule with the user's line where an operation has no rule yet.

    >>> from letir.ast.text.parser import parse
    >>> text = "lambda %0:a: float64[], %1:b: float64[] { %2: float64[] = mul(%0, %1); return %2 }"
    >>> f = parse(text)
    >>> print(differentiate(f).df_text(), end="")
    df(%0 vjp of a*b, %1 a, %2 b):
      %3, %4 = grad_of[mul](%0) { %5 = mul(%0, %2); %6 = mul(%0, %1) -> (%5, %6) }
      return (%3, %4)
    """
    return differentiate_lowered(
        lowered(f), requires_grad, defined=defined, policy=policy, exact=exact
    )


def differentiate_lowered(
    f: Lambda,
    requires_grad: Sequence[bool] | None = None,
    *,
    defined: Sequence[bool] | None = None,
    policy: Policy = "keep_all",
    exact: bool = False,
) -> Gradient:
    """``differentiate`` of a program that ``passes.lowering.lowered`` has made."""
    again = recorder(f, requires_grad, defined)
    gradient = again()
    if policy == "keep_all" and not exact:
        return gradient
    return LATE_BOUND["with_policy"](gradient, policy, exact=exact, again=again)


def recorder(
    f: Lambda,
    requires_grad: Sequence[bool] | None,
    defined: Sequence[bool] | None,
    *,
    fixed_shapes: bool = False,
) -> Callable[..., Gradient]:
    """A function that differentiates ``f``, and takes locals that become temporaries.

    ``fixed_shapes``: loops give the residuals whose shapes do not depend on values, no others.
    """
    if requires_grad is None:
        requires_grad = [True] * len(f.params)
    if len(requires_grad) != len(f.params):
        raise ShapeError(
            f"differentiate: {len(f.params)} parameters, {len(requires_grad)} flags "
            "in requires_grad"
        )
    if defined is not None and len(defined) != len(f.ret.args):
        raise ShapeError(
            f"differentiate: {len(f.ret.args)} results, {len(defined)} flags in defined"
        )
    pairs = zip(f.params, requires_grad, strict=True)
    inputs = [i for i, (p, flag) in enumerate(pairs) if flag and carries_derivative(p)]
    loops = LoopResiduals(fixed_shapes=fixed_shapes)  # for all runs: their binders are the same

    def recorded(temporaries: Sequence[Local] = ()) -> Gradient:
        return _Recording(f, defined, loops, temporaries).gradient(inputs)

    return recorded


class _Recording:
    """The state of one ``differentiate``: a builder, the captures, and the vjp parameters by result
    position. ``temporaries`` are captured whether or not a rule reads them.
    """

    def __init__(
        self,
        f: Lambda,
        defined: Sequence[bool] | None,
        loops: LoopResiduals,
        temporaries: Sequence[Local],
    ):
        self.f, self.defined, self.builder = f, defined, LetBuilder()
        self.loops, self.temporaries = loops, temporaries
        self.captures = Captures(f)
        self.vjps: dict[int, Local] = {}  # of results and temporaries, by position
        self.late: dict[Local, Local] = {}  # of temporaries, by local
        if defined is None:
            self.reverse = Reverse(self.builder, self.capture, self.late.get, loops.saved)
        else:
            capture = self.captures.capture
            self.reverse = Direct(self.builder, capture, self.late.get, loops.saved)

    def seeds(self, ret: Ret):
        """One vjp parameter for each result position that requires grad and may have a cotangent
        [D2].
        """
        for position, arg in enumerate(ret.args):
            if arg in self.reverse.needed and (self.defined is None or self.defined[position]):
                self.vjps[position] = Local(strong_type(arg.type))
                yield arg, self.vjps[position]
        for local in self.temporaries:
            self.capture(local)

    def capture(self, local: Local) -> Local:
        """The captured local; a new temporary that requires grad gets a vjp parameter of its own
        [D4].
        """
        count = len(self.captures.results)
        self.captures.capture(local)
        if len(self.captures.results) > count and local in self.reverse.needed:
            self.vjps[count] = self.late[local] = Local(strong_type(local.type))
        return local

    @paused_gc()
    def gradient(self, inputs: list[int]) -> Gradient:
        """The Gradient for these parameters."""
        f, captures = self.f, self.captures
        cotangents = self.reverse.visit(f.body, {f.params[i] for i in inputs}, [], self.seeds)
        self.builder.params = [*self.vjps.values(), *captures.params()]
        df = self.builder.build([cotangents.get(f.params[i], UNDEFINED) for i in inputs])
        if self.defined is not None:  # the raw form is as [D5] says
            # sums first: with signs carried some are differences
            df = combine_sums(df) if self.reverse.sum in map(_op_of, df.binds) else df
            df = sink_negations(df)
        primal = captures.primal()
        primal = self.loops.primal(primal) if self.loops.replaced else primal
        if any(map(_may_update, primal.binds)):
            # what a step captures of a buffer must not keep the next from writing into it
            primal = copy_outliving_views(primal)
        return Gradient(
            f=primal,
            df=df,
            f_real_outputs=len(f.ret.args),
            df_input_vjps=tuple(self.vjps),
            df_input_captured_inputs=tuple(sorted(captures.inputs)),
            df_input_captured_outputs=tuple(sorted(captures.outputs)),
            df_output_vjps=tuple(inputs),
            out_tree=f.out_tree,
        )
