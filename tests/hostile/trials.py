"""Trials: a mutated file is read, and what was read is passed to public functions of letir.

    python -m tests.hostile.trials --count 100000 --seed 7

A trial passes if each step gives a result or one of letir's errors. When a program runs, NumPy's
errors about values pass too, with the note of the let line, and a ``while`` loop may never end. A
file must be refused within a second of processor time and, on Linux, 256 MiB more than before. The
exit status is 1 if a trial failed; ``--only 5`` repeats the trial number 5. After an interrupt, the
trials so far are reported.
"""

import argparse
import contextlib
import io
import logging
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import letir as lt
from letir import passes
from tests.hostile.mutations import mutated_file, mutated_gradient, mutated_text

MAX_SECONDS = 10.0  # of a call on an accepted program, which is small
MAX_REFUSAL = 1.0
MAX_GROWTH = 256 << 20  # of the memory of the process in a refusal
MAX_MEMORY = 4 << 30  # in addition to the memory of the process at its start
MAX_ELEMENTS = 1e6  # of an argument for a run
OF_VALUES = (ValueError, ArithmeticError, IndexError, MemoryError)
NO_PROGRAMS = {"is_differentiable", "propagate_requires_grad", "register", "unregister"}
NO_PROGRAMS |= {"batch_matmuls"}  # takes programs of a special form only
KINDS = (*["text"] * 8, "file", "gradient")


class OutOfTime(BaseException):
    """The time of a step is up; not an Exception, which letir could catch."""


def arguments_for(f: lt.Lambda) -> tuple[tuple, dict]:
    """Arguments of the declared types, nested as the program says."""
    leaves: list[Any] = []
    for param in f.params:
        kind = param.type
        if kind is None:
            leaves.append(np.ones(3))
            continue
        shape = [n if type(n) is int else 2 for n in kind.shape]
        if np.prod(shape, dtype=float) > MAX_ELEMENTS:
            raise lt.ShapeError("too many elements for a trial")
        leaf = np.ones(shape, kind.dtype)
        leaves.append(leaf.item() if kind.weak and not shape else leaf)
    return (tuple(leaves), {}) if f.in_tree is None else f.in_tree.nest(leaves)


def on_arguments(call: Callable) -> Callable:
    """A function of a program that calls ``call(program, args, kwargs)``."""
    return lambda f: call(f, *arguments_for(f))


def survives_a_file(program) -> None:
    """Save and load."""
    with tempfile.TemporaryDirectory() as folder:
        lt.save(program, f"{folder}/f")
        again = lt.load(f"{folder}/f")
    assert type(program) is not lt.Lambda or again == program


def survives_text(program: lt.Lambda) -> None:
    """Print and parse."""
    assert lt.parse(lt.dumps(program)) == program


def passed(name: str) -> Callable:
    """The pass called ``name``, whose result must be well formed."""

    def call(program: lt.Lambda) -> None:
        found = getattr(passes, name)(program)
        if type(found) is lt.Lambda:
            lt.check(found)

    return call


OF_PROGRAMS: dict[str, Callable] = {
    **{name: passed(name) for name in passes.__all__ if name not in NO_PROGRAMS},
    **{f.__name__: f for f in (str, hash, lt.dumps, lt.grad, lt.value_and_grad, lt.jacobian)},
    **{f.__name__: f for f in (lt.jacfwd, lt.hessian, lt.vmap, lt.checkpoint, lt.explain)},
    **{f.__name__: f for f in (lt.to_source, lt.uses, lt.to_dag, lt.canonicalize, lt.compile)},
    **{f.__name__: f for f in (lt.lower_grad_of, survives_a_file, survives_text)},
    "listing": lambda f: f.listing(),
    "html": lambda f: f._repr_html_(),
    "differentiate": lambda f: str(lt.differentiate(f)),
    "diff": lambda f: str(lt.diff(f, f)),
    "retype": lambda f: lt.retype(f, *[param.type for param in f.params]),
    "slice": lambda f: lt.slice(f, [0]),
    "run_forward": on_arguments(lambda f, args, kwargs: lt.run_forward(f, *args, **kwargs)),
    "plan": on_arguments(lambda f, args, kwargs: lt.compile(f)(*args, **kwargs)),
    "jit": on_arguments(lambda f, args, kwargs: lt.jit(f)(*args, **kwargs)),
    "trace": on_arguments(lambda f, args, kwargs: lt.trace(f, *args, **kwargs)),
    "jvp": on_arguments(lambda f, args, kwargs: lt.jvp(f, args, args)),
    "vjp": on_arguments(lambda f, args, kwargs: lt.vjp(f, *args)),
}


def forward_and_backward(gradient: lt.Gradient) -> None:
    """Run both programs."""
    args, kwargs = arguments_for(gradient.f)
    _, residuals = gradient.forward(*args, **kwargs)
    real = [i for i in gradient.df_input_vjps if i < gradient.f_real_outputs]
    gradient.backward(residuals, *[None] * len(real))


OF_GRADIENTS: dict[str, Callable] = {
    **{f.__name__: f for f in (str, lt.vmap, lt.lower_grad_of, lt.explain_residuals)},
    "html": lambda g: g._repr_html_(),
    "df_text": lambda g: g.df_text(),
    "joined": lambda g: lt.check(g.joined()),
    "survives_a_file": survives_a_file,
    "forward_and_backward": forward_and_backward,
}


