"""The positions of a parsed program's binds in its text, for the errors of ``check``."""

from letir.ast import LATE_BOUND
from letir.ast.bodies import all_bodies
from letir.ast.checker import check_bind_types
from letir.ast.terms import Bind, Lambda
from letir.ast.text.parser import Parser, parsed_text
from letir.errors import LetirError


class _PlacedParser(Parser):
    """A parser that notes the position of each bind, by id; ``fn`` holds the binds."""

    def __init__(self, text: str):
        super().__init__(text, None)
        self.places: dict[int, int] = {}

    def simple_binds(self, binds: list[Bind]) -> None:
        """Nothing: every bind is read by ``bind``."""

    def bind(self, expected: str) -> Bind:
        """The next bind, with its position noted."""
        at = self.skip()
        result = super().bind(expected)
        self.places[id(result)] = at
        return result


def error_in_text(error: LetirError, fn: Lambda) -> LetirError:
    """``error`` of ``check(fn)`` with line and column, if ``fn`` comes from a text."""
    text = fn.memo(parsed_text)
    if not text or not error.args:
        return error
    parser = _PlacedParser(text)
    for body in all_bodies(parser.program()):
        for bind in body.binds:
            try:
                check_bind_types(body, bind)
            except LetirError:
                place = parser.error("", parser.places[id(bind)])
                where = f"\n  in line {place.line}, column {place.column} of the text"
                error.args = (f"{error.args[0]}{where}", *error.args[1:])
                return error
    return error


LATE_BOUND["error_in_text"] = error_in_text
