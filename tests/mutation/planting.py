"""One session of pytest that collects tests once, and runs some of them for each planted fault.

A fault is planted in a child process, in the code of functions that are loaded already: modules
are not imported again, and tests are not collected again. Code that only runs while a module is
imported is not reached; ``tests/mutants.py`` looks at survivors again in processes of their own.
"""

import contextlib
import gc
import importlib
import os
import resource
import signal
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import letir

NOT_PLANTED = 3  # the exit status of a child
MAX_SECONDS = 60  # of processor time of a test: a fault may be an endless loop, which is caught
MAX_MEMORY = 6 << 30  # of a child: a fault may allocate without end, which is caught


def code_objects(source: str, path: str) -> dict[tuple[str, int], types.CodeType]:
    """{(qualified name, how many before have it): code} of the functions in a source."""
    found: dict[tuple[str, int], types.CodeType] = {}
    counts: Counter[str] = Counter()
    waiting = [compile(source, path, "exec")]
    while waiting:
        code = waiting.pop(0)
        found[code.co_qualname, counts[code.co_qualname]] = code
        counts[code.co_qualname] += 1
        waiting += [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return found


def plant(path: Path, changed: str) -> None:
    """Give the loaded functions of a file the code of a changed source.

    Raises LookupError if the two sources do not have the same functions.
    """
    place = path.relative_to(Path(letir.__file__).parents[1]).with_suffix("")
    importlib.import_module(".".join(place.parts).removesuffix(".__init__"))
    old = code_objects(path.read_text(encoding="utf-8"), str(path))
    new = code_objects(changed, str(path))
    if old.keys() != new.keys():
        raise LookupError("the fault removes a function")
    by_place = {(code.co_qualname, code.co_firstlineno): new[key] for key, code in old.items()}
    for function in gc.get_objects():
        code = getattr(function, "__code__", None) if type(function) is types.FunctionType else None
        if code is not None and os.path.normpath(code.co_filename) == str(path):
            new_code = by_place[code.co_qualname, code.co_firstlineno]
            function.__code__ = new_code.replace(co_filename=code.co_filename)


class Planter:
    """A plugin of pytest in place of its loop over tests.

    ``faults``: (path, changed source, choose) triples, where ``choose(items)`` gives the tests of
    a fault, in order. ``report(number, caught)`` is called for each.
    """

    def __init__(self, faults: list[tuple[Path, str, Callable]], report: Callable, jobs: int):
        self.faults, self.report, self.jobs = faults, report, jobs

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests of each fault in a child."""
        running: dict[int, int] = {}
        gc.freeze()  # children share the memory of the tests
        for number, (path, changed, choose) in enumerate(self.faults):
            items = choose(session.items)
            if len(running) == self.jobs:
                self.wait(running)
            pid = os.fork()
            if pid == 0:
                status = NOT_PLANTED
                with contextlib.suppress(BaseException):
                    status = in_child(path, changed, items)
                os._exit(status)
            running[pid] = number
        while running:
            self.wait(running)
        return True

    def wait(self, running: dict[int, int]) -> None:
        """Wait for a child, and report its status: 0 means that all tests have passed."""
        pid, status = os.wait()
        self.report(running.pop(pid), status)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first failure ends a child."""
        if report.failed:
            os._exit(1)


def in_child(path: Path, changed: str, items: list) -> int:
    """The exit status after the tests of a fault, all of which have passed."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    gc.unfreeze()
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    plant(path, changed)
    for item, following in zip(items, [*items[1:], None], strict=True):
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return 0


def run(faults: list, files: list[str], report: Callable, jobs: int) -> int:
    """Collect the tests of these files, and run the tests of each fault."""
    options = ["-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:terminal", *files]
    return pytest.main(options, plugins=[Planter(faults, report, jobs)])
