"""``loop_invariants``: loop-invariant code motion.

Read ``LoopBind`` first, the common description of loops, then ``_Invariants``, which finds the
invariant binds of one body, then ``_hoist_invariants``.
"""

import itertools
from collections.abc import Callable, Sequence

from attrs import define, field, frozen

from letir.ast import entry_point
from letir.ast.attrs import Attrs
from letir.ast.bodies import bodies_of, map_bodies, with_bodies
from letir.ast.builder import LetBuilder, fresh_binders
from letir.ast.liveness import has_effect
from letir.ast.process_state import paused_gc
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Lambda, Local, Ret
from letir.ast.types import WEAK, ArrayType
from letir.ops.control_flow.conditionals import cond
from letir.ops.elementwise.comparisons_and_where import less
from letir.ops.shape.shape_and_creation import zeros
from letir.passes.fusion.clustering import bytes_of
from letir.visitors.substitution import lambda_lift
from letir.visitors.usedef import use_counts

_COUNTS = (ArrayType("int64"), WEAK[int])  # the bounds of a loop
_FEW_BINDS, _FEW_BYTES = 4, 1 << 11  # less work than a ``cond``
_ROOM = 1 << 20  # bytes that may be kept alive during a loop, even if its operands are smaller


@entry_point
@paused_gc()
def loop_invariants(fn: Lambda) -> Lambda:
    """Move loop-invariant binds before their loop.

    A bind in the body of a ``fori_loop``, ``while_loop``, ``scan`` or ``map`` is invariant if it
    depends only on captured operands; effects and random draws never are. A bind that may raise or
    warn moves only if no effect precedes it and it certainly runs, or into a ``cond`` that tests
    whether there is a first step. Values kept alive during the loop take at most as many bytes as
    its operands, or 1 MiB. Operands read only by moved binds are no longer captured. Results are
    the same to the bit. Linear in the number of binds; ``fn`` itself is returned if nothing moves.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[3], %1: float64[3] {
    ...   %2: float64[3] = fori_loop(0, 9, %0, %1,
    ...     body=lambda %3: int64[], %4: float64[3], %5: float64[3] {
    ...       %6: float64[3] = exp(%5); %7: float64[3] = mul(%4, %6); return %7 });
    ...   return %2 }''')
    >>> print(loop_invariants(f).listing(), end="")
    %2 = exp %1
    %3 = fori_loop 0, 9, %0, %2, lambda %4, %5, %6 {
      %7 = mul %5, %6
      return %7
    }
    return %3
    """
    if not any(bind.op.holds_lambdas for bind in fn.binds):  # nearly all programs
        return fn
    return map_bodies(fn, _moved_level)


def _moved_level(fn: Lambda) -> Lambda:
    """``fn`` with the invariant binds of its own loops moved before them."""
    if not any(map(_is_loop, fn.binds)):
        return fn
    numbers: dict[Local, int] = {}
    binds: list[Bind] = []
    for bind in fn.binds:
        if bind.op.role == "constant" and bind.binders[0].type in _COUNTS:
            numbers[bind.binders[0]] = int(bind.attrs["value"])
        if _is_loop(bind):
            binds += _hoist_invariants(_describe_loop(bind, numbers))
        else:
            binds.append(bind)
    # a loop that stays is the same object
    same = len(binds) == len(fn.binds) and all(map(_is_identical, binds, fn.binds))
    return fn if same else fn.with_binds(binds)


def _is_identical(a, b) -> bool:
    return a is b


# ---- a common description of loops ----


@frozen(eq=False)
class LoopBind:
    """A bind that runs bodies repeatedly.

    Its operands from ``first`` on are captured: the last parameters of every body. ``certain``: for
    each body, whether it certainly runs at least once; ``enters`` emits the test whether the other
    bodies run, if there is one.
    """

    bind: Bind
    first: int
    certain: tuple[bool, ...]
    enters: Callable[[LetBuilder], Arg] | None = None

    @property
    def captured(self) -> tuple[Arg, ...]:
        """The operands that are invariant."""
        return self.bind.args[self.first :]


def _describe_loop(bind: Bind, numbers: dict) -> LoopBind:
    """The description of a bind that is a loop; ``numbers``: the values of integer constants."""
    layout = bind.op.bodies
    first = layout.ahead + layout.n_carry(bind) + layout.n_elements(bind)
    return LoopBind(bind, first, *_ENTRIES[layout.loop](bind, numbers))


def _enters_numbers(bind: Bind, numbers: dict) -> tuple:
    """(certain, enters) of a loop between two numbers."""
    bounds = [int(arg.value) if type(arg) is Const else numbers.get(arg) for arg in bind.args[:2]]
    runs = None not in bounds and bounds[0] < bounds[1]

    def enters(builder: LetBuilder) -> Arg:
        return builder.emit(less, bind.args[:2])[0]

    is_open = None in bounds  # whether steps are possible for some values of the bounds
    return (runs,), enters if is_open else None


