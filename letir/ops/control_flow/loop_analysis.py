"""Analyses of loop bodies for automatic differentiation: liveness, loop invariance."""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.liveness import has_effect, live_binds
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.ast.types import ArrayType, Size
from letir.ops.autodiff.checkpoint_and_custom_jvp import fit_body


def params_reaching(body: Lambda, results: Sequence[bool]) -> list[bool]:
    """Which parameters the marked ``results`` depend on."""
    pairs = zip(body.ret.args, results, strict=True)
    live = {arg for arg, is_marked in pairs if is_marked and type(arg) is Local}
    for bind in reversed(body.binds):
        if not live.isdisjoint(bind.binders):
            live.update(bind.locals())
    return [param in live for param in body.params]


def propagate_defined(
    body: Lambda, defined: Sequence[bool], needed: Sequence[bool], n_carry: int
) -> list[bool]:
    """``defined``, extended by the carried results that get a cotangent in any step: a fixpoint."""
    defined = list(defined)
    while True:
        reached = params_reaching(body, defined)[:n_carry]
        grown = [a or (b and c) for a, b, c in zip(defined, reached, needed, strict=False)]
        grown += defined[n_carry:]
        if grown == defined:
            return defined
        defined = grown


def invariant_locals(body: Lambda, varying: int) -> set[Local]:
    """The loop-invariant locals: all parameters but the first ``varying``, and the locals that
    depend on nothing else.
    """
    same = set(body.params[varying:])
    for bind in body.binds:
        if bind.op.random or has_effect(bind):
            continue
        if all(type(arg) is not Local or arg in same for arg in bind.args):
            same.update(bind.binders)
    return same


def has_fixed_shape(local: Arg) -> bool:
    """Whether ``local`` has the same shape in all steps: one without internal symbolic sizes."""
    aval = local.type
    return aval is not None and not any(type(n) is Size and n.is_internal for n in aval.shape)


def fit_step(body: Lambda, avals: Sequence[ArrayType | None], n_carry: int, n_xs: int) -> Lambda:
    """The body of a ``scan`` for operands of these types; None leaves a type as it is."""
    carry = [aval and ArrayType(aval.dtype, aval.shape) for aval in avals[:n_carry]]
    rows = [aval and aval.with_shape(aval.shape[1:]) for aval in avals[n_carry : n_carry + n_xs]]
    own = [*carry, *rows, *avals[n_carry + n_xs :]]
    return fit_body(body, [aval or p.type for aval, p in zip(own, body.params, strict=True)])


def follows_while_scan(avals: Sequence[ArrayType | None], n_carry: int, n_xs: int) -> bool:
    """Whether a ``scan`` over operands of these types runs over the results of a ``while_scan``.

    If so, the first scanned array has the iteration numbers. In a batch they are -1 where an
    example had finished already.
    """
    aval = avals[n_carry] if n_xs else None
    return aval is not None and type(aval.shape[0]) is Size and aval.shape[0].is_internal


def partial_program(body: Lambda, params: Sequence[Local], results: Sequence[Local]) -> Lambda:
    """The part of ``body`` that computes ``results``, locals that depend on ``params`` only."""
    # effects happen in the loop, and may read values that vary between steps
    binds = [bind for bind in body.binds if not has_effect(bind)]
    whole = Lambda(params, binds, Ret(tuple(results)))
    return whole.with_binds(live_binds(whole))


@frozen
class GradientOf:
    """An analysis for ``Lambda.memo``: the gradient of a body with respect to the parameters
    ``needed``, for cotangents of the results ``defined``.
    """

    differentiate: Callable
    needed: tuple[bool, ...]
    defined: tuple[bool, ...]

    def __call__(self, body: Lambda) -> Any:
        return self.differentiate(body, self.needed, defined=self.defined)


def restore_number_results(bind: Bind) -> tuple[Bind, ...]:
    """``bind``, and binds that turn results of weak type of a ``scan`` into Python numbers again.

    A ``scan`` that replaces another loop carries Python numbers as 0-d arrays. Used as arrays after
    the loop they would widen the results of float32 arithmetic.
    """
    weak = [b for b in bind.binders if b.type and b.type.weak]
    if bind.op.name != "scan" or not weak:
        return (bind,)
    arrays = {b: Local(ArrayType(b.type.dtype, ())) for b in weak}
    binders = tuple([arrays.get(b, b) for b in bind.binders])
    op = PRIMITIVES["weaken"]
    more = [Bind((b,), op, (arrays[b],), op.complete({}), bind.source) for b in weak]
    return (Bind(binders, bind.op, bind.args, bind.attrs, bind.source), *more)


LATE_BOUND.update(has_fixed_shape=has_fixed_shape, restore_number_results=restore_number_results)
