"""``python -m benchmarks [ROW ...]``: print the table of figures as Markdown, row by row."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import FULL, SHORT, machine, pin_to_one_core
from benchmarks.rows import HEAD, ROWS

BEGIN, END = "<!-- benchmarks -->\n", "<!-- end of benchmarks -->"


def main() -> None:
    """Measure the rows that are asked for, by default all."""
    options = parsed()
    pin_to_one_core()
    effort = SHORT if options.short else FULL
    lines = [f"{machine()}\n", HEAD]
    print(*lines, sep="\n", flush=True)
    for row in ROWS:
        if not options.row or row.name in options.row:
            lines.append(row.markdown(effort))
            print(lines[-1], flush=True)
    if options.into is not None:
        write(options.into, lines)


def parsed() -> argparse.Namespace:
    """The command line."""
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("row", nargs="*", help=f"all if none is given: {', '.join(names)}")
    parser.add_argument("--short", action="store_true", help="only at 10^4 operations, no drift")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="write the table into this page")
    options = parser.parse_args()
    for unknown in set(options.row).difference(names):
        parser.error(f"there is no row {unknown}; choose from {', '.join(names)}")
    return options


def write(page: Path, lines: Sequence[str]) -> None:
    """Put the table between the marks in a page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin and end, f"{page} has no marks {BEGIN!r} and {END!r}"
    table = "\n".join(lines)
    page.write_text(f"{before}{begin}\n{table}\n\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
