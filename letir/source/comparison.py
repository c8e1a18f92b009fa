"""``diff``: two programs side by side, bind by bind.

Binds correspond if no others do the same on operands made alike; between those by what they do with
constants, then by their operation alone. A pair is the same if its operands correspond too. Names
and source lines do not count.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import zip_longest

from attrs import define, field, frozen

from letir.ast.collecting import paused_gc
from letir.ast.printer import Printer
from letir.ast.terms import Arg, Bind, Const, Lambda, Local, Ret
from letir.errors import DTypeError
from letir.source.alignment import aligned, unique_pairs

SAME, CHANGED, REMOVED, ADDED = " ", "|", "<", ">"
CONTEXT = 3  # lines around a difference
MOST_LINES = 400  # what str shows
WIDEST = 100  # of the left column


@frozen(eq=False)
class Row:
    """A parameter, bind or return of one program beside that of the other; None where it has none.

    ``mark``: " " for the same, "|" changed, "<" only in the first, ">" only in the second.
    """

    mark: str
    left: Local | Bind | Ret | None
    right: Local | Bind | Ret | None


def diff(f: Lambda, g: Lambda) -> "Comparison":
    """``f`` and ``g`` side by side: what is the same, changed, only here, only there.

    True where they differ, as the difference of two sets is; ``.same`` says that they are equal.
    ``str`` shows the differences, the first ones of many, with some lines around them, both sides
    in the same numbers; ``.rows`` has everything. Names and source lines do not count. Linear in
    the number of binds.

    >>> from letir.ast.parser import parse
    >>> f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); return %2 }")
    >>> g = parse("lambda %0 { %1 = exp(%0); %2 = sin(%1); %3 = neg(%2); return %3 }")
    >>> print(diff(f, g))
    lambda %0        lambda %0
    %1 = exp(%0)     %1 = exp(%0)
                  >  %2 = sin(%1)
    %3 = neg(%1)  |  %3 = neg(%2)
    return %3        return %3
    """
    for program in (f, g):
        if not isinstance(program, Lambda):
            raise DTypeError(
                f"diff compares two Lambdas, found {type(program).__name__}\n"
                "  record functions with letir.trace; of a Gradient take .f and .df"
            )
    with paused_gc():
        return Comparison(f, g, tuple(Rows(f, g).run()))


@frozen(eq=False, repr=False)
class Comparison:
    """What ``diff`` returns: true if the programs differ."""

    left: Lambda
    right: Lambda
    rows: tuple[Row, ...]
    same: bool = field(init=False)

    def __attrs_post_init__(self):
        object.__setattr__(self, "same", self.left == self.right)

    def __bool__(self):
        return not self.same

    def __str__(self):
        if self.same:
            return f"the programs are the same, {len(self.left)} binds"
        table = Table()
        table.head(self.left, self.right)
        shown = near([row.mark != SAME for row in self.rows], CONTEXT)
        for i, (row, is_shown) in enumerate(zip(self.rows, shown, strict=True)):
            if len(table.lines) > MOST_LINES:
                return f"{table.text()}\n... {len(self.rows) - i} more rows: .rows has them"
            table.add(row, is_shown)
        return table.text()

    __repr__ = __str__

    def _repr_html_(self):
        return f"<pre style='line-height: 1.25'>{escape(str(self), quote=False)}</pre>"


def near(different: Sequence[bool], distance: int) -> list[bool]:
    """Which rows are at most so far from one that is different."""
    shown = [False] * len(different)
    for order in (range(len(different)), range(len(different) - 1, -1, -1)):  # after, and before
        left = 0
        for i in order:
            left = distance + 1 if different[i] else left - 1
            shown[i] = shown[i] or left > 0
    return shown


# ---- correspondence ----


@define(eq=False)
class Rows:
    """Finds the rows of two programs; ``pairs`` has what corresponds to a local of the first."""

    f: Lambda
    g: Lambda
    pairs: dict[Local, Local] = field(factory=dict)
    numbers: dict = field(factory=dict)  # of descriptions, so that they compare at once

    def run(self) -> Iterator[Row]:
        """The rows, in the order of both programs."""
        for p, q in zip_longest(self.f.params, self.g.params):
            if p is not None and q is not None:
                self.pairs[p] = q
            yield Row(mark_of(p, q, p and q and p.type is q.type), p, q)
        # from strict to loose; the first only where nothing else does the same, so that it anchors
        finders = unique_pairs, aligned, aligned
        levels = list(zip(finders, self.described(self.f), self.described(self.g), strict=True))
        yield from self.part(levels, (0, 0), (len(self.f), len(self.g)))
        same = self.agree(self.f.ret.args, self.g.ret.args)
        yield Row(SAME if same else CHANGED, self.f.ret, self.g.ret)

    def part(self, levels: list, start: tuple[int, int], end: tuple[int, int]) -> Iterator[Row]:
        """The rows from ``start`` to ``end``: what corresponds by the first of the levels, and, in
        between, by the next.
        """
        (i, j), (k, m) = start, end
        if not levels or i == k or j == m:
            yield from (Row(REMOVED, bind, None) for bind in self.f.binds[i:k])
            yield from (Row(ADDED, None, bind) for bind in self.g.binds[j:m])
            return
        (find, left, right), *others = levels
        # a level sees only what lies between two pairs of the level before: pairs never cross
        for x, y in find(left[start[0] : k], right[start[1] : m]):
            yield from self.part(others, (i, j), (start[0] + x, start[1] + y))
            yield self.pair(start[0] + x, start[1] + y)
            i, j = start[0] + x + 1, start[1] + y + 1
        yield from self.part(others, (i, j), end)

    def pair(self, i: int, j: int) -> Row:
        """The row of two binds that correspond."""
        a, b = self.f.binds[i], self.g.binds[j]
        same = (
            a.attrs == b.attrs
            and self.agree(a.args, b.args)
            and all(p.type is q.type for p, q in zip(a.binders, b.binders, strict=True))
        )
        # also of a changed pair: what follows can still be the same
        self.pairs.update(zip(a.binders, b.binders, strict=True))
        return Row(SAME if same else CHANGED, a, b)

    def agree(self, left: tuple[Arg, ...], right: tuple[Arg, ...]) -> bool:
        """Whether operands correspond."""
        return len(left) == len(right) and all(
            self.pairs.get(a) is b if type(a) is Local else a == b
            for a, b in zip(left, right, strict=True)
        )

    def described(self, fn: Lambda) -> list[list[int]]:
        """What each bind does as a number: with what makes its operands, with its constants only,
        and by its operation alone.
        """
        levels: list[list[int]] = [[], [], []]
        made: dict[Local, int] = {p: self.number(i) for i, p in enumerate(fn.params)}
        for bind in fn.binds:
            does = self.number((bind.op, len(bind.args), len(bind.binders)))
            constants = [a if type(a) is Const else None for a in bind.args]
            operands = [a if type(a) is Const else made[a] for a in bind.args]
            levels[0].append(self.number((does, bind.attrs, *operands)))
            levels[1].append(self.number((does, bind.attrs, *constants)))
            levels[2].append(does)
            # one step back only: with all that made it, one change would change all that follows
            made |= dict.fromkeys(bind.binders, does)
        return levels

    def number(self, description) -> int:
        """The number of a description, one for all that are equal."""
        return self.numbers.setdefault(description, len(self.numbers))


def mark_of(left, right, same) -> str:
    """The mark of a row."""
    if left is None:
        return ADDED
    return REMOVED if right is None else SAME if same else CHANGED


# ---- text ----


@define(eq=False)
class Table:
    """The text of rows; the two sides share the numbers of what stands in one row."""

    lines: list[tuple[str, str, str]] = field(factory=list)
    sides: tuple[Printer, Printer] = field(init=False)
    left_out: int = 0

    def __attrs_post_init__(self):
        self.sides = tuple(Printer(bounded=True, names=False, sources=False) for _ in range(2))

    def head(self, f: Lambda, g: Lambda) -> None:
        """The line with what nests."""
        texts = [
            "".join(f" {k} {t.text}" for k, t in (("in", h.in_tree), ("out", h.out_tree)) if t)
            for h in (f, g)
        ]
        if any(texts):
            mark = SAME if texts[0] == texts[1] else CHANGED
            self.lines.append((f"lambda{texts[0]}", mark, f"lambda{texts[1]}"))

    def add(self, row: Row, is_shown: bool) -> None:
        """A row; one that is not shown is counted, and its locals numbered."""
        texts = [
            printer_text(printer, item, is_shown)
            for printer, item in zip(self.sides, (row.left, row.right), strict=True)
        ]
        for printer in self.sides:
            # one row, one number on both sides
            printer.count = max(other.count for other in self.sides)
        if not is_shown:
            self.left_out += 1
            return
        self.flush()
        for i, (left, right) in enumerate(zip_longest(*texts, fillvalue="")):
            self.lines.append((left, row.mark if i == 0 or row.mark != CHANGED else SAME, right))

    def flush(self) -> None:
        """The line that counts what was not shown."""
        if self.left_out:
            text = f"... {self.left_out} the same ..."
            self.lines.append((text, SAME, text))
        self.left_out = 0

    def text(self) -> str:
        """All lines, the left column as wide as it must be."""
        self.flush()
        width = min(max(len(left) for left, _, _ in self.lines), WIDEST)
        return "\n".join(
            f"{cut(left, width):<{width}}  {mark}  {right}".rstrip()
            for left, mark, right in self.lines
        )


def cut(text: str, width: int) -> str:
    """``text`` in this width."""
    return text if len(text) <= width else text[: width - 3] + "..."


def printer_text(printer: Printer, item, is_shown: bool) -> list[str]:
    """The lines of a parameter, a bind or a return; none if it is not shown."""
    if type(item) is Bind and not is_shown:
        printer.skip(item)
        return []
    if item is None:
        return []
    if type(item) is Local:
        text = f"lambda {printer.binder(item)}"
    else:
        text = printer.bind_text(item, "") if type(item) is Bind else printer.ret_text(item)
    return text.splitlines() if is_shown else []