class Trials:
    """Trials of one seed; ``failures`` are their texts.

    ``refusal``: the most seconds of processor time for a file that is refused.
    """

    def __init__(self, seed: int, calls: int, refusal: float = MAX_REFUSAL):
        self.seed, self.calls, self.refusal = seed, calls, refusal
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.current = ""
        self.worst = {"seconds": 0.0, "bytes": 0.0}  # of a refusal
        self.place = Path(tempfile.mkdtemp()) / "hostile.letir"

    def run(self, number: int) -> None:
        """One trial."""
        draw = random.Random(f"{self.seed}/{number}")
        kind = draw.choice(KINDS)
        content: Any = _CONTENT[kind](draw)
        before = resident_from_now()
        found, spent = self.step(number, "read", lambda: self.read(content))
        self.counts["refused" if found is None else "accepted"] += 1
        if found is None:
            self.measure(number, spent, most_resident() - before)
            return
        table = OF_PROGRAMS if type(found) is lt.Lambda else OF_GRADIENTS
        may_never_end = type(found) is not lt.Lambda or "while" in lt.dumps(found)
        for name in draw.sample(sorted(table), self.calls):
            self.step(number, name, lambda call=table[name]: call(found), may_never_end)

    def read(self, content: str | bytes) -> Any:
        """The program in a text, checked, or what is in a file."""
        if type(content) is str:
            return lt.check(lt.parse(content))
        self.place.write_bytes(content)
        return lt.load(self.place)

    def step(
        self, number: int, name: str, call: Callable, may_never_end: bool = False
    ) -> tuple[Any, float]:
        """(the result, None for an error that is allowed; processor time)."""
        begin, self.current = time.process_time(), f"trial {number}: {name}"
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                return call(), time.process_time() - begin
        except lt.LetirError:
            self.counts["errors of letir"] += 1
        except OF_VALUES as error:
            if name == "read" or not getattr(error, "__notes__", ()):
                self.note(number, name, error)
            self.counts["errors of NumPy about values"] += 1
        except (Exception, OutOfTime) as error:
            if type(error) is not OutOfTime or not may_never_end:
                self.note(number, name, error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        return None, time.process_time() - begin

    def measure(self, number: int, seconds: float, growth: int) -> None:
        """Hold the cost of a refusal to its limits."""
        self.worst["seconds"] = max(self.worst["seconds"], seconds)
        self.worst["bytes"] = max(self.worst["bytes"], growth)
        if seconds > self.refusal:
            self.failures.append(f"trial {number}: refused after {seconds:.1f} s")
        if growth > MAX_GROWTH:
            self.failures.append(f"trial {number}: refused with {growth:.1e} bytes")

    def note(self, number: int, name: str, error: BaseException) -> None:
        """Remember a failure."""
        text = "".join(traceback.format_exception(error)[-3:])
        self.failures.append(f"trial {number}: {name} raised {type(error).__name__}\n{text}")


class Log(logging.Handler):
    """Warnings of letir as failures: a program without kernels, because making them has failed."""

    def __init__(self, trials: Trials):
        super().__init__(logging.WARNING)
        self.trials = trials

    def emit(self, record: logging.LogRecord) -> None:
        """Remember the warning as a failure of the last step."""
        self.trials.failures.append(f"{self.trials.current} logged: {record.getMessage()}")


_CONTENT: dict[str, Callable] = {
    "text": mutated_text,
    "file": mutated_file,
    "gradient": mutated_gradient,
}


def resident_from_now() -> int:
    """The memory of the process in bytes, from which its maximum begins anew; 0 outside Linux."""
    if sys.platform != "linux":
        return 0
    Path("/proc/self/clear_refs").write_text("5")
    return most_resident()


def most_resident() -> int:
    """The most memory of the process since ``resident_from_now``; 0 outside Linux."""
    if sys.platform != "linux":
        return 0
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def _raise_out_of_time(*_) -> None:
    raise OutOfTime


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MAX_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int, default=3, help="functions for an accepted file")
    parser.add_argument("--refusal", type=float, default=MAX_REFUSAL, help="most seconds of one")
    parser.add_argument("--only", type=int, help="the number of one trial")
    options = parser.parse_args()
    os.environ["LETIR_TRACEBACK"] = "full"
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    signal.signal(signal.SIGPROF, _raise_out_of_time)
    for call in (
        lt.compile,
        lt.grad,
        lt.to_source,
    ):  # load modules before the trials
        call(lt.parse("lambda %0: float64[] { %1 = exp(%0); return %1 }"))
    if sys.platform == "linux":
        _limit_memory()
    trials, begin = Trials(options.seed, options.calls, options.refusal), time.process_time()
    logging.getLogger("letir").addHandler(Log(trials))
    numbers, done = range(options.count) if options.only is None else [options.only], 0
    with contextlib.suppress(KeyboardInterrupt):
        for number in numbers:
            trials.run(number)
            done += 1
    print(f"{done} mutated files of seed {options.seed}: {len(trials.failures)} failures")
    print(dict(trials.counts), f"{time.process_time() - begin:.1f} s")
    print("the worst refusal:", {name: f"{most:.3g}" for name, most in trials.worst.items()})
    print("\n".join(trials.failures[:40]))
    return int(bool(trials.failures))


if __name__ == "__main__":
    sys.exit(main())
