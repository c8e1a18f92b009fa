"""Run the laws over generated programs with fresh seeds until the time is up.

    python tests/fuzz.py [--minutes 30] [--files 100000] [--interrupts 20000] [--seed 7]

First come mutated files and texts (tests/hostile/trials.py) and interrupted calls
(tests/hazards/interrupts.py), then rounds: each runs every
Hypothesis test once with a seed that is printed. ``--seed`` repeats the round of that seed. The
exit status is 1 if anything failed; the seeds are listed at the end. Does not import letir: each
round is a run of pytest.
"""

import argparse
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parent
GENERATED = "hypothesis and not slow"  # Hypothesis marks its tests


def law_files() -> list[str]:
    """The test files that use Hypothesis."""
    paths = sorted(TESTS.rglob("test_*.py"))
    return [str(path) for path in paths if "hypothesis" in path.read_text(encoding="utf-8")]


def run_round(seed: int, seconds: float | None) -> int | None:
    """The exit status of pytest on all laws with this seed, or None after ``seconds``."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", GENERATED]
    command += [f"--hypothesis-seed={seed}", *law_files()]
    environment = {**os.environ, "LETIR_HYPOTHESIS_PROFILE": "fuzz"}
    print(f"fuzz: seed {seed}", flush=True)
    process = subprocess.Popen(command, cwd=TESTS.parent, env=environment)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
        return None


def run_trials(module: str, count: int) -> int:
    """The exit status of a module with this many trials, of a new seed."""
    seed = secrets.randbelow(2**32)
    command = [sys.executable, "-m", module, f"--count={count}", f"--seed={seed}"]
    return subprocess.run(command, cwd=TESTS.parent, check=False).returncode


def fuzz(minutes: float) -> list[int]:
    """The seeds of the rounds that failed within this time."""
    end, failed, complete = time.monotonic() + 60 * minutes, [], 0
    while (left := end - time.monotonic()) > 0:
        seed = secrets.randbelow(2**32)
        status = run_round(seed, left)
        complete += status is not None
        if status:
            failed.append(seed)
    print(f"fuzz: {complete} complete rounds, {len(failed)} of them failed")
    for seed in failed:
        print(f"  again: python tests/fuzz.py --seed {seed}")
    return failed


def main() -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--files", type=int, default=100_000, help="mutated files and texts")
    parser.add_argument("--seed", type=int, help="one round with this seed")
    parser.add_argument("--interrupts", type=int, default=20_000, help="interrupted calls")
    options = parser.parse_args()
    if options.seed is not None:
        return run_round(options.seed, None)
    counts = {"tests.hostile.trials": options.files, "tests.hazards.interrupts": options.interrupts}
    failed = [module for module, count in counts.items() if count and run_trials(module, count)]
    return int(bool(fuzz(options.minutes)) or bool(failed))


if __name__ == "__main__":
    sys.exit(main())
