"""The child of a fork works, whatever other threads of its parent were doing."""

import faulthandler
import gc
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import traceback

import numpy as np
import pytest

import letir as lt
from letir.tracing.checks import hidden_random_state
from letir.tracing.stand_ins import is_recording

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:chain was compiled:RuntimeWarning"),
]

_FOREVER = 1200  # seconds


@pytest.fixture(autouse=True)
def without_logs():
    """Pytest's handler writes to a file; another thread may hold the file's lock during a fork."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def chain(x, n):
    for i in range(50):
        x = np.tanh(x) * (1 + i % n)
    return x.sum()


def child_status(call):
    """The exit status of a forked child that makes a call: 0 if it returns True."""
    pid = os.fork()
    if pid == 0:
        # a child that waits for a thread of its parent would wait forever; other children end by
        # themselves, on a busy machine after minutes
        faulthandler.dump_traceback_later(_FOREVER, exit=True)
        status = 1
        try:
            status = 0 if call() else 2
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]


def test_a_child_forked_while_another_thread_compiles_does_not_wait_for_it():
    compiled, stopped = lt.jit(chain, static_argnums=1), threading.Event()
    slow = threading.Event()

    def work():
        n = 0
        while not stopped.is_set():
            n += 1
            compiled(np.ones(3 + n % 5), 2)
            lt.grad(chain)(np.ones(3), 2)
            compiled.clear()
            slow.set()

    def use():
        found = [compiled(np.ones(3 + n), 2) for n in range(5)]
        expected = [chain(np.ones(3 + n), 2) for n in range(5)]
        lt.grad(chain)(np.ones(3), 2)
        return np.allclose(found, expected) and gc.isenabled() and not is_recording()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        slow.wait()
        assert [child_status(use) for _ in range(8)] == [0] * 8
    finally:
        stopped.set()
        thread.join()


def test_a_child_is_forked_while_another_thread_draws():
    """In a child, the module ``random`` is seeded before letir's locks are free."""
    started, go_on = threading.Event(), threading.Event()

    def draw(x):
        with hidden_random_state._drawing:  # as during a draw
            started.set()
            go_on.wait()
        return x + 1

    thread = threading.Thread(target=lt.trace, args=(draw, np.ones(2)))
    thread.start()
    try:
        started.wait()
        assert 0 == child_status(lambda: True)
    finally:
        go_on.set()
        thread.join()


def test_a_child_does_not_wait_for_a_compile_of_another_thread():
    started, go_on = threading.Event(), threading.Event()
    parent = os.getpid()

    @lt.jit
    def f(x):
        if os.getpid() == parent:
            started.set()
            go_on.wait()
        return x + 1

    thread = threading.Thread(target=f, args=(np.ones(2),))
    thread.start()
    started.wait()
    try:
        status = child_status(lambda: f(np.ones(2)).tolist() == [2, 2] and gc.isenabled())
    finally:
        go_on.set()
        thread.join()

    assert status == 0


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_decorated_functions_of_main_work_in_other_processes(method, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "import numpy as np\n"
        "import letir as lt\n"
        "@lt.jit\n"
        "def f(x):\n"
        "    return np.tanh(x).sum()\n"
        "slope = lt.grad(f)\n"
        "if __name__ == '__main__':\n"
        "    f(np.ones(2))\n"
        f"    with multiprocessing.get_context({method!r}).Pool(1) as pool:\n"
        "        print(pool.map(f, [np.zeros(2)]), pool.map(slope, [np.zeros(2)]))\n"
    )

    run = subprocess.run(  # noqa: PLW1510
        [sys.executable, script], capture_output=True, text=True, timeout=_FOREVER
    )

    assert run.stdout == "[np.float64(0.0)] [array([1., 1.])]\n", run.stderr
    assert method in multiprocessing.get_all_start_methods()


PARALLEL = """
import joblib
import numpy as np

import letir as lt


@lt.jit
def doubled(x):
    return np.sin(x) * 2


@lt.grad
def slope(x):
    return (x * x).sum()


program = lt.trace(lambda x: x + 1.0, np.ones(3))
cubed = lt.value_and_grad(lambda x: (x**3).sum())

if __name__ == "__main__":
    xs = [np.arange(3.0) * n for n in range(4)]
    for f in (doubled, slope, program, lt.compile(program), cubed):
        found = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(f)(x) for x in xs)
        for x, results in zip(xs, found, strict=True):
            lt.testing.assert_same(f(x), results)
"""


def test_processes_of_joblib_run_decorated_functions_of_a_script(tmp_path):
    """loky's processes import nothing of the script: cloudpickle sends the functions."""
    pytest.importorskip("joblib", reason="needs joblib, for example that of scikit-learn")
    script = tmp_path / "script.py"
    script.write_text(PARALLEL)

    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=_FOREVER, check=False
    )

    assert "" == run.stderr
    assert 0 == run.returncode
