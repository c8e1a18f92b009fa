"""``diff``: two programs side by side, bind by bind.

Binds correspond first if their operation and the makers of their operands are equal and unique,
then by operation and constants, then by operation alone. A pair is equal if its operands correspond
too. Names and source lines are ignored.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from attrs import define, field, frozen

from letir.ast import LATE_BOUND, entry_point
from letir.ast.bodies import bodies_of, body_names
from letir.ast.process_state import paused_gc
from letir.ast.terms import Arg, Bind, Const, Lambda, Local, Ret
from letir.ast.text.printer import Printer, is_printed_in_place
from letir.errors import DTypeError
from letir.source.side_by_side.alignment import aligned_positions, unique_pairs

_SAME, _CHANGED, _REMOVED, _ADDED = " ", "|", "<", ">"
_CONTEXT = 3  # lines around a difference
_MAX_LINES = 400  # what str shows
_WIDEST = 100  # the width of the left column


@frozen(eq=False)
class Row:
    """A parameter, bind or return of each program; None where one has no counterpart.

    ``mark``: " " for equal, "|" for changed, "<" only in the first, ">" only in the second.
    ``inner``: for two different binds with bodies, the rows of each pair of bodies by the name of
    the attribute.
    """

    mark: str
    left: Local | Bind | Ret | None
    right: Local | Bind | Ret | None
    inner: tuple[tuple[str, tuple["Row", ...]], ...] = ()


@entry_point
def diff(f: Lambda, g: Lambda) -> "Comparison":
    """A comparison of ``f`` and ``g`` side by side: equal, changed, removed and added binds.

    True if they differ, like a set difference; ``.same`` is the opposite. ``str`` shows the first
    differences with some context, and the same numbers on both sides; ``.rows`` has everything.
    Names and source lines are ignored. Linear in the number of binds.

    >>> from letir.ast.text.parser import parse
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
        return Comparison(f, g, tuple(_Rows(f, g).run()))


@frozen(eq=False, repr=False)
class Comparison:
    """The result of ``diff``: true if the programs differ."""

    left: Lambda
    right: Lambda
    rows: tuple[Row, ...]
    same: bool = field(init=False)

    def __attrs_post_init__(self):
        object.__setattr__(self, "same", self.left == self.right)

    def __bool__(self):
        return not self.same

    def lines(self) -> tuple[list[tuple[str, str, str]], int]:
        """The lines that ``str`` shows, as (line of the first program, mark, line of the second),
        and the number of rows left out.
        """
        table, left_out = self._table()
        return table.lines, left_out

    def _table(self) -> "tuple[_Table, int]":
        table = _Table()
        table.head(self.left, self.right)
        return table, table.add_all(self.rows)

    def __str__(self):
        if self.same:
            return f"the programs are the same, {len(self.left)} binds"
        table, left_out = self._table()
        more = f"\n... {left_out} more rows: .rows has them" if left_out else ""
        return table.text() + more

    __repr__ = __str__

    def _repr_html_(self):
        return LATE_BOUND["comparison_html"](self)


def _near_differences(different: Sequence[bool], distance: int) -> list[bool]:
    """For each row, whether it is within this distance of a different row."""
    shown = [False] * len(different)
    for order in (range(len(different)), range(len(different) - 1, -1, -1)):  # after, and before
        remaining = 0
        for i in order:
            remaining = distance + 1 if different[i] else remaining - 1
            shown[i] = shown[i] or remaining > 0
    return shown


# ---- correspondence ----


