"""``python -m benchmarks.first_minutes``: from a fresh clone to the demo and to a first gradient.

The clone, its environment and its compiled modules are new; pip may find packages in its cache.
"""

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import ROOT
from benchmarks.processes import readme_example

LAST_LINE = "To write a page of it:"


def main() -> None:
    """Clone the repository into a temporary folder, and time what a new user does there."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "letir")
        cloned, _ = measure_command(["git", "clone", "--quiet", ROOT, clone], Path(folder))
        trained, printed = measure_command(["make", "demo"], clone)
        *_, last = printed.splitlines()
        assert last.startswith(LAST_LINE), printed
        (clone / "example.py").write_text(readme_example(), encoding="utf-8")
        run, printed = measure_command([".venv/bin/python", "example.py"], clone)
        assert "lambda %0:weights" in printed, printed
    print("figure, with the target | wall time | CPU time")
    print(sum_of_steps("clone to the demo's last line (60 s)", [cloned, trained]))
    print(sum_of_steps("clone to the gradient of the README (4 min)", [cloned, trained, run]))


def sum_of_steps(title: str, steps: Sequence[tuple[float, float]]) -> str:
    """A line with the sums of the steps' seconds of (wall, CPU) time."""
    wall, cpu = map(sum, zip(*steps, strict=True))
    return f"{title} | {wall:.1f} s | {cpu:.1f} s"


def measure_command(command: Sequence[str | Path], folder: Path) -> tuple[tuple[float, float], str]:
    """((wall, CPU) seconds of a command and of the processes that it starts, its output)."""
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    start, before = time.perf_counter(), cpu_of_children()
    done = subprocess.run(
        command, cwd=folder, env=surroundings, capture_output=True, text=True, check=True
    )
    return (time.perf_counter() - start, cpu_of_children() - before), done.stdout


def cpu_of_children() -> float:
    """The CPU seconds of all finished processes that this one started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
