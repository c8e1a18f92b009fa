"""``remove_implicit_expands``: drops ``broadcast_to`` before operations that broadcast anyway."""

from letir.ast import entry_point
from letir.ast.process_state import paused_gc
from letir.ast.terms import Arg, Bind, Lambda, Local
from letir.ops.shape.shape_and_creation import broadcast_to
from letir.passes.peephole_rules.driver import has_types_of, is_typed
from letir.passes.type_propagation import map_fitting_bodies


@entry_point
@paused_gc()
def remove_implicit_expands(fn: Lambda) -> Lambda:
    """Replace operands of elementwise operations by their values before ``broadcast_to``, if they
    broadcast to the same result; also in bodies.

    NumPy iterates over strides of 0 in both cases, so results have the same bits and memory order.
    Linear in the number of binds; a dead ``broadcast_to`` is left to ``dead_code``. A program
    without any is returned unchanged.

    >>> from letir.ast.text.parser import parse
    >>> from letir.passes import dead_code
    >>> f = parse('''lambda %0: float64[3], %1: float64[2, 3] {
    ...   %2: float64[2, 3] = broadcast_to(%0, shape=(2, 3));
    ...   %3: float64[2, 3] = mul(%2, %1);
    ...   %4: float64[2, 3] = mul(%2, %2);
    ...   return (%3, %4) }''')
    >>> print(dead_code(remove_implicit_expands(f)).listing(), end="")
    %2 = broadcast_to %0, (2, 3)
    %3 = mul %0, %1
    %4 = mul %0, %2
    return (%3, %4)
    """
    return map_fitting_bodies(fn, _without_expands)


def _without_expands(fn: Lambda) -> Lambda:
    """``fn`` without the ``broadcast_to`` binds whose results only broadcasting operations read."""
    bases: dict[Arg, Arg] = {}  # result of ``broadcast_to`` -> its operand
    binds: list[Bind] = []
    changed = False
    for bind in fn.binds:
        new_bind = bind
        if bind.op is broadcast_to:
            base = bind.args[0]
            bases[bind.binders[0]] = bases.get(base, base)
        elif bases and bind.op.elementwise and bind.op.reusable and _has_axes(bind):
            new_bind = _without_broadcasts(bind, bases)
            changed = changed or new_bind is not bind
        binds.append(new_bind)
    return fn.with_binds(binds) if changed else fn


def _has_axes(bind: Bind) -> bool:
    """Whether the result is known to have axes.

    A 0-d result is a scalar or an array like the operand, and ``broadcast_to`` gives arrays.
    """
    aval = bind.binders[0].type
    return aval is not None and bool(aval.shape)


def _without_broadcasts(bind: Bind, bases: dict[Arg, Arg]) -> Bind:
    """``bind`` with its operands before broadcasting, where that is possible."""
    places = [i for i, arg in enumerate(bind.args) if type(arg) is Local and arg in bases]
    # one operand after the other: the last one may be the only one with the shape of the result
    for i in places:
        args = (*bind.args[:i], bases[bind.args[i]], *bind.args[i + 1 :])
        new_bind = bind.with_args(args)
        bind = new_bind if is_typed(bind) and has_types_of(new_bind, bind) else bind
    return bind
