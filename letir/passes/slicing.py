"""``slice``: the part of a program that some of its values need."""

import difflib
from collections.abc import Sequence

from letir.ast.printer import Printer
from letir.ast.terms import Arg, Lambda, Local, Ret
from letir.errors import ScopeError
from letir.passes.cleanup import dead_code
from letir.visitors.usedef import use_counts, uses

Wanted = int | str | Local


def slice(
    f: Lambda,
    results: Wanted | Sequence[Wanted],
    *,
    drop_unused: bool = False,
    effects: bool = True,
) -> Lambda:
    """The program that computes ``results`` of ``f`` and nothing that they do not need.

    ``results``: one or several of positions among the results of ``f``, names of values (as in the
    user's code, or ``"%7"`` as in the text), and locals, those of intermediate values too. Binds
    keep their order and are shared with ``f``. Guards and other effects up to the last value that
    is needed stay, because a recorded path holds only behind its guards; ``effects=False`` leaves
    them out. All parameters stay, so that it is called as ``f`` is; ``drop_unused=True`` keeps
    those that are used, in a row. Raises ScopeError for a result that is not there. Linear.

    >>> from letir.ast.parser import parse
    >>> f = parse("lambda %0:x { %1:y = exp(%0); %2:z = neg(%1); %3 = sin(%0); return (%2, %3) }")
    >>> print(slice(f, "y").listing(), end="")
    %1 = exp %0
    return %1
    """
    several = isinstance(results, Sequence) and not isinstance(results, str)
    args = [found(f, wanted) for wanted in (results if several else [results])]
    position = uses(f).position
    last = max((position(arg) for arg in args if type(arg) is Local), default=-1)
    binds = [bind for bind in f.binds[: last + 1] if effects or bind.binders or not bind.op.effect]
    tree = f.out_tree if args == list(f.ret.args) else None
    part = dead_code(Lambda(f.params, binds, Ret(tuple(args)), f.in_tree, tree))
    if not drop_unused:
        return part
    used = use_counts(part)
    params = [param for param in part.params if param in used]
    return Lambda(params, part.binds, part.ret, None, tree)


def found(f: Lambda, wanted: Wanted) -> Arg:
    """The value that ``wanted`` says. Raises ScopeError if there is none, or more than one."""
    if isinstance(wanted, int):
        if not -len(f.ret.args) <= wanted < len(f.ret.args):
            raise ScopeError(f"slice: there is no result {wanted} among {len(f.ret.args)}")
        return f.ret.args[wanted]
    locals_ = [*f.params, *(binder for bind in f.binds for binder in bind.binders)]
    if isinstance(wanted, Local):
        if wanted not in set(locals_):
            raise ScopeError(f"slice: {wanted} is no value of this program")
        return wanted
    return named(f, wanted, locals_)


def named(f: Lambda, wanted: str, locals_: list[Local]) -> Local:
    """The one local that is called ``wanted``, by name or by the number that the text shows."""
    numbers = numbers_of(f)
    names = [numbers[local] if wanted.startswith("%") else local.name for local in locals_]
    fitting = [local for local, name in zip(locals_, names, strict=True) if name == wanted]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        listed = ", ".join(numbers[local] for local in fitting)
        raise ScopeError(f"slice: {wanted!r} names {len(fitting)} values: say which of {listed}")
    close = difflib.get_close_matches(wanted, {name for name in names if name})
    remedy = f"did you mean {', '.join(close)}?" if close else "see the text of the program"
    raise ScopeError(f"slice: no value is called {wanted!r}\n  {remedy}")


def numbers_of(f: Lambda) -> dict[Local, str]:
    """The numbers that the text of ``f`` shows."""
    printer = Printer()
    for param in f.params:
        printer.number(param)
    for bind in f.binds:
        printer.skip(bind)
    return printer.numbers