@define(eq=False)
class _Rows:
    """Finds the rows of two programs; ``pairs`` maps locals of the first to the second."""

    f: Lambda
    g: Lambda
    pairs: dict[Local, Local] = field(factory=dict)
    numbers: dict = field(factory=dict)  # description -> number, for fast comparison
    compared: dict = field(factory=dict)  # ids of a pair of bodies -> their rows

    def run(self) -> Iterator[Row]:
        """The rows, in the order of both programs."""
        for p, q in _match_locals(self.f.params, self.g.params):
            if p is not None and q is not None:
                self.pairs[p] = q
            yield Row(_mark_of(p, q, p and q and p.type is q.type), p, q)
        # from strict to loose; the first level uses only unique matches, as anchors
        finders = unique_pairs, aligned_positions, aligned_positions
        levels = list(zip(finders, self.described(self.f), self.described(self.g), strict=True))
        yield from self.part(levels, (0, 0), (len(self.f), len(self.g)))
        same = self.agree(self.f.ret.args, self.g.ret.args)
        yield Row(_SAME if same else _CHANGED, self.f.ret, self.g.ret)

    def part(self, levels: list, start: tuple[int, int], end: tuple[int, int]) -> Iterator[Row]:
        """The rows from ``start`` to ``end``: matches by the first level, then by the next ones."""
        (i, j), (k, m) = start, end
        if not levels or i == k or j == m:
            yield from (Row(_REMOVED, bind, None) for bind in self.f.binds[i:k])
            yield from (Row(_ADDED, None, bind) for bind in self.g.binds[j:m])
            return
        (find, left, right), *others = levels
        # a level sees only the part between two pairs of the previous level: pairs never cross
        for x, y in find(left[start[0] : k], right[start[1] : m]):
            yield from self.part(others, (i, j), (start[0] + x, start[1] + y))
            yield self.pair(start[0] + x, start[1] + y)
            i, j = start[0] + x + 1, start[1] + y + 1
        yield from self.part(others, (i, j), end)

    def pair(self, i: int, j: int) -> Row:
        """The row of two binds that correspond."""
        a, b = self.f.binds[i], self.g.binds[j]
        binders = list(_match_locals(a.binders, b.binders))
        same = (
            a.attrs == b.attrs
            and self.agree(a.args, b.args)
            and all(p and q and p.type is q.type for p, q in binders)
        )
        # recorded for a changed pair too: later binds may still be equal
        self.pairs.update([(p, q) for p, q in binders if p and q])
        return Row(_SAME, a, b) if same else Row(_CHANGED, a, b, tuple(self.inner(a, b)))

    def inner(self, a: Bind, b: Bind) -> Iterator[tuple[str, tuple[Row, ...]]]:
        """The rows of each pair of different bodies, if both binds have the same number of them."""
        bodies = bodies_of(a), bodies_of(b)
        if a.op is not b.op or len(bodies[0]) != len(bodies[1]):
            return
        if is_printed_in_place(a) and is_printed_in_place(b):  # short bodies, without own rows
            return
        for name, f, g in zip(body_names(a), *bodies, strict=True):
            key = id(f), id(g)
            if key not in self.compared:
                rows = _Rows(f, g, numbers=self.numbers, compared=self.compared)
                self.compared[key] = () if f == g else tuple(rows.run())
            if self.compared[key]:
                yield name, self.compared[key]

    def agree(self, left: tuple[Arg, ...], right: tuple[Arg, ...]) -> bool:
        """Whether operands correspond."""
        return len(left) == len(right) and all(
            self.pairs.get(a) is b if type(a) is Local else a == b
            for a, b in zip(left, right, strict=True)
        )

    def described(self, fn: Lambda) -> list[list[int]]:
        """Three numbers for each bind: of the bind with the makers of its operands, of the bind
        with its constants only, and of its operation alone.
        """
        levels: list[list[int]] = [[], [], []]
        descriptions: dict[Local, int] = {p: self.number(i) for i, p in enumerate(fn.params)}
        for bind in fn.binds:
            op_number = self.number(bind.op)
            constants = [a if type(a) is Const else None for a in bind.args]
            operands = [a if type(a) is Const else descriptions[a] for a in bind.args]
            levels[0].append(self.number((op_number, bind.attrs, *operands)))
            levels[1].append(self.number((op_number, bind.attrs, *constants)))
            levels[2].append(op_number)
            # only the direct makers: with all earlier binds, one change would change all later
            # descriptions
            descriptions |= dict.fromkeys(bind.binders, op_number)
        return levels

    def number(self, description) -> int:
        """The number of a description; equal descriptions have the same number."""
        return self.numbers.setdefault(description, len(self.numbers))


