"""Interrupt public calls of letir at random events, and check that the next call is as new.

    python -m tests.hazards.interrupts --count 20000 --seed 7

Half of the interrupts are raised at a random line that an action executes in letir, drawn from
all the times that lines are executed; the other half are signals after a random time, which arrive
where Python looks for them. After each, the action runs again: it must give what it gave before,
and leave the process as it was. The exit status is 1 if a call did not.
"""

import argparse
import ast
import faulthandler
import functools
import gc
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import letir as lt
from tests.hazards.public_calls import ACTIONS, W, X, changed, loss, state_of_process, text

ROOT = str(Path(lt.__file__).parent)
# functions whose work is to restore: an interrupt in them is healed by the next call
RESTORING = {
    *(
        "__exit__",
        "undo",
        "end",
        "end_owning",
        "end_stand_ins",
        "exchange",
        "_exchange_some",
        "watch_process",
    ),
    *("_move_to_oldest_generation", "close", "current", "put"),
}
MAX_SECONDS = 60  # of an action after an interrupt: it may wait for a lock that nobody holds


class Interrupt(KeyboardInterrupt):
    """Planted by a test."""


# ---- where an interrupt comes ----


@functools.cache
def blocks(file: str) -> dict[int, int]:
    """{line of a ``with`` statement: last line of its block} of a file, {} of generated code."""
    tree = ast.parse("" if "<" in Path(file).name else Path(os.path.normpath(file)).read_text())
    return {node.lineno: node.end_lineno for node in ast.walk(tree) if isinstance(node, ast.With)}


@functools.cache
def ends_of_blocks(file: str) -> set[int]:
    """The lines of ``finally`` blocks in a file, and of ``with``, to which blocks return.

    Also the lines with the word ``try`` inside of blocks, for which Python has no handler.
    """
    found = set()
    for node in ast.walk(ast.parse(Path(os.path.normpath(file)).read_text())):
        if isinstance(node, ast.With | ast.Try):
            found |= {inner.lineno for inner in ast.walk(node) if isinstance(inner, ast.Try)}
        if isinstance(node, ast.With):
            found.add(node.lineno)
        if isinstance(node, ast.Try) and node.finalbody:
            found |= set(range(node.finalbody[0].lineno, node.end_lineno + 1))
    return found


def restores(file: str, line: int, function: str) -> bool:
    """Whether a line of letir is one that restores; any line of generated code may be."""
    is_generated = "<" in Path(file).name
    return function in RESTORING or is_generated or line in ends_of_blocks(file)


def raised_by(action: Callable) -> BaseException | None:
    """What an action raises."""
    try:
        action()
    except BaseException as raised:
        return raised
    return None


def traced(action: Callable, trace: Callable) -> BaseException | None:
    """What an action raises while ``trace(frame, event)`` is called for its frames in letir."""

    def local(frame: FrameType, event: str, arg: Any) -> Callable:
        trace(frame, event)
        return local

    old = sys.gettrace()
    sys.settrace(lambda frame, *_: local if frame.f_code.co_filename.startswith(ROOT) else None)
    try:
        return raised_by(action)
    finally:
        sys.settrace(old)


class AtEvent:
    """Raises ``error`` at the event with this number; without one, counts the events.

    The end of a ``with`` block, an event at the line where it begins, is left out: Python has no
    handler there, and no signal arrives there.
    """

    def __init__(self, number: int | None = None, error: BaseException | None = None):
        self.number, self.error, self.seen, self.place = number, error, 0, ""
        self.lines: dict[int, int] = {}  # the line at which each frame is

    def __call__(self, frame: FrameType, event: str) -> None:
        last = 0 if event == "call" else self.lines.get(id(frame), 0)
        self.lines[id(frame)] = line = frame.f_lineno
        is_end = line < last <= blocks(frame.f_code.co_filename).get(line, 0)
        if event != "line" or is_end:
            return
        self.seen += 1
        if self.seen == self.number:
            code = frame.f_code
            self.place = (
                f"{code.co_filename.removeprefix(ROOT)}:{frame.f_lineno}, in {code.co_name}"
            )
            sys.settrace(None)
            raise self.error


# ---- actions beyond those of public_calls ----


