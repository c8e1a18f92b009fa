"""What the derivatives of loops ask of a body: which values a derivative flows through, which stay
the same in all steps, and its gradient program.
"""

from collections.abc import Callable, Sequence

from attrs import frozen

from letir.ast.liveness import has_effect, live_binds
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.types import ArrayType, Size


def requiring(body: Lambda, needed: Sequence[bool]) -> list[bool]:
    """Which results require grad if these parameters do [D1]."""
    live = {p for p, there in zip(body.params, needed, strict=True) if there and is_inexact(p)}
    for bind in body.binds:
        if bind.op.is_differentiable and any(type(a) is Local and a in live for a in bind.args):
            live.update([binder for binder in bind.binders if is_inexact(binder)])
    return [type(arg) is Local and arg in live for arg in body.ret.args]


def reaching(body: Lambda, results: Sequence[bool]) -> list[bool]:
    """Which parameters these results depend on."""
    pairs = zip(body.ret.args, results, strict=True)
    live = {arg for arg, there in pairs if there and type(arg) is Local}
    for bind in reversed(body.binds):
        if not live.isdisjoint(bind.binders):
            live.update(bind.locals())
    return [param in live for param in body.params]


def is_inexact(local: Local) -> bool:
    """Whether it is floating or complex, as far as is known."""
    return local.type is None or local.type.inexact


def carried(body: Lambda, needed: Sequence[bool], n_carry: int) -> list[bool]:
    """``needed`` with the carried values that require grad in any step: a fixpoint."""
    needed = list(needed)
    while True:  # it only ever grows
        found = requiring(body, needed)[:n_carry]
        grown = [a or b for a, b in zip(needed, found, strict=False)] + needed[n_carry:]
        if grown == needed:
            return needed
        needed = grown


def arriving(
    body: Lambda, defined: Sequence[bool], needed: Sequence[bool], n_carry: int
) -> list[bool]:
    """``defined`` with the carried results that have a cotangent in any step: a fixpoint."""
    defined = list(defined)
    while True:
        back = reaching(body, defined)[:n_carry]
        grown = [a or (b and c) for a, b, c in zip(defined, back, needed, strict=False)]
        grown += defined[n_carry:]
        if grown == defined:
            return defined
        defined = grown


def constant_in(body: Lambda, varying: int) -> set[Local]:
    """The locals that are the same in all steps: of the parameters all but the first ``varying``,
    and what is computed of these alone.
    """
    same = set(body.params[varying:])
    for bind in body.binds:
        if bind.op.random or has_effect(bind):
            continue
        if all(type(arg) is not Local or arg in same for arg in bind.args):
            same.update(bind.binders)
    return same


def is_even(local: Local) -> bool:
    """Whether it has one shape in all steps: it is known, but for sizes that the user named."""
    kind = local.type
    return kind is not None and not any(type(n) is Size and n.is_internal for n in kind.shape)


def is_counted(kinds: Sequence[ArrayType | None], n_carry: int, n_xs: int) -> bool:
    """Whether a loop goes over what a ``while_scan`` stacked, for operands of these types.

    Then the numbers of the iterations come first, -1 for what is no iteration of an example.
    """
    kind = kinds[n_carry] if n_xs else None
    return kind is not None and type(kind.shape[0]) is Size and kind.shape[0].is_internal


def part(body: Lambda, params: Sequence[Local], wanted: Sequence[Local]) -> Lambda:
    """The program of these locals of ``body``, which depend on ``params`` alone."""
    # effects happen in the loop, and read what is not the same in all steps
    binds = [bind for bind in body.binds if not has_effect(bind)]
    whole = Lambda(params, binds, Ret(tuple(wanted)))
    return whole.with_binds(live_binds(whole))


@frozen
class GradientOf:
    """The analysis of a body that ``Lambda.memo`` keeps: its gradient for these parameters and
    cotangents.
    """

    differentiate: Callable
    needed: tuple[bool, ...]
    defined: tuple[bool, ...]

    def __call__(self, body: Lambda):
        return self.differentiate(body, self.needed, defined=self.defined)


def with_numbers(bind: Bind) -> tuple[Bind, ...]:
    """``bind``, and what makes Python numbers of those results of a ``scan`` that were some in the
    loop that it stands for; else they would widen what is computed with them.
    """
    weak = [b for b in bind.binders if b.type and b.type.weak]
    if bind.op.name != "scan" or not weak:
        return (bind,)
    arrays = {b: Local(ArrayType(b.type.dtype, ())) for b in weak}
    binders = tuple([arrays.get(b, b) for b in bind.binders])
    op = PRIMITIVES["weaken"]
    more = [Bind((b,), op, (arrays[b],), op.complete({}), bind.source) for b in weak]
    return (Bind(binders, bind.op, bind.args, bind.attrs, bind.source), *more)