def _match_locals(left: Sequence[Local], right: Sequence[Local]) -> Iterator[tuple]:
    """Corresponding locals in order, None without a counterpart.

    Identical locals if there are any (passes keep them), otherwise by position.
    """
    common = set(left).intersection(right)
    pairs = list(zip_longest(left, right))
    if len(left) == len(right) and all(p is q or not common & {p, q} for p, q in pairs):
        common = set()
    if not common:
        yield from pairs
        return
    rest = list(reversed(right))
    for p in left:
        if p not in common:
            yield p, None
            continue
        while rest and rest[-1] is not p:
            yield None, rest.pop()
        if rest:
            yield p, rest.pop()
    yield from ((None, q) for q in reversed(rest))


def _mark_of(left, right, same) -> str:
    """The mark of a row."""
    if left is None:
        return _ADDED
    return _REMOVED if right is None else _SAME if same else _CHANGED


# ---- text ----


@define(eq=False)
class _Table:
    """The text of rows; corresponding locals have the same number on both sides."""

    lines: list[tuple[str, str, str]] = field(factory=list)
    sides: tuple[Printer, Printer] = field(init=False)
    left_out: int = 0

    def __attrs_post_init__(self):
        self.sides = tuple(Printer(bounded=True, names=False, sources=False) for _ in range(2))

    def head(self, f: Lambda, g: Lambda) -> None:
        """The line with the nesting of arguments or results."""
        texts = [
            "".join(f" {k} {t.text}" for k, t in (("in", h.in_tree), ("out", h.out_tree)) if t)
            for h in (f, g)
        ]
        if any(texts):
            mark = _SAME if texts[0] == texts[1] else _CHANGED
            self.lines.append((f"lambda{texts[0]}", mark, f"lambda{texts[1]}"))

    def add_all(self, rows: Sequence[Row], indent: str = "") -> int:
        """(lines of rows, number of rows left out); rows far from a difference are only counted."""
        shown = _near_differences([row.mark != _SAME for row in rows], _CONTEXT)
        for i, (row, is_shown) in enumerate(zip(rows, shown, strict=True)):
            if len(self.lines) > _MAX_LINES:
                return len(rows) - i
            self.add(row, is_shown, indent)
        self.flush(indent)
        return 0

    def add(self, row: Row, is_shown: bool, indent: str) -> None:
        """The lines of a row and of its bodies; a hidden row is counted and its locals numbered."""
        for printer in self.sides:
            printer.bodies = not row.inner
        texts = [
            _printer_text(printer, item, is_shown)
            for printer, item in zip(self.sides, (row.left, row.right), strict=True)
        ]
        for printer in self.sides:
            # one row, one number on both sides
            printer.count = max(other.count for other in self.sides)
        if not is_shown:
            self.left_out += 1
            return
        self.flush(indent)
        for i, (left, right) in enumerate(zip_longest(*texts, fillvalue="")):
            mark = row.mark if i == 0 or row.mark != _CHANGED else _SAME
            self.lines.append((_indent_line(left, indent), mark, _indent_line(right, indent)))
        for name, rows in row.inner:
            self.lines.append((f"{indent}  {name}:", _SAME, f"{indent}  {name}:"))
            self.add_all(rows, indent + "    ")

    def flush(self, indent: str = "") -> None:
        """The line that counts the hidden rows."""
        if self.left_out:
            text = f"{indent}... {self.left_out} the same ..."
            self.lines.append((text, _SAME, text))
        self.left_out = 0

    def text(self) -> str:
        """All lines, with the left column as wide as needed."""
        self.flush()
        width = min(max(len(left) for left, _, _ in self.lines), _WIDEST)
        return "\n".join(
            f"{_cut_or_pad(left, width):<{width}}  {mark}  {right}".rstrip()
            for left, mark, right in self.lines
        )


def _indent_line(line: str, indent: str) -> str:
    """An indented line; "" stays empty."""
    return indent + line if line else ""


def _cut_or_pad(text: str, width: int) -> str:
    """``text`` cut or padded to this width."""
    return text if len(text) <= width else text[: width - 3] + "..."


def _printer_text(printer: Printer, item, is_shown: bool) -> list[str]:
    """The lines of a parameter, a bind or a return; none if it is hidden."""
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


LATE_BOUND["diff"] = diff
