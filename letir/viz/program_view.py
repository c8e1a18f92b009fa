"""A program as a table for notebooks: binder, type, operation, operands, the user's line.

A long program shows its first and its last binds. Bodies are folded. The same local has the same
mark wherever it appears, by which the script of the view lights up its definition and its uses.
"""

from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field

from letir.ast import LATE_BOUND
from letir.ast.bodies import bodies_in, bodies_of, body_names
from letir.ast.source import Source
from letir.ast.terms import NO_TYPE, Arg, Bind, Lambda, Local, Ret
from letir.ast.text.printer import Printer, is_printed_in_place
from letir.errors import LetirError
from letir.viz.view_page import escape_text, folding_box, html_view, scrolling_box

_MAX_BINDS = 200  # shown of a program
_MAX_INNER = 200  # rows of all bodies
_MAX_OF_BODY = 30  # shown of one body
_MAX_NESTED = 8  # bodies in bodies that are shown
_MAX_OPERANDS = 60  # shown of a bind, or of a return
_MAX_LENGTH = 160  # characters of an attribute, a type or a place
_MAX_NAME_LENGTH = 32
_MAX_UNBROKEN_LENGTH = 40  # characters of a type that stands on one line
_HEADS = ("name", "type", "operation", "operands", "line")


def program_html(fn: Lambda) -> str:
    """The view of a program that a notebook shows. Raises what ``check`` raises if a part of the
    program is of the wrong class.
    """
    try:
        table = ProgramTable().html(fn, "program")
    except LetirError:
        raise
    except (AttributeError, TypeError, ValueError, LookupError) as error:  # a part of a wrong class
        raise LATE_BOUND["malformed_error"](fn, error) from None
    return html_view(program_title(fn), table, is_searched=True)


def program_title(fn: Lambda) -> str:
    """The numbers of a program's parameters, binds and results, and its trees."""
    counts = (len(fn.params), "parameter"), (len(fn.binds), "bind"), (len(fn.ret.args), "result")
    text = ", ".join([f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts])
    trees = [(word, tree) for word, tree in (("in", fn.in_tree), ("out", fn.out_tree)) if tree]
    nesting = " ".join([f"{word} {tree.text}" for word, tree in trees])
    return f'{text} <span class="q">{escape_text(nesting, _MAX_LENGTH)}</span>'


