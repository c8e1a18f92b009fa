"""Print the coverage of each file of letir, and fail if one is below 90 %.

    python tests/coverage_floor.py [--least 90]

Reads ``.coverage``, which ``make coverage`` writes: statements and branches together. Statements
that only run in processes of their own, on a device or in a compiler are excluded where they stand.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path


def shares() -> dict[str, float]:
    """{file: covered statements and branches in percent}, the least covered first."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "coverage", "json", "-q", "-o", str(report)]
        subprocess.run(command, check=True)
        files = json.loads(report.read_text(encoding="utf-8"))["files"]
    found = {name: file["summary"]["percent_covered"] for name, file in files.items()}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def main() -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--least", type=float, default=90.0)
    options = parser.parse_args()
    found = shares()
    for name, share in found.items():
        if share < 100:
            print(f"{share:6.1f} %  {name}")
    low = [name for name, share in found.items() if share < options.least]
    print(f"{len(found)} files, {len(low)} of them below {options.least:g} %")
    return int(bool(low))


if __name__ == "__main__":
    sys.exit(main())
