"""Load all records before tests are made of them, and let no test fail by the clock."""

import functools
import gc
import getpass
import inspect
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import ModuleType

# before NumPy is imported: each worker has a core, which threads that wait would keep busy
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

import letir as lt
import letir.ops
from letir.kernels.llvm import object_cache
from letir.tracing import stand_ins

os.environ["LETIR_COSTS"] = ""  # kernels as on any computer of this family
os.environ["LETIR_PROGRESS"] = "0"  # also in processes on terminals
os.environ.setdefault("LETIR_CHECK", "1")  # every pass is followed by ``check``
# compiled kernels, not among the user's
_KERNELS = Path(tempfile.gettempdir()) / f"letir-tests-{getpass.getuser()}"
os.environ.setdefault("LETIR_CACHE_DIR", str(_KERNELS))
object_cache._MAX_FILES = 1 << 14  # the tests have thousands, also those of the last commits

_PACKAGE = Path(lt.__file__).parent

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests import each other and benchmarks

# A busy machine is not a counterexample, so no test has a deadline. By default every run draws
# the same examples; `make fuzz` draws others, from the seed that it prints.
settings.register_profile("letir", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("fuzz", deadline=None, derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("LETIR_HYPOTHESIS_PROFILE", "letir"))
if settings().derandomize:
    # Hypothesis would also draw constants of letir's modules that are loaded: examples would depend
    # on the tests before, and reading all modules takes seconds
    with suppress(ImportError):  # of another version
        from hypothesis.internal.conjecture import providers

        providers._get_local_constants = lambda: providers._local_constants


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Without doctests: examples are in letir's files, and some files here need other packages."""
    return [found for found in (yield) if type(found) is pytest.Module]


class WithExamples:
    """A plugin that collects examples only from files that have some, one in five."""

    def pytest_ignore_collect(self, collection_path):
        path = collection_path
        if path.suffix == ".py" and path.is_relative_to(_PACKAGE) and ">>>" not in path.read_text():
            return True
        return None  # decided by pytest


def pytest_configure(config):
    """The hooks of this file apply to its folder only."""
    config.pluginmanager.register(WithExamples())


def pytest_collection_modifyitems(items):
    """The longest test comes first: at the end, one worker would wait for the other."""
    items.sort(key=lambda item: "million_binds" not in item.name)


def pytest_runtest_setup(item):
    """Kernels only where they are tested: compiling them would take half of the suite's time."""
    parts = item.path.parts
    is_tested = "kernel" in item.path.name or not {"kernels", "docs"}.isdisjoint(parts)
    os.environ["LETIR_KERNELS"] = "on" if is_tested else "off"
    show_module(getattr(item, "module", None))


_hidden: dict[str, ModuleType] = {}  # modules of tests and benchmarks, by name
_OWN = re.compile(r"(tests|benchmarks)\.")
_IMPORTS = re.compile(r"from ((?:tests|benchmarks)[\w.]*) import ([^(\n]+|\([^)]*\))")

_BY_PLACE = re.compile(r'import_module\(f"(tests\.[\w.]*)')  # all modules of a folder


def pytest_collection_finish(session):
    """Hide the modules of tests and benchmarks: each test finds those that its file imports.

    A recording exchanges functions in all modules of users: with five hundred modules, this
    took longer than what most tests record.
    """
    for name, module in list(sys.modules.items()):
        if _OWN.match(name) and getattr(module, "__file__", None) not in (None, __file__):
            _hidden[name] = sys.modules.pop(name)


@functools.cache
def imported_by(name: str) -> frozenset[str]:
    """The hidden modules that a hidden module imports, also in functions, and the module itself."""
    found, todo = {name}, [name]
    while todo:
        source = Path(_hidden[todo.pop()].__file__).read_text()
        possible = {other for start in _BY_PLACE.findall(source) for other in _starting_with(start)}
        for module, names in _IMPORTS.findall(source):
            possible |= {module, *(f"{module}.{word}" for word in re.findall(r"\w+", names))}
        new = (possible & _hidden.keys()) - found
        found |= new
        todo += new
    return frozenset(found)


def _starting_with(start: str) -> list[str]:
    return [name for name in _hidden if name.startswith(start)]


def show_module(module: ModuleType | None) -> None:
    """Let only this module of the hidden ones, and what it imports, be in ``sys.modules``."""
    name = getattr(module, "__name__", None)
    if name in _hidden and name not in sys.modules:
        for other in _hidden.keys() & sys.modules.keys():
            del sys.modules[other]
        sys.modules.update({other: _hidden[other] for other in imported_by(name)})
        stand_ins.SEARCHED.clear()  # the number of modules may be as before


@pytest.fixture(autouse=True)
def error_state_is_kept():
    """No test leaves NumPy's error state changed: warnings of later tests would be missed."""
    before = np.geterr(), np.geterrcall()
    yield
    found = np.geterr(), np.geterrcall()
    np.seterr(**before[0])
    np.seterrcall(before[1])
    assert found == before


def pytest_sessionstart(session):
    """Let interrupts raise, also where a shell has started the tests in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Without garbage collections, which would take a third of the time, and free nothing.

    The collector stays enabled: Dask, where it is imported while it is not, disables it later.
    """
    gc.set_threshold(0)
    try:
        return (yield)
    finally:
        freeze_objects()  # the tests themselves, millions of objects
        gc.set_threshold(10_000, 20, 20)  # few objects of a test are in cycles


def pytest_runtest_teardown(item, nextitem):
    """Freeze what the tests of a file leave in caches, too."""
    if nextitem is not None and nextitem.path != item.path:
        freeze_objects()


def freeze_objects():
    """Free garbage and let the garbage collector skip all other objects from now on.

    A full collection would take a second in the middle of the suite.
    """
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Print how many samples the laws of tests/each_sample.py checked and skipped."""
    totals = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if report.when == "call" and name in ("samples", "skipped samples"):
                    totals[name] += value
    if totals:
        text = ", ".join(f"{count} {name}" for name, count in totals.items())
        terminalreporter.write_line(f"laws over samples: {text}")


def line_at_fault(program) -> int:
    """The line of ``program`` marked "# here", or else its first line."""
    lines, start = inspect.getsourcelines(program)
    marked = [start + i for i, line in enumerate(lines) if line.rstrip().endswith("# here")]
    return marked[0] if marked else program.__code__.co_firstlineno


def message(error: BaseException, program) -> str:
    """The text of an error with its notes."""
    path = program.__code__.co_filename
    name = os.path.basename(path)
    text = "\n".join([str(error), *getattr(error, "__notes__", ())])
    text = re.sub(rf"\n  at {__file__}:\d+", "", text)  # the call of letir is here
    text = text.replace(path, name)
    return text.replace(f"{name}:{line_at_fault(program)}", f"{name}:NN")


@pytest.fixture
def told():
    """(type of the error, message) for tracing a program that fails on these arguments."""

    def ask(program, *args, **options):
        try:
            lt.trace(program, *args, **options)
        except Exception as error:
            return type(error), message(error, program)
        raise AssertionError("it can be traced")

    return ask


@pytest.fixture
def told_by():
    """(type of the error, message) for an action that fails; ``program`` contains the fault."""

    def ask(action, program=None):
        try:
            action()
        except Exception as error:
            return type(error), message(error, program or action)
        raise AssertionError("it does not fail")

    return ask
