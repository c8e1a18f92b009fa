"""``slice``: the part of a program that given values depend on."""

import difflib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from attrs import define

from letir.ast import LATE_BOUND, entry_point
from letir.ast.terms import Arg, Lambda, Local, Ret
from letir.ast.text.printer import Printer
from letir.errors import DTypeError, ScopeError
from letir.ops.shape.shape_and_creation import as_size
from letir.passes.dead_code_elimination import dead_code
from letir.visitors.usedef import use_counts, uses

_Selector = int | str | Local


@entry_point
def slice(
    f: Lambda,
    results: _Selector | Sequence[_Selector],
    *,
    drop_unused: bool = False,
    effects: bool = True,
) -> Lambda:
    """The program that computes only ``results`` of ``f``.

    ``results``: one or several positions among the results of ``f``, names of values (from the
    user's code, or ``"%7"`` from the text), or locals, also of intermediate values. Binds keep
    their order and are shared with ``f``. Guards and other effects before the last needed value
    stay, because a recorded path is valid only if its guards hold; ``effects=False`` drops them.
    All parameters stay, so that calls keep their form; ``drop_unused=True`` keeps only used
    parameters, as flat arguments. Raises ScopeError for an unknown result. Linear.

    >>> from letir.ast.text.parser import parse
    >>> f = parse("lambda %0:x { %1:y = exp(%0); %2:z = neg(%1); %3 = sin(%0); return (%2, %3) }")
    >>> print(slice(f, "y").listing(), end="")
    %1 = exp %0
    return %1
    """
    several = isinstance(results, Sequence) and not isinstance(results, str)
    find_value = _Values(f).find_value
    selectors: Any = results if several else [results]
    args = [find_value(selector) for selector in selectors]
    position = uses(f).position
    # a guard after the last value cannot affect it
    last = max((position(arg) for arg in args if type(arg) is Local), default=-1)
    binds = [bind for bind in f.binds[: last + 1] if effects or bind.binders or not bind.op.effect]
    tree = f.out_tree if args == list(f.ret.args) else None  # describes all results together
    part = dead_code(Lambda(f.params, binds, Ret(tuple(args)), f.in_tree, tree))
    if not drop_unused:
        return part
    used = use_counts(part)
    params = [param for param in part.params if param in used]
    return Lambda(params, part.binds, part.ret, None, tree)


@define(eq=False, slots=False)
class _Values:
    """Lookup of a program's values by name, number or position."""

    f: Lambda

    def find_value(self, selector: _Selector) -> Arg:
        """The value for ``selector``. Raises ScopeError if there is none, or more than one."""
        results = self.f.ret.args
        if isinstance(selector, str):
            return self.find_named(selector)
        if isinstance(selector, Local):
            if selector not in self.numbers:
                raise ScopeError(
                    f"slice: {selector} is not a value of this program\n"
                    "  take it from program.binds or program.params"
                )
            return selector
        if not hasattr(selector, "__index__"):
            raise DTypeError(
                "slice: a value is given by the position of a result, a name or a Local, found "
                f"{LATE_BOUND['describe_value'](selector)}\n"
                "  write slice(program, 'h') or slice(program, 0)"
            )
        if not -len(results) <= as_size(selector) < len(results):
            raise ScopeError(
                f"slice: there is no result {selector}: the program has {len(results)}\n"
                "  count results from 0"
            )
        return results[as_size(selector)]

    def find_named(self, name: str) -> Local:
        """The only local with the name or number ``name``."""
        fitting = self.by_name.get(name, ())
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            which = ", ".join(self.numbers[local] for local in fitting)
            raise ScopeError(
                f"slice: {len(fitting)} values are called {name!r}: {which}\n"
                "  pass the number of one of them, or the Local itself"
            )
        # numbers are left out: any two of them are close
        close = difflib.get_close_matches(name, [n for n in self.by_name if n[0] != "%"])
        remedy = f"did you mean {', '.join(close)}?" if close else "see the text of the program"
        raise ScopeError(f"slice: no value is called {name!r}\n  {remedy}")

    @cached_property
    def numbers(self) -> dict[Local, str]:
        """The number of each local in the text of the program."""
        printer = Printer()
        for param in self.f.params:
            printer.number(param)
        for bind in self.f.binds:
            printer.skip(bind)
        own = [*self.f.params, *(binder for bind in self.f.binds for binder in bind.binders)]
        return {local: printer.numbers[local] for local in own}

    @cached_property
    def by_name(self) -> dict[str, list[Local]]:
        """The locals with each name and each number."""
        locals_by_name: dict[str, list[Local]] = {}
        for local, number in self.numbers.items():
            locals_by_name.setdefault(number, []).append(local)
            if local.name:
                locals_by_name.setdefault(local.name, []).append(local)
        return locals_by_name
