"""Rematerialisation: rebuild a Gradient for other residuals.

``split_gradient`` splits the two programs into the binds that read no cotangent and those that are
linear in the cotangents. ``rebuild_gradient`` joins them again around the residuals that a policy
has chosen (``letir.ad.remat.policies``); other values are recomputed just before their first use.
"""

from attrs import frozen

from letir.ad.gradient_program import Captures, Gradient
from letir.ad.symbolic_zeros import UNDEFINED, Specializer
from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder, fresh_binders
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret, substitute_args
from letir.ops.elementwise.casting import barrier
from letir.passes.dead_code_elimination import dead_code, has_effect
from letir.visitors.substitution import free_locals


@frozen(eq=False)
class SplitGradient:
    """The binds of a Gradient in two groups: those that read no cotangent, and those that do.

    ``primal_binds``: the binds of ``f``, then, from position ``lifted`` on, the binds of ``df``
    that read no cotangent. ``linear``: the other binds of ``df``. ``captured``: the residuals,
    ``read``: the values of primal binds that linear binds read, both in program order.
    """

    gradient: Gradient
    primal_binds: tuple[Bind, ...]
    lifted: int
    linear: tuple[Bind, ...]
    results: tuple[Arg, ...]
    captured: tuple[Local, ...]
    read: dict[Local, None]
    producers: dict[Local, Bind]

    @property
    def is_raw(self) -> bool:
        """Whether cotangents may be undefined; then temporaries have cotangents of their own."""
        return any(bind.op.role == "grad_of" for bind in self.linear)

    def needed(self, kept: set[Local]) -> tuple[set[Local], dict[int, Bind]]:
        """(values of ``kept`` and parameters that are read, recomputed binds by id)."""
        result: set[Local] = set()
        recomputed: dict[int, Bind] = {}
        stack = list(self.read)
        while stack:
            local = stack.pop()
            bind = self.producers.get(local)
            if bind is None or local in kept:
                result.add(local)
            elif id(bind) not in recomputed:
                recomputed[id(bind)] = bind
                stack += bind.locals()
        return result, recomputed


def captured_locals(gradient: Gradient) -> tuple[Local, ...]:
    """The values that ``df`` captures, as locals of ``f``: inputs, then results."""
    f = gradient.f
    inputs = [f.params[i] for i in gradient.df_input_captured_inputs]
    outputs = [f.ret.args[i] for i in gradient.df_input_captured_outputs]
    return (*inputs, *[arg for arg in outputs if type(arg) is Local])


def split_gradient(gradient: Gradient) -> SplitGradient:
    """The binds of a Gradient, split into primal and linear ones. Takes linear time."""
    f, df = gradient.f, dead_code(gradient.df)
    count = len(gradient.df_input_vjps)
    captured = captured_locals(gradient)
    names: dict[Local, Arg] = dict(zip(df.params[count:], captured, strict=True))
    cotangents = set(df.params[:count])
    primal, linear = list(f.binds), []
    for original in df.binds:
        bind = original.substitute(names)
        if bind.op.role == "grad_of":
            linear.append(_lift_sizes(bind, primal))
        elif bind.op.role == "barrier" and cotangents.isdisjoint(bind.args):
            # barriers are emitted again for the new residuals
            names[bind.binders[0]] = bind.args[0]
            continue
        # an effect stays in the backward pass
        elif cotangents.isdisjoint(bind.args) and not has_effect(bind):
            primal.append(bind)
            continue
        else:
            linear.append(bind)
        cotangents.update(bind.binders)
    results = substitute_args(df.ret.args, names)
    reads = [arg for bind in linear for arg in bind.args if type(arg) is Local]
    reads += [arg for arg in results if type(arg) is Local]
    read = dict.fromkeys(local for local in reads if local not in cotangents)
    producers = {binder: bind for bind in primal for binder in bind.binders}
    return SplitGradient(
        gradient, tuple(primal), len(f.binds), tuple(linear), results, captured, read, producers
    )


