"""``peephole``: local rewrites of a few consecutive operations.

The rules are in files by theme: ``algebra`` (neutral elements, signs, powers), ``movement``
(consecutive transposes, reshapes, casts and copies), ``selection`` (where, logic, sizes). A table
by operation gives the rules for a bind; each looks at it and at the binds that make its operands.
"""

from letir import passes
from letir.ast import entry_point
from letir.ast.builder import result_types
from letir.ast.process_state import paused_gc
from letir.ast.terms import Arg, Bind, Lambda, Local
from letir.errors import LetirError
from letir.ops.effects.writes_to_arguments import write_back
from letir.passes.peephole_rules import algebra, movement, selection
from letir.passes.peephole_rules.value_facts import ValueFacts
from letir.passes.type_propagation import map_fitting_bodies

_MAX_REWRITES = 16  # per bind, as a safeguard: usually there are two or three at most


def merge_rules(*tables: dict) -> dict:
    """One table of rules by name of the operation; rules of the first table are tried first.

    The keys of ``tables`` are records, or names of operations whose records need not be loaded.
    """
    merged: dict[str, tuple] = {}
    for rules in tables:
        for op, more in rules.items():
            name = op if type(op) is str else op.name
            merged[name] = merged.get(name, ()) + more
    return merged


EXACT = merge_rules(algebra.RULES, movement.RULES, selection.RULES)


@entry_point
@paused_gc()
def peephole(fn: Lambda, *, fast_math: bool = False) -> Lambda:
    """Simplify short sequences of binds, also in bodies.

    Results are the same to the bit, for nan, inf, -0.0 and wrapping integers too, with the same
    dtype, kind (array or scalar), memory order and sharing. ``fast_math`` gives that up: ``x * 0``
    is 0, ``x - x`` is 0, ``x + 0`` is x, also for complex numbers, and consecutive sums are merged.

    Linear in the number of binds; keeps parameters and effects, and leaves dead binds to
    ``dead_code``. A program without matching binds is returned unchanged.

    >>> from letir.ast.text.parser import parse
    >>> from letir.passes import dead_code
    >>> f = parse('''lambda %0: float64[2, 3] {
    ...   %1: float64[3, 2] = transpose(%0, axes=None);
    ...   %2: float64[2, 3] = transpose(%1, axes=(1, 0));
    ...   %3: float64[2, 3] = power(%2, 2);
    ...   %4: float64[2, 3] = mul(%3, 1);
    ...   %5: float64[2, 3] = mul(%4, 0);
    ...   return %5 }''')
    >>> print(dead_code(peephole(f)).listing(), end="")
    %1 = mul %0, %0
    %2 = mul %1, 0
    return %2
    """
    return map_fitting_bodies(fn, passes.rewrite_fast if fast_math else _rewrite_exactly)


def _rewrite_exactly(fn: Lambda) -> Lambda:
    return apply_rules(fn, EXACT)


def apply_rules(fn: Lambda, rules: dict) -> Lambda:
    """``fn`` with its binds rewritten by ``rules``, a table that ``merge_rules`` made.

    A rule ``(bind, facts)`` returns a bind with the same binders, a replacement for the only
    result, or None. Results of unknown type do not change.
    """
    facts = ValueFacts(fn)
    names: dict[Local, Arg] = {}
    binds: list[Bind] = []
    changed = has_written = False
    for bind in fn.binds:
        new_bind = bind.substitute(names) if names else bind
        if has_written and bind.op is not write_back:
            facts.forget()
        has_written = bind.op is write_back
        if bind.op.name in rules and is_typed(bind):
            facts.current = bind
            simple = _simplify_bind(new_bind, rules, facts)
            if type(simple) is Local:
                names[bind.binders[0]] = simple
                continue
            new_bind = simple
        changed = changed or new_bind is not bind
        binds.append(new_bind)
        facts.note(new_bind)
    if not (changed or names):
        return fn
    return fn.replace(binds=binds, ret=fn.ret.substitute(names))


def _simplify_bind(bind: Bind, rules: dict, facts: ValueFacts) -> Bind | Local:
    """``bind`` after applying rules until none matches."""
    for _ in range(_MAX_REWRITES):
        for rule in rules.get(bind.op.name, ()):
            result = rule(bind, facts)
            if result is not None and has_types_of(result, bind):
                break
        else:
            return bind
        if type(result) is Local:
            return result
        bind = result
    return bind


def is_typed(bind: Bind) -> bool:
    """Whether the types of all results are known."""
    if len(bind.binders) == 1:  # nearly all binds
        return bind.binders[0].type is not None
    return all(binder.type is not None for binder in bind.binders)


def has_types_of(new: Bind | Local, bind: Bind) -> bool:
    """Whether a new bind has the types of the bind that it replaces; promotion may change them."""
    if type(new) is Local:
        return new.type is bind.binders[0].type
    try:
        types = result_types(new.op, new.args, new.attrs)
    except LetirError:
        return False
    pairs = zip(types, bind.binders, strict=True)
    return all(aval is binder.type for aval, binder in pairs)
