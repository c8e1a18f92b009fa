"""Warm calls of ``jit`` compared with NumPy, on the ordinary programs in tests/programs.

``python -m benchmarks.numpy_programs [PART OF A NAME ...]`` prints every program's ratio.
"""

import contextlib
import importlib
import io
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from attrs import frozen

from benchmarks.harness import ROOT, DemoSettings, pin_to_one_core
from letir import jit
from tests.programs.table import PROGRAMS, Program

SECONDS = 2e-3  # of one turn of one side
_WARMING = 32  # calls before the first turn
_NOT_PROGRAMS = ("table", "test_programs", "test_generated", "generated")


@frozen
class Ratio:
    """The time of a warm call of a jitted program divided by NumPy's, and both in seconds."""

    name: str
    ratio: float
    plain: float
    jitted: float
    binds: int

    def __str__(self):
        times = f"{self.jitted * 1e6:8.1f} of {self.plain * 1e6:8.1f} µs, {self.binds:5} binds"
        return f"{self.ratio:6.2f}  {times}  {self.name}"


def compared_with_numpy(effort: DemoSettings) -> str:
    """The median of the ratios, the share of the programs slower than NumPy, and the worst."""
    found = ratios(rounds=effort.sizes[0][1])
    worst = ", ".join(f"{r.ratio:.1f} {r.name}" for r in found[-3:][::-1])
    slower = sum(r.ratio > 1.05 for r in found)
    middle = median([r.ratio for r in found])
    return f"{middle:.2f} x NumPy, {slower} of {len(found)} slower by 5 %; {worst}"


def ratios(rounds: int, names: tuple[str, ...] = ()) -> list[Ratio]:
    """The ratio of each program whose name contains one of ``names``, in ascending order."""
    chosen = [p for p in programs() if not names or any(name in p.name for name in names)]
    with contextlib.redirect_stdout(io.StringIO()):  # some programs print
        found = [measured(p, rounds) for p in chosen]
    return sorted(found, key=lambda r: r.ratio)


def programs() -> list[Program]:
    """The programs of tests/programs that can be recorded."""
    folder = ROOT / "tests" / "programs"
    for path in sorted(folder.rglob("*.py")):
        if path.stem not in _NOT_PROGRAMS:
            module = ".".join(path.relative_to(folder).with_suffix("").parts)
            importlib.import_module(f"tests.programs.{module}")
    return [p for p in PROGRAMS if not p.refused]


def measured(program: Program, rounds: int) -> Ratio:
    """The median over the rounds of jit's time over NumPy's in the same round."""
    fast, args = jit(program.function), program.arguments(np.random.default_rng(0))
    sides = program.function, fast
    for _ in range(_WARMING):
        for side in sides:
            side(*args)
    repeats = [max(1, int(SECONDS / _seconds(side, args, 3))) for side in sides]
    turns = [
        [_seconds(side, args, n) for side, n in zip(sides, repeats, strict=True)]
        for _ in range(rounds)
    ]
    plain, jitted = (median(side) for side in zip(*turns, strict=True))
    plans = fast.debug_state().plans
    binds = max([len(plan.optimized) for plan in plans if hasattr(plan, "optimized")], default=0)
    return Ratio(program.name, median([b / a for a, b in turns]), plain, jitted, binds)


def _seconds(call: Callable, args: tuple, repeats: int) -> float:
    """The CPU time of a call, the mean over ``repeats`` calls."""
    start = time.process_time()
    for _ in range(repeats):
        call(*args)
    return (time.process_time() - start) / repeats


def main() -> None:
    """Print the ratio of every program, and their median."""
    pin_to_one_core()
    found = ratios(15, tuple(sys.argv[1:]))
    print(*found, sep="\n")
    slower = sum(r.ratio > 1.05 for r in found)
    print(f"median {median([r.ratio for r in found]):.2f}, {slower} of {len(found)} slower by 5 %")


if __name__ == "__main__":
    main()
