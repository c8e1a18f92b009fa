"""Threads that draw random numbers while another thread records [B2]."""

import random
import subprocess
import sys
import threading

import numpy as np
import pytest

import letir as lt
from letir.errors import TraceError


@pytest.fixture
def drawing_thread():
    """A thread that draws from the global generators; threads change often."""
    stopped, interval = threading.Event(), sys.getswitchinterval()

    def draw():
        while not stopped.is_set():
            np.random.random()
            np.random.random(10_000)  # other threads run meanwhile
            random.random()
            np.random.default_rng().normal()

    thread = threading.Thread(target=draw)
    sys.setswitchinterval(1e-5)
    thread.start()
    yield
    stopped.set()
    thread.join()
    sys.setswitchinterval(interval)


def test_draws_of_another_thread_are_not_the_functions(drawing_thread):
    def seeded(x):
        return x + np.random.default_rng(3).normal(size=3)

    for n in range(30):
        np.testing.assert_array_equal(lt.trace(seeded, np.zeros(3))(np.ones(3)), seeded(np.ones(3)))
        np.testing.assert_array_equal(lt.jit(lambda x, n=n: x * n)(np.ones(3)), np.full(3, n))
        lt.jit(lambda x, rng: x + rng.normal(size=3))(np.ones(3), np.random.default_rng(n))


def test_draws_of_the_function_are_found_next_to_those_of_another_thread(drawing_thread):
    draw = np.random.mtrand._rand.random  # a method that was bound before the recording

    for _ in range(10):
        with pytest.raises(TraceError, match=r"drawn from numpy\.random"):
            lt.trace(lambda x: x + draw(), 1.0)


def test_a_trace_waits_for_a_thread_that_imports_the_generators():
    code = """
import sys, threading
import numpy as np, letir as lt
started, traced = threading.Event(), threading.Event()
class Pause:
    def find_spec(name, path, target=None):
        if name == "numpy.random.mtrand":
            started.set()
            traced.wait(0.2)
lt.trace(lambda x: np.sin(x), 1.0)  # loads what a trace needs
sys.meta_path.insert(0, Pause)
thread = threading.Thread(target=lambda: np.random)
thread.start()
started.wait()
print(lt.trace(lambda x: np.sin(x), 1.0)(2.0) == np.sin(2.0))
traced.set()
thread.join()
"""
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, check=False, capture_output=True, text=True)

    assert found.stdout == "True\n", found.stderr


def test_a_trace_leaves_out_a_module_that_another_thread_imports():
    code = """
import importlib.machinery, sys, types
import numpy as np, letir as lt
sys.modules["json"] = module = types.ModuleType("json")  # it has no JSONEncoder yet
module.__spec__ = importlib.machinery.ModuleSpec("json", None)
module.__spec__._initializing = True
print(lt.trace(lambda x: np.sin(x), 1.0)(2.0) == np.sin(2.0))
"""
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, check=False, capture_output=True, text=True)

    assert found.stdout == "True\n", found.stderr
