"""The public API under mypy: what must pass passes, what must fail fails where it says."""

import re
from pathlib import Path

import pytest
from mypy import api

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def errors():
    """(file, line) -> the codes of mypy's errors on the examples, with strict optional types."""
    names = [str(HERE / name) for name in ("examples_that_pass.py", "examples_that_fail.py")]
    options = ["--strict-optional", "--follow-imports=silent", "--no-incremental"]
    text, problems, _ = api.run([*options, *names])
    assert not problems
    found: dict[tuple[str, int], set[str]] = {}
    for name, line, code in re.findall(r"(\w+\.py):(\d+): error: .*\[([\w-]+)\]", text):
        found.setdefault((name, int(line)), set()).add(code)
    return found


def test_uses_of_the_public_names_are_well_typed(errors):
    assert {} == {place: codes for place, codes in errors.items() if "pass" in place[0]}


def test_mistakes_are_errors(errors):
    lines = (HERE / "examples_that_fail.py").read_text(encoding="utf-8").splitlines()
    expected = {}
    for number, line in enumerate(lines, 1):
        if "# E: " in line:
            expected["examples_that_fail.py", number] = set(line.partition("# E: ")[2].split(","))

    found = {place: codes for place, codes in errors.items() if "fail" in place[0]}
    assert expected == found
