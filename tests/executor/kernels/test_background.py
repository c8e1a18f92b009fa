"""Kernels compiled in the background: NumPy computes until they are there."""

import logging
import subprocess
import sys
import threading

import numpy as np
import pytest

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.testing import assert_same

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.executor.kernels import background
from letir.executor.kernels.background import wait_for_kernels
from letir.kernels.llvm import machine_code

X = np.linspace(1, 2, 30_000)


def inverse(x):
    return (x * 2 + 1) / x


@pytest.fixture
def gate(monkeypatch):
    """An event without which no kernel is compiled."""
    event, ufuncs_of = threading.Event(), machine_code.ufuncs_of

    def wait_and_compile(kernels):
        assert event.wait(60)
        return ufuncs_of(kernels)

    monkeypatch.setattr(machine_code, "ufuncs_of", wait_and_compile)
    yield event
    event.set()
    wait_for_kernels()


def test_numpy_computes_until_the_kernels_are_there(gate):
    f = lt.jit(inverse, kernels="background")
    for _ in range(20):
        assert_same(inverse(X), f(X))
    (plan,) = f.debug_state().plans
    assert () == plan.kernels
    gate.set()
    wait_for_kernels()

    (plan,) = f.debug_state().plans
    assert ["mul", "add", "div"] == [bind.op.name for bind in plan.kernels[0].binds]
    for _ in range(20):
        assert_same(inverse(X), f(X))
    assert f.__letir_executor__.quick  # it runs, and often
    assert 1 == f.counters["compiles"]


def test_compiled_programs_get_their_kernels_later(gate):
    run = lt.compile(lt.trace(inverse, X), kernels="background")
    first, waits = run(X), run.is_waiting
    gate.set()
    wait_for_kernels()

    assert (True, False, 1) == (waits, run.is_waiting, len(run.kernels))
    for _ in range(10):
        assert_same(first, run(X))


def test_the_variable_chooses_the_background(monkeypatch, gate):
    monkeypatch.setenv("LETIR_KERNELS", "background")

    assert lt.compile(lt.trace(inverse, X)).is_waiting
    assert not lt.compile(lt.trace(inverse, X), kernels="off").is_waiting
    assert not lt.compile(lt.trace(inverse, X), optimize=False).is_waiting


def test_an_exception_is_logged_and_numpy_continues(monkeypatch, caplog):
    def fail(kernels):
        raise OSError("no memory for code")

    monkeypatch.setattr(machine_code, "ufuncs_of", fail)
    f = lt.jit(inverse, kernels="background")
    with caplog.at_level(logging.WARNING, "letir.plan"):
        f(X)
        wait_for_kernels()

    assert "no kernels, NumPy computes all calls: OSError('no memory for code')" in caplog.text
    assert_same(inverse(X), f(X))


def test_programs_that_are_gone_are_not_compiled(gate):
    made = []
    for _ in range(3):
        lt.compile(
            lt.trace(lambda x: inverse(x) + 1, X), kernels="background"
        ).on_swap = made.append
    run = lt.compile(lt.trace(inverse, X), kernels="background")
    gate.set()
    wait_for_kernels()

    assert ([], 1) == (made, len(run.kernels))
    assert background._worker.thread is None


def test_numpy_computes_until_a_thread_can_be_started(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    f, g = [lt.jit(lambda x, n=n: inverse(x) * n, kernels="background") for n in (3, 5)]
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert_same(inverse(X) * 3, f(X))
        wait_for_kernels()
    g(X)
    wait_for_kernels()

    assert [1, 1] == [len(h.debug_state().plans[0].kernels) for h in (f, g)]


def test_sixteen_threads_call_while_plans_are_swapped(monkeypatch):
    """1,000 calls in each thread; 20 functions get their kernels at any time meanwhile."""
    monkeypatch.setenv("LETIR_CACHE_DIR", "")  # so that kernels take their time
    x = X[:9_000]
    functions = [
        lt.jit(lambda x, n=n: (x * (n + 3) + 1) / (x + n), kernels="background") for n in range(20)
    ]
    expected = [(x * (n + 3) + 1) / (x + n) for n in range(20)]
    wrong, barrier = [], threading.Barrier(16)

    def work(number):
        barrier.wait()
        for k in range(1000):
            n = (k // 50 + number) % 20
            if not np.array_equal(expected[n], functions[n](x)):
                wrong.append((number, k))

    everyone = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(16)]
    for thread in everyone:
        thread.start()
    for thread in everyone:
        thread.join(200)
    wait_for_kernels()

    assert not any(thread.is_alive() for thread in everyone)
    assert [] == wrong
    assert {1} == {f.counters["compiles"] for f in functions}
    assert {1} == {len(f.debug_state().plans[0].kernels) for f in functions}


START = """
import os, sys
os.environ["LETIR_CACHE_DIR"] = ""
import numpy as np, letir as lt
x = np.linspace(1, 2, 30_000)
def make(n):
    f = lt.jit(lambda x: np.sin(x * n) / (n + np.exp(x)) * np.tanh(x), kernels="background")
    return f, f(x)
made = [make(n) for n in range(4)]
"""


def outcome(code: str) -> tuple[int, str]:
    """The exit status and the output of a program in a new process."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", START + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_interpreter_exits_while_kernels_are_compiled():
    assert (0, "") == outcome("")


@pytest.mark.skipif(not hasattr(sys, "getdlopenflags"), reason="fork is of POSIX")
def test_a_process_forks_while_kernels_are_compiled():
    code = """
from letir.executor.kernels.background import wait_for_kernels
child = os.fork()
for f, first in made:
    assert np.allclose(f(x), first, rtol=1e-14)
wait_for_kernels()
assert all(len(f.debug_state().plans[0].kernels) == 1 for f, _ in made)
if child:
    assert os.waitpid(child, 0)[1] == 0
"""

    assert (0, "") == outcome(code)
