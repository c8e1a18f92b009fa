"""Symbolic zeros: ``specialize_undef`` and ``lower_grad_of`` remove ``grad_of`` and
``autograd_add`` from gradient programs [semantics.md D6]
to [semantics.md D8].

The state of a local is True (defined), False (undefined, a symbolic zero) or None (decided when the
program runs).
"""

from collections.abc import Sequence

import numpy as np

from letir.ast import entry_point
from letir.ast.attrs import NO_ATTRS, Attrs
from letir.ast.bodies import bodies_of, map_bodies, with_bodies
from letir.ast.builder import LetBuilder, result_types
from letir.ast.process_state import paused_gc
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ast.types import Undef
from letir.errors import ShapeError
from letir.ops.autodiff.gradient_steps import when_defined
from letir.ops.elementwise.ufuncs import add
from letir.ops.shape.shape_and_creation import size, zeros

UNDEFINED = Const(Undef)
# roles of operations that depend on which operands are defined
_DECIDED = frozenset(["autograd_add", "grad_of", "instantiate"])


class Specializer:
    """Emits the binds of a gradient program into ``builder``, specialised for defined parameters.

    ``names``: {local: its argument in the new program}. ``states``: the state of locals that are
    undefined or unknown; others are defined.
    """

    def __init__(
        self, builder: LetBuilder, names: dict[Local, Arg], states: dict[Local, bool | None]
    ):
        self.builder, self.names, self.states = builder, names, states
        self.cases = {
            "grad_of": self.grad_of,
            "autograd_add": self.autograd_add,
            "instantiate": self.instantiate,
        }

    def run(self, fn: Lambda) -> list[Arg]:
        """Emit the binds of ``fn`` and return its results, ``Undef`` where they are undefined."""
        cases, copy = self.cases, self.copy
        for bind in fn.binds:
            case = cases.get(bind.op.role)
            if case is None:
                copy(bind)
            else:
                case(bind)
        return [UNDEFINED if self.state(arg) is False else self.name(arg) for arg in fn.ret.args]

    def name(self, arg: Arg) -> Arg:
        """The argument for ``arg`` in the new program."""
        return self.names[arg] if type(arg) is Local else arg

    def state(self, arg: Arg) -> bool | None:
        """Whether ``arg`` is defined; None if unknown."""
        if type(arg) is Local:
            return self.states.get(arg, True)
        return arg.value is not Undef and arg.value is not None

    def copy(self, bind: Bind, state: bool | None = True) -> None:
        """Emit ``bind`` with specialised bodies, and give its results this state."""
        names = self.names
        if bind.op.holds_lambdas:
            bind = with_bodies(bind, [_specialized_body(body) for body in bodies_of(bind)])
        args = tuple([names[arg] if type(arg) is Local else arg for arg in bind.args])
        binders = tuple([Local(binder.type, binder.name) for binder in bind.binders])
        self.builder.binds.append(
            # the binds of a rule have no source line: they get the line of their ``grad_of``
            Bind(binders, bind.op, args, bind.attrs, bind.source or self.builder.source)
        )
        names.update(zip(bind.binders, binders, strict=True))
        for binder in bind.binders:  # set True too: a shared body may have left another state
            self.states[binder] = state

    def alias(self, binder: Local, arg: Arg) -> None:
        """Replace ``binder`` by ``arg``, and copy the state."""
        self.names[binder], self.states[binder] = self.name(arg), self.state(arg)

    def autograd_add(self, bind: Bind) -> None:
        """Emit a sum if both operands are defined; otherwise see D6 in semantics.md."""
        (binder,), (x, y) = bind.binders, bind.args
        states = self.state(x), self.state(y)
        if states == (True, True):
            self.builder.source = bind.source
            types = None if binder.type is None else (binder.type,)
            args = self.name(x), self.name(y)
            if args[0].type is not args[1].type:  # unlike add, autograd_add does not broadcast
                result_types(bind.op, args, NO_ATTRS)
            (self.names[binder],) = self.builder.emit(add, args, NO_ATTRS, types)
            self.states[binder] = True
        # one operand is undefined: the sum is the other one, whatever its state
        elif False in states:
            self.alias(binder, y if states[0] is False else x)
        else:
            self.copy(bind, True if True in states else None)  # defined if one operand is

    def instantiate(self, bind: Bind) -> None:
        """Replace a defined value by itself, an undefined one by zeros."""
        state = self.state(bind.args[0])
        if state is None:
            self.copy(bind)
        elif state:
            self.alias(bind.binders[0], bind.args[0])
        else:
            args = tuple([self.name(arg) for arg in bind.args[1:]])
            (self.names[bind.binders[0]],) = self.builder.emit(zeros, args, bind.attrs)
            self.states[bind.binders[0]] = True

    def grad_of(self, bind: Bind) -> None:
        """Inline the body if a cotangent is defined, drop the bind if none is.

        If that is unknown, the bind stays, and decides when the program runs.
        """
        n_cts, body, args = bind.attrs["n_cts"], bind.attrs["body"], bind.args
        states = [self.state(arg) for arg in args[:n_cts]]
        if True not in states:
            if None in states:
                self.copy(bind, None)
            else:
                self.states.update(dict.fromkeys(bind.binders, False))
                self.names.update(dict.fromkeys(bind.binders, UNDEFINED))
            return
        # many binds share one body: its aliases from the last bind are overwritten, not copied
        for param, arg in zip(body.params, args, strict=True):
            self.alias(param, arg)
        self.builder.source = bind.source
        self.run(body)
        for binder, result in zip(bind.binders, body.ret.args, strict=True):
            self.alias(binder, result)