def _lift_sizes(step: Bind, primal: list[Bind]) -> Bind:
    """``step``, a ``grad_of``, with the sizes and masks of its body moved to ``primal``.

    They depend on no cotangent, and take less memory than the values they are computed from.
    """
    body, n_cts = step.attrs["body"], step.attrs["n_cts"]
    operands: dict[Local, Arg] = dict(zip(body.params, step.args, strict=True))
    cts, rest = set(body.params[:n_cts]), []
    for bind in body.binds:
        # None: the result of a bind that stays in the body, so that this bind has to stay too
        args = [operands.get(arg) if type(arg) is Local else arg for arg in bind.args]
        if _is_discrete(bind) and None not in args and cts.isdisjoint(bind.args):
            binders = fresh_binders(bind.binders, operands)
            source = bind.source or step.source
            primal.append(Bind(binders, bind.op, tuple(args), bind.attrs, source))
        else:
            rest.append(bind)
    if len(rest) == len(body.binds):
        return step
    return _with_body(step, rest, body.ret, operands, step.binders)


def _with_body(step: Bind, binds, ret: Ret, operands: dict[Local, Arg], binders) -> Bind:
    """A ``grad_of`` with these binds as its body; ``operands``: {free local of them: operand}."""
    cts = step.attrs["body"].params[: step.attrs["n_cts"]]
    captured = [local for local in free_locals((), binds, ret) if local not in cts]
    body = Lambda((*cts, *captured), binds, ret)
    args = tuple([operands[local] for local in body.params])
    attrs = Attrs({**step.attrs, "body": body})
    return Bind(tuple(binders), step.op, args, attrs, step.source)


def _is_discrete(bind: Bind) -> bool:
    """Whether all results are sizes, integers or booleans."""
    if bind.op.reads_sizes_only:
        return True
    avals = [binder.type for binder in bind.binders]
    return not bind.op.random and all(aval is not None and not aval.inexact for aval in avals)


def rebuild_gradient(parts: SplitGradient, kept: set[Local]) -> Gradient:
    """The Gradient with the residuals ``kept``; other values are recomputed in the backward pass.

    All values that the linear half reads must be computable from ``kept`` and the parameters.
    Linear in the number of binds.
    """
    needed, _ = parts.needed(kept)
    recomputing = _Recomputing(parts, _primal_with_residuals(parts, needed), needed)
    for bind in parts.linear:
        recomputing.emit_linear(bind)
    return recomputing.gradient()


def _primal_with_residuals(parts: SplitGradient, kept: set[Local]) -> Lambda:
    """``f`` without temporaries, with the lifted binds of ``df`` whose results are residuals."""
    gradient, primal, count = parts.gradient, parts.primal_binds, parts.lifted
    real = gradient.f.ret.args[: gradient.f_real_outputs]
    residuals = [local for bind in primal[count:] for local in bind.binders if local in kept]
    binds = primal[:count]
    if residuals:
        lifted = dead_code(Lambda((), primal[count:], Ret(tuple(residuals))))
        binds += lifted.binds
    return Lambda(gradient.f.params, binds, Ret(real), gradient.f.in_tree)


