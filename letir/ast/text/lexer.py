"""``Reader``: a text and a place in it; ``letir.ast.text.value_parser`` and
``letir.ast.text.parser`` build on it.

Its methods pass white space and comments, then one word, and make the errors that say what was
expected, what was found, and where.
"""

import re
from collections.abc import Callable
from typing import NoReturn

from letir.errors import ParseError

MOST_DEPTH = 120  # levels of tuples, trees and lambdas: well within Python's default stack

_SPACE = re.compile(r"(?:\s++|#[^\n]*+)*+")
_EXCERPT = re.compile(r"\w[\w.]{0,30}|->|\S?")
ABBREVIATED = (
    "this text is abbreviated: str(f) leaves parts out, parse the text that dumps(f) gives"
)


class Reader:
    """Reads one text from ``pos`` on; each method leaves ``pos`` after what it read."""

    def __init__(self, text: str):
        self.text = text
        self.pos = self.depth = 0

    def error(self, message: str, at: int | None = None) -> ParseError:
        """A ParseError at ``at``, by default where the reader is."""
        at = self.pos if at is None else at
        # counted when something is wrong, not while reading: a program may have 10^6 lines
        line = self.text.count("\n", 0, at) + 1
        return ParseError(message, line, at - self.text.rfind("\n", 0, at))

    def fail(self, expected: str) -> NoReturn:
        """Raise the error that says what was expected and what is there."""
        self.skip()
        if self.text.startswith("...", self.pos):
            raise self.error(ABBREVIATED)
        found = _EXCERPT.match(self.text, self.pos)[0]
        raise self.error(f"expected {expected}, found {repr(found) if found else 'the end'}")

    def convert(self, meaning: Callable, *args, at: int):
        """``meaning(*args)``, whose ValueError is an error of the text at ``at``."""
        try:
            return meaning(*args)
        except (ValueError, OverflowError) as error:
            raise self.error(str(error), at) from None

    def skip(self, space: re.Pattern = _SPACE) -> int:
        """Pass white space and comments; where the next word begins."""
        self.pos = space.match(self.text, self.pos).end()
        return self.pos

    def take(self, literal: str) -> bool:
        """Whether ``literal`` is next; then it is passed."""
        found = self.text.startswith(literal, self.skip())
        if found:
            self.pos += len(literal)
        return found

    def expect(self, literal: str) -> None:
        """Pass ``literal``, which must be next."""
        if not self.take(literal):
            self.fail(repr(literal))

    def accept(self, pattern: re.Pattern) -> re.Match | None:
        """The match of ``pattern`` if it is next."""
        found = pattern.match(self.text, self.skip())
        if found:
            self.pos = found.end()
        return found

    def need(self, pattern: re.Pattern, what: str) -> re.Match:
        """The match of ``pattern``, which must be next."""
        return self.accept(pattern) or self.fail(what)

    def items(self, close: str, item: Callable) -> tuple[list, bool]:
        """What ``item`` reads, again and again, up to ``close``; whether a comma ends the list."""
        found, comma = [], True  # comma: whether a further item may follow
        while not self.take(close):
            if not comma:
                self.fail(f"',' or {close!r}")
            found.append(item())
            comma = self.take(",")
        return found, comma

    def tuple_of(self, item: Callable) -> tuple:
        """A tuple of what ``item`` reads, up to the closing parenthesis; of one with a comma."""
        at = self.pos
        found, comma = self.items(")", item)
        if len(found) == 1 and not comma:
            raise self.error("expected ',': a tuple of one is (x,)", at)
        return tuple(found)

    def descend(self) -> None:
        """Count a level of nesting. An error leaves the count as it is: reading ends with it."""
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise self.error(f"this is nested more than {MOST_DEPTH} levels deep")
