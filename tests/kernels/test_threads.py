"""The number of threads, and the pool that computes chunks [F8]."""

import contextvars
import gc
import os
import signal
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

import letir as lt
from letir.errors import DTypeError
from letir.kernels import threads
from letir.kernels.threads import run_chunks


@pytest.fixture(autouse=True)
def _fresh_pool():
    """Helpers take part in the first call, whatever the calls before took."""
    threads._pool.resting = threads._pool.pause = 0
    yield
    lt.set_num_threads(None)


def test_the_number_of_threads_is_set_and_restored(monkeypatch):
    monkeypatch.delenv("LETIR_NUM_THREADS", raising=False)
    lt.set_num_threads(np.int64(3))
    assert 3 == lt.get_num_threads()
    lt.set_num_threads(None)
    assert 1 <= lt.get_num_threads() <= os.cpu_count()
    monkeypatch.setenv("LETIR_NUM_THREADS", "5")
    assert 5 == lt.get_num_threads()
    lt.set_num_threads(2)
    assert 2 == lt.get_num_threads()


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True, np.ones(2)])
def test_a_setting_that_is_not_a_number_of_threads_is_refused(n):
    with pytest.raises(DTypeError, match="set_num_threads"):
        lt.set_num_threads(n)


@pytest.mark.parametrize("text", ["0", "-2", "many", "1.5"])
def test_a_wrong_variable_is_refused(monkeypatch, text):
    monkeypatch.setenv("LETIR_NUM_THREADS", text)

    with pytest.raises(DTypeError, match="LETIR_NUM_THREADS: expected a number of threads"):
        lt.get_num_threads()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_the_default_is_the_cores_that_the_process_may_use(monkeypatch):
    monkeypatch.delenv("LETIR_NUM_THREADS", raising=False)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert 1 == lt.get_num_threads()
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_every_chunk_is_computed_once(n):
    for count in (0, 1, 2, 50):
        done = []
        run_chunks(done.append, count, n)

        assert list(range(count)) == sorted(done)


def test_chunks_run_in_the_context_of_the_caller():
    one, found = contextvars.ContextVar("one", default=0), []
    one.set(7)
    gate = threading.Barrier(3)

    def compute(_):
        gate.wait(30)  # so that each runs in its own thread
        found.append((one.get(), np.geterr()["over"]))

    with np.errstate(over="raise"):
        run_chunks(compute, 3, 3)

    assert [(7, "raise")] * 3 == found


def test_an_error_in_a_chunk_is_raised_and_leaves_the_pool_usable():
    gate = threading.Barrier(2)

    def compute(n):
        gate.wait(30)
        if threading.current_thread() is not threading.main_thread():
            raise FloatingPointError("in a helper")

    with pytest.raises(FloatingPointError, match="in a helper"):
        run_chunks(compute, 2, 2)
    done = []
    run_chunks(done.append, 9, 2)

    assert 9 == len(done)


def test_the_caller_works_alone_after_calls_that_helpers_have_held_up():
    """As where other processes keep the cores busy; after a while helpers take part again."""
    caller, begun, found = threading.current_thread(), threading.Event(), []

    def compute(_):
        found.append(threading.current_thread())
        if threading.current_thread() is caller:
            begun.wait(30)
        else:
            begun.set()
            time.sleep(0.05)

    lt.set_num_threads(2)
    run_chunks(compute, 9, 2)
    assert {caller} < set(found)

    assert [1, 2] == [threads.threads_of_call() for _ in range(2)]
    threads._pool.note_time(seconds=2.0, alone=1.0)
    assert [1, 1, 1, 2] == [threads.threads_of_call() for _ in range(4)]
    threads._pool.note_time(seconds=1.0, alone=2.0)
    threads._pool.note_time(seconds=2.0, alone=1.0)
    assert [1, 1, 1, 2] == [threads.threads_of_call() for _ in range(4)]


def test_an_interrupt_waits_for_chunks_and_leaves_the_pool_usable():
    gate, ended = threading.Barrier(2), []

    def compute(_):
        gate.wait(30)
        if threading.current_thread() is threading.main_thread():
            os.kill(os.getpid(), signal.SIGINT)
        for _ in range(100):
            time.sleep(0.001)
        ended.append(threading.current_thread())

    with pytest.raises(KeyboardInterrupt):
        run_chunks(compute, 2, 2)
    assert [t for t in ended if t is not threading.main_thread()]
    done = []
    run_chunks(done.append, 9, 3)

    assert 9 == len(done)


def test_calls_inside_chunks_and_from_many_threads_end():
    done = []

    def inner(n):
        done.append(n)

    def outer(_):
        run_chunks(inner, 5, 3)

    callers = [threading.Thread(target=run_chunks, args=(outer, 6, 4)) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(30)

    assert 8 * 6 * 5 == len(done)


def test_arrays_are_freed_after_a_call():
    x = np.ones(100)
    gone = weakref.ref(x)

    def compute(n, x=x):
        x[n] = 2

    run_chunks(compute, 100, 3)
    del x, compute
    end = time.monotonic() + 30
    while gone() is not None and time.monotonic() < end:
        time.sleep(0.001)  # a helper that came too late looks at the call once more
        gc.collect()

    assert gone() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_processes_fork_after_and_while_chunks_run():
    """Without a warning of Python's, which would fail the test; parent and child use threads."""
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            run_chunks(lambda n: None, 20, 3)

    caller = threading.Thread(target=busy)
    for is_busy in (False, True):
        if is_busy:
            caller.start()
        run_chunks(lambda n: None, 8, 3)
        with warnings.catch_warnings():
            # of JAX, if another test has imported it: it warns of every fork
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            if is_busy:  # by a thread of the user's own
                warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            done = []
            run_chunks(done.append, 50, 3)
            os._exit(0 if len(done) == 50 else 1)
        assert 0 == os.waitpid(child, 0)[1]
    stop.set()
    caller.join(30)
    done = []
    run_chunks(done.append, 50, 3)

    assert 50 == len(done)


def test_a_chunk_that_a_helper_has_taken_is_computed():
    """Also if the caller ends its own work before the helper begins to compute it."""
    done: list[int] = []
    job = threads._Job(done.append, 2)
    taken, ended = threading.Event(), threading.Event()

    class Places:
        """The places of chunks; the first is taken slowly."""

        def __init__(self):
            self.numbers = iter(range(10))

        def __iter__(self):
            return self

        def __next__(self):
            number = next(self.numbers)
            if number == 0:
                taken.set()
                ended.wait(10)
            return number

    job.places = Places()
    helper = threading.Thread(target=job.help, args=(contextvars.copy_context(),))
    helper.start()
    taken.wait(10)
    job.work()
    finishing = threading.Thread(target=job.finish)
    finishing.start()
    while job.count:
        time.sleep(0.001)
    ended.set()
    finishing.join(10)
    helper.join(10)

    assert sorted(done) == [0, 1]