@define(eq=False)
class ProgramTable:
    """Writes programs as tables.

    ``roles``: texts for parameters, in place of their operands; ``notes``: texts for values, beside
    their types; ``marks``: marks for values that another table shows too, by which the script of
    the page finds them. ``prefix`` distinguishes the marks of all other values of this table.
    """

    prefix: str = ""
    roles: Mapping[Local, str] = field(factory=dict)
    notes: Mapping[Local, str] = field(factory=dict)
    marks: Mapping[Local, str] = field(factory=dict)
    max_binds: int = _MAX_BINDS
    has_sources: bool = True
    printer: Printer = field(factory=lambda: Printer(bounded=True, bodies=False, sources=False))
    inner_left: int = _MAX_INNER
    last_place: str = ""

    def html(self, fn: Lambda, label: str) -> str:
        """The table of a program, in a box that scrolls. ``label`` is for screen readers."""
        heads = _HEADS if self.has_sources else _HEADS[:-1]
        head = "".join([f'<th scope="col">{text}</th>' for text in heads])
        rows = "".join(self.rows(fn, self.max_binds, 0))
        return scrolling_box(
            f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>", label
        )

    def rows(self, fn: Lambda, max_binds: int, depth: int) -> Iterator[str]:
        """The rows of a program: parameters, binds, the return."""
        yield from self.params(fn.params)
        left_out = len(fn.binds) - max_binds
        for i, bind in enumerate(fn.binds):
            if left_out > 0 and max_binds // 2 <= i < max_binds // 2 + left_out:
                self.printer.skip(bind)
                if i == max_binds // 2:
                    where = "" if depth else ": str and dumps write the program, slice takes a part"
                    yield _cut_row(f"… {left_out:,} binds left out{where} …")
                continue
            yield self.row(bind, depth)
        yield self.returned(fn.ret)

    def params(self, params: Sequence[Local]) -> Iterator[str]:
        """The rows of parameters, the first and the last of many."""
        left_out = len(params) - self.max_binds
        for i, param in enumerate(params):
            self.printer.number(param)
            if left_out > 0 and self.max_binds // 2 <= i < self.max_binds // 2 + left_out:
                if i == self.max_binds // 2:
                    yield _cut_row(f"… {left_out:,} parameters left out …")
                continue
            role = escape_text(self.roles.get(param, ""), _MAX_LENGTH)
            yield self.cells(self.name(param, "b"), self.type(param), "", role, None, "param")

    def row(self, bind: Bind, depth: int) -> str:
        """The row of a bind. Bodies are numbered after the binders, as in the text."""
        operands = self.operands(bind.args)
        for binder in bind.binders:
            self.printer.number(binder)
        names = "<br>".join([self.name(binder, "b") for binder in bind.binders])
        types = "<br>".join([self.type(binder) for binder in bind.binders])
        in_place = is_printed_in_place(bind)
        attrs = [
            text
            for text in self.printer.attr_texts(bind, "")
            if not bodies_in((bind.attrs[text.partition("=")[0]],))
            and not (in_place and text.startswith(("op=", "n_cts=")))
        ]
        cell = ", ".join(
            [operands, *[escape_text(t, _MAX_LENGTH) for t in attrs]] if attrs else [operands]
        )
        cell = cell.removeprefix(", ") + "".join(self.bodies(bind, in_place, depth))
        operation = bind.op.name
        if in_place:
            operation = f"{operation}[{bind.attrs['op'].name}]"
        return self.cells(names, types, escape_text(operation, _MAX_LENGTH), cell, bind.source)

    def cells(
        self,
        name: str,
        kind: str,
        operation: str,
        operands: str,
        source: Source | None,
        word: str = "",
    ) -> str:
        """One row. All but the source are HTML already."""
        place = f'<td class="s">{self.place(source)}</td>' if self.has_sources else ""
        done = f'<td class="t">{word}</td>' if word else f'<td class="o">{operation}</td>'
        return (
            f'<tr><td class="d">{name}</td><td class="t">{kind}</td>{done}'
            f"<td>{operands}</td>{place}</tr>\n"
        )

    def returned(self, ret: Ret) -> str:
        """The row of the return."""
        return self.cells("", "", "", self.operands(ret.args), None, "return")

    # ---- parts of a row ----

    def name(self, local: Local, tag: str) -> str:
        """A local by its number and its name; ``tag``: b where it is bound, i where it is used."""
        number = self.printer.numbers.get(local, "%_")
        mark = self.marks.get(local) or self.prefix + number[1:]
        called = f":{escape_text(local.name, _MAX_NAME_LENGTH)}" if local.name else ""
        return f'<{tag} data-v="{escape_text(mark)}">{escape_text(number)}{called}</{tag}>'

    def operand(self, arg: Arg) -> str:
        """An operand."""
        if type(arg) is Local:
            return self.name(arg, "i")
        return escape_text(self.printer.value(arg.value, ""), _MAX_LENGTH)

    def operands(self, args: Sequence[Arg]) -> str:
        """Operands, the first of many."""
        texts = [self.operand(arg) for arg in args[:_MAX_OPERANDS]]
        omitted = len(args) - len(texts)
        return ", ".join(texts) + (f", … {omitted:,} more" if omitted else "")

    def type(self, local: Local) -> str:
        """The type of a local, and its note."""
        aval = local.type
        text = "" if aval is None or aval is NO_TYPE else escape_text(repr(aval), _MAX_LENGTH)
        if " " in text and len(text) < _MAX_UNBROKEN_LENGTH:
            text = f"<span>{text}</span>"  # stays on one line
        note = self.notes.get(local)
        return f'{text} <span class="kept">{escape_text(note)}</span>' if note else text

    def place(self, source: Source | None) -> str:
        """The user's line and the code there, without what the row above shows already."""
        if source is None:
            return ""
        excerpt = source.excerpt
        place = source.short
        place_text = f"{place}\n{excerpt}"
        if place_text == self.last_place:
            return ""
        self.last_place = place_text
        code = f" <code>{escape_text(excerpt)}</code>" if excerpt else ""
        return f"{escape_text(place, _MAX_LENGTH)}{code}"

    # ---- bodies ----

    def bodies(self, bind: Bind, in_place: bool, depth: int) -> Iterator[str]:
        """The bodies of a bind, folded."""
        if not bind.op.holds_lambdas:
            return
        for name, body in zip(body_names(bind), bodies_of(bind), strict=True):
            n = len(body.binds)
            summary = f"{'rule' if in_place else name}: {n:,} bind{'' if n == 1 else 's'}"
            self.inner_left -= min(len(body.binds), _MAX_OF_BODY)
            if self.inner_left < 0 or depth >= _MAX_NESTED:
                self.skip(body, in_place)
                yield f' <span class="q">{escape_text(summary)}, left out</span>'
            elif in_place:
                operands = [self.printer.numbers[arg] for arg in bind.locals()]
                self.printer.numbers.update(zip(body.params, operands, strict=True))
                yield folding_box(summary, self.inner_table(body.with_binds(body.binds), (), depth))
            else:
                yield folding_box(summary, self.inner_table(body, body.params, depth))

    def inner_table(self, body: Lambda, params: Sequence[Local], depth: int) -> str:
        """The table of a body, with rows for these of its parameters."""
        shown = body.replace(params=params)
        rows = "".join(self.rows(shown, _MAX_OF_BODY, depth + 1))
        return f"<table><tbody>{rows}</tbody></table>"

    def skip(self, body: Lambda, in_place: bool) -> None:
        """Number the locals of a body that is not shown."""
        for param in () if in_place else body.params:
            self.printer.number(param)
        for bind in body.binds:
            self.printer.skip(bind)


def _cut_row(text: str) -> str:
    """A row that says what is left out."""
    return f'<tr><td class="cut" colspan="{len(_HEADS)}">{escape_text(text)}</td></tr>\n'


LATE_BOUND["program_html"] = program_html
