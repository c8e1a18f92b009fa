"""Programs in colours: on terminals only, and the same text without the codes."""

import functools
import io
import re

import numpy as np
import pytest
from hypothesis import given, settings

import letir as lt
from letir.testing import programs
from letir.viz.terminal_colors import colored_program, print_program


@functools.cache
def program() -> lt.Lambda:
    return lt.trace(lambda x, s: lt.scan(lambda c, v: (c + s, c * v), 0.0, x), np.ones(3), 2.0)


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def plain(text: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", text)


@settings(max_examples=30)
@given(programs())
def test_without_the_codes_the_text_is_the_same(case):
    text = lt.dumps(case[0])

    assert text == plain(colored_program(text))


def test_names_types_operations_and_comments_have_colours():
    line = next(x for x in colored_program(lt.dumps(program())).splitlines() if "mul" in x)

    assert "\x1b[36m%" in line
    assert "\x1b[32mfloat64[]\x1b[0m" in line
    assert "\x1b[1mmul\x1b[0m(" in line
    assert "\x1b[2m#" in line


def test_a_hash_in_a_string_is_not_a_comment():
    assert colored_program("text='a # b', %1") == "text=\x1b[33m'a # b'\x1b[0m, \x1b[36m%1\x1b[0m"


@pytest.mark.parametrize(
    ("out", "environment", "colours"),
    [
        (Terminal, {}, True),
        (Terminal, {"NO_COLOR": ""}, True),
        (Terminal, {"NO_COLOR": "1"}, False),
        (Terminal, {"TERM": "dumb"}, False),
        (io.StringIO, {}, False),
    ],
)
def test_only_terminals_get_colours(out, environment, colours, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = out()

    print_program(str(program()), stream)

    assert colours == ("\x1b[" in stream.getvalue())
    assert f"{program()}\n" == plain(stream.getvalue())


@pytest.mark.parametrize("out", [Terminal, io.StringIO])
@pytest.mark.parametrize("make", [program, lambda: lt.differentiate(program())])
def test_ipython_shows_programs_in_colours_on_terminals_only(make, out, monkeypatch):
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", out())

    shown = make()
    text = pretty(shown)

    assert ("\x1b[36m%" in text) == (out is Terminal)
    assert str(shown) == plain(text)
