"""The rules for the scripts of explorer pages: small parts, and no text of a program as markup."""

import re
from collections.abc import Iterator
from pathlib import Path

from letir.viz.explorer_page import page_file

FOLDER = Path(page_file.__file__).parent
SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("scripts/*.js")}
FUNCTION = re.compile(r"^( *)function \w+\(.*\{$|^(  )(?!if|for|while)\w+\([^()]*\) \{$")


def functions_in_file(text: str) -> Iterator[tuple[str, int]]:
    """(first line, lines of the body) of each function and method."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if found := FUNCTION.match(line):
            end = lines.index((found[1] or found[2] or "") + "}", i)
            yield line.strip(), end - i - 1


def test_every_script_is_part_of_the_page_once():
    assert sorted(page_file.SCRIPTS) == sorted(SCRIPTS)


def test_scripts_have_at_most_300_lines_of_100_characters():
    long = [name for name, text in SCRIPTS.items() if len(text.splitlines()) > 300]
    wide = [
        f"{name}:{n}"
        for name, text in SCRIPTS.items()
        for n, line in enumerate(text.splitlines(), 1)
        if len(line) > 100
    ]

    assert (long, wide) == ([], [])


def test_functions_of_scripts_are_short():
    found = [(name, *one) for name, text in SCRIPTS.items() for one in functions_in_file(text)]

    assert len(found) > 100
    assert [one for one in found if one[2] > 40] == []


def test_every_script_says_what_it_is_for():
    assert [name for name, text in SCRIPTS.items() if not text.startswith("// ")] == []


def test_texts_never_become_markup():
    """Nor code: what comes from a program becomes text nodes and values of attributes only."""
    markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc"
    loading = r"\bfetch\(|XMLHttpRequest|\bimport\(|WebSocket|\.src\b|location\b"

    for name, text in SCRIPTS.items():
        assert not re.findall(f"{markup}|{loading}", text), name