def _enters_test(bind: Bind, numbers: dict) -> tuple:
    """(certain, enters) of a loop whose test runs at least once."""
    test = bodies_of(bind)[0]

    def enters(builder: LetBuilder) -> Arg:
        return builder.inline(test, bind.args)[0]

    is_pure = not any(map(has_effect, test.binds))  # the emitted test is one more run of the test
    return (True, False), enters if is_pure else None


def _enters_elements(bind: Bind, numbers: dict) -> tuple:
    """(certain, enters) of a loop over elements."""
    layout = bind.op.bodies
    start = layout.ahead + layout.n_carry(bind)
    arrays = bind.args[start : start + layout.n_elements(bind)]
    avals = [getattr(arg.type, "shape", ()) for arg in arrays]
    sizes = [bind.attrs.get("length"), *[shape[0] for shape in avals if shape]]
    return (any(type(n) is int and n > 0 for n in sizes),), None


_ENTRIES = {"numbers": _enters_numbers, "test": _enters_test, "elements": _enters_elements}


def _is_loop(bind: Bind) -> bool:
    """Whether a bind runs a body repeatedly, on invariant operands."""
    return bind.op.bodies is not None and bind.op.bodies.loop in _ENTRIES


# ---- invariant binds ----


@define(eq=False)
class _Invariants:
    """The binds of a body that move before the loop, and their results that the body reads."""

    body: Lambda
    same: set[Local]  # the invariant locals
    is_certain: bool  # whether the current bind certainly runs
    room: int  # the bytes that may be kept alive
    moving: list[Bind] = field(factory=list)
    kept: dict[Local, None] = field(factory=dict)  # a set with an order
    leaving: set[int] = field(factory=set)  # the ids of binds that are removed from the body
    needed: set[Local] = field(factory=set)  # by binds that move
    is_conditional: bool = False  # whether some binds are computed only if the loop is entered

    def find_invariants(self) -> None:
        """Collect candidates forwards, then find backwards which results the body reads."""
        candidates = []
        for bind in self.body.binds:
            if has_effect(bind):
                self.is_certain = False
            elif self.may_move(bind):
                candidates.append(bind)
                self.same.update(bind.binders)
        if not any(map(_is_work, candidates)):
            return
        ids = set(map(id, candidates))
        read = {arg for b in self.body.binds if id(b) not in ids for arg in b.locals()}
        read.update(self.body.ret.locals())
        for bind in reversed(candidates):
            self.decide_move(bind, read)
        self.moving.reverse()

    def may_move(self, bind: Bind) -> bool:
        """Whether a bind is invariant and may be computed before the loop."""
        if bind.op.random or not bind.binders:
            return False
        if any(type(arg) is Local and arg not in self.same for arg in bind.args):
            return False
        return self.is_certain or _is_quiet(bind)

    def decide_move(self, bind: Bind, read: set[Local]) -> None:
        """Move a bind, unless its results are too large to keep, or free to compute."""
        results = [binder for binder in bind.binders if binder in read]
        size = 0 if bind.op.memory == "view" else sum([bytes_of(r.type) for r in results])
        is_needed = not self.needed.isdisjoint(bind.binders)
        if results and _is_work(bind) and size <= self.room:
            self.room -= size
            self.kept.update(dict.fromkeys(results))
            self.leaving.add(id(bind))
        elif is_needed and not results:
            self.leaving.add(id(bind))
        else:
            read.update(bind.locals())  # it stays, and so do the values that it reads
        if is_needed or id(bind) in self.leaving:
            self.moving.append(bind)
            self.needed.update(bind.locals())

    def remaining_body(self, params: Sequence[Local]) -> Lambda:
        """The body with these parameters, without the moved binds."""
        binds = [bind for bind in self.body.binds if id(bind) not in self.leaving]
        return Lambda(params, binds, self.body.ret)


def _is_work(bind: Bind) -> bool:
    """Whether a bind has operands and results."""
    return any(type(arg) is Local for arg in bind.args)


def _is_quiet(bind: Bind) -> bool:
    """Whether a bind neither raises nor warns for any values of its operands."""
    op, kinds = bind.op, [arg.type for arg in bind.args]
    if any(aval is None or aval is NO_TYPE or aval.weak for aval in kinds):
        return False
    if not all(map(has_static_shape, kinds)):  # operands may not broadcast
        return False
    if op.never_fails_alone:
        return len(bind.args) <= 1
    is_cast = bind.attrs.get("dtype") is not None  # a concatenate may cast, too
    is_safe = bool(op.never_fails) and all(aval.dtype.kind in op.never_fails for aval in kinds)
    return is_safe and not is_cast


