"""Alpha-equality, the structural hash and the canonical form of programs [semantics.md A6].

None of them depends on names or source lines.
"""

from letir.ast import LATE_BOUND, entry_point
from letir.ast.bodies import attrs_with, bodies_of, map_bodies
from letir.ast.process_state import paused_gc
from letir.ast.terms import Bind, Lambda, Local, Ret

_NO_BODY = Lambda((), (), Ret(()))  # replaces bodies, which are compared separately


@entry_point
@paused_gc()
def canonicalize(fn: Lambda) -> Lambda:
    """An alpha-equal copy without names and source lines, in the same order of binds.

    Alpha-equal programs have canonical forms with the same text.

    >>> from letir import parse
    >>> print(canonicalize(parse("lambda %7:x { %9:y = exp(%7); return %9 }")))
    lambda %0 {
      %1 = exp(%0)
      return %1
    }
    """
    return map_bodies(fn, _canonical_level)


def _canonical_level(fn: Lambda) -> Lambda:
    """``fn`` with new locals; its bodies stay as they are."""
    fresh: dict[Local, Local] = {param: Local(param.type) for param in fn.params}
    binds = []
    for bind in fn.binds:
        args = tuple([fresh[arg] if type(arg) is Local else arg for arg in bind.args])
        binders = tuple([Local(binder.type) for binder in bind.binders])
        fresh.update(zip(bind.binders, binders, strict=True))
        binds.append(Bind(binders, bind.op, args, bind.attrs))
    ret = Ret(tuple([fresh[arg] if type(arg) is Local else arg for arg in fn.ret.args]))
    trees = [tree and tree.with_sorted_keys() for tree in (fn.in_tree, fn.out_tree)]
    return Lambda([fresh[param] for param in fn.params], binds, ret, *trees)


def _alpha_equal(f: Lambda, g: Lambda) -> bool:
    """Whether two programs are equal up to names and source lines; constants compare by bits."""
    # compares each pair of bodies once: bodies are shared, and may nest
    pairs: dict[tuple[int, int], tuple[Lambda, Lambda]] = {(id(f), id(g)): (f, g)}
    pending = [(f, g)]
    while pending:
        if not _same_level(*pending.pop(), pairs, pending):
            return False
    return True


def _same_level(f: Lambda, g: Lambda, pairs: dict, pending: list) -> bool:
    """Whether two programs are equal provided that their corresponding bodies are.

    Pairs of bodies are appended to ``pending`` unless they are in ``pairs`` already.
    """
    if len(f.params) != len(g.params) or len(f.binds) != len(g.binds):
        return False
    if f.in_tree != g.in_tree or f.out_tree != g.out_tree:
        return False
    if any(p.type is not q.type for p, q in zip(f.params, g.params, strict=True)):  # interned
        return False
    # one direction is enough: each local is bound once, so the pairing is one to one
    same: dict[Local, Local] = dict(zip(f.params, g.params, strict=True))
    for a, b in zip(f.binds, g.binds, strict=True):
        if a.op is not b.op:
            return False
        if a.attrs is not b.attrs and not _same_attrs(a, b, pairs, pending):
            return False
        if len(a.binders) != len(b.binders) or not _same_args(a.args, b.args, same):
            return False
        for p, q in zip(a.binders, b.binders):  # noqa: B905  as many
            if p.type is not q.type:
                return False
            same[p] = q
    return _same_args(f.ret.args, g.ret.args, same)


def _same_attrs(a: Bind, b: Bind, pairs: dict, pending: list) -> bool:
    if not a.op.holds_lambdas:
        return a.attrs == b.attrs
    first, second = bodies_of(a), bodies_of(b)
    if len(first) != len(second):
        return False
    other_attrs = [
        attrs_with(c.attrs, c_bodies, [_NO_BODY] * len(c_bodies))
        for c, c_bodies in ((a, first), (b, second))
    ]
    if other_attrs[0] != other_attrs[1]:
        return False
    for pair in zip(first, second, strict=True):
        key = id(pair[0]), id(pair[1])
        if pair[0] is not pair[1] and key not in pairs:
            pairs[key] = pair
            pending.append(pair)
    return True


def _same_args(a: tuple, b: tuple, same: dict[Local, Local]) -> bool:
    if len(a) != len(b):
        return False
    # a loop, not all(): runs once a bind
    for x, y in zip(a, b):  # noqa: B905, SIM110
        if same.get(x) is not y if type(x) is Local else x != y:
            return False
    return True


def _structural_hash(fn: Lambda) -> int:
    """A hash that is equal for alpha-equal programs; linear, and cached on the Lambda."""
    # a local is hashed by the position where it is bound
    numbers: dict = {param: i for i, param in enumerate(fn.params)}
    count = len(numbers)
    total = hash((tuple([p.type for p in fn.params]), fn.in_tree, fn.out_tree))
    for bind in fn.binds:
        args = [numbers[arg] if type(arg) is Local else arg for arg in bind.args]
        for binder in bind.binders:
            numbers[binder] = count
            count += 1
        if bind.attrs:
            args.append(bind.attrs)
        # folded bind by bind: a tuple of all parts would take as much memory as the program
        total = hash((total, bind.op, *args))
    return hash((total, *[numbers[arg] if type(arg) is Local else arg for arg in fn.ret.args]))


LATE_BOUND.update(equal=_alpha_equal, hash=_structural_hash)
