"""The language page of the docs: its programs parse, and its examples print what it shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import letir.ops  # noqa: F401  registers all operations
from letir.ast.checker import check
from letir.ast.text.lexer import MAX_DEPTH
from letir.ast.text.literals import DTYPES
from letir.ast.text.parser import parse
from letir.ast.text.printer import dumps

PAGE = (Path(__file__).parents[3] / "docs" / "language.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```\n", PAGE, re.DOTALL)
GRAMMAR = re.search(r"```ebnf\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.mark.parametrize("text", re.findall(r"```letir\n(.*?)\n```", PAGE, re.DOTALL))
def test_a_program_on_the_page_is_well_formed_and_printed_as_shown(text):
    assert dumps(check(parse(text))) == text


def test_the_examples_print_what_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    printed = []
    for code, _ in EXAMPLES:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, "example.py", "exec"), names)
        printed.append(out.getvalue())

    assert printed == [output for _, output in EXAMPLES]


def test_every_python_block_has_an_output():
    assert len(EXAMPLES) == PAGE.count("```python\n")


def test_the_grammar_defines_every_rule_that_it_uses():
    rules = dict(re.findall(r"^(\w+) *= (.*?) ;$", GRAMMAR, re.MULTILINE | re.DOTALL))
    used = {w for rule in rules.values() for w in re.findall(r"\w+", re.sub(r'"[^"]*"', "", rule))}
    left = set(re.findall(r"`(\w+)`", PAGE.rpartition("```")[2]))

    assert used | {"program"} == rules.keys() | left - {"op"}
    assert not rules.keys() & left


def test_the_grammar_lists_every_dtype_and_the_nesting_limit():
    dtypes = re.search(r"^dtype .*? ;$", GRAMMAR, re.MULTILINE | re.DOTALL)[0]

    assert set(re.findall(r'"(\w+)"', dtypes)) == set(DTYPES)
    assert f"at most {MAX_DEPTH} levels" in PAGE