class _Recomputing:
    """Emits the linear binds of a Gradient, and before each the values to recompute for it."""

    def __init__(self, parts: SplitGradient, primal: Lambda, kept: set[Local]):
        self.parts, self.kept = parts, kept
        self.captures, self.builder = Captures(primal), LetBuilder()
        self.recomputed: dict[Local, Local] = {}  # value -> recomputed value
        self.behind: dict[Local, Local] = {}  # residual -> its barrier, which recomputed binds read

    def emit_linear(self, bind: Bind) -> None:
        """Emit one linear bind."""
        args = tuple([self.operand(arg) for arg in bind.args])
        self.builder.binds.append(bind.with_args(args))

    def operand(self, arg: Arg) -> Arg:
        """The operand of a linear bind: ``arg``, or the recomputed value for it."""
        if type(arg) is not Local or arg not in self.parts.read:
            return arg
        # recomputed at the first use, so that it takes no memory before
        if arg not in self.kept and arg not in self.recomputed:
            self.recompute(arg)
        return self.recomputed_value(arg)

    def recomputed_value(self, arg: Arg) -> Arg:
        """The residual or recomputed value for ``arg``; a constant unchanged."""
        if type(arg) is not Local:
            return arg
        return self.captures.capture(arg) if arg in self.kept else self.recomputed[arg]

    def behind_barrier(self, arg: Arg) -> Arg:
        """``recomputed_value(arg)``, a residual behind a barrier.

        Without it, common-subexpression elimination would merge the recomputed binds with those of
        the forward pass, and keep their results alive.
        """
        result = self.recomputed_value(arg)
        if type(arg) is not Local or arg not in self.kept:
            return result
        if arg not in self.behind:
            hidden = self.behind[arg] = Local(arg.type)
            self.builder.binds.append(Bind((hidden,), barrier, (result,)))
        return self.behind[arg]

    def recompute(self, local: Local) -> None:
        """Emit the binds that recompute ``local``, operands first, with an explicit stack."""
        stack, producers = [local], self.parts.producers
        while stack:
            local = stack[-1]
            if local in self.kept or local in self.recomputed:
                stack.pop()
                continue
            bind = producers[local]
            missing = [a for a in bind.locals() if a not in self.kept and a not in self.recomputed]
            if missing:
                stack += missing
                continue
            args = tuple([self.behind_barrier(arg) for arg in bind.args])
            binders = fresh_binders(bind.binders, self.recomputed)
            self.builder.binds.append(Bind(binders, bind.op, args, bind.attrs, bind.source))

    def gradient(self) -> Gradient:
        """The Gradient, after all linear binds have been emitted."""
        old, captures = self.parts.gradient, self.captures
        # before ``captures`` is read, because it may recompute and capture values
        results = [self.operand(arg) for arg in self.parts.results]
        params = dict(zip(old.df_input_vjps, old.df.params, strict=False))  # captured params follow
        # the vjp parameter of a temporary moves to its new position, or is dropped with it
        cotangents = {old.f.ret.args[i]: p for i, p in params.items() if i >= old.f_real_outputs}
        vjps = {i: p for i, p in params.items() if i < old.f_real_outputs}
        for i, local in enumerate(captures.results[old.f_real_outputs :], old.f_real_outputs):
            if local in cotangents:
                vjps[i] = cotangents[local]
        self.builder.params = [*vjps.values(), *captures.params()]
        df = self.builder.build(results)
        kept_params = set(vjps.values())
        dropped = [p for p in params.values() if p not in kept_params]
        return Gradient(
            f=captures.primal(),
            # nothing dropped: no cotangent has become undefined
            df=_without_cotangents(df, vjps.values(), dropped) if dropped else df,
            f_real_outputs=old.f_real_outputs,
            df_input_vjps=tuple(vjps),
            df_input_captured_inputs=tuple(sorted(captures.inputs)),
            df_input_captured_outputs=tuple(sorted(captures.outputs)),
            df_output_vjps=old.df_output_vjps,
            out_tree=old.out_tree,
        )


def _without_cotangents(df: Lambda, vjps, dropped: list[Local]) -> Lambda:
    """``df`` specialised for undefined cotangents ``dropped``, which are not parameters any more.

    Those in ``vjps`` may be defined or undefined.
    """
    builder = LetBuilder()
    builder.params = list(df.params)
    names: dict[Local, Arg] = {p: p for p in df.params}
    names.update(dict.fromkeys(dropped, UNDEFINED))
    states: dict[Local, bool | None] = dict.fromkeys(vjps, None)
    states.update(dict.fromkeys(dropped, False))
    return builder.build(Specializer(builder, names, states).run(df))
