"""``python -m benchmarks [ROW ...]``: print the table of figures as Markdown, row by row."""

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness import FULL, ROOT, SHORT, machine, pin_to_one_core
from benchmarks.rows import HEAD, ROWS, TELLING, markdown

BEGIN, END = "<!-- benchmarks -->\n", "<!-- end of benchmarks -->"


def main() -> None:
    """Measure the requested rows, by default all."""
    options = parsed()
    pin_to_one_core()
    effort = SHORT if options.short else FULL
    head = machine()
    print(head, "", markdown(HEAD), rule(HEAD), sep="\n", flush=True)
    found = {}
    for row in ROWS:
        if not options.row or row.name in options.row:
            found[row.name] = row.cells(effort)
            print(markdown(found[row.name]), flush=True)
    if options.write:
        write(ROOT / "docs" / "performance.md", [head, "", *table(found)])
        write(ROOT / "README.md", [head, "", *telling(found)])


def parsed() -> argparse.Namespace:
    """The parsed command line."""
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("row", nargs="*", help=f"all if none is given: {', '.join(names)}")
    parser.add_argument("--short", action="store_true", help="only at 10^4 operations, no drift")
    parser.add_argument(
        "--write",
        action="store_true",
        help="write all rows into docs/performance.md, and the telling ones into README.md",
    )
    options = parser.parse_args()
    for unknown in set(options.row).difference(names):
        parser.error(f"there is no row {unknown}; choose from {', '.join(names)}")
    if options.write and options.row:
        parser.error("--write writes whole tables: leave the names of rows out")
    return options


def table(found: Mapping[str, Sequence[str]]) -> list[str]:
    """The lines of the table of all measured rows, with their targets."""
    return [markdown(HEAD), rule(HEAD), *map(markdown, found.values())]


def telling(found: Mapping[str, Sequence[str]]) -> list[str]:
    """The lines of the README's table: a few rows, without targets and larger sizes."""
    head, *rows = [
        (title, *[re.sub(r"; \S+ at 10\^.*", "", figure) for figure in figures])
        for title, _, *figures in (HEAD, *map(found.get, TELLING))
    ]
    return [markdown(head), rule(head), *map(markdown, rows)]


def rule(head: Sequence[str]) -> str:
    """The line below the header of a Markdown table."""
    return f"|{'---|' * len(head)}"


def write(page: Path, lines: Sequence[str]) -> None:
    """Write the table between the marks in a page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin and end, f"{page} has no marks {BEGIN!r} and {END!r}"
    text = "\n".join(lines)
    page.write_text(f"{before}{begin}\n{text}\n\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
