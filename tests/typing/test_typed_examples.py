"""The public API under mypy: what must pass passes, what must fail fails where it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# with what `make lint` has found out about letir and NumPy, and as for a user with strict options
OPTIONS = {"quick": [], "strict": ["--strict-optional", "--follow-imports=silent"]}


@pytest.fixture(scope="module", params=["quick", pytest.param("strict", marks=pytest.mark.slow)])
def errors(request, tmp_path_factory):
    """(file, line) -> the codes of mypy's errors on the examples, with strict optional types."""
    names = [str(HERE / name) for name in ("examples_that_pass.py", "examples_that_fail.py")]
    options = OPTIONS[request.param]
    if options:  # those of the lint are not valid with other options
        options = [*options, f"--cache-dir={tmp_path_factory.mktemp('mypy')}"]
    # in a separate process, where few objects slow the garbage collector down
    command = [sys.executable, "-m", "mypy", *options, *names]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not result.stderr
    found: dict[tuple[str, int], set[str]] = {}
    for name, line, code in re.findall(r"(\w+\.py):(\d+): error: .*\[([\w-]+)\]", result.stdout):
        found.setdefault((name, int(line)), set()).add(code)
    return found


def test_uses_of_the_public_names_are_well_typed(errors):
    assert {} == {place: codes for place, codes in errors.items() if "pass" in place[0]}


def test_type_checkers_report_each_mistake_with_its_kind(errors):
    lines = (HERE / "examples_that_fail.py").read_text(encoding="utf-8").splitlines()
    expected = {}
    for number, line in enumerate(lines, 1):
        if "# E: " in line:
            expected["examples_that_fail.py", number] = set(line.partition("# E: ")[2].split(","))

    found = {place: codes for place, codes in errors.items() if "fail" in place[0]}
    assert expected == found
