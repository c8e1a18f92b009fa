"""Programs in the colours of the terminal: plain ANSI codes, which follow the user's theme."""

import os
import re
import sys
from typing import Any, TextIO

from letir.ast import LATE_BOUND

_CODES = {  # kind of a piece of text -> its ANSI code
    "string": "33",  # yellow
    "comment": "2",  # faint
    "local": "36",  # cyan
    "type": "32",  # green
    "keyword": "35",  # magenta
    "operation": "1",  # bold
}
_PIECE = re.compile(
    r"""(?P<string>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")"""
    r"|(?P<comment>\#[^\n]*)"
    r"|(?P<local>%\d+)"
    r"|(?P<type>\b(?:bool|u?int\d+|float\d+|complex\d+)\*?\[[^][\n]*\])"
    r"|(?P<keyword>\b(?:lambda|return)\b)"
    r"|(?P<operation>(?<==[ ])[\w.]+(?=[ ([]))"
)


def print_program(text: str, out: TextIO | None = None) -> None:
    """Print the text of a program, in colours if ``out`` is a terminal that shows them."""
    out = out or sys.stdout
    print(colored_program(text) if _shows_colors(out) else text, file=out)


def pretty_program(program: Any, printer: Any, is_cycle: bool) -> None:
    """Write a program for IPython, in colours in a terminal. Notebooks show tables instead."""
    text = str(program)
    printer.text(colored_program(text) if _shows_colors(sys.stdout) else text)


def _shows_colors(out: TextIO) -> bool:
    """Whether ``out`` is a terminal with colours.

    Not with NO_COLOR in the environment, nor if the terminal calls itself dumb.
    """
    is_off = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return out.isatty() and not is_off


def colored_program(text: str) -> str:
    """The text of a program with ANSI codes, without which it is the text itself."""
    return _PIECE.sub(lambda piece: f"\x1b[{_CODES[piece.lastgroup]}m{piece[0]}\x1b[0m", text)


LATE_BOUND["pretty_program"] = pretty_program
