"""The first calls of the programs of ``kernel_workloads``, each in a new process.

``python -m benchmarks.first_calls [PART OF A NAME ...]`` prints the CPU time from the import of the
package, after that of NumPy, to the first result, in seconds, for the value / for value and
gradient; without the time in which the arguments are made. letir starts without compiled kernels
on disk.
"""

import argparse
from functools import cache

from benchmarks.harness import Skipped
from benchmarks.kernel_programs import print_table
from benchmarks.kernel_workloads import Workload
from benchmarks.processes import seconds

SIDES = ("letir", "without kernels", "JAX")
_BEFORE = """
import os, tempfile
folder = tempfile.TemporaryDirectory()
os.environ["LETIR_CACHE_DIR"] = folder.name
from benchmarks.kernel_programs import SIDES
from benchmarks.kernel_workloads import WORKLOADS
from attrs import evolve
workload = next(w for w in WORKLOADS if w.name == {name!r})
arguments = workload.make()
workload = evolve(workload, make=lambda: arguments)
"""


@cache
def _import_time(repeats: int) -> float:
    """The seconds of the part of letir's import that the measured processes do before."""
    return seconds("import letir, attrs", repeats=repeats)


def first_call(name: str, side: str, place: int, repeats: int = 1) -> str:
    """The seconds of a side's first call: of the value for ``place`` 0, else with the gradient."""
    try:
        code = f"SIDES[{side!r}](workload)[{place}]()"
        time = seconds(code, _BEFORE.format(name=name), repeats)
        return f"{time if side == 'JAX' else time + _import_time(repeats):.2f}"
    except Skipped:
        return "-"


def main() -> None:
    """Print the table of the requested programs, by default all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help="a part of a program's name")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=list(SIDES))
    options = parser.parse_args()

    def cells(workload: Workload) -> list[str]:
        places = (0,) if workload.targets[1] is None else (0, 1)
        return [
            " / ".join([first_call(workload.name, side, n, options.repeats) for n in places])
            for side in options.sides
        ]

    print_table(options.name, options.sides, cells)


if __name__ == "__main__":
    main()
