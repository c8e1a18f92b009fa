"""The public API under mypy: what must pass passes, what must fail fails where it says."""

import getpass
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def errors():
    """(file, line) -> the codes of mypy's errors on the examples, with strict optional types."""
    names = [str(HERE / name) for name in ("examples_that_pass.py", "examples_that_fail.py")]
    # mypy keeps what it has found out about letir and NumPy from run to run
    cache = Path(tempfile.gettempdir()) / f"letir-tests-mypy-{getpass.getuser()}"
    options = ["--strict-optional", "--follow-imports=silent", f"--cache-dir={cache}"]
    # in a separate process, where few objects slow the garbage collector down
    command = [sys.executable, "-m", "mypy", *options, *names]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not result.stderr
    found: dict[tuple[str, int], set[str]] = {}
    for name, line, code in re.findall(r"(\w+\.py):(\d+): error: .*\[([\w-]+)\]", result.stdout):
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
