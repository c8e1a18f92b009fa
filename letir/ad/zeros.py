"""Symbolic zeros: ``specialize_undef`` and ``lower_grad_of``, which take ``grad_of`` and ``autograd_add`` out of
gradient programs [D6 - D8].

Each local is defined (True), undefined (False) or unknown (None), which only the run can tell.
"""

from collections.abc import Sequence

from letir.ad.gradient import Gradient
from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder
from letir.ast.collecting import paused_gc
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ast.types import Undef
from letir.errors import ShapeError
from letir.ops.control import autograd_add, grad_of, instantiate, when_defined
from letir.ops.elementwise import add
from letir.ops.sizes import zeros

UNDEFINED = Const(Undef)


class Specializer:
    """Re-emits the binds of a gradient program, given which of its parameters are defined."""

    def __init__(self, builder: LetBuilder):
        self.builder = builder
        self.names: dict[Local, Arg] = {}
        self.states: dict[Local, bool | None] = {}
        self.cases = {grad_of: self.grad_of, autograd_add: self.autograd_add, instantiate: self.instantiate}

    def start(self, params: Sequence[Local], args: Sequence[Arg], states: Sequence[bool | None]) -> None:
        """Let ``args`` stand for ``params``, with these states."""
        self.names.update(zip(params, args, strict=True))
        self.states.update(zip(params, states, strict=True))

    def run(self, fn: Lambda) -> list[Arg]:
        """Emit the binds of ``fn`` and return its results, ``Undef`` where they are undefined."""
        for bind in fn.binds:
            self.cases.get(bind.op, self.other)(bind)
        return [UNDEFINED if self.state(arg) is False else self.name(arg) for arg in fn.ret.args]

    def name(self, arg: Arg) -> Arg:
        """What stands for ``arg`` in the new program."""
        return self.names[arg] if type(arg) is Local else arg

    def state(self, arg: Arg) -> bool | None:
        """Whether ``arg`` is defined."""
        if type(arg) is Local:
            return self.states[arg]
        return arg.value is not Undef and arg.value is not None

    def settle(self, binder: Local, name: Arg, state: bool | None) -> None:
        """Let ``name`` stand for ``binder``."""
        self.names[binder], self.states[binder] = name, state

    def copy(self, bind: Bind, state: bool | None) -> None:
        """Emit ``bind`` as it is; its results have this state."""
        args = tuple([self.name(arg) for arg in bind.args])
        binders = tuple([Local(binder.type, binder.name) for binder in bind.binders])
        self.builder.binds.append(Bind(binders, bind.op, args, bind.attrs, bind.source))
        for old, new in zip(bind.binders, binders, strict=True):
            self.settle(old, new, state)

    def other(self, bind: Bind) -> None:
        """An ordinary operation: its operands are defined, and so is its result."""
        self.copy(bind, True)

    def autograd_add(self, bind: Bind) -> None:
        """The table of [D6]; a sum only where both are defined."""
        (binder,), (x, y) = bind.binders, bind.args
        states = self.state(x), self.state(y)
        if states == (True, True):
            self.builder.source = bind.source
            self.settle(binder, self.builder.emit(add, (self.name(x), self.name(y)))[0], True)
        elif False in states:
            kept = y if states[0] is False else x
            self.settle(binder, self.name(kept), self.state(kept))
        else:
            self.copy(bind, True if True in states else None)

    def instantiate(self, bind: Bind) -> None:
        """Nothing for a defined value, zeros for an undefined one."""
        state = self.state(bind.args[0])
        if state is None:
            return self.copy(bind, True)
        if state:
            return self.settle(bind.binders[0], self.name(bind.args[0]), True)
        self.builder.source = bind.source
        args = tuple([self.name(arg) for arg in bind.args[1:]])
        return self.settle(bind.binders[0], self.builder.emit(zeros, args, bind.attrs)[0], True)

    def grad_of(self, bind: Bind) -> None:
        """Nothing if no cotangent is defined, the body in place if one is, a step to decide at run time otherwise."""
        n_cts, body = bind.attrs["n_cts"], bind.attrs["body"]
        states = [self.state(arg) for arg in bind.args]
        if True not in states[:n_cts]:
            if None in states[:n_cts]:
                return self.copy(bind, None)
            for binder in bind.binders:
                self.settle(binder, UNDEFINED, False)
            return None
        self.start(body.params, [self.name(arg) for arg in bind.args], states)
        source, self.builder.source = self.builder.source, bind.source
        first = len(self.builder.binds)
        for inner in body.binds:
            self.cases.get(inner.op, self.other)(inner)
        for emitted in self.builder.binds[first:]:
            emitted.source = emitted.source or bind.source
        self.builder.source = source
        for binder, arg in zip(bind.binders, body.ret.args, strict=True):
            self.settle(binder, self.name(arg), self.state(arg))
        return None


def specialize_undef(df: Lambda, defined_mask: Sequence[bool | None]) -> Lambda:
    """``df`` for parameters that are defined (True), undefined (False) or unknown (None).

    Undefined parameters stay, unused. ``grad_of`` and ``autograd_add`` remain only where the run has to decide.
    """
    if len(defined_mask) != len(df.params):
        raise ShapeError(f"specialize_undef: {len(df.params)} parameters, {len(defined_mask)} flags")
    with paused_gc():
        builder = LetBuilder()
        params = [Local(param.type, param.name) for param in df.params]
        builder.params = params
        specializer = Specializer(builder)
        specializer.start(df.params, params, defined_mask)
        return builder.build(specializer.run(df))


def lower_grad_of(df: Lambda) -> Lambda:
    """``df`` with every remaining ``grad_of`` as ``when_defined``: the body, if any cotangent turns out defined."""

    def lowered(bind: Bind) -> Bind:
        if bind.op is not grad_of:
            return bind
        attrs = Attrs(n_cts=bind.attrs["n_cts"], body=bind.attrs["body"])
        return Bind(bind.binders, when_defined, bind.args, attrs, bind.source)

    return df.with_binds(tuple([lowered(bind) for bind in df.binds]))


def specialized(builder: LetBuilder, gradient: Gradient, inputs: Sequence[Arg], outputs: Sequence[Arg], cts) -> list[Arg]:
    """Emit the gradient program where its primal program has these arguments and results.

    ``cts``: {result position: cotangent, or None}; a result that is not there has none.
    """
    given = [cts.get(i) for i in gradient.df_input_vjps]
    captured = [inputs[i] for i in gradient.df_input_captured_inputs]
    captured += [outputs[i] for i in gradient.df_input_captured_outputs]
    specializer = Specializer(builder)
    args = [UNDEFINED if ct is None else ct for ct in given] + captured
    states = [ct is not None for ct in given] + [True] * len(captured)
    specializer.start(gradient.df.params, args, states)
    return specializer.run(gradient.df)
