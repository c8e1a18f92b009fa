"""Python code of packages with C extensions: calls that get traced values are recorded."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, check_grads

_OPTIONS = """
import functools

def validated(f):
    @functools.wraps(f)
    def call(*args):
        return f(*args)
    return call
"""
_CODE = """
import numpy as np
from numpy import asarray, concatenate, full
from PACKAGE import fast
from PACKAGE.options import validated

def rows(x):
    x = np.asarray(x, dtype=float)
    return np.einsum("ij,ij->i", x, x)

def joined(x):
    return concatenate([asarray(x), [1.0, 2.0]])

@validated
def mean(x):
    return float(np.mean(x))

class Scaler:
    @validated
    def scale(self, x):
        return x / float(np.std(x))

def table(x):
    buffer = np.zeros(3)
    fast.fill(buffer)
    return x.sum() * buffer * full(3, 2.0)
"""
X = np.array([[1.0, -2.0], [0.5, 3.0]])


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package among the installed ones, with a function ``fast.fill`` that writes into memory."""
    name = tmp_path.name  # of its own for each test: letir remembers modules by name
    folder = tmp_path / "site-packages" / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "options.py").write_text(_OPTIONS)
    (folder / "code.py").write_text(_CODE.replace("PACKAGE", name))
    fast = ModuleType(f"{name}.fast")
    fast.__file__ = str(folder / "fast.so")

    def fill(memory):
        memoryview(memory).cast("B")[:] = np.arange(3.0).tobytes()

    fast.fill = fill
    monkeypatch.syspath_prepend(str(folder.parent))
    sys.modules[f"{name}.fast"] = fast
    parent = importlib.import_module(name)
    parent.fast = fast
    # the modules stay: letir searches for new ones when their number changes
    return importlib.import_module(f"{name}.code")


@pytest.mark.parametrize("name", ["rows", "mean"])
def test_calls_of_numpy_and_float_in_a_package_with_extensions_are_recorded(package, name):
    check(getattr(package, name), X)


def test_names_that_it_imported_from_numpy_are_recorded(package):
    check(package.joined, X[0])


def test_decorated_methods_of_a_package_with_extensions_are_recorded(package):
    check(lambda x: package.Scaler().scale(x), X)


def test_memory_that_it_makes_for_an_extension_stays_ordinary(package):
    check(package.table, X)


def test_after_a_recording_the_names_of_the_package_are_numpys(package):
    lt.trace(package.joined, X[0])

    assert package.asarray is np.asarray
    assert package.concatenate is np.concatenate


def check(program, x):
    recorded = lt.trace(program, x)

    for other in (x, 2 * x + 1):
        assert_close(program(other), recorded(other))
        assert_close(program(other), lt.jit(program)(other))
    check_grads(program, (x,))


_TESTS = """
import numpy as np
from numpy import zeros

def padded(x):
    y = zeros(3)
    y[0] = float(x[0])
    return y + np.array([x[1], 1.0, 2.0])

def fail(x):
    raise ValueError("its own")
"""


@pytest.fixture
def tests_of_numpy(monkeypatch):
    """A module as NumPy's own tests are, which call NumPy's functions as a user does."""
    module = ModuleType("numpy.lib.tests.test_letirs_own")
    file = str(Path(np.__file__).parent / "lib" / "tests" / "test_letirs_own.py")
    module.__file__ = file
    exec(compile(_TESTS, file, "exec"), vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_the_tests_of_a_library_are_recorded_as_code_of_users(tests_of_numpy):
    x = np.array([1.5, -2.0])

    assert_close(tests_of_numpy.padded(x), lt.trace(tests_of_numpy.padded, x)(x))
    check_grads(tests_of_numpy.padded, (x,))
    with pytest.raises(ValueError, match=r"^its own$"):
        lt.trace(tests_of_numpy.fail, x)