@entry_point
def specialize_undef(df: Lambda, defined_mask: Sequence[bool | None]) -> Lambda:
    """The gradient program ``df``, where it is known which of its parameters are defined.

    ``defined_mask``: for each parameter True, False for an undefined cotangent, which is zero, or
    None if it is not known. Steps ``grad_of`` and sums ``autograd_add`` stay, in bodies too, only
    where it is not known whether their operands are defined; undefined parameters stay, unused.
    Linear time; returns ``df`` itself if nothing changes.

    >>> from letir import parse
    >>> df = parse('''lambda %0: float64[], %1: float64[] {
    ...   %2: float64[] = grad_of[exp](%0) { %3: float64[] = mul(%0, %1) -> (%3,) }
    ...   return %2
    ... }''')
    >>> [bind.op.name for bind in specialize_undef(df, [True, True]).binds]
    ['mul']
    """
    if len(defined_mask) != len(df.params):
        raise ShapeError(
            f"specialize_undef: {len(df.params)} parameters, {len(defined_mask)} flags\n"
            "  pass one flag for each parameter: whether it is defined"
        )
    if _is_specialized(df, defined_mask):
        return df
    with paused_gc():
        builder = LetBuilder()
        builder.params = [Local(param.type, param.name) for param in df.params]
        names: dict[Local, Arg] = dict(zip(df.params, builder.params, strict=True))
        return builder.build(
            Specializer(builder, names, dict(zip(df.params, defined_mask, strict=True))).run(df)
        )


def _specialized_body(body: Lambda) -> Lambda:
    """The body of an operation such as a loop, specialised for unknown parameters."""
    # test first: memoising an unchanged body in its own memo would make a reference cycle
    return body.memo(_with_unknown_params) if body.memo(depends_on_defined) else body


def _with_unknown_params(body: Lambda) -> Lambda:
    return specialize_undef(body, [None] * len(body.params))


def depends_on_defined(body: Lambda) -> bool:
    """Whether ``body`` or a nested body has an operation that depends on what is defined."""
    return any(
        bind.op.role in _DECIDED or any(inner.memo(depends_on_defined) for inner in bodies_of(bind))
        for bind in body.binds
    )


def _is_specialized(df: Lambda, defined_mask: Sequence[bool | None]) -> bool:
    """Whether ``specialize_undef`` would change nothing in ``df``."""
    missing = {p for p, state in zip(df.params, defined_mask, strict=True) if state is False}
    if any(arg in missing if type(arg) is Local else arg.value is None for arg in df.ret.args):
        return False
    return not df.memo(depends_on_defined)


@entry_point
def lower_grad_of(df: Lambda) -> Lambda:
    """The gradient program ``df`` without steps ``grad_of``, in bodies too.

    A step holds the derivative rule of one operation, and is skipped if none of its cotangents is
    defined. An ordinary operation, ``when_defined``, takes its place: a body that runs if a
    cotangent is defined. Linear time; returns ``df`` itself if it has no such step.

    >>> from letir import parse
    >>> df = parse('''lambda %0: float64[], %1: float64[] {
    ...   %2: float64[] = grad_of[exp](%0) { %3: float64[] = mul(%0, %1) -> (%3,) }
    ...   return %2
    ... }''')
    >>> [bind.op.name for bind in lower_grad_of(df).binds]
    ['when_defined']
    """
    return map_bodies(df, _lower_level)


def _lower_level(df: Lambda) -> Lambda:
    """``lower_grad_of`` for the binds of ``df`` itself, without those of its bodies."""
    if not any(bind.op.role == "grad_of" for bind in df.binds):
        return df

    def lowered(bind: Bind) -> Bind:
        if bind.op.role != "grad_of":
            return bind
        attrs = Attrs(n_cts=bind.attrs["n_cts"], body=bind.attrs["body"])
        return bind.replace(op=when_defined, attrs=attrs)

    return df.with_binds(tuple([lowered(bind) for bind in df.binds]))


def zeros_of_type(builder: LetBuilder, param: Local) -> Local:
    """Emit zeros of the type of ``param``."""
    aval = param.type
    # for a static shape without ``size``, which would capture the parameter for its shape only
    if has_static_shape(aval):
        return builder.emit(zeros, (), zeros.complete({"shape": aval.shape, "dtype": aval.dtype}))[
            0
        ]
    (shape_of,) = builder.emit(size, (param,))
    shape, dtype = (None, np.dtype(float)) if aval is None else (aval.shape, aval.dtype)
    return builder.emit(zeros, (shape_of,), zeros.complete({"shape": shape, "dtype": dtype}))[0]