def _hoist_invariants(loop: LoopBind) -> list[Bind]:
    """The moved binds, followed by the loop."""
    bind, captured = loop.bind, loop.captured
    room = max(_ROOM, sum([bytes_of(arg.type) for arg in bind.locals()]))
    invariants: list[_Invariants] = []
    for body, is_certain in zip(bodies_of(bind), loop.certain, strict=True):
        pairs = zip(body.params[len(body.params) - len(captured) :], captured, strict=True)
        if any(param.type is not arg.type for param, arg in pairs):
            return [bind]
        invariants.append(_inside_of(loop, body, is_certain, room))
        room = invariants[-1].room
    if not any(inside.kept for inside in invariants):
        return [bind]
    builder = LetBuilder()
    builder.source = bind.source
    operands: list[Arg] = [*bind.args]
    for inside in invariants:
        operands += _emit_invariants(inside, loop, builder)
    programs = []
    for inside in invariants:
        more = [
            local if other is inside else Local(local.type, local.name)
            for other in invariants
            for local in other.kept
        ]
        programs.append(inside.remaining_body([*inside.body.params, *more]))
    return [*builder.binds, _without_unread(bind, loop.first, operands, programs)]


def _inside_of(loop: LoopBind, body: Lambda, is_certain: bool, room: int) -> _Invariants:
    """The binds that move out of a body, if it can be decided whether the body runs at all."""
    same = body.params[len(body.params) - len(loop.captured) :]
    if not is_certain and loop.enters is not None:
        result = _Invariants(body, set(same), True, room)
        result.find_invariants()
        result.is_conditional = not all(map(_is_quiet, result.moving))
        if not result.is_conditional or (
            all(map(_may_be_zeros, result.kept)) and _costs_more_than_test(result.moving)
        ):
            return result
    result = _Invariants(body, set(same), is_certain, room)
    result.find_invariants()
    return result


def _costs_more_than_test(binds: Sequence[Bind]) -> bool:
    """Whether computing these binds in every step costs more than one ``cond``."""
    if len(binds) >= _FEW_BINDS or not all(map(_is_small_work, binds)):
        return True
    return any(bytes_of(binder.type) >= _FEW_BYTES for bind in binds for binder in bind.binders)


def _is_small_work(bind: Bind) -> bool:
    """Whether a bind takes a single pass over its operands, or gives a view."""
    return bind.op.elementwise or bind.op.memory == "view"


def _may_be_zeros(local: Local) -> bool:
    """Whether a local is an array of known type and size, so that zeros can replace it."""
    aval = local.type
    return has_static_shape(aval) and not aval.weak


def _emit_invariants(inside: _Invariants, loop: LoopBind, builder: LetBuilder) -> Sequence[Arg]:
    """Emit the moved binds on the operands of the loop, and return the results that it reads."""
    params, captured = inside.body.params, loop.captured
    names: dict[Local, Arg] = dict(
        zip(params[len(params) - len(captured) :], captured, strict=True)
    )
    if inside.is_conditional:
        return _emit_if_entered(inside, loop.enters(builder), names, builder)
    for bind in inside.moving:
        args = tuple([names[arg] if type(arg) is Local else arg for arg in bind.args])
        hoisted = Bind(fresh_binders(bind.binders, names), bind.op, args, bind.attrs, bind.source)
        builder.binds.append(hoisted)
    return [names[local] for local in inside.kept]


def _emit_if_entered(inside: _Invariants, enters: Arg, names: dict, builder: LetBuilder) -> tuple:
    """Emit a ``cond``: the moved binds if the loop takes a step, else zeros that are never read."""
    program, free = lambda_lift((), inside.moving, Ret(tuple(inside.kept)))
    nothing = LetBuilder()
    for param in program.params:
        nothing.param(param.type, param.name)
    instead = [
        nothing.emit(zeros, (), Attrs(shape=local.type.shape, dtype=local.type.dtype))[0]
        for local in inside.kept
    ]
    attrs = Attrs(on_true=program, on_false=nothing.build(instead))
    result = builder.emit(cond, (enters, *[names[local] for local in free]), attrs)
    for local, old in zip(result, inside.kept, strict=True):
        local.name = old.name
    return result


def _without_unread(bind: Bind, first: int, operands: list, programs: list[Lambda]) -> Bind:
    """The loop on these operands and bodies, without captures that no body reads."""
    count = len(operands) - first
    read = [set(use_counts(program)) for program in programs]
    # positions are counted from the end, where the bodies of one bind have the same parameters
    is_read = [
        any(p.params[i - count] in r for p, r in zip(programs, read, strict=True))
        for i in range(count)
    ]
    args = [*operands[:first], *itertools.compress(operands[first:], is_read)]
    bodies = []
    for program in programs:
        start = len(program.params) - count
        params = [*program.params[:start], *itertools.compress(program.params[start:], is_read)]
        bodies.append(Lambda(params, program.binds, program.ret))
    attrs = with_bodies(bind, bodies).attrs
    return bind.replace(args=tuple(args), attrs=attrs)