def scaled(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.exp(x * 0.01 - w).sum() if x.sum() > 0 else x * w


@functools.cache
def program() -> lt.Lambda:
    return lt.trace(loss, X, W)


@functools.cache
def plan() -> Callable:
    return lt.compile(program())


@functools.cache
def jitted() -> Callable:
    return lt.jit(scaled)


@functools.cache
def folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory()  # Python removes it in the end, without interrupts


def save_and_load() -> str:
    path = f"{folder().name}/f"
    lt.save(program(), path)
    return lt.dumps(lt.load(path))


def without_gradients() -> tuple[bool, bool]:
    with lt.eager.no_grad():
        inside = lt.Variable(W, requires_grad=True) * 2
    return inside.requires_grad, (lt.Variable(W, requires_grad=True) * 2).requires_grad


def variable_written() -> np.ndarray:
    w = lt.Variable(W, requires_grad=True)
    y = w * 2
    y[1:3] = w[:2] * X[:2]
    y.sum().backward()
    return w.grad.array


MORE: dict[str, Callable[[], Any]] = {
    **ACTIONS,
    "compile": lambda: lt.compile(program())(X, W),
    "a new plan": lambda: lt.jit(scaled)(X, W),
    "a warm plan": lambda: (jitted()(X, W), jitted()(-X, W), plan()(X, W)),
    "jit of grad": lambda: lt.jit(lt.grad(scaled))(X, W),
    "save and load": save_and_load,
    "explain": lambda: len(str(lt.explain(jitted(), X, W))) > 0,
    "optimize": lambda: lt.dumps(lt.passes.fuse(lt.passes.peephole(program()))),
    "run_forward": lambda: lt.run_forward(program(), X, W),
    "to_source": lambda: lt.to_source(program()),
    "vmap": lambda: lt.vmap(scaled, in_axes=(None, 0))(X, np.stack([W, -W])),
    "vjp": lambda: lt.vjp(loss, X, W)[1](1.0),
    "hessian": lambda: lt.hessian(lambda x: (x**3).sum())(X[:3]),
    "no_grad": without_gradients,
    "a Variable that is written": variable_written,
    "check": lambda: lt.dumps(lt.check(lt.parse(text()))),
    "differentiate": lambda: str(lt.differentiate(program())),
}


# ---- trials ----


class Trials:
    """Interrupts of one seed; ``failures`` are their texts."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.expected, self.events, self.seconds = {}, {}, {}
        for name, action in MORE.items():
            for _ in range(6):  # caches are filled, plans that are often used are written anew
                self.expected[name] = action()
            counter, begin = AtEvent(), time.perf_counter()
            traced(action, counter)
            self.events[name] = max(counter.seen, 1)
            begin = time.perf_counter()
            action()
            self.seconds[name] = time.perf_counter() - begin
        self.before = state_of_process()

    def run(self) -> None:
        """One interrupt, and the call after it."""
        name, planted = self.draw.choice(list(MORE)), Interrupt()
        faulthandler.dump_traceback_later(MAX_SECONDS, exit=True)
        if self.draw.random() < 0.5:
            kind, trace = "lines", AtEvent(self.draw.randint(1, self.events[name]), planted)
            raised = traced(MORE[name], trace)
            place = trace.place
        else:
            kind = "signals"
            raised = signalled(MORE[name], self.draw.random() * self.seconds[name] * 1.2, planted)
            place = innermost(raised)
        self.counts[kind] += raised is not None
        where = f"{name}, interrupted at {place}"
        if raised is None:
            self.counts["ended before"] += 1
        elif type(raised) is not Interrupt:  # codecs raise a copy with a longer message
            self.failures.append(f"{where}: raised {short(raised)}")
        planted.__traceback__ = None  # as where an ``except`` block ends: it refers to modes
        self.counts["left for the next call to restore"] += bool(changed(self.before))
        self.call_again(name, where)

    def call_again(self, name: str, where: str) -> None:
        """The action once more, which must be as if there had been no interrupt."""
        try:
            np.testing.assert_equal(MORE[name](), self.expected[name])
        except BaseException as error:
            self.failures.append(f"{where}: the next call raised {short(error)}")
        if difference := changed(self.before):
            self.failures.append(f"{where}: the next call left {difference}")
            self.before = state_of_process()


def short(error: BaseException) -> str:
    """The class, the text and the last places of an error, in one line."""
    return f"{type(error).__name__}({str(error)[:100]!r}) at {innermost(error)}"


def signalled(action: Callable, seconds: float, error: BaseException) -> BaseException | None:
    """What an action raises if a signal comes after this time, whose handler raises ``error``."""
    is_open = True

    def interrupt(*_: object) -> None:
        if is_open:
            raise error

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        action()
        is_open = False
    except BaseException as raised:
        return raised
    finally:
        is_open = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    return None


def innermost(error: BaseException | None) -> str:
    """The last lines of letir and of all code in the traceback of an error."""
    frames = traceback.extract_tb(error.__traceback__) if error else []
    frames = [frame for frame in frames if frame.filename != __file__]
    of_letir = [frame for frame in frames if frame.filename.startswith(ROOT)]
    shown = [
        f"{frame.filename.removeprefix(ROOT)}:{frame.lineno}, in {frame.name}"
        for frame in [*of_letir[-2:], *frames[-1:]]
    ]
    return " <- ".join(dict.fromkeys(shown))


def main() -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    faulthandler.enable()
    trials, begin = Trials(options.seed), time.process_time()
    for number in range(options.count):
        trials.run()
        if number % 500 == 0:
            gc.collect()
            print(
                number, len(trials.failures), dict(trials.counts), *trials.failures[:3], flush=True
            )
    print(f"{options.count} interrupts of seed {options.seed}: {len(trials.failures)} failures")
    print(dict(trials.counts), f"{time.process_time() - begin:.1f} s")
    print("\n".join(trials.failures[:40]))
    return int(bool(trials.failures))


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
