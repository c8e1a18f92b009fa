"""``Reader``: a text with a current position, the base of the value parser and the parser.

Its methods skip white space and comments, read one word, and raise errors that say what was
expected, what was found, and where.
"""

import re
from collections.abc import Callable
from typing import Any, NoReturn

from letir.errors import ParseError

MAX_DEPTH = 120  # levels of nested tuples, trees and lambdas: well within Python's default stack

_SPACE = re.compile(r"(?:\s++|#[^\n]*+)*+")
_EXCERPT = re.compile(r"\w[\w.]{0,30}|->|\S?")
ABBREVIATED = (
    "this text is abbreviated: str(f) leaves parts out, parse the text that dumps(f) gives"
)


class Reader:
    """Reads one text; each method reads from ``pos`` on, and moves it forward."""

    def __init__(self, text: str):
        self.text = text
        self.pos = self.depth = 0

    def error(self, message: str, at: int | None = None) -> ParseError:
        """A ParseError at ``at``, by default at the current position."""
        at = self.pos if at is None else at
        # counted when something is wrong, not while reading: a program may have 10^6 lines
        line = self.text.count("\n", 0, at) + 1
        return ParseError(message, line, at - self.text.rfind("\n", 0, at))

    def fail(self, expected: str) -> NoReturn:
        """Raise the ParseError that says what was expected and what was found."""
        self.skip()
        if self.text.startswith("...", self.pos):
            raise self.error(ABBREVIATED)
        excerpt = _EXCERPT.match(self.text, self.pos)[0]
        raise self.error(f"expected {expected}, found {repr(excerpt) if excerpt else 'the end'}")

    def convert(self, meaning: Callable, *args: Any, at: int) -> Any:
        """``meaning(*args)``, with its ValueError as a ParseError at ``at``."""
        try:
            return meaning(*args)
        except (ValueError, OverflowError) as error:
            raise self.error(str(error), at) from None

    def skip(self, space: re.Pattern = _SPACE) -> int:
        """Skip white space and comments, and return the position of the next word."""
        self.pos = space.match(self.text, self.pos).end()
        return self.pos

    def take(self, literal: str) -> bool:
        """Skip ``literal`` if it is next, and return whether it was."""
        result = self.text.startswith(literal, self.skip())
        if result:
            self.pos += len(literal)
        return result

    def expect(self, literal: str) -> None:
        """Skip ``literal``, which must be next."""
        if not self.take(literal):
            self.fail(repr(literal))

    def accept(self, pattern: re.Pattern) -> re.Match | None:
        """The match of ``pattern`` if it is next."""
        result = pattern.match(self.text, self.skip())
        if result:
            self.pos = result.end()
        return result

    def need(self, pattern: re.Pattern, expected: str) -> re.Match:
        """The match of ``pattern``, which must be next."""
        return self.accept(pattern) or self.fail(expected)

    def items(self, close: str, item: Callable) -> tuple[list, bool]:
        """(list of items read by ``item`` up to ``close``, whether a trailing comma ends it)."""
        result, comma = [], True  # comma: whether a further item may follow
        while not self.take(close):
            if not comma:
                self.fail(f"',' or {close!r}")
            result.append(item())
            comma = self.take(",")
        return result, comma

    def tuple_of(self, item: Callable) -> tuple:
        """A tuple of items read by ``item``, up to the closing parenthesis."""
        at = self.pos
        result, comma = self.items(")", item)
        if len(result) == 1 and not comma:
            raise self.error("expected ',': a tuple of one is (x,)", at)
        return tuple(result)

    def descend(self) -> None:
        """Count a level of nesting inside the block. An error ends reading, so it may stay."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"this is nested more than {MAX_DEPTH} levels deep")
