"""LLVM in several threads: side by side, given up if nobody waits, safe to fork and interrupt."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import letir as lt

pytest.importorskip("llvmlite")
from letir.kernels.llvm import compile_threads, machine_code
from letir.kernels.llvm.compile_threads import begin_compilation
from letir.kernels.llvm.machine_code import MachineCode, begin_ufunc, ufunc_of, ufuncs_of
from tests.kernels.llvm.test_machine_code import scaled_and_shifted


@pytest.fixture(autouse=True)
def _three_threads(monkeypatch):
    monkeypatch.setenv("LETIR_CACHE_DIR", "")
    lt.set_num_threads(3)
    yield
    lt.set_num_threads(None)


@pytest.fixture
def compiled(monkeypatch):
    """The names of the kernels that are compiled from now on."""
    found, known = [], MachineCode.object_code

    def noted(self):
        found.append(self.kernel.name)
        return known(self)

    monkeypatch.setattr(MachineCode, "object_code", noted)
    return found


def test_compilations_run_side_by_side_in_at_most_so_many_threads():
    barrier, running = threading.Barrier(3), []

    def task(n):
        running.append(len(compile_threads._threads.threads))
        if n < 3:
            barrier.wait(60)
        return n

    begun = [begin_compilation(lambda n=n: task(n)) for n in range(9)]

    assert [*range(9)] == [one.result() for one in begun]
    assert 3 == max(running)


def test_kernels_that_compile_side_by_side_have_the_same_code():
    codes = [MachineCode(scaled_and_shifted(n + 0.5)) for n in range(12)]
    side_by_side = [begin_compilation(code.object_code) for code in codes]
    alone = [begin_compilation(code.object_code).result() for code in codes]

    assert alone == [one.result() for one in side_by_side]
    assert 12 == len(set(alone))


def test_llvm_runs_without_the_lock_of_llvmlite():
    import llvmlite.binding as binding

    known = binding.ffi.lib.LLVMPY_RunNewModulePassManager
    assert hasattr(known, "_lock")
    assert not hasattr(machine_code._without_lock(known), "_lock")


def test_ufuncs_of_equal_kernels_are_compiled_once(compiled):
    pairs = [(scaled_and_shifted(100.0 + n % 2), None) for n in range(6)]
    ufuncs = ufuncs_of(pairs)

    assert 2 == len(set(map(id, ufuncs)))
    assert 2 == len(compiled)
    assert [106.0, 107.0] == [ufunc(2.0, 3.0) for ufunc in ufuncs[:2]]


def test_a_compilation_for_which_nobody_waits_is_given_up(compiled):
    lt.set_num_threads(1)
    going, go_on = threading.Event(), threading.Event()
    first = begin_compilation(lambda: (going.set(), go_on.wait(60)))
    assert going.wait(60)
    for n in range(5):
        begin_ufunc(scaled_and_shifted(200.0 + n))  # dropped
    last = begin_ufunc(scaled_and_shifted(300.0))
    go_on.set()

    assert 306.0 == last()(2.0, 3.0)
    assert 1 == len(compiled)
    assert first.result()


def test_an_error_is_raised_where_the_kernel_is_wanted(monkeypatch):
    def refuse(*args):
        raise ValueError("not today")

    with monkeypatch.context() as patched:
        patched.setattr(machine_code, "llvm_text", refuse)
        with pytest.raises(ValueError, match="not today") as caught:
            ufunc_of(scaled_and_shifted(400.0))
    assert ["letir: while scaled_and_shifted was compiled"] == caught.value.__notes__
    assert 406.0 == ufunc_of(scaled_and_shifted(400.0))(2.0, 3.0)


def test_threads_end_and_leave_the_stack_size():
    before = threading.stack_size()
    everyone = [
        threading.Thread(target=ufunc_of, args=(scaled_and_shifted(500.0 + n),)) for n in range(8)
    ]
    for thread in everyone:
        thread.start()
    for thread in everyone:
        thread.join()
    for thread in tuple(compile_threads._threads.threads):
        thread.join(60)

    assert before == threading.stack_size()
    assert not any(one.name == "letir LLVM" for one in threading.enumerate())


def test_an_interrupt_while_a_kernel_compiles_leaves_the_function_usable(monkeypatch):
    known, sent = MachineCode.object_code, []

    def interrupting(self):
        if not sent:
            sent.append(self)
            os.kill(os.getpid(), signal.SIGINT)
        return known(self)

    monkeypatch.setattr(MachineCode, "object_code", interrupting)
    monkeypatch.setenv("LETIR_KERNELS", "on")
    f, x = lt.jit(lambda x: (x * 600 + 1) / x), np.linspace(1, 2, 30_000)
    with pytest.raises(KeyboardInterrupt):
        f(x)

    assert np.array_equal((x * 600 + 1) / x, f(x))
    assert 1 == len(f.debug_state().plans[0].kernels)


FORKS = """
import os, signal
import numpy as np, letir as lt
from letir.kernels.elementwise_groups import elementwise_kernel
from letir.kernels.llvm.machine_code import begin_ufunc
x = np.linspace(1, 2, 30_000)
def function(n):
    return lambda x: np.sin(x * n) / (n + np.exp(x)) * np.tanh(x)
def expect(n):
    f = lt.jit(function(n))
    assert np.allclose(f(x), function(n)(x), rtol=1e-13)
    assert len(f.debug_state().plans[0].kernels) == 1
kernels = [elementwise_kernel(lt.trace(function(n), x)) for n in range(5)]
begun = [begin_ufunc(kernel) for kernel in kernels]
children = []
for n in range(3):
    child = os.fork()
    if not child:
        signal.alarm(100)  # not a process that stays
        expect(100 + n)
        ufunc = begin_ufunc(kernels[4])()  # the parent may not have begun to compile it
        assert np.allclose(ufunc(x), function(4)(x), rtol=1e-13)
        os._exit(0)
    children.append(child)
for n, finished in enumerate(begun):
    assert np.allclose(finished()(x), function(n)(x), rtol=1e-13)
assert [0] * 3 == [os.waitpid(child, 0)[1] for child in children]
expect(200)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is of POSIX")
def test_a_process_forks_while_kernels_compile_in_threads():
    environment = {**os.environ, "LETIR_KERNELS": "on", "LETIR_NUM_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", FORKS],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )

    assert (0, "") == (done.returncode, done.stdout + done.stderr)


def test_a_system_that_gives_no_thread_is_an_error_only_without_another_thread(monkeypatch):
    """As Python does when it is about to end."""
    waiting = threading.Event()
    running = begin_compilation(lambda: waiting.wait(60))
    started, start = [], threading.Thread.start

    def refuse(thread):
        started.append(thread)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    later = begin_compilation(lambda: 7)  # the running thread will do it
    waiting.set()
    assert (running.result(), later.result()) == (True, 7)
    monkeypatch.setattr(threading.Thread, "start", start)
    while compile_threads._threads.threads:
        time.sleep(0.001)  # a thread ends soon after its last task
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        begin_compilation(lambda: 7)
    monkeypatch.setattr(threading.Thread, "start", start)

    assert begin_compilation(lambda: 8).result() == 8


def test_with_a_wrong_number_of_threads_in_the_environment_one_thread_compiles(monkeypatch):
    lt.set_num_threads(None)
    monkeypatch.setenv("LETIR_NUM_THREADS", "many")

    assert begin_compilation(lambda: 7).result() == 7
    with pytest.raises(lt.DTypeError, match="LETIR_NUM_THREADS"):
        lt.get_num_threads()
