"""``python -m benchmarks [ROW ...]``: print the table of figures as Markdown, row by row."""

import argparse

from benchmarks.harness import FULL, SHORT, machine, pin_to_one_core
from benchmarks.rows import HEAD, ROWS


def main() -> None:
    """Measure the rows that are asked for, by default all."""
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("row", nargs="*", help=f"all if none is given: {', '.join(names)}")
    parser.add_argument("--short", action="store_true", help="only at 10^4 operations, no drift")
    options = parser.parse_args()
    for unknown in set(options.row).difference(names):
        parser.error(f"there is no row {unknown}; choose from {', '.join(names)}")
    pin_to_one_core()
    print(machine(), "\n")
    print(HEAD, flush=True)
    for row in ROWS:
        if not options.row or row.name in options.row:
            print(row.markdown(SHORT if options.short else FULL), flush=True)


if __name__ == "__main__":
    main()
