"""``RowPool``: the binds of several programs as numbers and strings for JSON, each bind once.

Programs of one page share most of their binds: the passes keep what they do not change. A program
is therefore a list of positions in one table of rows. Texts are stored once, too: a type, an
operation or an attribute is a position in the table of texts.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import define, field

from letir.ast.bodies import bodies_in, bodies_of, body_names
from letir.ast.source import Source
from letir.ast.terms import NO_TYPE, Arg, Bind, Lambda, Local
from letir.ast.text.printer import Printer, is_printed_in_place
from letir.viz.picture import shorten_text

_MAX_LENGTH = 200  # characters of an attribute, a type or a line
_MAX_NAME_LENGTH = 40
_MAX_OF_BODY = 200  # binds shown of one body
_MAX_NESTED = 8  # bodies in bodies that are shown


@define(eq=False)
class RowPool:
    """The rows of the binds that were added, and the tables that they refer to.

    A row is ``[binders, operation, operands, attributes, place, bodies]``: binders and operands as
    numbers of locals (constants as texts), the others as positions in ``texts`` and ``places``, -1
    for none. A body is ``[name, parameters, rows, results, binds left out]``. Locals are numbered
    as ``print`` numbers those of the first program; later programs go on with further numbers.
    """

    texts: dict[str, int] = field(factory=dict)
    places: dict[tuple[str, int, int, str], int] = field(factory=dict)
    sources: dict[int, Source] = field(factory=dict)  # by place
    names: dict[int, int] = field(factory=dict)  # local -> text
    types: list[int] = field(factory=list)  # local -> text
    rows: list[list] = field(factory=list)
    numbers: dict[Local, int] = field(factory=dict)
    printer: Printer = field(factory=lambda: Printer(bounded=True, bodies=False, sources=False))
    _row_of: dict[int, tuple[int, Bind]] = field(factory=dict)  # with the bind: ids stay valid

    # ---- programs ----

    def params(self, fn: Lambda) -> list[int]:
        """The numbers of the parameters of a program."""
        return [self.known(param) for param in fn.params]

    def binds(self, binds: Iterable[Bind]) -> list[int]:
        """The positions of the rows of binds; a bind that was added before has the same row."""
        result = []
        for bind in binds:
            entry = self._row_of.get(id(bind))
            if entry is None:
                entry = self._row_of[id(bind)] = (len(self.rows), bind)
                self.rows.append([])  # rows of bodies come after it
                self.rows[entry[0]] = self.row(bind, [self.known(b) for b in bind.binders], 0)
            result.append(entry[0])
        return result

    def take_row(self, bind: Bind, row: int) -> None:
        """Let ``bind`` have a row that exists: its binders are those of the row."""
        self._row_of[id(bind)] = (row, bind)
        self.numbers.update(zip(bind.binders, self.rows[row][0], strict=True))

    def has(self, bind: Bind) -> bool:
        """Whether a bind has a row."""
        return id(bind) in self._row_of

    # ---- one bind ----

    def row(self, bind: Bind, binders: list[int], depth: int) -> list:
        """The row of a bind."""
        in_place = is_printed_in_place(bind)
        attrs = [
            text
            for text in self.printer.attr_texts(bind, "")
            if not bodies_in((bind.attrs[text.partition("=")[0]],))
            and not (in_place and text.startswith(("op=", "n_cts=")))
        ]
        name = f"{bind.op.name}[{bind.attrs['op'].name}]" if in_place else bind.op.name
        row = [
            binders,
            self.text(name),
            self.operands(bind.args),
            self.text(", ".join(attrs)) if attrs else -1,
            self.place(bind.source),
        ]
        if bind.op.holds_lambdas:
            row.append(self.bodies(bind, in_place, depth))
        return row

    def operands(self, args: Sequence[Arg]) -> list:
        """Locals as numbers, constants as texts."""
        return [
            self.numbers.get(arg, -1)
            if type(arg) is Local
            else shorten_text(self.printer.value(arg.value, ""), _MAX_LENGTH)
            for arg in args
        ]

    def bodies(self, bind: Bind, in_place: bool, depth: int) -> list:
        """The bodies of a bind, the first binds of long ones."""
        result = []
        for name, body in zip(body_names(bind), bodies_of(bind), strict=True):
            if in_place:  # its captures are shown as the operands that they stand for
                operands = [self.numbers[arg] for arg in bind.locals()]
                self.numbers.update(zip(body.params, operands, strict=True))
                params = []
            else:
                params = [self.new(param) for param in body.params]
            most = _MAX_OF_BODY if depth < _MAX_NESTED else 0
            rows = []
            for inner in body.binds[:most]:
                binders = [self.new(binder) for binder in inner.binders]
                rows.append(self.row(inner, binders, depth + 1))
            omitted = len(body.binds) - len(rows)
            results = self.operands(body.ret.args)
            result.append(["rule" if in_place else name, params, rows, results, omitted])
        return result

    # ---- locals, texts and places ----

    def known(self, local: Local) -> int:
        """The number of a local, a new one for a local that has none."""
        number = self.numbers.get(local)
        return self.new(local) if number is None else number

    def new(self, local: Local) -> int:
        """A new number for a local."""
        number = self.numbers[local] = len(self.types)
        aval = local.type
        self.types.append(
            -1
            if aval is None or aval is NO_TYPE
            else self.text(shorten_text(repr(aval), _MAX_LENGTH))
        )
        if local.name:
            self.names[number] = self.text(shorten_text(local.name, _MAX_NAME_LENGTH))
        return number

    def text(self, text: Any) -> int:
        """The position of a text."""
        return self.texts.setdefault(str(text), len(self.texts))

    def place(self, source: Source | None) -> int:
        """The position of a place in the user's code; -1 for none."""
        if source is None:
            return -1
        span = source.span or ()
        key = (source.file, source.line, hash(span), source.text or "")
        result = self.places.get(key)
        if result is None:
            result = self.places[key] = len(self.places)
            self.sources[result] = source
        return result

    def tables(self) -> dict[str, Any]:
        """The tables, as JSON has them. A place is ``[line, code]``, positions of texts."""
        places = [
            [
                self.text(shorten_text(source.short, _MAX_LENGTH)),
                self.text(shorten_text(source.excerpt, _MAX_LENGTH)),
            ]
            for source in self.sources.values()
        ]
        return {
            "texts": list(self.texts),
            "places": places,
            "types": self.types,
            "names": self.names,
            "rows": self.rows,
        }
