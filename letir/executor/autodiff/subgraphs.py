"""Differentiable subgraphs: parts of a program that are differentiated, optimised and run as one.

Each part becomes a ``differentiable_graph`` bind that holds its forward and gradient programs: one
tape node in eager mode. Groups are convex by construction: a bind that cannot join a group raises
the level of all binds that depend on it, and the groupable binds of one level form one group.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from attrs import define, field

from letir.ad.differentiation import differentiate
from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.derivative_types import is_opaque_call
from letir.ast.liveness import has_effect
from letir.ast.process_state import paused_gc
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.eager.functions.operation import function_behind
from letir.errors import LetirError
from letir.ops.autodiff.subgraph import VECTORS, differentiable_graph
from letir.passes.differentiability import has_derivative, propagate_requires_grad
from letir.visitors.substitution import lambda_lift, substitute

_MIN_DIFFERENTIABLE = 2  # the fewest binds that require grad in a graph
_MIN_KEPT = 5  # smaller graphs are inlined: single nodes cost less than a gradient program
_SMALLEST: ContextVar[bool] = ContextVar("letir_smallest_subgraphs", default=False)


@contextmanager
def smallest_subgraphs() -> Iterator[None]:
    """A context in which single operations form subgraphs too: for finding bugs."""
    before = _SMALLEST.set(True)
    try:
        yield
    finally:
        _SMALLEST.reset(before)


def _least_size(usual: int) -> int:
    """The smallest number of binds of a subgraph."""
    return 1 if _SMALLEST.get() else usual


# ---- which binds ----


def requiring_grad(fn: Lambda, requires_grad: Sequence[bool]) -> set[Local]:
    """The locals that require grad, or may require it, given the flags of the parameters."""
    return propagate_requires_grad(fn, requires_grad, introduces=is_opaque_call)


def _is_groupable(bind: Bind, needs: set[Local]) -> bool:
    """Whether a bind can be part of a graph: it has a rule wherever its results require grad."""
    if bind.op.role in ("write_back", "subgraph"):
        return False
    if needs.isdisjoint(bind.binders):
        return True
    # a Function keeps its own backward and ctx, which eager mode runs
    if function_behind(bind.op) is not None:
        return False
    return has_derivative(bind)


@define(eq=False)
class _Level:
    """The binds of one level: they depend on the same number of consecutive ungrouped binds."""

    group: list[Bind] = field(factory=list)
    others: list[Bind] = field(factory=list)


def _bind_levels(fn: Lambda, needs: set[Local]) -> list[_Level]:
    """The binds by level: each level has a group, followed by binds outside of groups.

    A path that leaves a group passes another bind, or a result of the program, and so reaches a
    higher level: no group can depend on itself. A result that is also read ends a group, so that
    its hooks see its full gradient. Effects keep their order: later ones have the same level or a
    higher one.
    """
    result, floor = [_Level()], 0
    above: dict[Local, int] = {}
    returned = needs.intersection(fn.ret.locals())
    for bind in fn.binds:
        level = max([floor, *[above.get(arg, 0) for arg in bind.args if type(arg) is Local]])
        while len(result) <= level:
            result.append(_Level())
        is_in = _is_groupable(bind, needs)
        (result[level].group if is_in else result[level].others).append(bind)
        if has_effect(bind):
            floor = level + (not is_in)
        if level or not is_in or not returned.isdisjoint(bind.binders):
            for binder in bind.binders:
                above[binder] = level + (not is_in or binder in returned)
    return result


# ---- cutting out ----


@paused_gc()
def create_autodiff_subgraphs(
    fn: Lambda,
    requires_grad: Sequence[bool],
    *,
    fewest: int | None = None,
    optimize: Callable[[Lambda], Lambda] = lambda f: f,
) -> Lambda:
    """``fn`` with its differentiable parts as ``differentiable_graph`` binds.

    ``optimize`` is applied to the forward program of each. Parts with fewer than ``fewest`` binds
    that require grad do not change. Linear time.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[] {
    ...   %1: float64[] = sin(%0);
    ...   %2: float64[] = exp(%1);
    ...   return %2 }''')
    >>> [bind.op.name for bind in create_autodiff_subgraphs(f, [True]).binds]
    ['differentiable_graph']
    """
    fewest = _least_size(_MIN_DIFFERENTIABLE) if fewest is None else fewest
    needs = requiring_grad(fn, requires_grad)
    parts = _bind_levels(fn, needs)
    if not any(_is_worth_it(part.group, needs, fewest) for part in parts):
        return fn
    read = _read_outside(fn, parts)
    binds: list[Bind] = []
    for i, part in enumerate(parts):
        if _is_worth_it(part.group, needs, fewest):
            binds += _as_graph(part.group, needs, read[i], optimize)
        else:
            binds += part.group
        binds += part.others
    return fn.with_binds(binds)


def _is_worth_it(group: list[Bind], needs: set[Local], fewest: int) -> bool:
    """Whether a graph saves time: at least ``fewest`` binds of the group require grad."""
    count = 0
    for bind in group:
        count += not needs.isdisjoint(bind.binders)
        if count >= fewest:
            return True
    return False


def _read_outside(fn: Lambda, parts: list[_Level]) -> list[set[Local]]:
    """For each level, the locals of its group that are read outside of it or returned."""
    part_numbers = {
        b: i for i, part in enumerate(parts) for bind in part.group for b in bind.binders
    }
    result: list[set[Local]] = [set() for _ in parts]

    def note(args, level: int) -> None:
        for arg in args:
            at = part_numbers.get(arg, level) if type(arg) is Local else level
            if at != level:
                result[at].add(arg)

    for i, part in enumerate(parts):
        for bind in part.group:
            note(bind.args, i)
        for bind in part.others:
            note(bind.args, -1)
    note(fn.ret.args, -1)
    return result


def _as_graph(
    group: list[Bind], needs: set[Local], read: set[Local], optimize: Callable
) -> list[Bind]:
    """The graph bind for ``group``; the group itself if a rule turns out to be missing."""
    results = [binder for bind in group for binder in bind.binders if binder in read]
    inner, operands = lambda_lift((), group, Ret(tuple(results)))
    try:
        gradient = differentiate(inner, [operand in needs for operand in operands])
    except LetirError:  # backward raises it if it is needed, as without a graph
        return group
    f = optimize(gradient.f)
    attrs = Attrs(f=f, df=gradient.df, **{name: getattr(gradient, name) for name in VECTORS})
    temporaries = [Local(arg.type) for arg in f.ret.args[gradient.f_real_outputs :]]
    binders = (*results, *temporaries)
    return [Bind(binders, differentiable_graph, tuple(operands), attrs, group[0].source)]


# ---- and back ----


def inline_autodiff_subgraphs(fn: Lambda, *, fewest: int | None = None) -> Lambda:
    """``fn`` with graphs of fewer than ``fewest`` binds inlined, where single nodes cost less.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[] {
    ...   %1: float64[] = sin(%0);
    ...   %2: float64[] = exp(%1);
    ...   return %2 }''')
    >>> again = inline_autodiff_subgraphs(create_autodiff_subgraphs(f, [True]))
    >>> [bind.op.name for bind in again.binds]
    ['sin', 'exp']
    """
    fewest = _least_size(_MIN_KEPT) if fewest is None else fewest
    if not any(b.op.role == "subgraph" and len(b.attrs["f"]) < fewest for b in fn.binds):
        return fn
    binds: list[Bind] = []
    names: dict[Local, Arg] = {}
    for bind in fn.binds:
        if bind.op.role == "subgraph" and len(bind.attrs["f"]) < fewest:
            binds += _inlined_graph(bind, names)
        else:
            binds.append(bind)
    return substitute(fn.with_binds(binds), names)


def _inlined_graph(bind: Bind, names: dict) -> list[Bind]:
    """The binds of one graph; its results are entered into ``names``."""
    f = bind.attrs["f"]
    inner: dict = dict(zip(f.params, bind.args, strict=True))
    binds = []
    for member in f.binds:
        args = tuple([inner[arg] if type(arg) is Local else arg for arg in member.args])
        binders = tuple([Local(binder.type, binder.name) for binder in member.binders])
        inner.update(zip(member.binders, binders, strict=True))
        binds.append(Bind(binders, member.op, args, member.attrs, member.source or bind.source))
    for binder, result in zip(bind.binders, f.ret.args, strict=True):
        source = inner[result] if type(result) is Local else result
        names[binder] = names.get(source, source) if type(source) is Local else source
    return binds


def finished_subgraphs(fn: Lambda, finish: Callable[[Lambda], Lambda]) -> Lambda:
    """``fn`` with ``finish`` applied to the forward program of each graph."""

    def finished(bind: Bind) -> Bind:
        if bind.op.role != "subgraph":
            return bind
        f = finish(bind.attrs["f"])
        if f is bind.attrs["f"]:
            return bind
        return bind.replace(attrs=Attrs({**bind.attrs, "f": f}))

    return fn.with_binds(tuple([finished(bind) for bind in fn.binds]))


LATE_BOUND.update(
    create_autodiff_subgraphs=create_autodiff_subgraphs,
    finished_subgraphs=finished_subgraphs,
    inline_autodiff_subgraphs=inline_autodiff_subgraphs,
)
